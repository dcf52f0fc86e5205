//! Unmodified clients of the Blob service: every public method of the Python and the Node SDK,
//! good and refused, against servers in this process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use latchfs::blob::service::BlobOptions;
use latchfs::disk::DataRoot;
use latchfs::http::auth::{Admission, Authorizer, Credential, Credentials, DEVELOPMENT_KEY};
use latchfs::http::server::{RestOptions, RestServer};
use latchfs::server::{AccountOptions, Accounts};
use serde_json::json;

use crate::common::http::ACCOUNT;
use crate::common::need::{self, cache, python};
#[cfg(feature = "tls")]
use crate::common::served::Served;

/// A server that wants signatures.
struct Blobs {
    server: RestServer,
    _folder: tempfile::TempDir,
}

impl Blobs {
    fn start(blob: BlobOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path()).unwrap();
        let options = AccountOptions { blob, ..AccountOptions::default() };
        let accounts = Accounts::open(&root, ACCOUNT, [""; 0], &options).unwrap();
        let credentials = Credentials::new([Credential::development()]).unwrap();
        let authorizer = Authorizer { accounts: credentials, ..Authorizer::default() };
        let listen = "127.0.0.1:0".parse().unwrap();
        let options = RestOptions { listen, ..RestOptions::new(Admission::Signed(authorizer)) };
        let server = RestServer::start(
            Arc::new(accounts),
            &latchfs::blob::rest::operations::SERVICE_TABLE,
            options,
        )
        .unwrap();
        Self { server, _folder: folder }
    }

    fn endpoint(&self) -> String {
        format!("http://{}/{ACCOUNT}", self.server.addr())
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/world/clients/blob").join(name)
}

/// Runs a round: `INTERPRETER SCRIPT FACTS ..`, whose last line begins with `last`. Beside the
/// server there is one that keeps versions and leaves copies pending.
#[track_caller]
fn play(mut interpreter: Command, more: &[&str], last: &str) {
    let plain = Blobs::start(BlobOptions::default());
    let copy_delay = Duration::from_hours(1);
    let other = BlobOptions { versioning: true, copy_delay, ..BlobOptions::default() };
    let other = Blobs::start(other);
    let endpoint = plain.endpoint();
    let connection_string = format!(
        "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={DEVELOPMENT_KEY};\
         BlobEndpoint={endpoint};"
    );
    let facts = json!({
        "account": ACCOUNT,
        "key": DEVELOPMENT_KEY,
        "endpoint": endpoint,
        "versioned": other.endpoint(),
        "connection_string": connection_string,
    });
    let run = interpreter.arg(facts.to_string()).args(more).output().expect("it runs");
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
fn the_python_sdk_of_blobs_does_all_it_can() {
    rounds_of_python("sync");
}

#[test]
fn the_python_sdk_of_blobs_does_all_it_can_in_its_aio_form_too() {
    rounds_of_python("aio");
}

#[cfg(feature = "tls")]
#[test]
fn the_python_sdk_of_blobs_sends_tokens_and_keys_over_tls() {
    if need::installed(&[&python()]) {
        let server = Served::start(&["--no-mount", "--tls", "self", "--oauth", "basic"]);
        let mut interpreter = Command::new(python());
        interpreter.arg("-B").arg(script("secure.py")).arg(server.ready_file());
        let run = interpreter.output().expect("it runs");
        let told = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success() && run.stdout == b"met\n", "{told}");
    }
}

#[test]
fn the_node_sdk_of_blobs_does_all_it_can() {
    let sdk = cache("node/node_modules/@azure/storage-blob");
    if need::client("node") && need::installed(&[&sdk]) {
        let mut interpreter = Command::new("node");
        interpreter.arg(script("node/round.mjs"));
        play(interpreter, &[], "met");
    }
}
