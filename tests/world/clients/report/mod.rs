//! What the report and the events say of unmodified SDKs: which client did what, the failing orders
//! of five bugs, and none of it in their cures.

use std::path::Path;

use super::{interpreter, run, script};
use crate::common::need::{self, cache, python};
use crate::common::served::LATCHFS;

#[track_caller]
fn play(name: &str, arguments: &[&Path]) {
    let mut client = interpreter();
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python/src");
    client.env("PYTHONPATH", package).env("LATCHFS_BINARY", LATCHFS);
    client.arg(script("report").join(name)).args(arguments);
    run(client, "met");
}

#[test]
fn five_bugs_are_errors_in_their_failing_order_and_their_cures_are_none() {
    if need::installed(&[&python()]) {
        play("orders.py", &[]);
    }
}

#[test]
fn threads_on_one_pool_sas_and_processes_of_two_languages_have_their_names() {
    let sdk = cache("node/node_modules/@azure/storage-blob");
    if need::client("node") && need::installed(&[&python(), &sdk]) {
        play("names.py", &[&sdk]);
    }
}
