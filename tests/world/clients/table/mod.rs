//! Unmodified clients of the Table service: every public method of the Python and the Node SDK,
//! good and refused, against a server in this process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use latchfs::disk::DataRoot;
use latchfs::http::auth::{Admission, Authorizer, Credential, Credentials, DEVELOPMENT_KEY};
use latchfs::http::server::{RestOptions, RestServer};
use latchfs::server::{AccountOptions, Accounts};

use crate::common::http::ACCOUNT;
use crate::common::need::{self, cache, python};
use crate::common::pages::{blocks, page};
use crate::common::served::Served;

/// A server that wants signatures.
pub struct Tables {
    server: RestServer,
    _folder: tempfile::TempDir,
}

impl Tables {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path()).unwrap();
        let names: [&str; 0] = [];
        let options = AccountOptions::default();
        let accounts = Accounts::open(&root, ACCOUNT, names, &options).unwrap();
        let credentials = Credentials::new([Credential::development()]).unwrap();
        let authorizer = Authorizer { accounts: credentials, ..Authorizer::default() };
        let options = RestOptions::new(Admission::Signed(authorizer));
        let server = RestServer::start(
            Arc::new(accounts),
            &latchfs::table::rest::operations::SERVICE_TABLE,
            options,
        )
        .unwrap();
        Self { server, _folder: folder }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}/{ACCOUNT}", self.server.addr())
    }
}

pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/world/clients/table").join(name)
}

/// Runs a round: `INTERPRETER .. ENDPOINT ACCOUNT KEY ..`, which prints `last` at its end.
#[track_caller]
fn play(mut interpreter: Command, more: &[&str], last: &str) {
    let tables = Tables::start();
    let run = interpreter.args([&tables.endpoint(), ACCOUNT, DEVELOPMENT_KEY]).args(more).output();
    let run = run.expect("the interpreter runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.trim() == last, "{out}\n{err}");
}

fn rounds_of_python(face: &str) {
    if !need::installed(&[&python()]) {
        return;
    }
    let mut interpreter = Command::new(python());
    // No compiled files among the sources.
    interpreter.arg("-B").arg(script("rounds.py"));
    play(interpreter, &[face], face);
}

#[test]
fn the_python_sdk_of_tables_does_all_it_can() {
    rounds_of_python("sync");
}

#[test]
fn the_python_sdk_of_tables_does_all_it_can_in_its_aio_form_too() {
    rounds_of_python("aio");
}

#[test]
fn the_node_sdk_of_tables_does_all_it_can() {
    let sdk = cache("node/node_modules/@azure/data-tables");
    if need::client("node") && need::installed(&[&sdk]) {
        let mut interpreter = Command::new("node");
        interpreter.arg(script("node/round.mjs"));
        play(interpreter, &[], "node");
    }
}

/// What runs the example of the page: several threads that count up one entity.
const COUNTING: &str = r#"
import threading

table.create_table()
table.create_entity({"PartitionKey": "p", "RowKey": "r", "n": 0})
threads = [
    threading.Thread(target=lambda: [count_up("p", "r") for _ in range(10)]) for _ in range(4)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(table.get_entity("p", "r")["n"])
"#;

#[test]
fn the_example_of_reading_changing_and_writing_loses_no_step() {
    if !need::installed(&[&python()]) {
        return;
    }
    let page = page("docs/table.md");
    let example = blocks(&page, "python").into_iter().find(|block| block.contains("count_up"));
    let tables = Tables::start();
    let connection = format!(
        "DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={DEVELOPMENT_KEY};\
         TableEndpoint={};",
        tables.endpoint()
    );
    let program = format!("{}\n{COUNTING}", example.expect("the page has the example"));
    let run = Command::new(python())
        .args(["-B", "-c", &program])
        .env("AZURE_STORAGE_CONNECTION_STRING", connection)
        .output()
        .expect("Python runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.trim() == "40", "{out}\n{err}");
}

/// What runs the example of the lock: threads that read and write without any check.
const BEHIND_THE_LOCK: &str = r#"
import threading
from azure.storage.blob import ContainerClient

ContainerClient.from_connection_string(connection, "locks").create_container()
lock.upload_blob(b"")
table.create_table()
table.create_entity({"PartitionKey": "p", "RowKey": "r", "n": 0})


def count_up():
    entity = table.get_entity("p", "r")
    entity["n"] += 1
    table.upsert_entity(entity)


threads = [
    threading.Thread(target=lambda: [alone(count_up) for _ in range(5)]) for _ in range(4)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(table.get_entity("p", "r")["n"])
"#;

#[test]
fn the_example_of_a_table_behind_a_leased_blob_loses_no_step() {
    if !need::installed(&[&python()]) {
        return;
    }
    let page = page("docs/table.md");
    let example = blocks(&page, "python").into_iter().find(|block| block.contains("def alone"));
    let served = Served::start(&["--no-mount"]);
    let program = format!("{}\n{BEHIND_THE_LOCK}", example.expect("the page has the example"));
    let run = Command::new(python())
        .args(["-B", "-c", &program])
        .env("AZURE_STORAGE_CONNECTION_STRING", served.told("connection_string"))
        .output()
        .expect("Python runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.trim() == "20", "{out}\n{err}");
}
