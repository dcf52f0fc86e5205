//! The work of a checkpoint: syncs new content before its rows become durable, also the rows that
//! are committed while it runs, and unlinks files without a reference once that is durable and no
//! reader can need them. The order, and its reason, is in [`super::unsynced`].

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rusqlite::Connection;

use super::janitor::Chore;
use super::shared::Shared;
use super::types::ContentId;
use super::{references, unsynced};
use crate::db::{CheckpointHooks, DbError};

/// Files that one checkpoint releases; more wait for the next.
const FILES_MAX: usize = 4096;

pub(super) struct Reclaim {
    pub(super) shared: Arc<Shared>,
    released: Mutex<Option<Released>>,
}

/// Readers that began between two checkpoints share one `Arc`, from before they look into the
/// database until they have opened what they found.
pub(super) type ReaderToken = Arc<()>;

#[derive(Default)]
pub(super) struct Readers(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    now: ReaderToken,
    older: Vec<Weak<()>>,
}

impl Readers {
    pub(super) fn enter(&self) -> ReaderToken {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner).now)
    }

    /// The readers of this moment. Those that enter from now on see all that was committed before.
    fn advance(&self) -> Vec<Weak<()>> {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut generations.now);
        generations.older.push(Arc::downgrade(&before));
        drop(before);
        generations.older.retain(|readers| readers.strong_count() > 0);
        generations.older.clone()
    }
}

/// Files that the checkpoint under way releases.
struct Released {
    /// Readers that can have seen a reference to the files.
    readers: Vec<Weak<()>>,
    /// [`Shared::era`] before the files were found.
    era: u64,
    files: Vec<ContentId>,
}

impl Reclaim {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, released: Mutex::default() }
    }

    /// Files without a reference that cannot get one any more.
    fn unused(&self, conn: &Connection) -> Result<Vec<ContentId>, DbError> {
        // Those that wait for a reader do not keep others waiting.
        let mut files = references::unused(conn, FILES_MAX + self.shared.unlinking.count())?;
        files.retain(|file| !self.shared.unlinking.contains(*file));
        self.shared.segments.close(&files);
        // An open file can get a reference from a commit under way. One that is not open is never
        // opened again, so what is counted after this line stays.
        files.retain(|file| !self.shared.files.is_open(*file));
        let mut unused = Vec::new();
        for file in files {
            if references::count(conn, file)? == Some(0) {
                unused.push(file);
            }
        }
        Ok(unused)
    }
}

impl CheckpointHooks for Reclaim {
    fn before_checkpoint(&self, conn: &Connection) -> Result<(), DbError> {
        let era = self.shared.era.load(Ordering::Acquire);
        let noted = unsynced::last(conn)?;
        let files = self.unused(conn)?;
        // Readers from now on see the database without references to these files.
        let readers = self.shared.readers.advance();
        let synced = self.shared.files.sync_all(&files);
        if synced.is_ok() && noted > 0 {
            unsynced::mark(self.shared.files.place(), noted)?;
            self.shared.synced.store(noted, Ordering::Release);
        }
        let released = Released { readers, era, files };
        *self.released.lock().unwrap_or_else(PoisonError::into_inner) = Some(released);
        synced
    }

    fn log_synced(&self) {
        let released = self.released.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Released { readers, era, mut files }) = released {
            files.retain(|file| self.shared.unlinking.add(*file));
            if !files.is_empty() {
                self.shared.chores.add(Chore::Unlink { readers, era, files });
            }
        }
    }

    fn check_place(&self) -> Result<(), DbError> {
        self.shared.files.check_place()
    }

    fn checkpoint_ended(&self) {
        self.shared.files.checkpoint_ended();
    }
}
