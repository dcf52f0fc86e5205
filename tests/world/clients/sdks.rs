//! The Python and the Node SDK of each service: every public method, good and refused.
//!
//! The rounds are in `file/`, `blob/`, `queue/` and `table/`, what they share in `harness/`.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{interpreter, run, script};
use crate::common::need::{self, cache, python};
use crate::common::served::{LATCHFS, Served};

/// What rounds are told of a server: what its ready file has, with the endpoint of their service.
fn facts(server: &Served, service: &str) -> Value {
    let mut facts: Value = serde_json::from_slice(&fs::read(server.ready_file()).unwrap()).unwrap();
    facts["endpoint"] = facts["endpoints"][service].clone();
    facts["latchfs"] = json!(LATCHFS);
    facts
}

/// Runs a client with the facts of a new server as its argument. Files are also used through the
/// mount; blobs on a second server too, which keeps versions and leaves copies pending.
#[track_caller]
fn play(service: &str, mut client: Command, last: &str) {
    let server = Served::start(if service == "file" { &[] } else { &["--no-mount"] });
    let mut facts = facts(&server, service);
    let options = ["--no-mount", "--blob-versioning", "--copy-delay", "3600"];
    let versioned = (service == "blob").then(|| Served::start(&options));
    if let Some(versioned) = &versioned {
        facts["versioned"] = self::facts(versioned, service)["endpoint"].clone();
    }
    client.arg(facts.to_string());
    run(client, last);
}

#[track_caller]
fn rounds_of_python(service: &str, face: &str) {
    if (service != "file" || need::fuse()) && need::installed(&[&python()]) {
        let folders = std::env::join_paths([script("harness"), script(service)]).unwrap();
        let mut client = interpreter();
        client.env("PYTHONPATH", folders).args(["-m", "play", face]);
        play(service, client, face);
    }
}

#[track_caller]
fn rounds_of_node(service: &str, package: &str) {
    let sdk = cache("node/node_modules/@azure").join(package);
    if (service != "file" || need::fuse()) && need::client("node") && need::installed(&[&sdk]) {
        let mut client = Command::new("node");
        client.arg(script(service).join("node/round.mjs"));
        play(service, client, "met");
    }
}

#[test]
fn the_python_sdk_of_files_does_all_it_can() {
    rounds_of_python("file", "sync");
}

#[test]
fn the_python_sdk_of_files_does_all_it_can_in_its_aio_form_too() {
    rounds_of_python("file", "aio");
}

#[test]
fn the_node_sdk_of_files_does_all_it_can() {
    rounds_of_node("file", "storage-file-share");
}

#[test]
fn the_python_sdk_of_blobs_does_all_it_can() {
    rounds_of_python("blob", "sync");
}

#[test]
fn the_python_sdk_of_blobs_does_all_it_can_in_its_aio_form_too() {
    rounds_of_python("blob", "aio");
}

#[test]
fn the_node_sdk_of_blobs_does_all_it_can() {
    rounds_of_node("blob", "storage-blob");
}

#[test]
fn the_python_sdk_of_queues_does_all_it_can() {
    rounds_of_python("queue", "sync");
}

#[test]
fn the_python_sdk_of_queues_does_all_it_can_in_its_aio_form_too() {
    rounds_of_python("queue", "aio");
}

#[test]
fn the_node_sdk_of_queues_does_all_it_can() {
    rounds_of_node("queue", "storage-queue");
}

#[test]
fn the_python_sdk_of_tables_does_all_it_can() {
    rounds_of_python("table", "sync");
}

#[test]
fn the_python_sdk_of_tables_does_all_it_can_in_its_aio_form_too() {
    rounds_of_python("table", "aio");
}

#[test]
fn the_node_sdk_of_tables_does_all_it_can() {
    rounds_of_node("table", "data-tables");
}

#[test]
fn both_sdks_of_files_get_the_names_that_the_service_has_for_errors_today() {
    let sdk = cache("node/node_modules/@azure/storage-file-share");
    if need::fuse() && need::client("node") && need::installed(&[&sdk, &python()]) {
        for (mut client, name) in
            [(Command::new("node"), "file/node/names.mjs"), (interpreter(), "file/names.py")]
        {
            let server = Served::start(&["--error-names", "service"]);
            client.arg(script(name)).arg(facts(&server, "file").to_string());
            run(client, "met");
        }
    }
}

#[test]
fn the_loop_of_the_page_moves_poison_messages_away() {
    if need::installed(&[&python()]) {
        let mut client = interpreter();
        client.arg(script("queue/poison.py")).arg(script("../../../docs/queue.md"));
        play("queue", client, "met");
    }
}
