//! Other users on the mount: who owns what they make, and what writing takes from a file.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use latchfs::file::mount::UnlinkMode;
use latchfs::file::rules::create::OpenRequest;
use latchfs::file::rules::{Access, ShareMode};
use serde_json::json;

use crate::mount::fixture::{Fixture, SOON, share_path, somebody, within};
use crate::mount::program::Program;

const OTHER: u32 = 65_534;

fn start() -> Option<(Fixture, Program)> {
    let at = Fixture::with(|options| options.allow_other = true)?;
    let program = Program::as_user(OTHER, &at.mnt)?;
    fs::set_permissions(&at.mnt, Permissions::from_mode(0o777)).unwrap();
    Some((at, program))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn what_another_user_makes_is_that_users() {
    let Some((at, mut other)) = start() else { return };
    other.ok("os.umask(0o022)");
    other.ok("os.close(os.open('f', os.O_CREAT | os.O_WRONLY, 0o666))");
    other.ok("os.mkdir('d')");
    other.ok("os.symlink('x', 'l')");
    other.ok("os.mkfifo('p')");
    for name in ["f", "d", "l", "p"] {
        let seen = fs::symlink_metadata(at.root.join(name)).unwrap();
        assert_eq!((seen.uid(), seen.gid()), (OTHER, OTHER), "{name}");
    }
    assert_eq!((mode(&at.path("f")), mode(&at.path("d"))), (0o644, 0o755));
}

#[test]
fn a_set_group_id_directory_hands_its_group_down() {
    let Some((at, mut other)) = start() else { return };
    fs::create_dir(at.path("g")).unwrap();
    chown(at.path("g"), None, Some(4242)).unwrap();
    fs::set_permissions(at.path("g"), Permissions::from_mode(0o2777)).unwrap();
    other.ok("os.umask(0)");
    other.ok("os.close(os.open('g/f', os.O_CREAT | os.O_WRONLY, 0o666))");
    other.ok("os.mkdir('g/d')");
    let gid = |name: &str| fs::metadata(at.root.join(name)).unwrap().gid();
    assert_eq!((gid("g/f"), gid("g/d")), (4242, 4242));
    assert_eq!(mode(&at.path("g/d")), 0o2777);
    assert_eq!(mode(&at.path("g/f")), 0o666);
}

#[test]
fn permission_bits_bind_other_users() {
    let Some((at, mut other)) = start() else { return };
    let path = at.make("secret", "x");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(other.fails("open('secret')"), libc::EACCES);
    assert_eq!(other.fails("os.chmod('secret', 0o666)"), libc::EPERM);
    assert_eq!(other.ok("os.access('secret', os.R_OK)"), json!(false));
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(other.ok("open('secret').read()"), json!("x"));
    assert_eq!(other.fails("open('secret', 'w')"), libc::EACCES);
}

#[test]
fn writing_by_another_user_takes_the_set_id_bits_away() {
    let Some((at, mut other)) = start() else { return };
    let writes = [
        "f = os.open('f', os.O_WRONLY); os.write(f, b'x'); os.close(f)",
        "os.truncate('f', 1)",
        "f = os.open('f', os.O_RDWR); os.ftruncate(f, 1); os.close(f)",
        "os.close(os.open('f', os.O_WRONLY | os.O_TRUNC))",
    ];
    let path = at.make("f", "xyz");
    for write in writes {
        fs::set_permissions(&path, Permissions::from_mode(0o6777)).unwrap();
        assert_eq!(mode(&path), 0o6777);
        other.ok(write);
        assert_eq!(mode(&at.root.join("f")), 0o777, "{write}");
        // The kernel may show what it knows for a second.
        assert!(within(SOON, || mode(&path) == 0o777), "{write}");
    }
    fs::set_permissions(&path, Permissions::from_mode(0o6777)).unwrap();
    other.ok("open('f').read()");
    assert_eq!(mode(&at.root.join("f")), 0o6777, "reading takes nothing away");
}

#[test]
fn writing_to_a_file_without_a_name_takes_the_set_id_bits_away() {
    let Some(at) = Fixture::with(|options| {
        options.allow_other = true;
        options.unlink = UnlinkMode::Posix;
    }) else {
        return;
    };
    let Some(mut other) = Program::as_user(OTHER, &at.mnt) else { return };
    for flags in ["os.O_WRONLY", "os.O_RDWR", "os.O_WRONLY | os.O_TRUNC"] {
        let path = at.make("f", "xyz");
        fs::set_permissions(&path, Permissions::from_mode(0o6777)).unwrap();
        let backing = fs::File::open(at.root.join("f")).unwrap();
        other.ok("f = os.open('f', os.O_RDONLY)");
        fs::remove_file(&path).unwrap();
        let mode = || backing.metadata().unwrap().mode() & 0o7777;
        assert_eq!(mode(), 0o6777, "{flags}");
        other.ok(&format!("os.close(os.open(f'/proc/self/fd/{{f}}', {flags}))"));
        assert_eq!(mode(), 0o777, "{flags}");
        other.ok("os.close(f)");
    }
}

#[test]
fn a_refused_truncation_leaves_the_set_id_bits() {
    let Some((at, mut other)) = start() else { return };
    let name = at.make("f", "xyz");
    fs::set_permissions(&name, Permissions::from_mode(0o4777)).unwrap();
    let request = OpenRequest::plain(Access::R, ShareMode::NONE);
    let held = at.share.open(&somebody(), &share_path("f"), &request).unwrap();
    assert_eq!(other.fails("os.truncate('f', 1)"), libc::EBUSY);
    let seen = fs::metadata(at.root.join("f")).unwrap();
    assert_eq!((seen.mode() & 0o7777, seen.len()), (0o4777, 3));
    at.share.close(&held.handle).unwrap();
    other.ok("os.truncate('f', 1)");
    assert_eq!(mode(&at.root.join("f")), 0o777);
}

#[test]
fn changing_the_owner_takes_the_set_id_bits_away() {
    let Some((at, mut other)) = start() else { return };
    other.ok("os.close(os.open('f', os.O_CREAT | os.O_WRONLY, 0o777))");
    other.ok("os.chmod('f', 0o4755)");
    assert_eq!(mode(&at.root.join("f")), 0o4755);
    other.ok(&format!("os.chown('f', -1, {OTHER})"));
    assert_eq!(mode(&at.root.join("f")), 0o755);
}
