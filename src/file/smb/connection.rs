//! One connection: frames in, frames out, and what belongs to it: sessions, credits, requests that
//! wait.
//!
//! Decides how much a client may have under way, when a silent or slow one is cut off, and that the
//! end of a connection ends its sessions. What a message asks for is decided in [`super::chain`].

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hyper::body::{Buf, Bytes};
use rustix::net::sockopt;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::chain::Chain;
use super::credits::Credits;
use super::logon::{self, Logon, Negotiated};
use super::pending::Waiting;
use super::server::Site;
use super::session::Session;
use super::status::Status;
use super::wire::{Transform, header};
use crate::net::ConnectionState;
use crate::net::listener::Accepted;
use crate::net::workers::{Undone, on_a_thread};

/// The most bytes of a read or a write.
pub const IO_MAX: u32 = 1 << 20;
/// The same for 2.0.2.
pub const SMALL_IO: u32 = 64 << 10;
/// Headers and contexts beside them.
const FRAME_MAX: usize = IO_MAX as usize + SMALL;
/// The longest frame of a client that has not logged on; longer ones need room among all.
pub const SMALL: usize = SMALL_IO as usize;
/// Bytes of requests and answers of one connection that are in memory. A client that has more under
/// way, or leaves answers unread, is not read from.
const ROOM: usize = 16 << 20;
/// Bytes of all long ones together, of every connection of the process.
static ALL_ROOM: Semaphore = Semaphore::const_new(128 << 20);
/// The most sessions of a connection, and of logons that are not complete.
const SESSIONS_MAX: usize = 64;
/// How long a client may take to log on.
const LOGON_WAIT: Duration = Duration::from_secs(30);
/// How long a client may leave an answer unread.
const WRITE_WAIT: Duration = Duration::from_secs(30);
/// How long a request may wait for a thread.
const THREAD_WAIT: Duration = Duration::from_secs(30);
/// The kernel's probes of a silent client.
const PROBES: u32 = 3;

/// The connection is to be ended: its client broke the protocol, or a fault wants it.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended;

/// Room for bytes of requests and answers, given back when dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "it is held, not looked at")]
pub struct Room(OwnedSemaphorePermit, Option<SemaphorePermit<'static>>);

pub struct Connection {
    pub site: Arc<Site>,
    pub peer: SocketAddr,
    pub place: Arc<ConnectionState>,
    pub negotiated: OnceLock<Negotiated>,
    pub credits: Mutex<Credits>,
    pub waiting: Arc<Waiting>,
    sessions: Mutex<Sessions>,
    room: Arc<Semaphore>,
    out: UnboundedSender<(Vec<u8>, Vec<Room>)>,
    gone: watch::Sender<bool>,
}

#[derive(Default)]
struct Sessions {
    /// The first one was there: the client is no stranger.
    proved: bool,
    ended: bool,
    valid: HashMap<u64, Arc<Session>>,
    logons: HashMap<u64, Logon>,
    /// The last one that was ended.
    left: Option<Arc<Session>>,
}

/// Ends the sessions of a connection when dropped, however the connection ends.
struct Ending(Arc<Connection>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.cut();
        let sessions = self.0.take_sessions();
        if !sessions.is_empty() {
            let site = Arc::clone(&self.0.site);
            // Nobody waits for it: the connection had to make room for another one.
            drop(tokio::task::spawn_blocking(move || end_all(&site, &sessions)));
        }
    }
}

fn end_all(site: &Site, sessions: &[Arc<Session>]) {
    for session in sessions {
        session.end(site);
    }
}

/// Serves a connection to its end.
pub async fn serve(accepted: Accepted, site: Arc<Site>) {
    let Accepted { stream, peer, place, mut end } = accepted;
    if let Err(error) = probe(&stream, site.options.keep_alive) {
        log::warn!("{peer}: the kernel does not look after a silent client: {error}");
    }
    let _counted = site.count_connection();
    let (reader, writer) = stream.into_split();
    let (out, outgoing) = unbounded_channel();
    let connection = Arc::new(Connection {
        site: Arc::clone(&site),
        peer,
        place,
        negotiated: OnceLock::new(),
        credits: Mutex::new(Credits::new()),
        waiting: Arc::default(),
        sessions: Mutex::default(),
        room: Arc::new(Semaphore::new(ROOM)),
        out,
        gone: watch::Sender::new(false),
    });
    let ending = Ending(Arc::clone(&connection));
    tokio::select! {
        () = read(&connection, reader) => {}
        () = write(writer, outgoing) => {}
        () = connection.gone() => {}
        _ = end.changed() => {}
    }
    connection.cut();
    let sessions = connection.take_sessions();
    if !sessions.is_empty() {
        // Without a thread, what is left ends with the process.
        let _ = on_pool(move || end_all(&site, &sessions)).await;
    }
    drop(ending);
}

/// Has the kernel end the connection of a client that vanished.
fn probe(stream: &TcpStream, patience: Duration) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    let step = (patience / (PROBES + 1)).max(Duration::from_secs(1));
    sockopt::set_tcp_keepidle(stream, step)?;
    sockopt::set_tcp_keepintvl(stream, step)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    let millis = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, millis)
}

/// Takes frames until the client ends, breaks the protocol or is too slow to log on.
async fn read(connection: &Arc<Connection>, stream: OwnedReadHalf) {
    let mut stream = BufReader::with_capacity(16 << 10, stream);
    let patience = Instant::now() + LOGON_WAIT;
    loop {
        let is_stranger = !connection.lock_sessions().proved;
        let step = async {
            let most = if is_stranger { SMALL } else { FRAME_MAX };
            let (frame, room) = read_frame(connection, &mut stream, most).await?;
            take(connection, frame, room).await.ok()
        };
        let taken =
            if is_stranger { timeout_at(patience, step).await.ok().flatten() } else { step.await };
        if taken.is_none() {
            return;
        }
    }
}

async fn read_frame(
    connection: &Connection,
    stream: &mut BufReader<OwnedReadHalf>,
    most: usize,
) -> Option<(Vec<u8>, Room)> {
    // A type, which is 0, and a length of three bytes.
    let start = stream.read_u32().await.ok()?;
    let length = usize::try_from(start).ok().filter(|length| *length <= most)?;
    let room = connection.enter(length).await;
    let mut frame = vec![0; length];
    stream.read_exact(&mut frame).await.ok()?;
    Some((frame, room))
}

async fn take(connection: &Arc<Connection>, frame: Vec<u8>, room: Room) -> Result<(), Ended> {
    match frame.first_chunk() {
        Some(&header::SMB1) => logon::negotiate_from_smb1(connection, &frame),
        Some(&header::ENCRYPTED) => {
            let (session, message) = unseal(connection, frame).await?;
            Chain::take(connection, message.into(), Some(session), room).await
        }
        _ => Chain::take(connection, frame.into(), None, room).await,
    }
}

async fn unseal(connection: &Connection, frame: Vec<u8>) -> Result<(Arc<Session>, Vec<u8>), Ended> {
    let (transform, _) = Transform::parse(&frame).map_err(|_| Ended)?;
    let session = connection.session(transform.session_id).ok_or(Ended)?;
    let opener = Arc::clone(&session);
    let opened = heavy(frame.len(), move || {
        let (transform, encrypted) = Transform::parse(&frame).ok()?;
        opener.keys.seal()?.decrypt(&transform, encrypted)
    });
    let message = opened.await.map_err(|_| Ended)?.ok_or(Ended)?;
    Ok((session, message))
}

/// Writes answers. Ends where the client leaves one unread for too long.
async fn write(mut stream: OwnedWriteHalf, mut outgoing: UnboundedReceiver<(Vec<u8>, Vec<Room>)>) {
    while let Some((frame, room)) = outgoing.recv().await {
        let length = u32::try_from(frame.len()).expect("answers are shorter than frames may be");
        let mut bytes = Bytes::copy_from_slice(&length.to_be_bytes()).chain(Bytes::from(frame));
        while bytes.has_remaining() {
            let written = timeout(WRITE_WAIT, stream.write_buf(&mut bytes)).await;
            if !written.is_ok_and(|written| written.is_ok()) {
                return;
            }
        }
        drop(room);
    }
}

impl Connection {
    /// Room for so many bytes of a request or an answer.
    pub async fn enter(&self, bytes: usize) -> Room {
        const OPEN: &str = "the semaphores are never closed";
        let wanted = u32::try_from(bytes.min(ROOM)).expect("the bound is below 2^32");
        let own = Arc::clone(&self.room).acquire_many_owned(wanted).await.expect(OPEN);
        let all = if bytes > SMALL {
            Some(ALL_ROOM.acquire_many(wanted).await.expect(OPEN))
        } else {
            None
        };
        Room(own, all)
    }

    /// Sends a frame; the room is given back when it is written.
    pub fn send(&self, message: Vec<u8>, room: Vec<Room>) {
        // An error says that the connection has ended.
        let _ = self.out.send((message, room));
    }

    pub fn cut(&self) {
        self.gone.send_replace(true);
    }

    pub fn is_gone(&self) -> bool {
        *self.gone.borrow()
    }

    /// Waits for the end of the connection.
    pub async fn gone(&self) {
        // The sender lives as long as the connection.
        let _ = self.gone.subscribe().wait_for(|gone| *gone).await;
    }

    pub fn session(&self, id: u64) -> Option<Arc<Session>> {
        self.lock_sessions().valid.get(&id).cloned()
    }

    /// A session that has logged on. False if the connection has ended meanwhile.
    pub fn add_session(&self, session: &Arc<Session>) -> bool {
        let mut sessions = self.lock_sessions();
        if sessions.ended {
            return false;
        }
        if !sessions.proved {
            sessions.proved = true;
            self.place.prove();
            // At work for good: an idle client may hold files, and makes room for nobody.
            self.place.begin();
        }
        sessions.valid.insert(session.id, Arc::clone(session));
        self.site.add_session(session);
        true
    }

    pub fn remove_session(&self, id: u64) -> Option<Arc<Session>> {
        let mut sessions = self.lock_sessions();
        let removed = sessions.valid.remove(&id);
        sessions.left = removed.clone().or(sessions.left.take());
        removed
    }

    /// The session of that number, if it is the last one that was ended.
    pub fn left(&self, id: u64) -> Option<Arc<Session>> {
        self.lock_sessions().left.clone().filter(|session| session.id == id)
    }

    /// The logon that a message goes on with.
    pub fn take_logon(&self, id: u64) -> Option<Logon> {
        self.lock_sessions().logons.remove(&id)
    }

    /// Keeps a logon until its next message; false if there are too many.
    pub fn keep_logon(&self, id: u64, logon: Logon) -> bool {
        let mut sessions = self.lock_sessions();
        let has_room = sessions.valid.len() + sessions.logons.len() < SESSIONS_MAX;
        if has_room {
            sessions.logons.insert(id, logon);
        }
        has_room
    }

    fn take_sessions(&self) -> Vec<Arc<Session>> {
        let mut sessions = self.lock_sessions();
        sessions.ended = true;
        sessions.left = None;
        std::mem::take(&mut sessions.valid).into_values().collect()
    }

    fn lock_sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does `work` on a thread that may block.
pub async fn on_pool<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Status> {
    on_a_thread(THREAD_WAIT, work).await.map_err(|undone| match undone {
        Undone::NoThread => Status::INSUFFICIENT_RESOURCES,
        Undone::Panicked => {
            log::error!("an SMB request panicked");
            Status::UNEXPECTED_IO_ERROR
        }
    })
}

/// Does work that takes a time in proportion to `bytes`: for a long message on the pool, since the
/// event loop serves others too.
pub async fn heavy<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Status> {
    if bytes <= SMALL { Ok(work()) } else { on_pool(work).await }
}
