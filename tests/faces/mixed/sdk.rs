//! The official Python client over the table of one handle (behaviour 136).

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::common::need;
use crate::common::served::Served;

/// Rows of the matrix with the access of the handle, and for each operation of the client what
/// it is answered: `-` is a sharing violation, `+` success.
const ROWS: [(&str, &str, &str); 12] = [
    // get, ranges, put, properties, metadata, create, lease, look, delete
    ("r", "none", "-------+-"),
    ("r", "r", "++-----+-"),
    ("r", "w", "--+++--+-"),
    ("r", "d", "-------+-"),
    ("r", "rw", "+++++--+-"),
    ("r", "rd", "++-----+-"),
    ("r", "wd", "--++++-+-"),
    ("r", "rwd", "++++++++-"),
    ("w", "r", "++-----+-"),
    ("rw", "rwd", "++++++-+-"),
    ("none", "none", "++++++++-"),
    ("none", "rwd", "++++++++-"),
];

#[test]
fn b136_the_python_client_gets_the_same_codes_as_its_own_exceptions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = need::python();
    if !need::fuse() || !need::installed(&[&python]) {
        return;
    }
    let server = Served::start(&[]);
    let run = Command::new(&python)
        .arg(root.join("tests/faces/mixed/sdk.py"))
        .arg(server.ready_file())
        .arg(json!(ROWS).to_string())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.trim() == "108 answers as expected", "{out}\n{err}");
}
