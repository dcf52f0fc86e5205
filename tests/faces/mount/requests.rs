//! How many requests the kernel sends for what a program does to one file.

use std::fs;
use std::process::Command;

use crate::common::need;
use crate::common::served::{Served, wait_for};

const FILES: usize = 20;

/// Requests by kind that the server's log has so far.
fn requests(served: &Served, kind: &str) -> usize {
    let log = fs::read_to_string(served.folder().join("log")).unwrap();
    log.lines().filter(|line| line.contains("FUSE(") && line.contains(kind)).count()
}

#[test]
fn a_copy_with_all_attributes_asks_twice_for_extended_attributes_of_a_file() {
    if !need::fuse() || !need::root() || !need::client("cp") {
        return;
    }
    // The kernel library notes each request.
    let logged = r#"RUST_LOG=fuser::request=debug exec "$0" "$@" 2> log"#;
    let served = Served::start_by(&["sh", "-c", logged], &["--no-auth"]);
    let from = served.folder().join("from");
    fs::create_dir(&from).unwrap();
    for file in 0..FILES {
        fs::write(from.join(format!("f{file}")), "text").unwrap();
    }
    let copied = Command::new("cp").arg("-a").arg(&from).arg(served.mount().join("to")).output();
    let copied = copied.unwrap();
    assert!(copied.status.success(), "{copied:?}");
    // A release may come after its program has ended.
    wait_for("the releases", || (requests(&served, " RELEASE ") >= FILES).then_some(()));
    let attributes = requests(&served, "XATTR ");
    assert!(attributes > 0, "cp asks for no attribute any more");
    // One more for the directory, whatever else cp wants to know of it.
    assert!(attributes <= 2 * FILES + 8, "{attributes} for {FILES} files");
    let all = requests(&served, "");
    assert!(all <= 9 * FILES + 40, "{all} for {FILES} files");
}
