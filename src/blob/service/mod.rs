//! The Blob service of one account: one method per operation.
//!
//! Decides which rows an operation reads and writes, and that nothing is answered before it is
//! committed. What an operation is allowed is decided in [`crate::blob::rules`], asked before a
//! body is received ([`BlobService::check`]) and again inside the transaction that commits it.
//!
//! ```text
//!   containers   create, delete, restore, list; properties, metadata, access policies, lease
//!   put          Put Blob; blocks: Put Block, Put Block List; append; pages
//!   read         properties and content of a blob, a snapshot or a version; cache: for
//!                reads that come again while nothing is written
//!   settings     properties, metadata, tags, tier, immutability, lease of a blob
//!   states       snapshots, versions, deletion and its undoing
//!   copy         copies within the account, held back or not; fetching: from another server
//!   leased       which blobs and containers are leased
//!   list         blobs by name and by tags
//!   retention    the retention of deleted blobs
//!   history      recent changes, and what is known of one blob
//!   sweeper      removes what is kept no longer; filling: new containers at the start
//!   replace      all blobs at once, by a reset or a restore
//! ```

mod access;
mod append;
mod blocks;
mod cache;
mod change;
mod containers;
mod copy;
mod error;
mod fetching;
mod filling;
mod history;
mod lease;
mod leased;
mod list;
mod pages;
mod put;
mod read;
mod replace;
mod retention;
mod settings;
mod states;
mod sweeper;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

pub use access::{AccessConditions, BlobAt, Selector};
pub use append::Appended;
pub use blocks::BlockLists;
pub use containers::{Container, ContainerPage, NewContainer};
pub use copy::{CopiedBlob, CopyFrom, CopyRequest, SourceAsked};
pub use error::{BlobError, BlobResult};
pub use history::{BlobExplanation, ChangedBlob};
pub use lease::{LeaseAction, LeaseAnswer};
pub use leased::Leases;
pub use list::{
    BlobListItem, FoundBlob, FoundPage, ListPage, ListPosition, ListQuery, ListedState,
};
pub use pages::{PageChange, PageQuery, Paged, PutPages};
pub use put::{Admitted, BodyShape, NewBlob, WrittenBlob};
pub use read::{Blob, BlobContent, OpenedBlob};
pub use retention::Retention;
pub use states::{DeleteBlob, DeletedBlob};

// What front ends write bodies to and read them from.
pub use crate::blob::store::{
    Content, ContentError, ContentReader, ContentWriter, INLINE_MAX, Retained, StateKey,
};
pub use crate::db::{DbError, SyncMode};

use self::cache::BlobCache;
use self::change::{BlobChange, BlobView};
use self::retention::Settings;
use crate::blob::store::{BlobStore, WriteTx};
use crate::clock::{Present, TimeSource};
use crate::db::blocking::on_blocking_thread;
use crate::db::sweeper::Sweeper;
use crate::db::{Purpose, again};
use crate::journal::recent::Recent;
use crate::rules::Context;

/// How the service behaves where the real one has a setting or takes its time.
#[derive(Clone, Debug, Default)]
pub struct BlobOptions {
    /// Whether overwritten and deleted states stay as versions.
    pub versioning: bool,
    /// How long access policies and public access that were replaced still authorise (S22).
    pub acl_delay: Duration,
    /// How long a copy stays pending.
    pub copy_delay: Duration,
    /// How long a blob takes to leave the archive.
    pub rehydration: Duration,
    /// Whether conditions that containers do not document are refused, not evaluated.
    pub strict: bool,
    /// How deleted states are kept, until [`BlobService::set_retention`] says otherwise.
    pub retention: Retention,
}

/// The Blob service of one account.
pub struct BlobService {
    /// Before the store, which it uses until it is dropped.
    _sweeper: Sweeper,
    store: Arc<BlobStore>,
    memory: Arc<BlobMemory>,
    cache: BlobCache,
}

/// The state that requests under way share. It does not hold the store: a request may outlive its
/// caller on the writer's thread, which must not be the one that closes the database.
struct BlobMemory {
    options: BlobOptions,
    settings: Settings,
    history: Recent<ChangedBlob>,
    present: Present,
}

impl BlobService {
    /// Opens the store in `folder`, made if missing.
    pub fn open(
        folder: &Path,
        sync: SyncMode,
        options: BlobOptions,
        clock: Arc<dyn TimeSource>,
    ) -> BlobResult<Self> {
        let store = BlobStore::open(folder, sync)?;
        for ended in [fetching::fail_cut_off(&store, clock.now()), filling::remove_cut_off(&store)]
        {
            match ended {
                // The next start tries again. Without the service nothing could be deleted.
                Err(BlobError::Store(error @ DbError::Full { .. })) => {
                    log::warn!("work that an earlier server left stays undone: {error}");
                }
                ended => ended?,
            }
        }
        let settings = Settings::new(options.retention);
        let (history, present) = (Recent::default(), Present::default());
        let memory = BlobMemory { options, settings, history, present };
        let store = Arc::new(store);
        let sweeper = sweeper::start(Arc::clone(&store), clock)?;
        let (memory, cache) = (Arc::new(memory), BlobCache::default());
        Ok(Self { _sweeper: sweeper, store, memory, cache })
    }

    /// When a commit is on the disk.
    pub fn sync(&self) -> SyncMode {
        self.store.sync()
    }

    /// How the service behaves.
    pub fn options(&self) -> &BlobOptions {
        &self.memory.options
    }

    /// Makes a change. Answers after its commit; a caller that goes away does not undo it.
    async fn change<T: Send + 'static>(
        &self,
        cx: &Context,
        change: impl FnOnce(&BlobChange<'_>) -> BlobResult<T> + Clone + Send + 'static,
    ) -> BlobResult<T> {
        self.change_for(Purpose::Store, cx, change).await
    }

    /// As [`BlobService::change`], for a change that deletes: it is made on a full disk too.
    async fn delete<T: Send + 'static>(
        &self,
        cx: &Context,
        change: impl FnOnce(&BlobChange<'_>) -> BlobResult<T> + Clone + Send + 'static,
    ) -> BlobResult<T> {
        self.change_for(Purpose::Delete, cx, change).await
    }

    async fn change_for<T: Send + 'static>(
        &self,
        purpose: Purpose,
        cx: &Context,
        change: impl FnOnce(&BlobChange<'_>) -> BlobResult<T> + Clone + Send + 'static,
    ) -> BlobResult<T> {
        let cx = self.stopped(cx, &change).await?;
        self.carry_out(purpose, cx, again(purpose, change)).await
    }

    /// Makes a change that has no stop ahead. `next` gives the change, again for a deletion.
    async fn carry_out<T, C>(
        &self,
        purpose: Purpose,
        cx: Context,
        mut next: impl FnMut() -> C + Send + 'static,
    ) -> BlobResult<T>
    where
        T: Send + 'static,
        C: FnOnce(&BlobChange<'_>) -> BlobResult<T>,
    {
        let memory = Arc::clone(&self.memory);
        let write = move |tx: &WriteTx<'_>| {
            let under_way = BlobChange::new(tx, &memory, &cx);
            let answer = next()(&under_way)?;
            Ok((answer, under_way.changes()))
        };
        let (send, answer) = oneshot::channel();
        let memory = Arc::clone(&self.memory);
        let done = move |outcome| drop(send.send(memory.committed(outcome)));
        self.store.submit(purpose, write, done);
        answer.await.unwrap_or(Err(DbError::Closed.into()))
    }

    /// Makes the stop that a change has ahead: checks the change in a read transaction, and keeps
    /// it at its gate if the check holds. Returns the circumstances under which it goes on.
    async fn stopped<T, F>(&self, cx: &Context, change: &F) -> BlobResult<Context>
    where
        T: Send + 'static,
        F: FnOnce(&BlobChange<'_>) -> BlobResult<T> + Clone + Send + 'static,
    {
        let Some(stop) = cx.due_stop() else { return Ok(cx.clone()) };
        let (store, memory) = (Arc::clone(&self.store), Arc::clone(&self.memory));
        let (change, asked) = (change.clone(), cx.clone());
        let check = move || store.rehearse(|tx| change(&BlobChange::new(tx, &memory, &asked)));
        on_blocking_thread(check).await?;
        Ok(Context { now: stop.pass().await, ..cx.clone() })
    }

    /// Reads a bounded number of rows: at once if a connection is free, else on another thread.
    async fn look<T: Send + 'static>(
        &self,
        cx: &Context,
        look: impl Fn(&BlobView<'_>) -> BlobResult<T> + Send + 'static,
    ) -> BlobResult<T> {
        let (memory, now) = (&self.memory, cx.now);
        match self.store.try_read(|tx| look(&BlobView { tx, memory, now })) {
            Ok(answer) => answer,
            Err(_) => self.look_elsewhere(cx, look).await,
        }
    }

    /// Reads on a thread that may block.
    async fn look_elsewhere<T: Send + 'static>(
        &self,
        cx: &Context,
        look: impl FnOnce(&BlobView<'_>) -> BlobResult<T> + Send + 'static,
    ) -> BlobResult<T> {
        let (store, memory) = (Arc::clone(&self.store), Arc::clone(&self.memory));
        let now = cx.now;
        let read = move || store.read(|tx| look(&BlobView { tx, memory: &memory, now }));
        on_blocking_thread(read).await
    }
}

impl BlobMemory {
    fn committed<T>(&self, outcome: BlobResult<(T, Vec<ChangedBlob>)>) -> BlobResult<T> {
        let (answer, changes) = outcome?;
        self.history.add(changes);
        Ok(answer)
    }
}

impl std::fmt::Debug for BlobService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BlobService")
    }
}
