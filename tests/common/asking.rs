//! Small makers that several test crates need: a share, a caller, a path, what a folder holds.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use latchfs::clock::ManualClock;
use latchfs::file::rules::SharePath;
use latchfs::file::service::{Case, Share, ShareOptions};
use latchfs::journal::AccountJournal;
use latchfs::rules::{Client, Context, Owner, Timestamp};

/// A path within a share.
pub fn path(text: &str) -> SharePath {
    SharePath::new(text).expect("a path of the test")
}

/// A client of that name.
pub fn owner(name: &str) -> Owner {
    let client = Arc::new(Client { session: 1, name: name.into() });
    Owner { client, pid: 0, program: None }
}

/// The context of an operation that a client of that name asks for.
pub fn caller(name: &str) -> Context {
    Context::local(Timestamp(1), owner(name), "test")
}

/// The share in `root`, with a clock that stands still.
pub fn open_share(root: &Path, state: &Path, case: Case, events: AccountJournal) -> Share {
    let clock = Arc::new(ManualClock::new(Timestamp(1)));
    let options = ShareOptions { case, ..ShareOptions::default() };
    Share::open_directory("s", root, state, options, clock, events).expect("a share")
}

/// The entries of a folder; none if there is no such folder.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut entries: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    entries
}
