//! smbtorture, of Debian's samba-testsuite: how many tests of each suite pass at least. What does
//! not is listed with its reason in `docs/smb.md`.

use std::process::Command;

use latchfs::http::auth::{DEVELOPMENT_KEY, DEVELOPMENT_NAME};

use super::{OPTIONS, address};
use crate::common::need;
use crate::common::served::Served;

/// Suites, with the least number of tests that pass.
const SUITES: [(&str, usize); 14] = [
    ("sharemode", 3),
    ("deny", 2),
    ("tcon", 1),
    ("mkdir", 1),
    ("credits", 3),
    ("connect", 1),
    ("openattr", 1),
    ("read", 4),
    ("lock", 18),
    ("rename", 11),
    ("dir", 6),
    ("create", 11),
    ("compound", 16),
    ("delete-on-close-perms", 7),
];

/// The names of the tests that passed and of those that did not.
fn run(served: &Served, suite: &str) -> (Vec<String>, Vec<String>) {
    let address = address(served);
    let (host, port) = address.split_once(':').unwrap();
    let done = Command::new("smbtorture")
        .args([&format!("//{host}/share"), "-p", port, "--configfile=/dev/null"])
        .arg(format!("-U{DEVELOPMENT_NAME}%{DEVELOPMENT_KEY}"))
        .args(["--option=torture:progress=no", "--fullname", &format!("smb2.{suite}")])
        .current_dir(served.folder())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&done.stdout);
    let named = |start: &str| -> Vec<_> {
        let lines = out.lines().filter_map(|line| line.strip_prefix(start));
        lines.map(|line| line.split_whitespace().next().unwrap_or_default().to_owned()).collect()
    };
    let crashed = done.status.code().is_none();
    assert!(!crashed, "smb2.{suite} ended by {}:\n{out}", done.status);
    let passed = named("success: ");
    let failed = [named("failure: "), named("error: ")].concat();
    (passed, failed)
}

#[test]
#[ignore = "smbtorture takes minutes: tests/run --all installs it and runs this"]
fn smbtorture_passes_as_many_tests_as_it_did() {
    if !need::client("smbtorture") {
        return;
    }
    let mut wrong = Vec::new();
    for (suite, least) in SUITES {
        let served = Served::start(OPTIONS);
        let (passed, failed) = run(&served, suite);
        println!("smb2.{suite}: {} passed; not {}", passed.len(), failed.join(", "));
        if passed.len() < least {
            wrong.push(format!("{suite}: {} passed, not {least}: {failed:?}", passed.len()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
