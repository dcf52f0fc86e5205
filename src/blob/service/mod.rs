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
//!   list         blobs by name and by tags
//!   retention    the retention of deleted blobs
//!   sweeper      removes what is kept no longer; filling: new containers at the start
//!   replace      all blobs at once: saved, or replaced by a reset or a restore
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
mod lease;
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

pub use access::{AccessConditions, BlobAt, Selector};
pub use append::Appended;
pub use blocks::BlockLists;
pub use containers::{Container, ContainerPage, NewContainer};
pub use copy::{CopiedBlob, CopyFrom, CopyRequest, SourceAsked};
pub use error::{BlobError, BlobResult};
pub use lease::{LeaseAction, LeaseAnswer, Leases};
pub use list::{
    BlobListItem, FoundBlob, FoundPage, ListBlobs, ListPage, ListPosition, ListedState,
};
pub use pages::{PageChange, PageQuery, Paged, PutPages};
pub use put::{NewBlob, WrittenBlob};
pub use read::{Blob, BlobContent, BlobExplanation, OpenedBlob};
pub(crate) use replace::BlobsPart;
pub use retention::Retention;
pub use states::{DeleteBlob, DeletedBlob};

// What front ends write bodies to and read them from.
pub use crate::blob::store::{
    BodyRole, Content, ContentError, ContentPlan, ContentReader, ContentWriter, INLINE_MAX,
    Retained, StateKey,
};
pub use crate::db::{DbError, SyncMode};

use self::cache::BlobCache;
use self::change::{BlobChange, BlobView};
use self::retention::Settings;
use crate::blob::store::{BlobStore, WriteTx};
use crate::clock::{Present, TimeSource};
use crate::db::service::on_blocking_thread;
use crate::db::sweeper::Sweeper;
use crate::db::{DbService, ServiceMemory};
use crate::journal::{AccountJournal, Change, History};
use crate::rules::Context;
use crate::rules::service::ServiceKind;

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

/// The state that requests under way share.
pub(crate) struct BlobMemory {
    options: BlobOptions,
    settings: Settings,
    history: History,
    present: Present,
}

impl BlobService {
    /// Opens the store in `folder`, made if missing.
    pub fn open(
        folder: &Path,
        sync: SyncMode,
        options: BlobOptions,
        clock: Arc<dyn TimeSource>,
        journal: AccountJournal,
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
        let (history, present) = (History::new(journal, ServiceKind::Blob), Present::default());
        let memory = BlobMemory { options, settings, history, present };
        let store = Arc::new(store);
        let sweeper = sweeper::start(Arc::clone(&store), clock)?;
        let (memory, cache) = (Arc::new(memory), BlobCache::default());
        Ok(Self { _sweeper: sweeper, store, memory, cache })
    }

    /// How the service behaves.
    pub fn options(&self) -> &BlobOptions {
        &self.memory.options
    }

    /// Looks at one committed state.
    fn look<T>(
        &self,
        cx: &Context,
        look: impl FnOnce(&BlobView<'_>) -> BlobResult<T>,
    ) -> BlobResult<T> {
        self.store.read(|tx| look(&BlobView { tx, memory: &self.memory, now: cx.now }))
    }

    /// As [`BlobService::look`], on a thread that may block: for more rows than an event loop
    /// reads.
    async fn look_elsewhere<T: Send + 'static>(
        &self,
        cx: &Context,
        look: impl FnOnce(&BlobView<'_>) -> BlobResult<T> + Send + 'static,
    ) -> BlobResult<T> {
        let (store, memory, now) = (Arc::clone(&self.store), Arc::clone(&self.memory), cx.now);
        let read = move || store.read(|tx| look(&BlobView { tx, memory: &memory, now }));
        on_blocking_thread(read).await
    }
}

impl DbService for BlobService {
    type Memory = BlobMemory;

    fn parts(&self) -> (&Arc<BlobStore>, &Arc<BlobMemory>) {
        (&self.store, &self.memory)
    }
}

impl ServiceMemory for BlobMemory {
    type Store = BlobStore;
    type Error = BlobError;
    type Change<'a> = BlobChange<'a>;
    type Effects = Vec<Change>;

    fn begin<'a>(&'a self, tx: &'a WriteTx<'_>, cx: &'a Context) -> BlobChange<'a> {
        BlobChange::new(tx, self, cx)
    }

    fn finish(&self, change: BlobChange<'_>) -> BlobResult<Vec<Change>> {
        Ok(change.changes())
    }

    fn committed(&self, changes: Vec<Change>) {
        self.history.add(changes);
    }
}
