//! The embedded database: one file, one writer, a pool of readers, checkpoints on their own
//! thread. Tables are decided by the services' stores, which give a [`Schema`].
//!
//! ```text
//!   read, try_read    readers      a pooled connection, one read transaction
//!   write, try_write  writer       alone: on the caller's thread
//!   submit            writer       else: the writer thread, all that wait in one transaction
//!                     checkpoint   moves the log, on a thread of its own, and looks whether the
//!                                  files still have their names
//!                     reserve      space that deletions have on a full disk
//!   hold              held         the writer stands still: all rows are replaced
//!   copy              copy         all rows of one moment, in another file
//!   version           version      whether rows that were read before still hold
//! ```
//!
//! A request is answered after its COMMIT. With [`SyncMode::Normal`] a commit survives the death of
//! the process, but the last ones may be lost when the machine dies; [`SyncMode::Always`] syncs
//! each.

pub(crate) mod blocking;
mod checkpoint;
mod connection;
mod copy;
pub mod counted;
mod error;
pub(crate) mod first_use;
mod held;
mod job;
mod log_state;
mod readers;
mod reserve;
mod stats;
pub(crate) mod sweeper;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod transaction;
mod version;
mod writer;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use crate::sync::front_end::assert_may_block;

use self::checkpoint::Checkpointer;
use self::error::Naming;
use self::job::Task;
use self::log_state::LogState;
use self::readers::{Lent, Readers};
use self::reserve::{LockedFile, Reserve};
use self::stats::Counters;
use self::writer::Writer;

pub use self::checkpoint::CheckpointHooks;
pub use self::copy::Copy;
pub use self::error::DbError;
pub use self::held::HeldWriter;
pub use self::reserve::Purpose;
pub(crate) use self::reserve::check_place;
pub use self::stats::Stats;
pub use self::version::Version;

/// Requests that may wait for the writer thread.
pub const QUEUE_MAX: usize = 1024;
/// Requests in one transaction.
pub const GROUP_MAX: usize = 256;

/// When a commit is on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncMode {
    /// With the next checkpoint. A commit survives the end of the process at once.
    Normal,
    Always,
}

/// The tables of a database.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// The version of the format, from 1. A file with another version is refused.
    pub version: u32,
    /// The statements that make the tables in an empty file.
    pub statements: &'static str,
}

/// Sizes and times. Tests change them; the program uses the default.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    pub readers: usize,
    /// A checkpoint runs after this many pages of log ...
    pub checkpoint_pages: u32,
    /// ... or this long after the first commit since the last checkpoint.
    pub checkpoint_interval: Duration,
    /// Above this many pages of log the writer is held until the log can begin again.
    pub hold_pages: u32,
    /// How long the writer is held for readers of the log to end.
    pub hold_patience: Duration,
    /// A group is committed when its requests have taken this long, so that the first of many
    /// slow ones does not wait for the last.
    pub group_time: Duration,
    /// How long a queued write waits for another connection that holds the database.
    pub busy_patience: Duration,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            readers: 16,
            checkpoint_pages: 8000,
            checkpoint_interval: Duration::from_secs(5),
            hold_pages: 65_536,
            hold_patience: Duration::from_millis(20),
            group_time: Duration::from_millis(20),
            busy_patience: Duration::from_secs(5),
        }
    }
}

/// An open database. Share it by `Arc`; dropping the last one answers all that waits, empties the
/// log and closes the file.
pub struct Database {
    file: Arc<Path>,
    schema: Schema,
    sync: SyncMode,
    readers: Readers,
    writer: Arc<Writer>,
    log: Arc<LogState>,
    counters: Arc<Counters>,
    hooks: Arc<OnceLock<Box<dyn CheckpointHooks>>>,
    threads: Vec<JoinHandle<()>>,
    /// Last, so that it is closed after all connections.
    locked_file: Arc<LockedFile>,
}

impl Database {
    /// Opens the file, or makes it.
    pub fn open(path: &Path, schema: &Schema, sync: SyncMode) -> Result<Self, DbError> {
        Self::open_with(path, schema, sync, Tuning::default())
    }

    /// As [`Database::open`], with sizes and times of the caller's.
    pub fn open_with(
        path: &Path,
        schema: &Schema,
        sync: SyncMode,
        tuning: Tuning,
    ) -> Result<Self, DbError> {
        assert_may_block("the opening of a database");
        let file: Arc<Path> = Arc::from(path);
        let _naming = Naming::file(&file);
        let log = Arc::new(LogState::new(tuning.checkpoint_pages));
        let counters = Arc::new(Counters::default());
        let mut connection = connection::open_writer(path, schema, sync)?;
        // A server that was killed has left one.
        log.found(connection::log_pages(&connection));
        let locked_file = Arc::new(LockedFile::open(path)?);
        let grown = Arc::clone(&log);
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            grown.grew(u32::try_from(pages).unwrap_or(0));
            Ok(())
        }))?;
        let writer = Arc::new(Writer::new(
            Arc::clone(&file),
            sync,
            tuning,
            connection,
            Reserve::new(path, Arc::clone(&locked_file), log.pages()),
            Arc::clone(&log),
            Arc::clone(&counters),
        ));
        let hooks = Arc::new(OnceLock::new());
        let checkpointer = Checkpointer {
            file: Arc::clone(&file),
            connection: connection::open_checkpointer(path, sync)?,
            tuning,
            writer: Arc::clone(&writer),
            log: Arc::clone(&log),
            counters: Arc::clone(&counters),
            hooks: Arc::clone(&hooks),
            files: Arc::clone(&locked_file),
        };
        let mut database = Self {
            readers: Readers::new(Arc::clone(&file), Arc::clone(&locked_file), tuning.readers),
            file,
            schema: *schema,
            sync,
            writer,
            log,
            counters,
            hooks,
            threads: Vec::new(),
            locked_file,
        };
        let writer = Arc::clone(&database.writer);
        database.start("db writer", move || writer.run())?;
        database.start("db checkpoint", move || checkpointer.run())?;
        Ok(database)
    }

    fn start(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), DbError> {
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        let thread = started.map_err(|error| DbError::Io(format!("start a thread: {error}")))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Runs `f` in one read transaction. Waits while all connections for reading are in use. Keep
    /// `f` short: while it runs, the log cannot begin again. Not for event loops.
    pub fn read<T, E: From<DbError>>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        assert_may_block("a connection for reading");
        let _naming = Naming::file(&self.file);
        run_read(&self.readers.take()?, f)
    }

    /// As [`Database::read`], for callers on an event loop: gives `f` back instead of waiting.
    pub fn try_read<T, E, F>(&self, f: F) -> Result<Result<T, E>, F>
    where
        E: From<DbError>,
        F: FnOnce(&Connection) -> Result<T, E>,
    {
        let _naming = Naming::file(&self.file);
        match self.readers.try_take() {
            Some(lent) => Ok(run_read(&lent, f)),
            None => Err(f),
        }
    }

    /// Runs a change up to its first write, in a read transaction: `Ok` if it got that far, or to
    /// its end. Everything that `f` refuses before its first write, it refuses here. Waits as
    /// [`Database::read`] does.
    pub fn rehearse<T, E: From<DbError>>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<(), E> {
        error::forget_last_serious();
        match self.read(f) {
            Err(_) if error::was_asked_to_write() => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    /// Runs `f` in a write transaction and waits for the commit. An error of `f` rolls back what
    /// `f` did, and nothing else. Not for event loops.
    pub fn write<T, E, F>(&self, f: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        self.write_for(Purpose::Store, f)
    }

    /// As [`Database::write`], for a purpose.
    pub fn write_for<T, E, F>(&self, purpose: Purpose, f: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        assert_may_block("a commit");
        match self.writer.try_write(purpose, f) {
            Ok(outcome) => outcome,
            Err(f) => self.writer.write_queued(purpose, f),
        }
    }

    /// As [`Database::write`], for callers on an event loop: runs `f` on this thread if nobody
    /// else writes or waits and no sync is needed, and gives `f` back otherwise.
    pub fn try_write<T, E, F>(&self, f: F) -> Result<Result<T, E>, F>
    where
        E: From<DbError>,
        F: FnOnce(&Connection) -> Result<T, E>,
    {
        self.try_write_for(Purpose::Store, f)
    }

    /// As [`Database::try_write`], for a purpose.
    pub fn try_write_for<T, E, F>(&self, purpose: Purpose, f: F) -> Result<Result<T, E>, F>
    where
        E: From<DbError>,
        F: FnOnce(&Connection) -> Result<T, E>,
    {
        self.writer.try_write(purpose, f)
    }

    /// Queues `f` for the writer thread. `done` is called once: after the commit, by the writer
    /// thread, which it must not keep waiting; or now, with an error, if [`QUEUE_MAX`] requests
    /// wait already.
    pub fn submit<T, E, F, D>(&self, f: F, done: D)
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        D: FnOnce(Result<T, E>) + Send + 'static,
    {
        self.submit_for(Purpose::Store, f, done);
    }

    /// As [`Database::submit`], for a purpose.
    pub fn submit_for<T, E, F, D>(&self, purpose: Purpose, f: F, done: D)
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        D: FnOnce(Result<T, E>) + Send + 'static,
    {
        self.writer.submit(Box::new(Task::new(purpose, f, done)));
    }

    /// Sets the work that belongs to checkpoints, right after opening. A second call is ignored.
    pub fn set_checkpoint_hooks(&self, hooks: Box<dyn CheckpointHooks>) {
        if self.hooks.set(hooks).is_err() {
            log::error!("{} has checkpoint hooks already", self.file.display());
        }
    }

    /// Waits for the requests under way and holds all others back until the value is dropped.
    /// Reads go on. Not for event loops.
    pub fn hold(&self) -> HeldWriter<'_> {
        assert_may_block("the writer of a database");
        self.writer.assert_outside();
        HeldWriter::new(&self.writer, Arc::clone(&self.file))
    }

    /// Prepares a copy of all rows to a new file. Not for event loops.
    pub fn copy(&self, to: &Path) -> Result<Copy, DbError> {
        assert_may_block("a copy of a database");
        self.check_place()?;
        let _naming = Naming::file(&self.file);
        Copy::prepare(Arc::clone(&self.file), &self.schema, to)
    }

    /// Asks for a checkpoint and does not wait for it.
    pub fn request_checkpoint(&self) {
        self.log.ask();
    }

    /// Waits for a checkpoint that covers all that is committed now, hooks included.
    pub fn checkpoint(&self) -> Result<(), DbError> {
        assert_may_block("a checkpoint");
        self.log.wait_for(self.log.ask())
    }

    /// An error if the files of the database have lost their names since they were opened. The
    /// writer is told within [`Tuning::checkpoint_interval`] of its next commit.
    pub fn check_place(&self) -> Result<(), DbError> {
        checkpoint::look(&self.locked_file, &self.file, self.hooks.get().map(AsRef::as_ref))
    }

    /// The version of the rows that a read sees which begins now; `None` while a write is under
    /// way. Never waits.
    pub fn version(&self) -> Option<Version> {
        self.writer.versions().now()
    }

    /// When commits are on the disk.
    pub fn sync(&self) -> SyncMode {
        self.sync
    }

    pub fn path(&self) -> &Path {
        &self.file
    }

    /// What was done since the database was opened.
    pub fn stats(&self) -> Stats {
        self.counters.stats(self.log.commits(), self.log.pages())
    }
}

fn run_read<T, E: From<DbError>>(
    lent: &Lent<'_>,
    f: impl FnOnce(&Connection) -> Result<T, E>,
) -> Result<T, E> {
    f(lent.begin()?)
}

impl Drop for Database {
    fn drop(&mut self) {
        self.writer.close();
        self.log.close();
        let mut all_ended = true;
        for thread in self.threads.drain(..) {
            // The last owner can be a callback on one of these threads, which cannot wait for
            // itself. SQLite then empties the log when the last connection is closed.
            if thread.thread().id() == std::thread::current().id() {
                all_ended = false;
                std::mem::forget(Arc::clone(&self.locked_file));
            } else if thread.join().is_err() {
                log::error!("a thread of {} panicked", self.file.display());
            }
        }
        if all_ended {
            let _naming = Naming::file(&self.file);
            let hooks = self.hooks.get().map(AsRef::as_ref);
            checkpoint::close(&self.writer.connection(), &self.file, hooks);
        }
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("file", &self.file).finish_non_exhaustive()
    }
}
