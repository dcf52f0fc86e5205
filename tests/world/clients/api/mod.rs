//! schemathesis calls the HTTP API as its OpenAPI document says, and as it does not say: every
//! answer must be one that the document tells.

use std::path::Path;
use std::process::Command;

use crate::common::need::{self, cache};
use crate::common::served::Served;

/// Cases for each call and phase.
const CASES: &str = "50";

#[test]
#[ignore = "it takes minutes: tests/run --all installs schemathesis and runs this"]
fn schemathesis_meets_no_answer_that_the_document_does_not_tell() {
    let program = cache("schemathesis/bin/schemathesis");
    if !need::installed(&[&program]) {
        return;
    }
    let server = Served::start(&["--no-mount", "--share", "docs"]);
    let ready: serde_json::Value =
        serde_json::from_slice(&std::fs::read(server.ready_file()).unwrap()).unwrap();
    let document = format!("{}/api/v1/openapi.json", ready["admin"].as_str().unwrap());
    let hooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/world/clients/api");
    let run = Command::new(program)
        .args(["run", &document, "-n", CASES, "-H", "x-latchfs-client: schemathesis"])
        // Texts that fit the schema may still name no operation, or a moment that is past.
        .args(["--exclude-checks", "positive_data_acceptance"])
        .args(["--request-timeout", "30", "--phases", "examples,coverage,fuzzing"])
        .args(["--suppress-health-check", "all", "--no-color"])
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", hooks)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // It keeps what it has found beside it.
        .current_dir(server.ready_file().parent().unwrap())
        .output()
        .expect("schemathesis runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{out}\n{err}");
    // Of the lines that end so, the one about all phases.
    let mut cases = out.lines().filter_map(|line| line.trim().strip_suffix(" passed"));
    let (made, passed) = cases.find_map(|line| line.split_once(" generated, ")).expect(&out);
    assert_eq!(made, passed, "{out}\n{err}");
    assert!(made.parse::<u32>().is_ok_and(|made| made > 1_000), "{out}");
}
