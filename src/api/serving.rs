//! The interface of a server to its controllers. The mounts and the end of the process are
//! passed in by `server/`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::identity::Identity;
use super::load::Loaded;
use super::status::{ConnectionInfo, MountRow};
use crate::bench::{Controls, States};
use crate::blob::service::{BlobResult, BlobService};
use crate::clock::TimeSource;
use crate::file::rules::ShareMode;
use crate::file::service::FileService;
use crate::http::auth::NamedClients;
use crate::journal::{AccountJournal, Change};
use crate::queue::service::{QueueResult, QueueService};
use crate::rules::address::ObjectAddress;
use crate::rules::service::ServiceKind;
use crate::table::service::{TableResult, TableService};

/// An operation that gates and faults can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownOperation {
    /// The service that it is of.
    pub service: ServiceKind,
    pub name: &'static str,
    /// Whether gates can stop it.
    pub can_stop: bool,
}

/// The server as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// Where the data is.
    pub data: String,
    /// When the server started.
    pub started: Instant,
    /// The URL of the page and the HTTP API, if the server has them.
    pub admin: Option<String>,
    /// The token of that address, if it asks for one.
    pub admin_token: Option<String>,
    /// Whether bearer tokens are accepted.
    pub takes_tokens: bool,
    /// Where programs get such tokens, if they are accepted and there is an admin address.
    pub identity: Option<Identity>,
    /// Notes of the start for the user: who can reach the services, why nothing is mounted.
    pub notes: Vec<String>,
}

/// An account of a server: its services. A service is opened by its first use, which may wait.
pub trait ServedAccount: Send + Sync {
    fn file(&self) -> &Arc<FileService>;
    fn blob(&self) -> BlobResult<Arc<BlobService>>;
    fn queue(&self) -> QueueResult<&QueueService>;
    fn table(&self) -> TableResult<&TableService>;

    /// The Blob service, if its data exists.
    fn used_blob(&self) -> BlobResult<Option<Arc<BlobService>>>;

    /// The Queue service, if its data exists.
    fn used_queue(&self) -> QueueResult<Option<&QueueService>>;

    /// The Table service, if its data exists.
    fn used_table(&self) -> TableResult<Option<&TableService>>;

    /// The remembered changes of blobs, queues and tables, the oldest of each service first.
    fn changes(&self, wanted: &dyn Fn(&ObjectAddress) -> bool) -> Vec<Change>;

    fn name(&self) -> &Arc<str> {
        self.journal().account()
    }

    fn journal(&self) -> &AccountJournal {
        self.file().journal()
    }

    fn clock(&self) -> &Arc<dyn TimeSource> {
        self.file().clock()
    }
}

/// How clients reach the services of an account.
#[derive(Clone)]
pub struct Reached {
    pub info: ConnectionInfo,
    /// The clients that have a name.
    pub clients: Arc<NamedClients>,
}

/// A running server. Errors are texts that say what to do.
pub trait Serving: Send + Sync {
    /// The account that is meant where none is named.
    fn first_account(&self) -> Arc<dyn ServedAccount>;

    /// All accounts, by name.
    fn accounts(&self) -> Vec<Arc<dyn ServedAccount>>;

    fn account(&self, name: &str) -> Option<Arc<dyn ServedAccount>> {
        self.accounts().into_iter().find(|account| **account.name() == *name)
    }

    /// The clock, gates, faults and journal of the server.
    fn controls(&self) -> &Arc<Controls>;

    /// The server as a whole.
    fn about(&self) -> About;

    /// The state of the server as a whole; `None` where one existing directory is served.
    fn states(&self) -> Option<&States> {
        None
    }

    /// Makes what a load file names and the account does not have.
    fn load(&self, account: &str, file: &Path) -> Result<Loaded, String>;

    /// How clients of an account find its services, if any listens.
    fn reached(&self, account: &str) -> Option<Reached>;

    /// The operations of the services, under every name that they have.
    fn operations(&self) -> Vec<KnownOperation>;

    fn mounts(&self) -> Vec<MountRow>;

    /// From now on the process tree of `pid` opens with that share mode, on one mount or on all.
    /// `run` is a number that no other run has.
    fn start_run(
        &self,
        run: u64,
        pid: u32,
        share: ShareMode,
        mount: Option<&Path>,
    ) -> Result<(), String>;

    /// The policy of that run ends, on every mount.
    fn end_run(&self, run: u64);

    fn unmount(&self, path: &Path, lazily: bool) -> Result<(), String>;

    /// Has the server stop, soon.
    fn shut_down(&self);
}
