//! The examples of the page on tables, run as they stand there.

use super::{interpreter, run};
use crate::common::need::{self, python};
use crate::common::pages::{blocks, page};
use crate::common::served::Served;

/// Runs the example of the page that has `part`, and then `more`, which prints `last`.
#[track_caller]
fn example(part: &str, more: &str, last: &str) {
    if !need::installed(&[&python()]) {
        return;
    }
    let page = page("docs/table.md");
    let example = blocks(&page, "python").into_iter().find(|block| block.contains(part));
    let served = Served::start(&["--no-mount"]);
    let mut client = interpreter();
    client
        .args(["-c", &format!("{}\n{more}", example.expect("the page has the example"))])
        .env("AZURE_STORAGE_CONNECTION_STRING", served.told("connection_string"));
    run(client, last);
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
    example("count_up", COUNTING, "40");
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
    example("def alone", BEHIND_THE_LOCK, "20");
}
