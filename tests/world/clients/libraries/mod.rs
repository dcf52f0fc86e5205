//! Libraries and programs built on Azure Storage, as their registries have them.
//!
//! The functions of `libraries.py` and the scripts beside it say what each one checks.

use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::Instant;

use crate::common::need::{self, cache};
use crate::common::served::Served;

/// The functions of `libraries.py` that run here.
const FROM_PYPI: [&str; 7] =
    ["adlfs", "celery", "deltalake", "event_hubs", "obstore", "opendal_azblob", "opendal_azfile"];

/// `INTERPRETER SCRIPT READY_FILE`.
fn script(interpreter: impl AsRef<Path>, script: &str, server: &Served) -> Command {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/world/clients/libraries");
    let mut command = Command::new(interpreter.as_ref());
    command.arg(folder.join(script)).arg(server.ready_file());
    // No compiled files among the sources.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn from_pypi(name: &str, server: &Served) -> Command {
    let mut command = script(cache("libraries/bin/python"), "libraries.py", server);
    command.arg(name);
    command
}

/// Runs the programs side by side. All must succeed.
#[track_caller]
fn all_succeed(programs: Vec<(&str, Command)>) {
    let run = |(name, mut command): (&str, Command)| {
        let start = Instant::now();
        let Output { status, stdout, stderr } = command.output().expect("the program runs");
        println!("{name}: {status} after {:.1?}", start.elapsed());
        let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        (!status.success()).then(|| format!("{name}: {status}\n{out}\n{err}"))
    };
    let failed: Vec<String> = thread::scope(|scope| {
        let runs: Vec<_> =
            programs.into_iter().map(|program| scope.spawn(move || run(program))).collect();
        runs.into_iter().filter_map(|run| run.join().expect("the thread ends")).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn libraries_on_azure_storage_do_what_their_users_do() {
    let needed = ["libraries/bin/python", "libraries-node/node_modules/unstorage"].map(cache);
    if !need::client("node") || !need::installed(&[&needed[0], &needed[1]]) {
        return;
    }
    let server = Served::start(&["--no-mount"]);
    let mut programs: Vec<_> =
        FROM_PYPI.iter().map(|&name| (name, from_pypi(name, &server))).collect();
    programs.push(("unstorage", script("node", "unstorage.mjs", &server)));
    all_succeed(programs);
}

#[test]
fn default_azure_credential_works_unchanged_and_offline_against_blob_and_queue_over_tls() {
    let needed = ["libraries/bin/python", "libraries-node/node_modules/@azure/storage-queue"];
    let needed = needed.map(cache);
    if !need::client("node") || !need::installed(&[&needed[0], &needed[1]]) {
        return;
    }
    let server = Served::start(&["--no-mount", "--tls", "self", "--oauth", "basic"]);
    let told = server.latchfs(&["token", "--env"]).output().expect("the command runs");
    let told = String::from_utf8(told.stdout).expect("variables are text");
    let variables: Vec<_> =
        told.lines().filter_map(|line| line.strip_prefix("export ")?.split_once('=')).collect();
    assert_eq!(variables.len(), 4, "{told}");
    let python = from_pypi("default_credential", &server);
    let node = script("node", "identity.mjs", &server);
    let mut programs = vec![("azure-identity", python), ("@azure/identity", node)];
    for (_, command) in &mut programs {
        command.envs(variables.iter().copied());
    }
    all_succeed(programs);
}

#[test]
#[ignore = "the client takes a minute to build: tests/run --all builds it and runs this"]
fn the_rust_sdk_handles_blobs_with_a_sas() {
    let client = cache("libraries-rust/debug/latchfs-rust-client");
    if need::installed(&[&cache("libraries/bin/python"), &client]) {
        let server = Served::start(&["--no-mount"]);
        let mut command = from_pypi("rust_sdk", &server);
        command.arg(client);
        all_succeed(vec![("azure_storage_blob", command)]);
    }
}
