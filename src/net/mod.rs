//! The connections of all listeners of the process: how many there may be, and which one makes
//! room for the next. Time limits of one connection are in [`timeouts`].
//!
//! Decides that strangers who connect and stay idle never keep others out: where there is no
//! place, the connection that has been idle longest ends, those that never proved who they are
//! before all others. The number of places follows from the limit of open descriptors, of which
//! the mount and the control socket keep a share ([`descriptors`]).

pub mod descriptors;
mod lingering;
pub mod listener;
pub mod timeouts;
pub mod workers;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Notify;

use timeouts::ConnectionTurn;

/// The connections of the process that strangers may make.
static ALL: LazyLock<Connections> = LazyLock::new(Connections::new);
/// Those to control sockets, which have descriptors of their own.
static OWNERS: LazyLock<Connections> = LazyLock::new(Connections::new);

/// The open connections, and room for more.
#[derive(Debug)]
pub struct Connections {
    began: Instant,
    /// The most, over all listeners.
    most: AtomicUsize,
    open: Mutex<BTreeMap<u64, Arc<ConnectionState>>>,
    next: AtomicU64,
    /// Listeners that have a connection waiting for a place.
    waiting: AtomicUsize,
    /// A connection ended, or became idle while a task waits for a place.
    changed: Notify,
}

/// The state of one connection.
#[derive(Debug)]
pub struct ConnectionState {
    id: u64,
    all: &'static Connections,
    listener: ListenerId,
    /// Odd while a request is carried out.
    pub turn: Arc<ConnectionTurn>,
    /// A request was authorised on it.
    proved: AtomicBool,
    /// Its request was refused, and the rest of its body is thrown away.
    refused: AtomicBool,
    /// Milliseconds from the start of the process to its last request or answer.
    since: AtomicU64,
    leave: Notify,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListenerId(u64);

/// A connection's place, given back when dropped.
#[derive(Debug)]
pub struct ConnectionGuard(Arc<ConnectionState>);

impl Connections {
    /// Those of this process.
    pub fn all() -> &'static Self {
        &ALL
    }

    /// Those of owners, to control sockets: no stranger keeps an owner out.
    pub fn of_owners() -> &'static Self {
        &OWNERS
    }

    fn new() -> Self {
        Self {
            began: Instant::now(),
            most: AtomicUsize::new(usize::MAX),
            open: Mutex::default(),
            next: AtomicU64::new(1),
            waiting: AtomicUsize::new(0),
            changed: Notify::new(),
        }
    }

    /// A new listener. Reads the limit of descriptors anew.
    pub fn listener(&self) -> ListenerId {
        if std::ptr::eq(self, &raw const *ALL) {
            self.most.store(descriptors::connections_max(), Ordering::Relaxed);
        }
        ListenerId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// A place for a connection of `listener`, which may have `most`. Where there is none, the
    /// connection that can best be spared ends; while none can, this waits.
    pub async fn enter(&'static self, listener: ListenerId, most: usize) -> ConnectionGuard {
        let _waiting = WaitCount::begin(&self.waiting);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.try_enter(listener, most) {
                Ok(entry) => return entry,
                Err(Full { of }) => {
                    self.shed(of);
                }
            }
            changed.await;
        }
    }

    /// As [`Connections::enter`], but `None` where all connections of the listener are at work.
    pub async fn enter_unless_full(
        &'static self,
        listener: ListenerId,
        most: usize,
    ) -> Option<ConnectionGuard> {
        let _waiting = WaitCount::begin(&self.waiting);
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.try_enter(listener, most) {
                Ok(entry) => return Some(entry),
                Err(Full { of }) if !self.shed(of) => return None,
                Err(Full { .. }) => changed.await,
            }
        }
    }

    /// Ends the connection that can best be spared, of one listener or of all; false if all are at
    /// work.
    pub fn shed(&self, of: Option<ListenerId>) -> bool {
        let open = self.lock();
        let spare = open
            .values()
            .filter(|place| of.is_none_or(|listener| listener == place.listener))
            .filter(|place| place.can_be_spared())
            .min_by_key(|place| {
                let proved = place.proved.load(Ordering::Relaxed);
                (proved, place.since.load(Ordering::Relaxed))
            });
        if let Some(place) = &spare {
            place.leave.notify_one();
        }
        spare.is_some()
    }

    /// Waits until a listener has no connection any more.
    pub async fn ended(&self, listener: ListenerId) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.lock().values().all(|place| place.listener != listener) {
                return;
            }
            changed.await;
        }
    }

    fn try_enter(
        &'static self,
        listener: ListenerId,
        most: usize,
    ) -> Result<ConnectionGuard, Full> {
        let mut open = self.lock();
        if open.len() >= self.most.load(Ordering::Relaxed) {
            return Err(Full { of: None });
        }
        if open.values().filter(|place| place.listener == listener).count() >= most {
            return Err(Full { of: Some(listener) });
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let place = Arc::new(ConnectionState {
            id,
            all: self,
            listener,
            turn: Arc::default(),
            proved: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            since: AtomicU64::new(self.now()),
            leave: Notify::new(),
        });
        open.insert(id, Arc::clone(&place));
        Ok(ConnectionGuard(place))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<ConnectionState>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes tasks that wait for a place, if there are any.
    fn tell(&self) {
        if self.waiting.load(Ordering::Acquire) > 0 {
            self.changed.notify_waiters();
        }
    }
}

/// No place: in the process, or of one listener.
struct Full {
    of: Option<ListenerId>,
}

impl ConnectionState {
    /// A request was taken.
    pub fn begin(&self) {
        self.turn.pass();
    }

    /// The answer was sent, or given up.
    fn answered(&self) {
        self.since.store(self.all.now(), Ordering::Relaxed);
        self.refused.store(false, Ordering::Relaxed);
        self.turn.pass();
        self.all.tell();
    }

    /// A request was authorised.
    pub fn prove(&self) {
        self.proved.store(true, Ordering::Relaxed);
    }

    /// The request was refused; only its body is still awaited, to be thrown away.
    pub fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
        self.all.tell();
    }

    /// Waits until the connection is to end to make room.
    pub async fn asked_to_leave(&self) {
        self.leave.notified().await;
    }

    fn can_be_spared(&self) -> bool {
        self.turn.is_idle() || self.refused.load(Ordering::Relaxed)
    }
}

/// The body of an answer. Its connection is at work until the body is gone: sent as a whole, or
/// given up with the connection.
#[derive(Debug)]
pub struct ConnectionBody<B> {
    body: B,
    place: Arc<ConnectionState>,
}

impl<B> ConnectionBody<B> {
    /// That body, on that connection.
    pub fn new(body: B, place: Arc<ConnectionState>) -> Self {
        Self { body, place }
    }
}

impl<B> Drop for ConnectionBody<B> {
    fn drop(&mut self) {
        self.place.answered();
    }
}

impl<B: Body + Unpin> Body for ConnectionBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Deref for ConnectionGuard {
    type Target = Arc<ConnectionState>;

    fn deref(&self) -> &Arc<ConnectionState> {
        &self.0
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.all.lock().remove(&self.0.id);
        // Also tells a listener that ends, which waits without being counted.
        self.0.all.changed.notify_waiters();
    }
}

/// Counts tasks that wait for a place.
struct WaitCount<'a>(&'a AtomicUsize);

impl<'a> WaitCount<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for WaitCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
