//! Unmodified clients of the Queue service: every public method of the Python and the Node SDK,
//! good and refused, against a server in this process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use latchfs::disk::DataRoot;
use latchfs::http::auth::{Admission, Authorizer, Credential, Credentials, DEVELOPMENT_KEY};
use latchfs::http::server::{RestOptions, RestServer};
use latchfs::server::{AccountOptions, Accounts};
use serde_json::json;

use crate::common::http::ACCOUNT;
use crate::common::need::{self, cache, python};

/// A server that wants signatures.
pub struct Queues {
    server: RestServer,
    _folder: tempfile::TempDir,
}

impl Queues {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path()).unwrap();
        let options = AccountOptions::default();
        let accounts = Accounts::open(&root, ACCOUNT, [""; 0], &options).unwrap();
        let credentials = Credentials::new([Credential::development()]).unwrap();
        let authorizer = Authorizer { accounts: credentials, ..Authorizer::default() };
        let listen = "127.0.0.1:0".parse().unwrap();
        let options = RestOptions { listen, ..RestOptions::new(Admission::Signed(authorizer)) };
        let server = RestServer::start(
            Arc::new(accounts),
            &latchfs::queue::rest::operations::SERVICE_TABLE,
            options,
        )
        .unwrap();
        Self { server, _folder: folder }
    }

    /// What a client must know, as JSON.
    pub fn facts(&self) -> String {
        let endpoint = format!("http://{}/{ACCOUNT}", self.server.addr());
        let connection_string = format!(
            "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={DEVELOPMENT_KEY};\
             QueueEndpoint={endpoint};"
        );
        json!({
            "account": ACCOUNT,
            "key": DEVELOPMENT_KEY,
            "endpoint": endpoint,
            "connection_string": connection_string,
        })
        .to_string()
    }
}

/// A script of this folder.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/world/clients/queue").join(name)
}

/// Runs a round: `INTERPRETER SCRIPT FACTS ..`, whose last line begins with `last`.
#[track_caller]
pub fn play(mut interpreter: Command, more: &[&str], last: &str) {
    let queues = Queues::start();
    let run = interpreter.arg(queues.facts()).args(more).output().expect("the interpreter runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let met = out.lines().last().is_some_and(|line| line.starts_with(last));
    assert!(run.status.success() && met, "{out}\n{err}");
}

fn rounds_of_python(face: &str) {
    if need::installed(&[&python()]) {
        let mut interpreter = Command::new(python());
        // No compiled files among the sources.
        interpreter.arg("-B").arg(script("rounds.py"));
        play(interpreter, &[face], face);
    }
}

#[test]
fn the_python_sdk_of_queues_does_all_it_can() {
    rounds_of_python("sync");
}

#[test]
fn the_python_sdk_of_queues_does_all_it_can_in_its_aio_form_too() {
    rounds_of_python("aio");
}

#[test]
fn the_node_sdk_of_queues_does_all_it_can() {
    let sdk = cache("node/node_modules/@azure/storage-queue");
    if need::client("node") && need::installed(&[&sdk]) {
        let mut interpreter = Command::new("node");
        interpreter.arg(script("node/round.mjs"));
        play(interpreter, &[], "met");
    }
}

#[test]
fn the_loop_of_the_page_moves_poison_messages_away() {
    if need::installed(&[&python()]) {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/queue.md");
        let mut interpreter = Command::new(python());
        interpreter.arg("-B").arg(script("poison.py"));
        play(interpreter, &[page.to_str().expect("a path in UTF-8")], "met");
    }
}
