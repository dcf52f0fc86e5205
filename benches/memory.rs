//! How much memory an open takes: a million files, each open once, and the process's own account
//! of what it occupies before and after.
//!
//! `cargo bench --bench memory`; `LATCHFS_FILES=n` for another number. The files are real and
//! lie in memory (`/dev/shm`) where there is some: that is the kernel's memory, not counted here.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use latchfs::clock::SystemClock;
use latchfs::file::rules::create::OpenRequest;
use latchfs::file::rules::{Access, ShareMode, SharePath};
use latchfs::file::service::{Handle, Share, ShareOptions};
use latchfs::journal::AccountJournal;
use latchfs::rules::{Client, Context, Owner, Timestamp};

/// What an open may take, its handle included.
const BYTES_MAX: usize = 300;
const FILES: usize = 1_000_000;
/// What `statm` counts in.
const PAGE_BYTES: usize = 4096;
const PER_FOLDER: usize = 1_000;

/// Bytes of this process in memory.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = text.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a number");

    pages * PAGE_BYTES
}

fn name(number: usize) -> String {
    format!("folder{:04}/file{:04}.txt", number / PER_FOLDER, number % PER_FOLDER)
}

fn main() {
    // `cargo test --benches` only wants to see it run.
    let files = if std::env::args().any(|word| word == "--test") { 1_000 } else { files() };
    let memory = PathBuf::from("/dev/shm");
    let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let folder = tempfile::tempdir_in(place).expect("a temporary folder");
    let root = folder.path().join("share");
    for number in 0..files {
        if number.is_multiple_of(PER_FOLDER) {
            let first = root.join(name(number));
            fs::create_dir_all(first.parent().expect("a folder")).expect("a folder");
        }
        fs::File::create(root.join(name(number))).expect("a file");
    }
    let share = Share::open_directory(
        "bench",
        &root,
        &folder.path().join("state"),
        ShareOptions::default(),
        Arc::new(SystemClock),
        AccountJournal::default(),
    )
    .expect("a share");
    let client = Arc::new(Client { session: 1, name: "bench".into() });
    let owner = Owner { client, pid: 1, program: None };
    let cx = Context::local(Timestamp(0), owner, "bench");
    let request = OpenRequest::plain(Access::R, ShareMode::RWD);
    let open = |number| {
        let path = SharePath::new(&name(number)).expect("a path");
        share.open(&cx, &path, &request).expect("nobody is in the way").handle
    };
    // What the first open sets up for all is not counted.
    share.close(&open(0)).expect("closed");

    let (before, start) = (resident(), Instant::now());
    let handles: Vec<Handle> = (0..files).map(open).collect();
    let (after, took) = (resident(), start.elapsed());
    assert_eq!(share.files_in_use(), files);
    let bytes = (after - before) / files;
    println!("{files} files open, {bytes} bytes each (at most {BYTES_MAX}), in {took:.1?}");
    for handle in &handles {
        share.close(handle).expect("closed");
    }
    assert_eq!(share.files_in_use(), 0);
    assert!(files < FILES || bytes <= BYTES_MAX, "an open takes more than it may");
}

fn files() -> usize {
    std::env::var("LATCHFS_FILES").map_or(FILES, |text| text.parse().expect("a number"))
}
