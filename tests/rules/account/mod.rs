//! Shares as a whole, on real directories with a clock turned by hand: coming and going, leases,
//! settings, permissions, snapshots, listing, restarts, races.

mod clock;
mod leases;
mod lifecycle;
mod listing;
mod permissions;
mod races;
mod restart;
mod settings;
mod snapshots;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use latchfs::clock::ManualClock;
use latchfs::disk::DataRootError;
use latchfs::file::rules::create::OpenRequest;
use latchfs::file::rules::{Access, ShareMode, SharePath};
use latchfs::file::service::shares::{FileServiceResult, NewShare, ShareDenial, ShareRef};
use latchfs::file::service::{FileOptions, FileService, FileServiceError, OpenedFile, Share};
use latchfs::file::store::root::RootError;
use latchfs::file::store::share::{CloneProgress, Control};
use latchfs::journal::{AccountJournal, Journal};
use latchfs::rules::lease::LeaseId;
use latchfs::rules::{Client, Context, Owner, Timestamp};

use crate::common::calls::acquire;

/// Monday, 5 January 2026, 10:00:00 UTC.
const START: Timestamp = Timestamp(1_767_607_200_000_000_000);
const DAY: Duration = Duration::from_hours(24);

/// A data root of its own.
struct Setup {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    events: AccountJournal,
    retention_days: Option<u32>,
}

impl Setup {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let events = AccountJournal::new(Arc::new(Journal::new(clock.clone())), "");
        let folder = tempfile::tempdir().unwrap();
        Self { folder, clock, events, retention_days: Some(7) }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn options(&self) -> FileOptions {
        FileOptions { retention_days: self.retention_days, ..FileOptions::default() }
    }

    fn try_open(&self) -> FileServiceResult<FileService> {
        let (clock, events) = (self.clock.clone(), self.events.clone());
        FileService::open(&self.data(), self.options(), clock, events)
    }

    /// Waits while a program that another test starts has the last engine's lock for a moment, as
    /// all descriptors between fork and exec.
    fn open(&self) -> FileService {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            match self.try_open() {
                Err(FileServiceError::Root(RootError::Data(DataRootError::Served(_))))
                    if Instant::now() < end =>
                {
                    std::thread::sleep(Duration::from_millis(2));
                }
                opened => return opened.unwrap(),
            }
        }
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

/// An engine with the share `docs`.
fn with_share(setup: &Setup) -> FileService {
    let engine = setup.open();
    engine.create_share("docs", NewShare::default()).unwrap();
    engine
}

const DOCS: ShareRef<'static> = ShareRef { name: "docs", snapshot: None, lease_id: None };

/// The share or snapshot, named in a request with a lease ID.
fn with_lease(at: ShareRef<'_>, id: LeaseId) -> ShareRef<'_> {
    ShareRef { lease_id: Some(id), ..at }
}

fn somebody() -> Context {
    let client = Arc::new(Client { session: 1, name: "test".to_owned() });
    Context::local(Timestamp(1), Owner { client, pid: 0, program: None }, "test")
}

fn path(text: &str) -> SharePath {
    SharePath::new(text).unwrap()
}

fn open_file(
    share: &Share,
    file: &str,
    access: Access,
) -> latchfs::file::service::Result<OpenedFile> {
    share.open(&somebody(), &path(file), &OpenRequest::plain(access, ShareMode::RWD))
}

/// The refusal of an answer that must be one.
fn refused<T: std::fmt::Debug>(answer: FileServiceResult<T>) -> ShareDenial {
    let error = answer.unwrap_err();
    error.denial().unwrap_or_else(|| panic!("not refused by a rule: {error}")).clone()
}

fn go_on(_: CloneProgress) -> Control {
    Control::Continue
}

/// Paths of everything below, without those of other shares' states.
fn tree(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            found.push(entry.path().strip_prefix(root).unwrap().display().to_string());
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            }
        }
    }
    found.sort();
    found
}
