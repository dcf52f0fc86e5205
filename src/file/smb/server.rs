//! The SMB listener, and what all of its connections share.
//!
//! Decides the bounds of the listener. One connection is served in [`super::connection`]; accepting
//! connections and the threads are in [`crate::net::listener`].

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::connection;
use super::operations::notify::Notifies;
use super::session::Session;
use super::status::Status;
use crate::bench::Controls;
use crate::file::service::FileService;
use crate::net::descriptors;
use crate::net::listener::{BoundListener, Listener, ListenerLimits};
use crate::net::workers::WorkerLimits;
use crate::sync::random;

/// The most connections. A client that has logged on keeps its place for as long as it likes: most
/// places of the process stay for HTTP.
const CONNECTIONS_MAX: usize = 256;
/// Threads that serve connections, and threads that may block.
const WORKERS: usize = 2;
const BLOCKING: usize = 64;
/// How long a stop waits for requests under way.
const STOP_WAIT: Duration = Duration::from_millis(1_500);
#[derive(Clone, Copy, Debug)]
pub struct SmbOptions {
    /// Where to listen; port 0 for any.
    pub listen: SocketAddr,
    /// Whether every request must come signed, or sealed.
    pub signing: bool,
    /// How long a client that vanished keeps its opens.
    pub keep_alive: Duration,
}

/// A password of a user.
#[derive(Clone, Debug)]
pub struct Password {
    pub text: String,
    /// The client that has this key to the account; none for the account's own.
    pub client: Option<Arc<str>>,
}

/// The accounts that clients log on to.
pub trait SmbAccounts: Send + Sync {
    /// The passwords of a user; none if there is no such account.
    fn passwords(&self, user: &str) -> Vec<Password>;

    /// The shares of an account.
    fn files(&self, user: &str) -> Option<Arc<FileService>>;

    /// Gates, faults and the journal.
    fn controls(&self) -> &Arc<Controls>;

    /// Why no request may be acknowledged any more.
    fn halted(&self) -> Option<&str>;
}

/// How much is held and was refused, for metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmbTally {
    pub connections: u64,
    pub sessions: u64,
    /// Requests that were refused, by the name of the status.
    pub refusals: BTreeMap<String, u64>,
}

/// What all connections share.
pub struct Site {
    pub accounts: Arc<dyn SmbAccounts>,
    pub options: SmbOptions,
    pub guid: [u8; 16],
    pub notifies: Notifies,
    /// Places for descriptors that are kept with opens.
    pub descriptors: Arc<Semaphore>,
    ids: AtomicU64,
    connections: AtomicU64,
    sessions: Mutex<HashMap<u64, Weak<Session>>>,
    refusals: Mutex<BTreeMap<u32, u64>>,
}

/// A listener being served. Ends when dropped.
pub struct SmbServer {
    listener: Listener,
    site: Arc<Site>,
}

impl SmbServer {
    /// Starts to serve the shares of these accounts.
    pub fn start(accounts: Arc<dyn SmbAccounts>, options: SmbOptions) -> io::Result<Self> {
        let workers = WorkerLimits {
            name: "latchfs-smb",
            workers: WORKERS,
            blocking: BLOCKING,
            stop_wait: STOP_WAIT,
        };
        let limits = ListenerLimits { connections: CONNECTIONS_MAX, workers };
        let bound = BoundListener::bind(options.listen, limits)?;
        // Connections and their requests may have three quarters of all descriptors.
        let descriptors = Semaphore::new(descriptors::connections_max() / 4);
        let site = Arc::new(Site {
            accounts,
            options,
            guid: random::bytes(),
            notifies: Notifies::default(),
            descriptors: Arc::new(descriptors),
            ids: AtomicU64::new(1),
            connections: AtomicU64::new(0),
            sessions: Mutex::default(),
            refusals: Mutex::default(),
        });
        let serving = Arc::clone(&site);
        let serve = move |accepted| connection::serve(accepted, Arc::clone(&serving));
        Ok(Self { listener: bound.serve(serve)?, site })
    }

    pub fn addr(&self) -> SocketAddr {
        self.listener.addr()
    }

    /// Takes no new connections from now on, and ends those that are there.
    pub fn begin_stop(&mut self) {
        self.listener.begin_stop();
    }

    /// A function that tells what is held, also after the listener has ended.
    pub fn tally(&self) -> impl Fn() -> SmbTally + Send + Sync + 'static {
        let site = Arc::clone(&self.site);
        move || site.tally()
    }
}

impl Site {
    /// A number that no session, file or asynchronous request of this server had before.
    pub fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a connection until the guard is dropped.
    pub fn count_connection(self: &Arc<Self>) -> ConnectionCount {
        self.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionCount(Arc::clone(self))
    }

    pub fn add_session(&self, session: &Arc<Session>) {
        self.lock_sessions().insert(session.id, Arc::downgrade(session));
    }

    pub fn session(&self, id: u64) -> Option<Arc<Session>> {
        self.lock_sessions().get(&id).and_then(Weak::upgrade)
    }

    pub fn forget_session(&self, id: u64) {
        self.lock_sessions().remove(&id);
    }

    /// Counts a refused request.
    pub fn refused(&self, status: Status) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        *refusals.entry(status.0).or_default() += 1;
    }

    fn tally(&self) -> SmbTally {
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let named = |(status, count): (&u32, &u64)| (Status(*status).to_string(), *count);
        SmbTally {
            connections: self.connections.load(Ordering::Relaxed),
            sessions: self.lock_sessions().len() as u64,
            refusals: refusals.iter().map(named).collect(),
        }
    }

    fn lock_sessions(&self) -> MutexGuard<'_, HashMap<u64, Weak<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is counted.
pub struct ConnectionCount(Arc<Site>);

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
