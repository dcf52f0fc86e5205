//! A data directory that 0.2 left when it was killed: all rows are in the write-ahead logs.

use std::net::SocketAddr;
use std::process::Command;

use crate::common::http::ask;
use crate::common::served::Served;

/// Written by 0.2.0 with seven requests and ended by SIGKILL: the container `con` with the blobs
/// `small` (in its row) and `large` (in a content file), the queue `tasks` with a message that
/// never expires, the table `tab` with an entity.
const KILLED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faces/states/killed-0.2.tar.gz");
const JSON: [(&str, &str); 1] = [("accept", "application/json;odata=nometadata")];

fn addr(served: &Served, service: &str) -> SocketAddr {
    let text = std::fs::read_to_string(served.ready_file()).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&text).unwrap();
    let url = ready["endpoints"][service].as_str().unwrap();
    url.split('/').nth(2).unwrap().parse().unwrap()
}

#[test]
fn a_data_directory_of_a_killed_0_2_opens_with_all_that_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let unpacked =
        Command::new("tar").arg("-xzf").arg(KILLED).arg("-C").arg(folder.path()).status();
    assert!(unpacked.unwrap().success());
    let (data, any) = (folder.path().join("data"), "127.0.0.1:0");
    let args = ["--no-auth", "--no-mount", "--blob", any, "--queue", any, "--table", any];
    let args = [&args[..], &["--data", data.to_str().unwrap()]].concat();
    let mut served = Served::start(&args);
    // As it was left, and after this program was killed on it too.
    for round in 0..2 {
        let (blob, queue) = (addr(&served, "blob"), addr(&served, "queue"));
        assert_eq!(ask(blob, "GET", "/con/small", &[], b"").is(200).body, b"small");
        assert_eq!(ask(blob, "GET", "/con/large", &[], b"").is(200).body, vec![b'x'; 100_000]);
        let peeked = ask(queue, "GET", "/tasks/messages?peekonly=true", &[], b"").is(200);
        assert!(peeked.text().contains("<MessageText>text</MessageText>"));
        let entity = "/tab(PartitionKey='p',RowKey='r')";
        let got = ask(addr(&served, "table"), "GET", entity, &JSON, b"").is(200);
        assert!(got.text().contains(r#""Note":"text""#), "{}", got.text());
        let new = format!("/con/new-{round}");
        ask(blob, "PUT", &new, &[("x-ms-blob-type", "BlockBlob")], b"new").is(201);
        served.crash_and_restart(&args);
        assert_eq!(ask(addr(&served, "blob"), "GET", &new, &[], b"").is(200).body, b"new");
    }
}
