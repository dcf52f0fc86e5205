//! Containers, blobs and their states: rows in a database, bytes as extents over content files.
//! Rules (leases, conditions, names, `ETag`s) are decided by the engine, inside its transactions.
//!
//! ```text
//!   tx          transactions: BlobTx reads, WriteTx also writes; settings, the counter of ETags.
//!               The methods of a transaction are in the next modules
//!   containers  rows of containers
//!   states      rows of blobs and their states, for reading
//!   change      changes of blobs and their content
//!   blocks      uncommitted blocks, and lists of them that become a blob
//!   list        pages of blobs, by name and by tag
//!   types       identities, times, and their form in a row; schema: the tables
//!   content     takes a body in: finds its place, hashes and writes it
//!   files       content files: names, which are open for writing, which are not yet synced
//!   extents     the extents of a state, packed into rows
//!   reader      reads the bytes of one committed state
//!   reclaim     references to content files, and the checkpoint that releases unused ones
//!   janitor     removal: at once, or later on a thread of its own
//!   unsynced    the order of syncs, and content that a power cut has taken
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
mod extents;
mod files;
mod janitor;
mod list;
mod reader;
mod reclaim;
mod saved;
mod schema;
mod states;
#[cfg(test)]
mod tests;
mod tx;
mod types;
mod unsynced;

use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;

use self::content::Segments;
use self::files::Files;
use self::janitor::{Chores, Janitor};
use self::reclaim::{Readers, Reclaim, Released};
use self::tx::{Meta, OpenFiles};
use self::types::ContentId;
use crate::db::{CheckpointHooks, Database, DbError, Purpose, Store, SyncMode, Tuning, Version};

pub use self::blocks::BlockList;
pub use self::content::{BodyRole, Content, ContentError, ContentPlan, ContentWriter, INLINE_MAX};
pub use self::list::{
    BlobListing, LIST_MAX, ListBlobs, ListPosition, ListedBlob, TagSearch, TaggedPage,
};
pub use self::reader::ContentReader;
pub use self::saved::{HeldBlobs, SavedBlobs};
pub use self::states::{Head, LeasedBlobs, WrittenRange};
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

/// With more bytes than this to be unlinked, a checkpoint does not wait for its time.
const GARBAGE_MAX: u64 = 256 << 20;

/// State that the parts of a store share.
struct Shared {
    files: Arc<Files>,
    segments: Segments,
    readers: Readers,
    chores: Arc<Chores>,
    /// Files that the janitor unlinks when their readers have ended.
    released: Mutex<Option<Released>>,
    /// Bytes of content that were dropped since a checkpoint was last asked for, about.
    garbage: AtomicU64,
    /// The next number of a state or upload.
    next_id: AtomicI64,
    /// The last counter that was given out.
    last_counter: AtomicU64,
    /// Held while all rows are replaced, and while a content file is looked up and unlinked: a file
    /// that the new rows refer to is not removed. Locked before the writer is held.
    replacing: Mutex<()>,
    /// The last row of `unsynced` whose content a checkpoint has synced, until it is forgotten; 0
    /// if there is none.
    synced: AtomicI64,
}

impl Shared {
    fn open(folder: &Path, sync: SyncMode, known: StoreStart) -> Result<Self, DbError> {
        let chores = Arc::new(Chores::default());
        let files = Files::open(folder.join("blobs"), sync, known.file, Arc::clone(&chores))?;
        let files = Arc::new(files);
        files.add_dirty(known.unsynced);
        Ok(Self {
            segments: Segments::new(Arc::clone(&files)),
            files,
            readers: Readers::default(),
            chores,
            released: Mutex::default(),
            garbage: AtomicU64::new(0),
            // Rows of `unsynced` have these numbers too: never one that was marked as synced.
            next_id: AtomicI64::new(known.id.max(unsynced::marked(folder)) + 1),
            last_counter: AtomicU64::new(known.counter),
            replacing: Mutex::default(),
            synced: AtomicI64::new(0),
        })
    }

    fn new_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn released(&self) -> MutexGuard<'_, Option<Released>> {
        self.released.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replacing(&self) -> MutexGuard<'_, ()> {
        self.replacing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a checkpoint when much content waits for one to be unlinked.
    fn add_garbage(&self, bytes: u64) {
        let before = self.garbage.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) >= GARBAGE_MAX && before < GARBAGE_MAX {
            self.garbage.store(0, Ordering::Relaxed);
            self.chores.request_checkpoint();
        }
    }
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
        let begin = |conn: &Connection| {
            if !conn.table_exists(None, "unsynced")? {
                // Of 0.2, which kept backslashes in names.
                conn.execute_batch(schema::UNSYNCED)?;
                conn.execute_batch(schema::SLASHES)?;
            }
            let known = StoreStart::read(conn)?;
            let waits = known.unused || !known.unsynced.is_empty();
            let shared = Arc::new(Shared::open(folder, sync, known)?);
            let hooks: Arc<dyn CheckpointHooks> = Arc::new(Reclaim::new(Arc::clone(&shared)));
            Ok((Some(hooks), (shared, waits)))
        };
        let (database, (shared, waits)) =
            Database::open_hooked(&file, &schema::SCHEMA, sync, tuning, begin)?;
        let database = Arc::new(database);
        shared.chores.remove_doomed();
        if waits {
            database.request_checkpoint();
        }
        let (weak, swept) = (Arc::downgrade(&database), false);
        let janitor = Janitor { database: weak, shared: Arc::clone(&shared), swept };
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
            self.database.request_checkpoint();
        }
        begun
    }

    /// Runs `f` in one read transaction. See [`Database::read`].
    pub fn read<T, E: From<DbError>>(
        &self,
        f: impl FnOnce(&BlobTx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let (shared, token) = (&*self.shared, &self.shared.readers.enter());
        self.database.read(|conn| f(&BlobTx { conn, shared, token }))
    }

    /// Runs `f` in a write transaction for a purpose, and waits for the commit. See
    /// [`Database::write`].
    pub fn write_for<T, E, F>(&self, purpose: Purpose, mut f: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnMut(&WriteTx<'_>) -> Result<T, E> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let written =
            self.database.write_for(purpose, move |conn| WriteTx::run(conn, &shared, &mut f));
        written.map(|(value, _)| value)
    }

    /// The version of the rows that a read sees which begins now. See [`Database::version`].
    pub fn version(&self) -> Option<Version> {
        self.database.version()
    }

    /// Waits until content without a reference is gone, but for what readers still need.
    pub fn settle(&self) -> Result<(), DbError> {
        self.shared.chores.wait_until_idle();
        // What the janitor dropped is released by this checkpoint, and then unlinked. A file that
        // was open at the first is released by the second.
        for _ in 0..2 {
            self.database.checkpoint()?;
            self.shared.chores.wait_until_idle();
        }
        Ok(())
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
        let shared = Arc::clone(&self.shared);
        self.database.submit(
            purpose,
            move |conn| WriteTx::run(conn, &shared, &mut f),
            move |written: Result<(T, OpenFiles), E>| done(written.map(|(value, _)| value)),
        );
    }
}

/// What the database tells a store that opens it.
struct StoreStart {
    id: i64,
    file: u64,
    counter: u64,
    unused: bool,
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
            counter: types::unsigned(Meta::Counter.get(conn)?)?,
            unused: !reclaim::unused(conn, 1)?.is_empty(),
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
            Meta::Counter.set(conn, types::signed(last))
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
