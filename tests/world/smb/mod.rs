//! SMB clients that are not ours against a running latchfs, each through a round of what its users
//! do: a script of this folder that is given a server of its own, and fails where an answer is not
//! as expected. No mount, and no root.
//!
//! `tests/run` installs the clients, pinned; without them the tests are skipped. Kernel clients
//! (Linux, Windows, macOS) need a machine of their own, and are not tried.

mod torture;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::need::{self, cache};
use crate::common::served::{LATCHFS, Served};

const OPTIONS: &[&str] = &["--no-mount", "--smb", "127.0.0.1:0"];

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/world/smb").join(name)
}

fn python() -> PathBuf {
    cache("smb/bin/python")
}

/// Host and port of the SMB listener.
fn address(served: &Served) -> String {
    let ready = fs::read_to_string(served.ready_file()).unwrap();
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let endpoint = ready["endpoints"]["smb"].as_str().unwrap_or_else(|| panic!("{ready}"));
    endpoint.trim_start_matches("smb://").to_owned()
}

/// Runs a script to its end, which prints `met`: `SCRIPT READY_FILE PROGRAM`.
#[track_caller]
fn play(name: &str, program: Option<&Path>) {
    let needed: Vec<_> =
        [Some(&*python()), program].into_iter().flatten().map(Path::to_owned).collect();
    let needed: Vec<_> = needed.iter().map(PathBuf::as_path).collect();
    if !need::installed(&needed) {
        return;
    }
    let served = Served::start(OPTIONS);
    let mut client = Command::new(python());
    client.arg("-B").arg(script(name)).arg(served.ready_file()).args(program);
    finishes(&mut client, "met");
}

/// Runs a client to its end: it must succeed, and the last line that it prints be `last`.
#[track_caller]
fn finishes(client: &mut Command, last: &str) {
    let run = client.output().expect("the client runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let met = out.lines().last().is_some_and(|line| line.trim_end() == last);
    assert!(run.status.success() && met, "{out}\n{err}");
}

#[test]
fn smbclient_lists_puts_gets_renames_and_deletes_in_every_dialect() {
    if need::client("smbclient") {
        play("samba.py", None);
    }
}

#[test]
fn smbprotocol_opens_with_share_modes_and_lists() {
    play("protocol.py", None);
}

#[test]
fn impacket_lists_shares_copies_and_meets_a_sharing_violation() {
    play("packets.py", None);
}

#[test]
fn pysmb_starts_with_smb1_and_goes_on_with_smb2() {
    play("from_smb1.py", None);
}

#[test]
fn rclone_copies_with_16_transfers_without_a_difference() {
    play("rclone.py", Some(&cache("rclone/bin/rclone")));
}

#[test]
fn explore_finds_a_race_between_smb_and_rest_and_tries_all_orders_of_its_corrected_form() {
    if need::installed(&[&python()]) {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python/src");
        let mut client = Command::new(python());
        client.arg("-B").arg(script("explored.py"));
        client.env("PYTHONPATH", package).env("LATCHFS_BINARY", LATCHFS);
        finishes(&mut client, "met");
    }
}

/// The script on the page, in the address alone not as it is written.
#[test]
fn the_script_of_the_page_does_what_the_page_says() {
    if !need::installed(&[&python()]) {
        return;
    }
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/smb.md"));
    let page = page.unwrap();
    let (_, block) = page.split_once("\n```python\n").expect("the page has a script");
    let (text, rest) = block.split_once("\n```\n").unwrap();
    let (_, said) = rest.split_once("\n```text\n").expect("the page shows what it prints");
    let (said, _) = said.split_once("\n```\n").unwrap();
    let served = Served::start(OPTIONS);
    let address = address(&served);
    let (_, port) = address.split_once(':').unwrap();
    assert!(text.contains("10445"));
    let text = text.replace("10445", port).replace("127.0.0.1:10004", &served.addr().to_string());
    let run = Command::new(python()).arg("-c").arg(text).output().unwrap();
    let out = String::from_utf8_lossy(&run.stdout).into_owned();
    let err = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && out.trim_end() == said, "{out}\n{err}");
}
