//! The embedded database: one file, one writer, a pool of readers, checkpoints on their own
//! thread. Tables are decided by the services' stores, which give a [`Schema`].
//!
//! ```text
//!   read              readers      a connection that is free, one read transaction
//!   submit, write     writer       a thread: all that wait in one transaction
//!                     ballast      space that deletions have on a full disk
//!                     checkpoint   moves the WAL, on a thread of its own, and looks whether the
//!                                  files still have their names; wal: when
//!   hold, copy        held         all rows at once: replaced while the writer stands still, or
//!                                  copied to another file
//!                     service      what the services with rows share
//!   version           version      whether rows that were read before still hold
//! ```
//!
//! A request is answered after its COMMIT. With [`SyncMode::Normal`] a commit survives the death of
//! the process, but the last ones may be lost when the machine dies; [`SyncMode::Always`] syncs
//! each.

mod ballast;
mod checkpoint;
mod connection;
pub mod counted;
mod error;
pub(crate) mod first_use;
mod held;
mod job;
mod place;
mod readers;
pub(crate) mod service;
pub(crate) mod sweeper;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod transaction;
mod version;
mod wal;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use crate::sync::front_end::assert_may_block;

use self::ballast::Ballast;
use self::checkpoint::Checkpointer;
use self::error::Naming;
use self::job::Task;
use self::place::LockedFile;
use self::readers::Readers;
use self::wal::Wal;
use self::writer::Writer;

pub use self::checkpoint::CheckpointHooks;
pub use self::error::DbError;
pub use self::held::{Copy, HeldWriter};
pub use self::job::Purpose;
pub(crate) use self::job::{caught, once};
pub(crate) use self::place::check_place;
pub(crate) use self::service::{DbService, ServiceMemory};
pub use self::service::{RowStore, Store, Tables};
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
    /// Free connections for reading that are kept.
    pub readers: usize,
    /// A checkpoint runs after this many pages of WAL ...
    pub checkpoint_pages: u32,
    /// ... or this long after the first commit since the last checkpoint.
    pub checkpoint_interval: Duration,
    /// Above this many pages of WAL the writer is held until the WAL can begin again.
    pub hold_pages: u32,
    /// How long the writer is held for readers of the WAL to end.
    pub hold_patience: Duration,
    /// Above this many pages of WAL a write waits for the checkpoint under way.
    pub wait_pages: u32,
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
            checkpoint_pages: 2000,
            checkpoint_interval: Duration::from_secs(5),
            hold_pages: 4000,
            hold_patience: Duration::from_millis(20),
            wait_pages: 6000,
            group_time: Duration::from_millis(20),
            busy_patience: Duration::from_secs(5),
        }
    }
}

/// An open database. Share it by `Arc`; dropping the last one answers all that waits, empties the
/// WAL and closes the file.
pub struct Database {
    file: Arc<Path>,
    schema: Schema,
    readers: Readers,
    writer: Arc<Writer>,
    wal: Arc<Wal>,
    hooks: Option<Arc<dyn CheckpointHooks>>,
    threads: Vec<JoinHandle<()>>,
    /// Last, so that it is closed after all connections.
    locked_file: Arc<LockedFile>,
}

impl Database {
    /// Opens the file, or makes it.
    pub fn open(path: &Path, schema: &Schema, sync: SyncMode) -> Result<Self, DbError> {
        let opened = Self::open_hooked(path, schema, sync, Tuning::default(), |_| Ok((None, ())));
        opened.map(|(database, ())| database)
    }

    /// As [`Database::open`], with sizes and times of the caller's, and work that belongs to
    /// checkpoints. `begin` makes it before the first checkpoint can run, on the writing
    /// connection.
    pub fn open_hooked<T>(
        path: &Path,
        schema: &Schema,
        sync: SyncMode,
        tuning: Tuning,
        begin: impl FnOnce(&Connection) -> Result<(Option<Arc<dyn CheckpointHooks>>, T), DbError>,
    ) -> Result<(Self, T), DbError> {
        assert_may_block("the opening of a database");
        let file: Arc<Path> = Arc::from(path);
        let _naming = Naming::file(&file);
        let wal = Arc::new(Wal::new(tuning.checkpoint_pages));
        let mut connection = connection::open_writer(path, schema, sync)?;
        // A server that was killed has left one.
        let length = std::fs::metadata(place::wal_of(path)).map_or(0, |log| log.len());
        wal.found(connection::wal_pages(&connection), length);
        let locked_file = Arc::new(LockedFile::open(path)?);
        let grown = Arc::clone(&wal);
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            grown.set_pages(u32::try_from(pages).unwrap_or(0));
            grown.counters.commits.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }))?;
        let (hooks, begun) = begin(&connection)?;
        let writer = Arc::new(Writer::new(
            Arc::clone(&file),
            tuning,
            connection,
            Ballast::open(place::beside(path, "-ballast"), wal.bytes()),
            Arc::clone(&wal),
        ));
        let checkpointer = Checkpointer {
            file: Arc::clone(&file),
            connection: connection::open_checkpointer(path, sync)?,
            tuning,
            writer: Arc::clone(&writer),
            wal: Arc::clone(&wal),
            hooks: hooks.clone(),
            files: Arc::clone(&locked_file),
        };
        let mut database = Self {
            readers: Readers::new(Arc::clone(&file), Arc::clone(&locked_file), tuning.readers),
            file,
            schema: *schema,
            writer,
            wal,
            hooks,
            threads: Vec::new(),
            locked_file,
        };
        database.readers.open_reserved()?;
        let writer = Arc::clone(&database.writer);
        database.start("db writer", move || writer.run())?;
        database.start("db checkpoint", move || checkpointer.run())?;
        Ok((database, begun))
    }

    fn start(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), DbError> {
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        let thread = started.map_err(|error| DbError::Io(format!("start a thread: {error}")))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Runs `f` in one read transaction, at once and on any thread. Keep `f` short: while it runs,
    /// the WAL cannot begin again; and on an event loop everybody waits for it.
    pub fn read<T, E: From<DbError>>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let _naming = Naming::file(&self.file);
        self.readers.read(f)
    }

    /// Queues `f` for the writer thread. An error of `f` rolls back what `f` did, and nothing else;
    /// a deletion may run again on a full disk. `done` is called once: after the commit, by the
    /// writer thread, which it must not keep waiting; or now, with an error, if [`QUEUE_MAX`]
    /// requests wait already.
    pub fn submit<T, E, F, D>(&self, purpose: Purpose, f: F, done: D)
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnMut(&Connection) -> Result<T, E> + Send + 'static,
        D: FnOnce(Result<T, E>) + Send + 'static,
    {
        self.writer.submit(Box::new(Task::new(purpose, f, done)));
    }

    /// Runs `f` in a write transaction, for a thread that waits for the commit.
    pub fn write<T, E, F>(&self, f: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let mut next = once(f);
        self.write_for(Purpose::Store, move |conn| next()(conn))
    }

    /// As [`Database::write`], for a purpose: a deletion may run again on a full disk.
    pub fn write_for<T, E, F>(&self, purpose: Purpose, f: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnMut(&Connection) -> Result<T, E> + Send + 'static,
    {
        assert_may_block("a commit");
        self.writer.assert_outside();
        let (sender, receiver) = sync_channel(1);
        // The receiver is gone only if its thread panicked.
        self.submit(purpose, f, move |outcome| _ = sender.send(outcome));
        receiver.recv().unwrap_or_else(|_| Err(DbError::Closed.into()))
    }

    /// Waits for the requests under way and holds all others back until the value is dropped.
    /// Reads go on. Not for event loops.
    pub fn hold(&self) -> HeldWriter<'_> {
        assert_may_block("the writer of a database");
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
        self.wal.ask(false);
    }

    /// Waits for a checkpoint that covers all that is committed now, hooks included.
    pub fn checkpoint(&self) -> Result<(), DbError> {
        assert_may_block("a checkpoint");
        self.wal.wait_for(self.wal.ask(false))
    }

    /// An error if the files of the database have lost their names since they were opened. The
    /// writer is told within [`Tuning::checkpoint_interval`] of its next commit.
    pub fn check_place(&self) -> Result<(), DbError> {
        checkpoint::look(&self.locked_file, &self.file, self.hooks.as_deref())
    }

    /// The version of the rows that a read sees which begins now; `None` while a write is under
    /// way. Never waits.
    pub fn version(&self) -> Option<Version> {
        self.writer.versions.now()
    }

    pub fn path(&self) -> &Path {
        &self.file
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.writer.close();
        self.wal.close();
        let mut all_ended = true;
        for thread in self.threads.drain(..) {
            // The last owner can be a callback on one of these threads, which cannot wait for
            // itself. The WAL then stays for the next start.
            if thread.thread().id() == std::thread::current().id() {
                all_ended = false;
                std::mem::forget(Arc::clone(&self.locked_file));
            } else if thread.join().is_err() {
                log::error!("a thread of {} panicked", self.file.display());
            }
        }
        if all_ended {
            let _naming = Naming::file(&self.file);
            checkpoint::close(&self.writer.connection(), &self.file, self.hooks.as_deref());
            self.writer.ballast.rest();
        }
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("file", &self.file).finish_non_exhaustive()
    }
}
