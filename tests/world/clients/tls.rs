//! The Python SDK over TLS: bearer tokens, and copies from one latchfs to another.

use std::fs;
use std::path::Path;
use std::process::Command;

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
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/world/clients/file/tls.py");
    let run = Command::new(python())
        .arg(script)
        .args([server.ready_file(), other.ready_file()])
        .output()
        .expect("Python runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.trim() == "met", "{out}\n{err}");
}
