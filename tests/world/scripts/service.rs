//! The systemd unit: that systemd reads it, and that latchfs knows what it is given.

use std::fs;
use std::process::Command;

use super::{err, help, path};
use crate::common::need;
use crate::common::pages::page;
use crate::common::served::LATCHFS;

const PLACE: &str = "/usr/local/bin/latchfs";

fn unit() -> String {
    fs::read_to_string(path("latchfs.service")).unwrap()
}

/// The values of a key.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

#[test]
fn every_flag_and_variable_of_the_unit_is_one_that_serve_has() {
    let (unit, help, page) = (unit(), help("serve"), page("docs/configuration.md"));
    assert_eq!(values(&unit, "Type"), ["notify"]);
    let start = values(&unit, "ExecStart");
    let words: Vec<_> = start[0].split(' ').collect();
    assert_eq!(words[..2], [PLACE, "serve"]);
    for flag in words.iter().filter(|word| word.starts_with("--")) {
        assert!(help.split_whitespace().any(|word| word == *flag), "{flag} is not in\n{help}");
    }
    let variables = values(&unit, "Environment");
    assert!(!variables.is_empty());
    for variable in variables {
        let name = variable.split('=').next().unwrap();
        let known = page.lines().any(|line| line.starts_with(&format!("| `{name}` ")));
        assert!(known, "{name} is not in the page on configuration");
    }
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    if !need::client("systemd-analyze") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("latchfs.service");
    fs::write(&copy, unit().replace(PLACE, LATCHFS)).unwrap();
    let output = Command::new("systemd-analyze").arg("verify").arg(&copy).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", err(&output));
}
