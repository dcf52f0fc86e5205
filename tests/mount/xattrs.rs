//! Extended attributes, and the one that is not for programs.

use std::fs;

use rustix::fs::XattrFlags;
use rustix::io::Errno;

use crate::fixture::Fixture;

const OURS: &str = "user.latchfs";

fn list(path: &std::path::Path) -> Vec<String> {
    let mut names = vec![0; 4096];
    let length = rustix::fs::listxattr(path, &mut names[..]).unwrap();
    names.truncate(length);
    let names = String::from_utf8(names).unwrap();
    names.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn an_attribute_is_set_read_listed_and_removed() {
    let Some(at) = Fixture::start() else { return };
    let path = at.make("f", "");
    fs::create_dir(at.path("d")).unwrap();
    for path in [path, at.path("d")] {
        let mut value = [0; 16];
        let get = |value: &mut [u8]| rustix::fs::getxattr(&path, "user.color", value);
        assert_eq!(get(&mut value), Err(Errno::NODATA));
        let set = |value: &[u8], flags| rustix::fs::setxattr(&path, "user.color", value, flags);
        assert_eq!(set(b"red", XattrFlags::REPLACE), Err(Errno::NODATA));
        set(b"red", XattrFlags::CREATE).unwrap();
        assert_eq!(set(b"blue", XattrFlags::CREATE), Err(Errno::EXIST));
        assert_eq!(get(&mut value), Ok(3));
        assert_eq!(&value[..3], b"red");
        assert_eq!(get(&mut [0; 2]), Err(Errno::RANGE));
        assert_eq!(rustix::fs::getxattr_query(&path, "user.color"), Ok(3));
        assert_eq!(rustix::fs::listxattr_query(&path), Ok("user.color\0".len()));
        assert_eq!(list(&path), ["user.color"]);
        assert_eq!(rustix::fs::listxattr(&path, &mut [0_u8; 3][..]), Err(Errno::RANGE));
        rustix::fs::removexattr(&path, "user.color").unwrap();
        assert_eq!(get(&mut value), Err(Errno::NODATA));
        assert_eq!(rustix::fs::removexattr(&path, "user.color"), Err(Errno::NODATA));
    }
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
