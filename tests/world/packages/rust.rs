//! The example crate that runs a server in its own process, without the command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::sandbox::{said, show, succeeded};
use crate::common::served::LATCHFS;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/rust")
}

/// A command of cargo for the example, with the dependencies that the crate itself is built with.
fn cargo(arguments: &[&str]) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The example has no lock file of its own: the crate's is taken, less what is not needed.
    fs::copy(root.join("Cargo.lock"), example().join("Cargo.lock")).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(arguments).arg("--offline").current_dir(example());
    // Beside the builds of the crate, so that what it depends on is compiled once.
    let target = Path::new(LATCHFS).parent().unwrap().parent().unwrap();
    cargo.env("CARGO_TARGET_DIR", target).env_remove("CARGO_MANIFEST_DIR");
    cargo
}

#[test]
fn the_example_builds_without_the_command_line_and_its_test_passes() {
    let tree = succeeded(cargo(&["tree", "--edges", "normal,dev", "--prefix", "none"]));
    assert!(tree.contains("latchfs v") && tree.contains("hyper v"), "{tree}");
    for unwanted in ["clap", "fuser", "rustls", "anyhow", "env_logger"] {
        let named = tree.lines().any(|line| line.starts_with(&format!("{unwanted} v")));
        assert!(!named, "{unwanted} is among the dependencies:\n{tree}");
    }
    let crates: std::collections::BTreeSet<_> =
        tree.lines().filter(|line| line.contains(" v")).collect();
    show(&format!("the Rust example: {} crates", crates.len()));
    let done = cargo(&["test", "-j2"]).output().unwrap();
    let text = said(&done);
    assert!(done.status.success() && text.contains("free_again_afterwards ... ok"), "{text}");
    assert!(text.contains("in_an_order_that_is_found ... ok"), "{text}");
}
