//! The gallery: bugs of real programs, each found by `explore` with its corrected version, by
//! unmodified SDKs.
//!
//! - `blobs.py` and `others.py`: the programs; `play.py` plays them;
//! - `node/gallery.mjs`: five of them again, both clients on one thread;
//! - `forms.py`: clients as coroutines, and a program on a mount; `delta.py`: delta-rs;
//! - [`processes`]: clients as processes, by `latchfs explore`.

mod processes;

use std::process::Command;

use super::{interpreter, run, script};
use crate::common::need::{self, cache, python};
use crate::common::served::LATCHFS;

/// Whether the long form of a test was asked for.
fn full() -> bool {
    std::env::var_os("LATCHFS_FULL").is_some()
}

/// A script of the gallery in Python, with the package of the repository.
#[track_caller]
fn play(name: &str, arguments: &[&str]) {
    play_with(interpreter(), name, arguments);
}

#[track_caller]
fn play_with(mut client: Command, name: &str, arguments: &[&str]) {
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python/src");
    let folders = std::env::join_paths([package, script("gallery")]).expect("paths");
    client.env("PYTHONPATH", folders).env("LATCHFS_BINARY", LATCHFS);
    client.arg(script("gallery").join(name)).args(arguments);
    run(client, "played");
}

#[test]
fn every_bug_of_the_gallery_is_found_and_its_corrected_version_passes_every_order() {
    if need::installed(&[&python()]) {
        // How often a token is replayed, beside how many busy loops.
        play("play.py", if full() { &["100", "16"] } else { &["3", "0"] });
    }
}

#[test]
fn bugs_of_the_gallery_are_found_with_both_clients_on_one_thread_of_node() {
    let sdk = cache("node/node_modules/@azure/data-tables");
    if need::client("node") && need::installed(&[&sdk]) {
        let mut client = Command::new("node");
        client.arg(script("gallery/node/gallery.mjs")).arg(if full() { "100" } else { "3" });
        client.env("LATCHFS_BINARY", LATCHFS);
        run(client, "played");
    }
}

#[test]
fn coroutines_of_one_loop_are_explored() {
    if need::installed(&[&python()]) {
        play("forms.py", &["coroutines"]);
    }
}

#[test]
fn a_program_on_a_mount_is_explored_against_rest() {
    if need::fuse() && need::installed(&[&python()]) {
        play("forms.py", &["mount"]);
    }
}

#[test]
fn two_appends_to_a_delta_table_are_right_in_every_order() {
    let python = cache("libraries/bin/python");
    if need::installed(&[&python]) {
        let mut client = Command::new(python);
        client.arg("-B");
        play_with(client, "delta.py", if full() { &["2000"] } else { &["20"] });
    }
}
