//! Moves the log into the database file, on a thread of its own, and stops the writer only when
//! the log has become very long, or has no space on a full disk. [`super::log_state`] knows the
//! length of the log.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, MAIN_DB};

use super::error::Naming;
use super::job::run_caught;
use super::log_state::{LogState, Order};
use super::reserve::{LockedFile, log_of};
use super::stats::Counters;
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
    /// The log is synced: all that was committed before [`CheckpointHooks::before_checkpoint`]
    /// began is durable now.
    fn log_synced(&self);
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
    pub(super) log: Arc<LogState>,
    pub(super) counters: Arc<Counters>,
    pub(super) hooks: Arc<OnceLock<Box<dyn CheckpointHooks>>>,
    /// Only to sync the database file.
    pub(super) files: Arc<LockedFile>,
}

/// Attempts to bring the log's rest down before the writer is held for it.
const ROUNDS_BEFORE_HOLD: u32 = 8;
/// How long the writer is held for readers of the log to end where the log has no space.
const SPACE_HOLD: Duration = Duration::from_millis(500);
/// A rest of this many pages is short enough to be moved while the writer waits.
const SHORT_REST: u32 = 200;

/// Writes run at full speed again when this is dropped.
struct Slowed<'a>(&'a Writer);

impl Drop for Slowed<'_> {
    fn drop(&mut self) {
        self.0.slow_down(Duration::ZERO);
    }
}

impl Checkpointer {
    /// The checkpoint thread, until the database is closed.
    pub(super) fn run(&self) {
        let _naming = Naming::file(&self.file);
        while let Order::Checkpoint { round } = self.log.wait(self.tuning.checkpoint_interval) {
            // A defect in a hook must not end this thread.
            let result =
                run_caught(|_| self.in_place().and_then(|()| self.round()), &self.connection);
            self.writer.renew_space();
            match &result {
                Ok(()) => _ = self.counters.checkpoints.fetch_add(1, Ordering::Relaxed),
                // Told once, and looked at again after the next interval.
                Err(DbError::Gone { .. }) => {}
                Err(error) => log::warn!("checkpoint of {}: {error}", self.file.display()),
            }
            self.log.finished(round, result);
        }
    }

    /// Looks whether the files still have their names, and has the writer refuse until they do.
    fn in_place(&self) -> Result<(), DbError> {
        let looked = look(&self.files, &self.file, self.hooks.get().map(AsRef::as_ref));
        self.writer.set_gone(looked.as_ref().err());
        looked
    }

    fn round(&self) -> Result<(), DbError> {
        let hooks = self.hooks.get().map(AsRef::as_ref);
        around(hooks, &self.connection, &self.file, || {
            let (length, moved) = self.checkpoint(CheckpointMode::PASSIVE)?.unwrap_or_default();
            if length > 0 && moved == length {
                self.log.moved(length);
            }
            // When all pages are moved, the next write lets the log begin again by itself.
            if length >= self.tuning.hold_pages && self.rest(moved) > 0 {
                return self.shorten();
            }
            // Unless a reader still uses the log, which then grows although it has no space.
            if self.writer.wants_space() {
                return self.restart();
            }
            Ok(())
        })
    }

    /// Lets the log begin again, although writes never pause. The log's rest is brought down
    /// while writes are slowed down; then the writer is held while the last pages are moved and
    /// the last readers of the log end.
    fn shorten(&self) -> Result<(), DbError> {
        let _slow = Slowed(&self.writer);
        for _ in 0..ROUNDS_BEFORE_HOLD {
            let start = Instant::now();
            let before = self.log.pages();
            // SQLite syncs the database file only with the last page of the log. What can be
            // synced now does not delay the writer later.
            let synced = synced::data(&self.files.main, &self.file);
            synced.map_err(|error| DbError::from_io("sync", &self.file, &error))?;
            let (_, moved) = self.checkpoint(CheckpointMode::PASSIVE)?.unwrap_or_default();
            let rest = self.rest(moved);
            if rest <= SHORT_REST {
                break;
            }
            // The log grew while this round moved pages: let it grow at half that speed.
            let growth = self.log.pages().saturating_sub(before).max(1);
            self.writer.slow_down(start.elapsed() / growth * 2);
        }
        self.restart()
    }

    /// Holds the writer while the last pages are moved and the readers of the log end.
    fn restart(&self) -> Result<(), DbError> {
        let turn = self.writer.hold();
        self.counters.holds.fetch_add(1, Ordering::Relaxed);
        let patience =
            if self.writer.wants_space() { SPACE_HOLD } else { self.tuning.hold_patience };
        self.connection.busy_timeout(patience)?;
        let result = self.checkpoint(CheckpointMode::RESTART);
        self.connection.busy_timeout(Duration::ZERO)?;
        match result {
            Ok(Some(_)) => self.log.begins_again(),
            // A reader is still there, and the log goes on at its end.
            _ => self.log.moved(0),
        }
        drop(turn);
        result.map(drop)
    }

    /// Pages that were added to the log after the first `moved`.
    fn rest(&self, moved: u32) -> u32 {
        self.log.pages().saturating_sub(moved)
    }

    /// Pages in the log, and how many of them have been moved. Locks of others are no error, but
    /// `None`.
    fn checkpoint(&self, mode: CheckpointMode) -> Result<Option<(u32, u32)>, DbError> {
        match self.connection.wal_checkpoint_v2(Some(MAIN_DB), mode) {
            // Negative numbers mean that there is no log.
            Ok((length, moved)) => {
                let pages = |count| u32::try_from(count).unwrap_or(0);
                Ok(Some((pages(length), pages(moved))))
            }
            Err(error) if DbError::is_lock(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Runs the hooks around a checkpoint. The log is synced here too: a reader can keep `SQLite` from
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
    sync_log(file)?;
    // Not after the checkpoint: on a full disk that can fail until unused content is removed.
    hooks.log_synced();
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

/// The last checkpoint, when the threads have ended: the log is emptied.
pub(super) fn close(conn: &Connection, file: &Path, hooks: Option<&dyn CheckpointHooks>) {
    let result = around(hooks, conn, file, || {
        conn.wal_checkpoint_v2(Some(MAIN_DB), CheckpointMode::TRUNCATE)?;
        Ok(())
    });
    if let Err(error) = result {
        log::warn!("closing {}: {error}", file.display());
    }
}

fn sync_log(file: &Path) -> Result<(), DbError> {
    let path = log_of(file);
    let synced = match File::open(&path) {
        Ok(log) => synced::data(&log, &path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    synced.map_err(|error| DbError::from_io("sync", &path, &error))
}
