//! Extended attributes, and the one that is not for programs.

use rustix::fs::XattrFlags;
use rustix::io::Errno;

use crate::mount::fixture::Fixture;
use crate::mount::program::Program;

const OURS: &str = "user.latchfs";

fn list(path: &std::path::Path) -> Vec<String> {
    let mut names = vec![0; 4096];
    let length = rustix::fs::listxattr(path, &mut names[..]).unwrap();
    names.truncate(length);
    let names = String::from_utf8(names).unwrap();
    names.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn the_record_of_the_share_is_hidden() {
    let Some(at) = Fixture::start() else { return };
    let path = at.make("f", "");
    rustix::fs::setxattr(at.root.join("f"), OURS, b"{}", XattrFlags::CREATE).unwrap();
    assert_eq!(list(&path), [""; 0]);
    assert_eq!(rustix::fs::getxattr(&path, OURS, &mut [0; 64][..]), Err(Errno::NODATA));
    let set = rustix::fs::setxattr(&path, OURS, b"mine", XattrFlags::empty());
    assert_eq!(set, Err(Errno::PERM));
    assert_eq!(rustix::fs::removexattr(&path, OURS), Err(Errno::NODATA));
    assert_eq!(rustix::fs::getxattr(at.root.join("f"), OURS, &mut [0; 64][..]), Ok(2));
}

#[test]
fn access_control_lists_are_refused_rather_than_kept_and_not_enforced() {
    let Some(at) = Fixture::start() else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    at.make("f", "");
    // The kernel looks at the value first: owner rw, group and others r.
    program.ok("os.mkdir('d'); entry = lambda tag, bits: struct.pack('<HHi', tag, bits, -1)");
    program.ok("acl = struct.pack('<I', 2) + entry(1, 6) + entry(4, 4) + entry(32, 4)");
    for (file, name) in [
        ("f", "system.posix_acl_access"),
        ("d", "system.posix_acl_default"),
        ("f", "security.selinux"),
    ] {
        let refused = program.fails(&format!("os.getxattr('{file}', '{name}')"));
        assert_eq!(refused, libc::EOPNOTSUPP, "{name}");
        let refused = program.fails(&format!("os.setxattr('{file}', '{name}', acl)"));
        assert_eq!(refused, libc::EOPNOTSUPP, "{name}");
    }
}
