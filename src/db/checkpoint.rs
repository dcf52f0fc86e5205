//! Moves the WAL into the database file, on a thread of its own, and holds the writer only when
//! the WAL has become long, has no space on a full disk, or is cut since nothing is written.
//! [`super::wal`] decides when.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, MAIN_DB};

use super::error::Naming;
use super::job::caught;
use super::place::{LockedFile, wal_of};
use super::wal::{Round, Wal};
use super::writer::Writer;
use super::{DbError, Tuning};
use crate::disk::synced;

/// Work that belongs to a checkpoint. Called from the checkpoint thread, and from the thread that
/// closes the database.
pub trait CheckpointHooks: Send + std::marker::Sync {
    /// Makes durable what the rows refer to: those committed so far, and those that commits refer
    /// to from here until [`CheckpointHooks::checkpoint_ended`]. An error skips this checkpoint; it
    /// is tried again later. `conn` is for reading, each statement for itself.
    fn before_checkpoint(&self, conn: &Connection) -> Result<(), DbError>;
    /// The WAL is synced: all that was committed before [`CheckpointHooks::before_checkpoint`]
    /// began is durable now.
    fn log_synced(&self) -> Result<(), DbError>;
    /// An error if what the rows refer to has lost its place since it was opened.
    fn check_place(&self) -> Result<(), DbError> {
        Ok(())
    }
    /// The checkpoint is done, was skipped or has failed. Called once for each call of
    /// [`CheckpointHooks::before_checkpoint`].
    fn checkpoint_ended(&self);
}

pub(super) struct Checkpointer {
    pub(super) file: Arc<Path>,
    pub(super) connection: Connection,
    pub(super) tuning: Tuning,
    pub(super) writer: Arc<Writer>,
    pub(super) wal: Arc<Wal>,
    pub(super) hooks: Option<Arc<dyn CheckpointHooks>>,
    pub(super) files: Arc<LockedFile>,
}

/// How long readers of the WAL may take to end where the WAL has no space.
const SPACE_PATIENCE: Duration = Duration::from_secs(1);

impl Checkpointer {
    /// The checkpoint thread, until the database is closed.
    pub(super) fn run(&self) {
        let _naming = Naming::file(&self.file);
        while let Some(round) = self.wal.wait(self.tuning.checkpoint_interval) {
            // A defect in a hook must not end this thread.
            let result = caught(|| self.in_place().and_then(|()| self.round(&round)));
            match &result {
                Ok(()) => _ = self.wal.counters.checkpoints.fetch_add(1, Ordering::Relaxed),
                // Told once, and looked at again after the next interval.
                Err(DbError::Gone { .. }) => {}
                Err(error) => log::warn!("checkpoint of {}: {error}", self.file.display()),
            }
            // A deletion waits for the room that a restart makes.
            if result.is_ok() && !round.restart {
                self.writer.ballast.covers(self.wal.bytes());
            }
            self.wal.finished(&round, result);
        }
    }

    /// Looks whether the files still have their names, and has the writer refuse until they do.
    fn in_place(&self) -> Result<(), DbError> {
        let looked = look(&self.files, &self.file, self.hooks.as_deref());
        self.writer.set_gone(looked.as_ref().err());
        looked
    }

    fn round(&self, round: &Round) -> Result<(), DbError> {
        around(self.hooks.as_deref(), &self.connection, &self.file, || {
            if round.restart {
                // The writer waits for this round.
                return self.restart(SPACE_PATIENCE);
            }
            if round.cut {
                return self.cut();
            }
            let moved = self.checkpoint(CheckpointMode::PASSIVE)?.unwrap_or_default();
            // When all pages are moved, the next write lets the WAL begin again by itself, unless
            // a reader still uses it.
            if self.wal.pages() >= self.tuning.hold_pages.max(moved + 1) {
                let _hold = self.writer.hold();
                self.wal.counters.holds.fetch_add(1, Ordering::Relaxed);
                return self.restart(self.tuning.hold_patience);
            }
            Ok(())
        })
    }

    /// Moves all pages and waits for the readers of the WAL to end, so that it begins again. To be
    /// called while nobody writes.
    fn restart(&self, patience: Duration) -> Result<(), DbError> {
        self.connection.busy_timeout(patience)?;
        let result = self.checkpoint(CheckpointMode::RESTART);
        self.connection.busy_timeout(Duration::ZERO)?;
        if result?.is_some() {
            self.wal.set_pages(0);
        }
        Ok(())
    }

    /// Gives back the space of the WAL and of what the ballast has for it. A reader in the way
    /// leaves both for a later round.
    fn cut(&self) -> Result<(), DbError> {
        let _hold = self.writer.hold();
        if self.checkpoint(CheckpointMode::TRUNCATE)?.is_some() {
            self.wal.was_cut();
            self.writer.ballast.rest();
        }
        Ok(())
    }

    /// How many pages of the WAL have been moved. Locks of others are no error, but `None`.
    fn checkpoint(&self, mode: CheckpointMode) -> Result<Option<u32>, DbError> {
        match self.connection.wal_checkpoint_v2(Some(MAIN_DB), mode) {
            // A negative number means that there is no WAL.
            Ok((_, moved)) => Ok(Some(u32::try_from(moved).unwrap_or(0))),
            Err(error) if DbError::is_lock(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Runs the hooks around a checkpoint. The WAL is synced here too: a reader can keep `SQLite` from
/// moving pages and from syncing, and what was dropped may be removed only after a sync.
fn around(
    hooks: Option<&dyn CheckpointHooks>,
    conn: &Connection,
    file: &Path,
    checkpoint: impl FnOnce() -> Result<(), DbError>,
) -> Result<(), DbError> {
    let Some(hooks) = hooks else { return checkpoint() };
    let _end = End(hooks);
    hooks.before_checkpoint(conn)?;
    sync_wal(file)?;
    // Not after the checkpoint: on a full disk that can fail until unused content is removed.
    hooks.log_synced()?;
    checkpoint()
}

/// An error if the files have lost their names since they were opened.
pub(super) fn look(
    files: &LockedFile,
    file: &Path,
    hooks: Option<&dyn CheckpointHooks>,
) -> Result<(), DbError> {
    files.check_place(file)?;
    hooks.map_or(Ok(()), CheckpointHooks::check_place)
}

/// Tells the hooks that a checkpoint has ended, however it did.
struct End<'a>(&'a dyn CheckpointHooks);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.checkpoint_ended();
    }
}

/// The last checkpoint, when the threads have ended: the WAL is emptied, and removed when `conn` is
/// closed. If it fails, the WAL stays for the next start.
pub(super) fn close(conn: &Connection, file: &Path, hooks: Option<&dyn CheckpointHooks>) {
    let result = around(hooks, conn, file, || {
        conn.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::TRUNCATE)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        Ok(())
    });
    if let Err(error) = result {
        log::warn!("closing {}: {error}", file.display());
    }
}

fn sync_wal(file: &Path) -> Result<(), DbError> {
    let path = wal_of(file);
    let synced = match File::open(&path) {
        Ok(wal) => synced::data(&wal, &path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    synced.map_err(|error| DbError::from_io("sync", &path, &error))
}
