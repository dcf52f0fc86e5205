//! The command-line clients, each through a round of what its users do: a script of `programs/`
//! that is given a server of its own and fails where an answer is not as expected.

use std::path::Path;

use super::{interpreter, run, script};
use crate::common::need::{self, cache, python};
use crate::common::served::Served;

/// Plays the round of a program, if it is installed: `SCRIPT READY_FILE PROGRAM`.
#[track_caller]
fn play(name: &str, program: &Path, options: &[&str]) {
    if need::installed(&[&python(), program]) {
        let server = Served::start(options);
        let mut client = interpreter();
        client.arg(script("programs").join(name)).arg(server.ready_file()).arg(program);
        run(client, "met");
    }
}

/// Plays the round of a program on files, which looks at the mount too.
#[track_caller]
fn play_mounted(name: &str, program: &Path) {
    if need::fuse() {
        play(name, program, &[]);
    }
}

/// Plays the round of a program on blobs, queues or tables.
#[track_caller]
fn play_unmounted(name: &str, program: &Path) {
    play(name, program, &["--no-mount"]);
}

#[test]
fn rclone_copies_syncs_moves_and_purges() {
    play_mounted("rclone.py", &cache("rclone/bin/rclone"));
}

const AZCOPY: &str = "node/node_modules/@azure-tools/azcopy-linux/dist/bin/azcopy_linux_amd64";

#[test]
fn azcopy_copies_syncs_lists_and_removes() {
    play_mounted("azcopy.py", &cache(AZCOPY));
}

#[test]
fn rclone_copies_syncs_moves_and_purges_blobs() {
    play_unmounted("rclone_blob.py", &cache("rclone/bin/rclone"));
}

#[test]
fn azcopy_copies_resumes_syncs_lists_and_removes_blobs() {
    play_unmounted("azcopy_blob.py", &cache(AZCOPY));
}

#[test]
#[ignore = "az is large and slow: tests/run --all installs it and runs this"]
fn az_handles_containers_and_blobs() {
    play_unmounted("az_blob.py", &cache("az/bin/az"));
}

#[test]
#[ignore = "az is large and slow: tests/run --all installs it and runs this"]
fn az_handles_queues_and_messages() {
    play_unmounted("az_queue.py", &cache("az/bin/az"));
}

#[test]
#[ignore = "az is large and slow: tests/run --all installs it and runs this"]
fn az_handles_tables_and_entities() {
    play_unmounted("az_table.py", &cache("az/bin/az"));
}

#[test]
#[ignore = "az is large and slow: tests/run --all installs it and runs this"]
fn az_handles_shares_directories_and_files() {
    play_mounted("az.py", &cache("az/bin/az"));
}
