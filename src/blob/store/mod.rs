//! Containers, blobs and their states: rows in a database, bytes as extents over content files.
//! Rules (leases, conditions, names, `ETag`s) are decided by the engine, inside its transactions.
//!
//! ```text
//!   shared      state that the parts of a BlobStore share
//!   tx          transactions: Tx reads, WriteTx also writes; their methods are in the next modules
//!   containers  rows of containers
//!   states      rows of blobs and their states, for reading
//!   change      changes of blobs and their content
//!   blocks      uncommitted blocks, and lists of them that become a blob
//!   list        listing, page by page
//!   tags        the index of tags
//!   leased      blobs and containers that have a lease
//!   settings    settings of the service, and the counter behind ETags
//!   types       identities, times, and their form in a row
//!   schema      the tables of the database
//!   content     takes a body in: finds its place, hashes and writes it
//!   files       content files: names, which are open for writing, which are not yet synced
//!   extent      an extent, and how extents are packed into a row
//!   extents     the extents of a state
//!   reader      reads the bytes of one committed state
//!   references  which content files are in use
//!   remove      removes states, uploads and their content
//!   unsynced    the order of syncs, and content that a power cut has taken
//!   reclaim     syncs content before a checkpoint, and unlinks unused files after it
//!   janitor     the thread that removes rows and files in the background
//!   saved       saves the blobs of one moment, and replaces all rows by saved ones or by none
//! ```
//!
//! A content file is never changed where a committed extent points: new bytes go to new places.
//! So a reader needs no lock, and copies, snapshots and block lists share bytes instead of copying
//! them.

mod blocks;
mod change;
mod containers;
mod content;
mod extent;
mod extents;
mod files;
mod janitor;
mod leased;
mod list;
mod reader;
mod reclaim;
mod references;
mod remove;
mod saved;
mod schema;
mod settings;
mod shared;
mod states;
mod tags;
#[cfg(test)]
mod tests;
mod tx;
mod types;
mod unsynced;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread::JoinHandle;

use rusqlite::Connection;

use self::content::Segments;
use self::files::Files;
use self::janitor::{Chore, Chores, Janitor};
use self::reclaim::{Readers, Reclaim};
use self::shared::{Counters, FilesToUnlink, Replacing, Shared};
use self::tx::Effects;
use self::types::ContentId;
use crate::db::{Database, DbError, Purpose, Stats, Store, SyncMode, Tuning, Version};

pub use self::blocks::{BlockChoice, BlockList, STAGE_ABOVE};
pub use self::content::{BodyRole, Content, ContentError, ContentPlan, ContentWriter, INLINE_MAX};
pub use self::leased::LeasedBlobs;
pub use self::list::{BlobListing, LIST_MAX, ListBlobs, ListPosition, ListedBlob};
pub use self::reader::ContentReader;
pub use self::saved::{HeldBlobs, SavedBlobs};
pub use self::states::{Head, WrittenRange};
pub use self::tags::{TagSearch, TaggedPage};
pub use self::tx::{BlobTx, WriteTx};
pub use self::types::{
    ContainerId, ContainerRow, Retained, StateId, StateKey, StateKind, StateRow,
};

/// The blobs of one account. Dropping it closes it.
pub struct BlobStore {
    database: Arc<Database>,
    shared: Arc<Shared>,
    janitor: Option<JoinHandle<()>>,
}

/// What a store did since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobStats {
    /// What the database did.
    pub database: Stats,
    /// Content files of bodies that were given up.
    pub given_up: u64,
    /// Content files that nothing referred to any more.
    pub reclaimed: u64,
    /// Content files that an earlier process left.
    pub swept: u64,
}

impl BlobStore {
    /// Opens or makes `blob.db` and the content folder `blobs` in `folder`.
    pub fn open(folder: &Path, sync: SyncMode) -> Result<Self, DbError> {
        Self::open_with(folder, sync, Tuning::default())
    }

    /// As [`BlobStore::open`], with sizes and times of the caller's.
    pub fn open_with(folder: &Path, sync: SyncMode, tuning: Tuning) -> Result<Self, DbError> {
        unsynced::cut_lost(folder)?;
        let file = folder.join("blob.db");
        let database = Arc::new(Database::open_with(&file, &schema::SCHEMA, sync, tuning)?);
        if !database.read(|conn| Ok::<_, DbError>(conn.table_exists(None, "unsynced")?))? {
            database.write_for(Purpose::Delete, |conn| {
                conn.execute_batch(schema::UNSYNCED).map_err(DbError::from)
            })?;
        }
        let known = database.read(StoreStart::read)?;
        let chores = Arc::new(Chores::default());
        let files = Files::open(folder.join("blobs"), sync, known.file, Arc::clone(&chores))?;
        let files = Arc::new(files);
        let unsynced = !known.unsynced.is_empty();
        files.add_dirty(known.unsynced);
        let shared = Arc::new(Shared {
            segments: Segments::new(Arc::clone(&files)),
            files,
            readers: Readers::default(),
            chores,
            unlinking: FilesToUnlink::default(),
            counters: Counters::default(),
            garbage: AtomicU64::new(0),
            // Rows of `unsynced` have these numbers too: never one that was marked as synced.
            next_id: AtomicI64::new(known.id.max(unsynced::marked(folder)) + 1),
            last_counter: AtomicU64::new(known.counter),
            ceiling: AtomicI64::new(types::signed(known.counter)),
            era: AtomicU64::new(0),
            replacing: Replacing::default(),
            synced: AtomicI64::new(0),
        });
        database.set_checkpoint_hooks(Box::new(Reclaim::new(Arc::clone(&shared))));
        for chore in known.left_over {
            shared.chores.add(chore);
        }
        shared.chores.add(Chore::Sweep);
        if known.unused || unsynced {
            database.request_checkpoint();
        }
        let janitor = Janitor { database: Arc::downgrade(&database), shared: Arc::clone(&shared) };
        let thread = std::thread::Builder::new().name("blob janitor".to_owned());
        let thread = thread.spawn(move || janitor.run());
        let thread = thread.map_err(|error| DbError::Io(format!("start a thread: {error}")))?;
        Ok(Self { database, shared, janitor: Some(thread) })
    }

    /// An error if the database or the content folder has lost its name since it was opened.
    pub fn check_place(&self) -> Result<(), DbError> {
        self.database.check_place()
    }

    /// Begins a body. One of known length that does not fit on the disk is refused before it is
    /// taken; space is taken when bytes come. Makes a file for it: not for event loops, unless the
    /// body is short enough for its row or its length is unknown.
    pub fn content(&self, plan: ContentPlan) -> Result<ContentWriter, DbError> {
        let begun = ContentWriter::begin(Arc::clone(&self.shared), &plan);
        if matches!(begun, Err(DbError::Full { .. })) {
            // Content that was dropped takes room until a checkpoint: soon there may be some.
            self.shared.chores.add(Chore::Checkpoint);
        }
        begun
    }

    /// Runs `f` in one read transaction. See [`Database::read`].
    pub fn read<T, E: From<DbError>>(
        &self,
        f: impl FnOnce(&BlobTx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let (token, era) = (self.shared.readers.enter(), self.era());
        self.database.read(|conn| f(&BlobTx::new(conn, &self.shared, &token, era)))
    }

    /// Runs `f` in a write transaction and waits for the commit. See [`Database::write`].
    pub fn write<T, E, F>(&self, f: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnOnce(&WriteTx<'_>) -> Result<T, E> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        self.settled(self.database.write(move |conn| run_write(conn, &shared, f)))
    }

    /// As [`BlobStore::write`], for a purpose.
    pub fn write_for<T, E, F>(&self, purpose: Purpose, mut f: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnMut(&WriteTx<'_>) -> Result<T, E> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let written =
            self.database.write_for(purpose, move |conn| run_write(conn, &shared, &mut f));
        self.settled(written)
    }

    fn settled<T, E>(&self, written: Result<(T, Effects), E>) -> Result<T, E> {
        written.map(|(value, effects)| {
            effects.committed(&self.shared);
            value
        })
    }

    /// The version of the rows that a read sees which begins now. See [`Database::version`].
    pub fn version(&self) -> Option<Version> {
        self.database.version()
    }

    fn era(&self) -> u64 {
        self.shared.era.load(Ordering::Acquire)
    }

    /// When commits and content are on the disk.
    pub fn sync(&self) -> SyncMode {
        self.database.sync()
    }

    /// Waits until content without a reference is gone, but for what readers still need.
    pub fn settle(&self) -> Result<(), DbError> {
        self.shared.chores.wait_until_idle();
        // What chores dropped is released by this checkpoint, and removed by further chores. A
        // file that was open at the first is released by the second.
        for _ in 0..2 {
            self.database.checkpoint()?;
            self.shared.chores.wait_until_idle();
        }
        Ok(())
    }

    /// What was done since the store was opened.
    pub fn stats(&self) -> BlobStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        BlobStats {
            database: self.database.stats(),
            given_up: load(&self.shared.counters.given_up),
            reclaimed: load(&self.shared.counters.reclaimed),
            swept: load(&self.shared.counters.swept),
        }
    }
}

impl Store for BlobStore {
    type Read<'a> = BlobTx<'a>;
    type Write<'a> = WriteTx<'a>;

    fn read<T, E: From<DbError>>(
        &self,
        f: impl FnOnce(&BlobTx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        Self::read(self, f)
    }

    fn submit<T: Send + 'static, E: From<DbError> + Send + 'static>(
        &self,
        purpose: Purpose,
        mut f: impl FnMut(&WriteTx<'_>) -> Result<T, E> + Send + 'static,
        done: impl FnOnce(Result<T, E>) + Send + 'static,
    ) {
        let (shared, after) = (Arc::clone(&self.shared), Arc::clone(&self.shared));
        self.database.submit(
            purpose,
            move |conn| run_write(conn, &shared, &mut f),
            move |written: Result<(T, Effects), E>| {
                done(written.map(|(value, effects)| {
                    effects.committed(&after);
                    value
                }));
            },
        );
    }
}

fn run_write<T, E: From<DbError>>(
    conn: &Connection,
    shared: &Shared,
    f: impl FnOnce(&WriteTx<'_>) -> Result<T, E>,
) -> Result<(T, Effects), E> {
    let token = shared.readers.enter();
    let era = shared.era.load(Ordering::Acquire);
    let tx = WriteTx::new(BlobTx::new(conn, shared, &token, era));
    let outcome = f(&tx);
    let effects = tx.into_effects();
    match outcome {
        Ok(value) => Ok((value, effects)),
        Err(error) => {
            effects.rolled_back();
            Err(error)
        }
    }
}

/// What the database tells a store that opens it.
struct StoreStart {
    id: i64,
    file: u64,
    counter: u64,
    unused: bool,
    left_over: Vec<Chore>,
    /// Files that the last process has not synced.
    unsynced: Vec<ContentId>,
}

impl StoreStart {
    fn read(conn: &Connection) -> Result<Self, DbError> {
        let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
        Ok(Self {
            id: number(
                "SELECT max(
                     (SELECT coalesce(max(id), 0) FROM blob),
                     (SELECT coalesce(max(state), 0) FROM extents),
                     (SELECT coalesce(max(owner), 0) FROM uses),
                     (SELECT coalesce(max(id), 0) FROM upload),
                     (SELECT coalesce(max(upload), 0) FROM block),
                     (SELECT coalesce(max(id), 0) FROM unsynced),
                     (SELECT coalesce(max(id), 0) FROM doomed WHERE kind = 0))",
            )?,
            file: types::unsigned(number("SELECT coalesce(max(id), 0) FROM file")?)?,
            counter: types::unsigned(settings::ceiling(conn)?)?,
            unused: !references::unused(conn, 1)?.is_empty(),
            left_over: remove::left_over(conn)?,
            unsynced: unsynced::files(conn)?,
        })
    }
}

impl Drop for BlobStore {
    fn drop(&mut self) {
        self.shared.chores.close();
        if let Some(Err(_)) = self.janitor.take().map(JoinHandle::join) {
            log::error!("the janitor of {} panicked", self.database.path().display());
        }
        // The next start reads all content that is noted: so none is left after a clean end.
        if self.database.read(unsynced::last).is_ok_and(|last| last > 0)
            && let Err(error) = self.database.checkpoint()
        {
            log::warn!("closing {}: {error}", self.database.path().display());
        }
        let shared = Arc::clone(&self.shared);
        // Read by the writer: a change that still waits for it gets its counter before.
        let kept = self.database.write_for(Purpose::Delete, move |conn| {
            unsynced::forget_synced(conn, &shared)?;
            let last = shared.last_counter.load(Ordering::Relaxed);
            settings::set_ceiling(conn, types::signed(last))
        });
        if let Err(error) = kept {
            log::warn!("closing {}: {error}", self.database.path().display());
        }
    }
}

impl std::fmt::Debug for BlobStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlobStore").field("file", &self.database.path()).finish_non_exhaustive()
    }
}
