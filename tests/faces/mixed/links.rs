//! Links made on one side and seen on the other.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use crate::common::meeting::{BYTES, Meeting};

#[test]
fn a_symbolic_link_of_rest_leads_somewhere_on_the_mount_and_the_other_way_round() {
    let Some(at) = Meeting::start() else { return };
    at.file("linked-to");
    let rest = |name: &str| format!("/share/{name}?restype=symboliclink");
    at.put(&rest("link-by-rest"), &[("x-ms-link-text", "linked-to")]).is(201);
    assert_eq!(fs::read_link(at.path("link-by-rest")).unwrap().to_str(), Some("linked-to"));
    assert_eq!(fs::read(at.path("link-by-rest")).unwrap(), BYTES);
    symlink("linked-to", at.path("link-by-mount")).unwrap();
    let got = at.get(&rest("link-by-mount")).is(200);
    assert_eq!(got.header("x-ms-link-text"), "linked-to");
    at.delete("/share/link-by-mount").is(202);
    assert!(fs::symlink_metadata(at.path("link-by-mount")).is_err());
    fs::remove_file(at.path("link-by-rest")).unwrap();
    at.get(&rest("link-by-rest")).refused(404, "ResourceNotFound");
    assert_eq!(fs::read(at.path("linked-to")).unwrap(), BYTES);
}

#[test]
fn a_hard_link_of_rest_is_the_same_file_on_the_mount_at_once() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("hard-first");
    assert_eq!(fs::metadata(file.path()).unwrap().nlink(), 1);
    let target = [("x-ms-type", "file"), ("x-ms-file-target-file", "hard-first")];
    at.put("/share/hard-second?restype=hardlink", &target).is(201);
    let [first, second] = ["hard-first", "hard-second"].map(|name| fs::metadata(at.path(name)));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!((first.nlink(), second.nlink()), (2, 2));
    assert_eq!(first.ino(), second.ino());
    fs::write(at.path("hard-second"), "written by the mount").unwrap();
    assert_eq!(file.bytes(), b"written by the mount");
    fs::remove_file(at.path("hard-first")).unwrap();
    assert_eq!(at.named("hard-second").bytes(), b"written by the mount");
}
