//! A file system without extended attributes: ramfs.

use std::fs;

use crate::common::ground::Ground;
use crate::common::need;
use crate::common::served::Served;
use crate::ground::{create, errno, rest, write};

#[test]
fn metadata_is_kept_beside_the_files_where_they_cannot_carry_it() {
    if !need::fuse() || !need::root() {
        return;
    }
    let ground = Ground::new("ramfs", c"");
    let data = ground.path().join("data");
    let args = ["--no-auth", "--data", data.to_str().unwrap()];
    let mut served = Served::start(&args);
    create(&served, "a", 5).is(201);
    write(&served, "a", b"hello").is(201);
    rest(&served, "PUT", "/a?comp=metadata", &[("x-ms-meta-colour", "blue")]).is(200);
    let hidden = [("x-ms-file-attributes", "Hidden"), ("x-ms-content-type", "text/plain")];
    rest(&served, "PUT", "/a?comp=properties", &hidden).is(200);
    fs::rename(served.mount().join("a"), served.mount().join("b")).unwrap();
    for _ in 0..2 {
        let got = rest(&served, "GET", "/b", &[]).is(200);
        assert_eq!((got.text().as_str(), got.header("x-ms-meta-colour")), ("hello", "blue"));
        assert_eq!(got.header("content-type"), "text/plain");
        assert_eq!(got.header("x-ms-file-attributes"), "Hidden");
        served.crash_and_restart(&args);
    }
    let set = rustix::fs::setxattr(
        served.mount().join("b"),
        "user.own",
        b"x",
        rustix::fs::XattrFlags::empty(),
    );
    assert_eq!(errno(set.map_err(std::io::Error::from)), libc::EOPNOTSUPP);
    // A file of the same name knows nothing of the first one's.
    fs::remove_file(served.mount().join("b")).unwrap();
    create(&served, "b", 0).is(201);
    let got = rest(&served, "HEAD", "/b", &[]).is(200);
    assert!(!got.headers.contains_key("x-ms-meta-colour"), "{got:?}");
}
