//! The Node SDK and the command-line clients, each through a round of what its users do: a script
//! that is given a server of its own and fails where an answer is not as expected.
//!
//! What a round holds is in its script: `file/node/` for the SDK, `programs/` for rclone, azcopy, az.

use std::path::Path;
use std::process::Command;

use crate::common::need::{self, cache, python};
use crate::common::served::{LATCHFS, Served};

/// True if all of these are installed, and a mount can be made.
#[track_caller]
fn installed(files: &[&Path]) -> bool {
    need::fuse() && need::installed(files)
}

/// Plays the round of `script` against a server with these options:
/// `INTERPRETER SCRIPT READY_FILE PROGRAM`, which says `met`.
#[track_caller]
fn play(mut interpreter: Command, script: &str, program: &Path, options: &[&str]) {
    let server = Served::start(options);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/world/clients").join(script);
    let run = interpreter.arg(script).arg(server.ready_file()).arg(program).output();
    let run = run.expect("the interpreter runs");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let last = out.lines().last().unwrap_or_default();
    assert!(run.status.success() && last.starts_with("met"), "{out}\n{err}");
}

/// Plays the round of a program, if it is installed.
#[track_caller]
fn play_program(script: &str, program: &Path) {
    if installed(&[&python(), program]) {
        let mut interpreter = Command::new(python());
        // No compiled files among the sources.
        interpreter.arg("-B");
        play(interpreter, script, program, &[]);
    }
}

/// Plays the round of a program on blobs, queues or tables, which needs no mount.
#[track_caller]
fn play_unmounted(script: &str, program: &Path) {
    if need::installed(&[&python(), program]) {
        let mut interpreter = Command::new(python());
        interpreter.arg("-B");
        play(interpreter, script, program, &["--no-mount"]);
    }
}

#[test]
fn the_node_sdk_does_all_it_can() {
    let sdk = cache("node/node_modules/@azure/storage-file-share");
    if need::client("node") && installed(&[&sdk]) {
        play(Command::new("node"), "file/node/round.mjs", Path::new(LATCHFS), &[]);
    }
}

#[test]
fn both_sdks_get_the_names_that_the_service_has_for_errors_today() {
    let sdk = cache("node/node_modules/@azure/storage-file-share");
    if need::client("node") && installed(&[&sdk, &python()]) {
        let (options, latchfs) = (["--error-names", "service"], Path::new(LATCHFS));
        play(Command::new("node"), "file/node/names.mjs", latchfs, &options);
        let mut interpreter = Command::new(python());
        interpreter.arg("-B");
        play(interpreter, "file/names.py", latchfs, &options);
    }
}

#[test]
fn rclone_copies_syncs_moves_and_purges() {
    play_program("programs/rclone.py", &cache("rclone/bin/rclone"));
}

const AZCOPY: &str = "node/node_modules/@azure-tools/azcopy-linux/dist/bin/azcopy_linux_amd64";

#[test]
fn azcopy_copies_syncs_lists_and_removes() {
    play_program("programs/azcopy.py", &cache(AZCOPY));
}

#[test]
fn rclone_copies_syncs_moves_and_purges_blobs() {
    play_unmounted("programs/rclone_blob.py", &cache("rclone/bin/rclone"));
}

#[test]
fn azcopy_copies_resumes_syncs_lists_and_removes_blobs() {
    play_unmounted("programs/azcopy_blob.py", &cache(AZCOPY));
}

#[test]
#[ignore = "az is large and slow: tests/run --all installs it and runs this"]
fn az_handles_containers_and_blobs() {
    play_unmounted("programs/az_blob.py", &cache("az/bin/az"));
}

#[test]
#[ignore = "az is large and slow: tests/run --all installs it and runs this"]
fn az_handles_queues_and_messages() {
    play_unmounted("programs/az_queue.py", &cache("az/bin/az"));
}

#[test]
#[ignore = "az is large and slow: tests/run --all installs it and runs this"]
fn az_handles_tables_and_entities() {
    play_unmounted("programs/az_table.py", &cache("az/bin/az"));
}

#[test]
#[ignore = "az is large and slow: tests/run --all installs it and runs this"]
fn az_handles_shares_directories_and_files() {
    play_program("programs/az.py", &cache("az/bin/az"));
}
