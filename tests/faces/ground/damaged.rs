//! One damaged file of a share's state: the other shares and services are served.

use std::fs;

use latchfs::Server;
use latchfs::rules::service::ServiceKind;

use crate::common::http::ask;

#[test]
fn a_share_with_a_damaged_file_is_left_out_with_a_note_and_a_reset_heals_it() {
    let folder = tempfile::tempdir().unwrap();
    let start = || Server::builder().data(folder.path()).no_auth().start().unwrap();
    drop(start());
    let epoch = folder.path().join(".latchfs/accounts/devstoreaccount1/shares/share/epoch");
    fs::write(&epoch, "").unwrap();
    let server = start();
    let notes = server.notes().join("\n");
    let said = format!("share share is not served: {} is damaged", epoch.display());
    assert!(notes.contains(&said) && notes.contains("start again"), "{notes}");
    let address = |kind| {
        let endpoint = server.endpoint(kind).unwrap();
        endpoint.split('/').nth(2).unwrap().parse().unwrap()
    };
    let (file, blob) = (address(ServiceKind::File), address(ServiceKind::Blob));
    ask(file, "GET", "/share?restype=share", &[], b"").refused(404, "ShareNotFound");
    ask(file, "PUT", "/other?restype=share", &[], b"").is(201);
    ask(blob, "PUT", "/box?restype=container", &[], b"").is(201);
    server.reset().unwrap();
    ask(file, "GET", "/share?restype=share", &[], b"").is(200);
    drop(server);
    assert!(!start().notes().join("\n").contains("is not served"));
}
