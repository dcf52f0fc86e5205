//! The Python SDKs over TLS: bearer tokens, keys of customers, and copies from one latchfs to
//! another.

use std::fs;

use super::{interpreter, run, script};
use crate::common::need::{self, python};
use crate::common::served::Served;

#[test]
fn the_python_sdk_speaks_https_sends_tokens_and_copies_from_another_server() {
    if !need::installed(&[&python()]) {
        return;
    }
    let other = Served::start(&["--no-mount", "--tls", "self"]);
    // What the first trusts when it asks the second.
    let trusted = fs::canonicalize(other.told("ca_file")).expect("the file to trust");
    let server = Served::start_with(
        &["--no-mount", "--tls", "self", "--oauth", "basic", "--copy-sources", "any"],
        &[("SSL_CERT_FILE", &trusted)],
    );
    let mut client = interpreter();
    client.arg(script("file/tls.py")).args([server.ready_file(), other.ready_file()]);
    run(client, "met");
}

#[test]
fn the_python_sdk_of_blobs_sends_tokens_and_keys_over_tls() {
    if need::installed(&[&python()]) {
        let server = Served::start(&["--no-mount", "--tls", "self", "--oauth", "basic"]);
        let mut client = interpreter();
        client.arg(script("blob/secure.py")).arg(server.ready_file());
        run(client, "met");
    }
}
