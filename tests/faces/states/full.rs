//! What cannot be done is refused before anything is changed: on a disk that is too small, and
//! where a share cannot be moved. What fails half way ends all service.

use std::ffi::CStr;
use std::fs;

use super::fixture::{builder, clients, listed};
use crate::common::ground::Ground;
use crate::common::need;

/// The disk, smaller than twice the file that fills most of it.
const SIZE: &CStr = c"size=48m";

#[test]
fn a_save_and_a_restore_that_do_not_fit_are_refused_and_leave_nothing() {
    if !need::root() {
        return;
    }
    let ground = Ground::new("tmpfs", SIZE);
    let data = ground.path().join("data");
    let server = builder().data(&data).start().unwrap();
    let [client, _] = clients(&server);
    client.furnish();
    let share = data.join("first/files/docs");
    server.save_state("small").unwrap();
    fs::write(share.join("filler"), vec![1; 24 << 20]).unwrap();
    let refused = server.save_state("large").unwrap_err().to_string();
    assert!(refused.contains("space"), "{refused}");
    assert_eq!(listed(&data.join(".latchfs/states")), ["small"]);
    assert_eq!(client.names()["containers"], ["box"]);
    // All that is left of the disk.
    let filler = ground.path().join("rest");
    let mut rest = fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut rest, &[0; 8_192]).is_ok() {}
    let refused = server.restore_state("small").unwrap_err().to_string();
    assert!(refused.contains("space") || refused.contains("free"), "{refused}");
    let refused = server.reset().unwrap_err().to_string();
    assert!(refused.contains("space") || refused.contains("free"), "{refused}");
    assert_eq!(client.files("docs"), ["dir", "filler"], "a refusal changes nothing");
    assert_eq!(client.names()["containers"], ["box"]);
    drop(rest);
    fs::remove_file(filler).unwrap();
    server.restore_state("small").unwrap();
    assert_eq!(client.files("docs"), ["dir"]);
    server.save_state("large").unwrap();
}

#[test]
fn a_share_that_is_a_mount_point_is_refused_and_nothing_is_replaced() {
    if !need::root() {
        return;
    }
    let mut ground = Ground::new("tmpfs", SIZE);
    let data = ground.path().join("data");
    drop(builder().data(&data).start().unwrap());
    // On the same file system, as a volume of a container can be.
    ground.bind("data/second/files/volume");
    for _ in 0..2 {
        let server = builder().data(&data).start().unwrap();
        let [client, other] = clients(&server);
        client.blob("PUT", "/box?restype=container", &[], b"");
        server.save_state("start").unwrap();
        for refused in [server.reset(), server.restore_state("start")] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("volume") && refused.contains("mount point"), "{refused}");
        }
        // All is as before, also after the next start.
        assert_eq!(client.names()["containers"], ["box"]);
        assert_eq!(other.names()["shares"], ["volume"]);
        client.queue("PUT", "/jobs", b"");
        let new = [("x-ms-type", "file"), ("x-ms-content-length", "5")];
        other.file("PUT", "/volume/a.txt", &new, b"").is(201);
    }
}

#[test]
fn after_a_failure_half_way_no_request_is_acknowledged_until_a_start_has_completed_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = builder().data(&data).start().unwrap();
    for client in clients(&server) {
        client.furnish();
    }
    // The share that is to be there after a reset cannot be made.
    let share = data.join("first/files/docs");
    fs::remove_dir_all(&share).unwrap();
    fs::write(&share, "a file").unwrap();
    server.reset().unwrap_err();
    for client in clients(&server) {
        let block = [("x-ms-blob-type", "BlockBlob")];
        let new = [("x-ms-type", "file"), ("x-ms-content-length", "5")];
        let answers = [
            client.blob("PUT", "/box/new", &block, b"new"),
            client.blob("GET", "/box/small", &[], b""),
            client.blob("PUT", "/?restype=service&comp=properties", &[], b"<a />"),
            client.queue("PUT", "/more", b""),
            client.table("POST", "/Tables", &[], br#"{"TableName":"more"}"#),
            client.file("PUT", "/more?restype=share", &[], b""),
            client.file("PUT", "/docs/new", &new, b""),
        ];
        for answer in answers {
            assert!(answer.text().contains("start the server again"), "{answer:?}");
            assert_eq!(answer.status, 503);
        }
    }
    drop(server);
    fs::remove_file(&share).unwrap();
    let server = builder().data(&data).start().unwrap();
    let [client, other] = clients(&server);
    for client in [&client, &other] {
        assert!(client.names()["containers"].is_empty());
        assert!(client.names()["queues"].is_empty() && client.names()["tables"].is_empty());
    }
    assert!(client.files("docs").is_empty());
}
