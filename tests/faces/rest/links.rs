//! Symbolic and hard links over REST. What the mount shows of them is in `mixed`.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::rest::fixture::Fixture;

const LEASE: &str = "11111111-2222-3333-4444-555555555555";

fn hard(target: &str) -> [(&str, &str); 2] {
    [("x-ms-type", "file"), ("x-ms-file-target-file", target)]
}

#[test]
fn a_symbolic_link_is_made_read_and_deleted_and_never_followed() {
    let fixture = Fixture::new();
    fixture.put("/docs/d?restype=directory", &[]).is(201);
    fixture.upload("d/a", b"bytes");
    let target = "/docs/d/l?restype=symboliclink";
    let text = [("x-ms-link-text", "../d/a 100%"), ("x-ms-meta-k", "v")];
    let made = fixture.put(target, &text).is(201);
    assert_eq!((made.header("x-ms-file-file-type"), made.header("x-ms-mode")), ("SymLink", "0777"));
    let on_disk = fs::symlink_metadata(fixture.on_disk("d/l")).unwrap();
    assert_eq!(made.header("x-ms-owner"), on_disk.uid().to_string());
    assert_eq!(made.header("x-ms-file-id"), on_disk.ino().to_string());
    let parent = fs::metadata(fixture.on_disk("d")).unwrap().ino().to_string();
    assert_eq!(made.header("x-ms-file-parent-id"), parent);
    assert!(!made.headers.contains_key("x-ms-file-attributes"));
    assert_eq!(fs::read_link(fixture.on_disk("d/l")).unwrap().to_str(), Some("../d/a 100%"));
    let got = fixture.get(target).is(200);
    assert_eq!(
        (got.header("x-ms-link-text"), got.header("etag")),
        ("../d/a 100%25", made.header("etag"))
    );
    // The name is taken, and leads nowhere.
    fixture.put(target, &text).refused(409, "ResourceAlreadyExists");
    fixture.put("/docs/d/a?restype=symboliclink", &text).refused(409, "ResourceAlreadyExists");
    fixture.get("/docs/d/l").refused(404, "ResourceNotFound");
    let list = fixture.get("/docs/d?restype=directory&comp=list").is(200).text();
    assert!(!list.contains("<Name>l</Name>"), "{list}");
    // What is none, or not there.
    fixture.get("/docs/d/a?restype=symboliclink").refused(404, "ResourceNotFound");
    fixture.get("/docs/d?restype=symboliclink").refused(404, "ResourceNotFound");
    fixture.get("/docs/none?restype=symboliclink").refused(404, "ResourceNotFound");
    fixture.get("/docs/none/l?restype=symboliclink").refused(404, "ParentNotFound");
    fixture.put("/docs/none/l?restype=symboliclink", &text).refused(404, "ParentNotFound");
    fixture.put("/docs/m?restype=symboliclink", &[]).refused(400, "MissingRequiredHeader");
    let owner = [text[0], ("x-ms-owner", "root")];
    fixture.put("/docs/m?restype=symboliclink", &owner).refused(400, "InvalidHeaderValue");
    // A snapshot keeps it.
    let got = fixture.put("/docs?restype=share&comp=snapshot", &[]).is(201);
    let snapshot = got.header("x-ms-snapshot").replace(':', "%3A");
    fixture.delete("/docs/d/l").is(202);
    fixture.get(target).refused(404, "ResourceNotFound");
    assert_eq!(fixture.get("/docs/d/a").is(200).text(), "bytes");
    let got = fixture.get(&format!("{target}&sharesnapshot={snapshot}")).is(200);
    assert_eq!(got.header("x-ms-link-text"), "../d/a 100%25");
}

#[test]
fn a_hard_link_is_one_more_name_of_a_file() {
    let fixture = Fixture::new();
    fixture.put("/docs/d?restype=directory", &[]).is(201);
    fixture.upload("d/a%25", b"bytes");
    let made = fixture.put("/docs/b?restype=hardlink", &hard("d/a%")).is(201);
    assert_eq!(made.header("x-ms-file-file-type"), "Regular");
    assert_eq!(made.header("x-ms-link-count"), "2");
    assert!(!made.headers.contains_key("x-ms-file-permission-key"));
    let first = fixture.head("/docs/d/a%25").is(200);
    assert_eq!(first.header("x-ms-file-id"), made.header("x-ms-file-id"));
    assert_eq!(first.header("etag"), made.header("etag"));
    fixture.put_range("/docs/b", 0, b"B", &[]).is(201);
    assert_eq!(fixture.get("/docs/d/a%25").is(200).text(), "Bytes");
    // The lease is the file's: a link needs no ID, and one that is sent must match.
    let lease = [
        ("x-ms-lease-action", "acquire"),
        ("x-ms-lease-duration", "-1"),
        ("x-ms-proposed-lease-id", LEASE),
    ];
    fixture.put("/docs/b?comp=lease", &lease).is(201);
    let wrong =
        [hard("b")[0], hard("b")[1], ("x-ms-lease-id", "22222222-2222-3333-4444-555555555555")];
    fixture
        .put("/docs/c?restype=hardlink", &wrong)
        .refused(412, "LeaseIdMismatchWithFileOperation");
    fixture.put("/docs/c?restype=hardlink", &hard("/b")).is(201);
    fixture.delete("/docs/c").refused(412, "LeaseIdMissing");
    let release = [("x-ms-lease-action", "release"), ("x-ms-lease-id", LEASE)];
    fixture.put("/docs/b?comp=lease", &release).is(200);
    // A handle that shares nothing refuses reads by every name, and no further name.
    let held = fixture.open("b", "rw", "none");
    fixture.get("/docs/d/a%25").refused(409, "SharingViolation");
    fixture.put("/docs/e?restype=hardlink", &hard("b")).is(201);
    drop(held);
    fixture.put("/docs/b?restype=hardlink", &hard("d/a%")).refused(409, "ResourceAlreadyExists");
    fixture.put("/docs/f?restype=hardlink", &hard("d")).refused(409, "ResourceTypeMismatch");
    fixture.put("/docs/f?restype=hardlink", &hard("none")).refused(404, "ResourceNotFound");
    fixture.put("/docs/f?restype=hardlink", &hard("none/a")).refused(404, "ParentNotFound");
    fixture.put("/docs/none/f?restype=hardlink", &hard("b")).refused(404, "ParentNotFound");
    fixture.put("/docs/f?restype=hardlink", &hard("..")).refused(400, "InvalidResourceName");
    fixture.put("/docs/f?restype=hardlink", &hard("b")[1..]).refused(400, "MissingRequiredHeader");
    fixture.get("/docs/f").refused(404, "ResourceNotFound");
}
