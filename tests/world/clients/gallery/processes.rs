//! `latchfs explore`: clients as processes, in two languages, and what is said where that fails.

use std::process::Output;

use serde_json::Value;

use crate::common::need::{self, cache, python};
use crate::common::served::{LATCHFS, Served};

const COUNT_UP_PY: &str = "\
import os, sys
from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.storage.blob import BlobClient
connection = os.environ['AZURE_STORAGE_CONNECTION_STRING']
blob = BlobClient.from_connection_string(connection, 'box', 'count', retry_total=0)
while True:
    read = blob.download_blob()
    more = str(int(read.readall()) + 1)
    guard = {'etag': read.properties.etag, 'match_condition': MatchConditions.IfNotModified}
    try:
        blob.upload_blob(more, overwrite=True, **(guard if 'guarded' in sys.argv else {}))
        break
    except ResourceModifiedError:
        pass
";

const COUNT_UP_MJS: &str = "\
import { createRequire } from 'node:module';
const { BlobServiceClient } = createRequire(process.argv[2])('@azure/storage-blob');
const connection = process.env.AZURE_STORAGE_CONNECTION_STRING;
const once = { retryOptions: { maxTries: 1 } };
const service = BlobServiceClient.fromConnectionString(connection, once);
const blob = service.getContainerClient('box').getBlockBlobClient('count');
const more = String(Number(await blob.downloadToBuffer()) + 1);
await blob.upload(more, more.length);
";

/// A server, and the scripts beside its data.
struct Place {
    server: Served,
}

impl Place {
    fn new() -> Self {
        let server = Served::start(&["--no-mount"]);
        std::fs::write(server.folder().join("count_up.py"), COUNT_UP_PY).expect("a file");
        std::fs::write(server.folder().join("count_up.mjs"), COUNT_UP_MJS).expect("a file");
        Self { server }
    }

    /// Runs `latchfs explore` with these clients.
    fn explore(&self, clients: &[&str], more: &[&str]) -> Output {
        let setup = format!("{LATCHFS} mk blob:box && printf 0 | {LATCHFS} put blob:box/count");
        let check = format!("test \"$({LATCHFS} get blob:box/count)\" = 2");
        let mut arguments = vec!["explore"];
        if !more.contains(&"--check") {
            arguments.extend(["--setup", &*setup, "--check", &*check]);
        }
        for client in clients {
            arguments.extend(["--client", *client]);
        }
        arguments.extend(more);
        self.server.latchfs(&arguments).output().expect("the command runs")
    }

    /// Nothing is left of an exploration.
    #[track_caller]
    fn assert_clean(&self) {
        let told = |arguments: &[&str]| {
            let output = self.server.latchfs(arguments).output().expect("the command runs");
            String::from_utf8(output.stdout).expect("text")
        };
        assert_eq!(told(&["client", "list"]), "");
        assert_eq!(told(&["state", "list"]), "");
        assert_eq!(told(&["ls", "blob:"]).lines().count(), 0);
        let clock: Value = serde_json::from_str(&told(&["clock", "--json"])).expect("JSON");
        assert_eq!(clock["frozen"], false, "{clock}");
    }
}

fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn processes_of_two_languages_are_explored_and_their_token_replays() {
    let sdk = cache("node/node_modules/@azure/storage-blob");
    if !need::client("node") || !need::installed(&[&python(), &sdk]) {
        return;
    }
    let place = Place::new();
    let python = format!("A={} count_up.py", python().display());
    let node = format!("B=node count_up.mjs {}", cache("node/package.json").display());
    let found = place.explore(&[&python, &node], &["--json"]);
    assert_eq!(found.status.code(), Some(1), "{}", said(&found));
    let json: Value = serde_json::from_slice(&found.stdout).expect("JSON");
    let token = json["failure"]["token"].as_str().expect("a token");
    assert!(token.starts_with("A.B3.A~"), "{json}");
    let again = place.explore(&[&python, &node], &["--replay", token]);
    assert_eq!(again.status.code(), Some(1), "{}", said(&again));
    for part in ["--check exited with 1", "Put Blob", "--replay 'A.B3.A~"] {
        assert!(said(&again).contains(part), "{}", said(&again));
    }
    let guarded = ["A", "B"].map(|name| format!("{name}{} guarded", &python[1..]));
    let passed = place.explore(&[&guarded[0], &guarded[1]], &[]);
    assert!(passed.status.success(), "{}", said(&passed));
    assert!(said(&passed).contains("all that matter"), "{}", said(&passed));
    place.assert_clean();
}

#[test]
fn what_cannot_be_explored_is_said_in_a_sentence_and_leaves_nothing_behind() {
    let place = Place::new();
    let refused = |clients: &[&str], more: &[&str], status: i32, part: &str| {
        let output = place.explore(clients, more);
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        assert!(said(&output).contains(part), "no '{part}' in {}", said(&output));
        place.assert_clean();
    };
    refused(&["A"], &[], 2, "expected NAME=CMD");
    refused(&["A=true", "A=true"], &[], 2, "A");
    refused(&["A=true", "b c=true"], &[], 2, "b c");
    refused(&["A=true", "B=/no/such"], &[], 2, "/no/such");
    refused(&["A=true", "B=true"], &["--replay", "A.C~0000"], 2, "copy the whole token");
    refused(&["A=true", "B=true"], &["--replay", "A.B~0000"], 2, "A");
    refused(&["A=true", "B=true"], &["--check", "echo wrong; false"], 1, "wrong");
    refused(&["A=true", "B=exit 3"], &["--check", "true"], 1, "client B exited with 3");
    refused(&["A=true", "B=true"], &["--setup", "exit 4", "--check", "true"], 2, "exited with 4");
    // A number that no other sleep has.
    let sleep = (70_000 + std::process::id()).to_string();
    let forever = format!("B=sleep {sleep}");
    let within = ["--within", "1s", "--check", "true"];
    refused(&["A=true", &forever], &within, 2, "B did not end within 1s");
    let left = std::fs::read_dir("/proc").expect("processes").flatten().filter(|process| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        line == format!("sleep\0{sleep}\0").into_bytes()
    });
    assert_eq!(left.count(), 0, "a client was left");
}
