//! The listeners, the control socket and the admin address: connections, their bounds, and an end
//! to all of them.
//!
//! Decides the most connections, and the time limits for the head of a request and for a client
//! that does not read. Which connection makes room for the next is decided in
//! [`crate::net`], answers in [`super::site`].

use std::convert::Infallible;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::RecvFlags;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::calls::CALL_THREADS;
use super::events::PAGES_MAX;
use super::guard::Token;
use super::metrics::Metrics;
use super::serving::Serving;
use super::site::{LOOKS_MAX, Peer, Room, Site};
use super::socket;
use super::socket::SocketError;
use crate::net::timeouts::{StreamLimits, TimedStream};
use crate::net::{ConnectionBody, ConnectionGuard, Connections};
use crate::sync::front_end;

/// The most connections of a listener at a time. For a further one the connection ends that has
/// been idle longest. Where none is idle, a further one of the admin address waits; one of the
/// control socket is among the [`SPARE`] ones.
pub const CONNECTIONS_MAX: usize = 256;
/// The most connections to the control socket beside [`CONNECTIONS_MAX`] that are at work, with
/// [`Room::ShortCalls`]. Past them as many have [`Room::Stop`], which no other work keeps out.
pub(super) const SPARE: usize = 16;
/// How long the head of a request may take, and how long a connection may be idle before it.
const HEADER_WAIT: Duration = Duration::from_secs(30);
/// How long a client may leave an answer unread. Then the connection ends.
const WRITE_WAIT: Duration = Duration::from_secs(10);
const LIMITS: StreamLimits = StreamLimits {
    header_wait: HEADER_WAIT,
    write_wait: WRITE_WAIT,
    // Bodies are short: no answer comes before the end of its request.
    refused_bytes: 0,
    refused_wait: WRITE_WAIT,
    body_wait: WRITE_WAIT,
};
/// How long a stop waits for requests under way.
const STOP_WAIT: Duration = Duration::from_secs(5);
/// How long to wait before the next connection where the last one could not be had.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Threads for the calls of owners and of strangers, for looks, and for the ends of holds.
const THREADS_MAX: usize = 2 * (CALL_THREADS + PAGES_MAX) + LOOKS_MAX + 32;
/// The answer to a client of the control protocol that 0.2 had.
const OTHER_VERSION: &[u8] = b"{\"v\":3}\n";

/// The options of the admin address.
pub struct AdminOptions {
    pub listener: std::net::TcpListener,
    pub metrics: Arc<Metrics>,
    /// Says what is wrong with the server, a line each; nothing if it is usable. May block, within
    /// bounds of its own.
    pub ailments: Box<dyn Fn() -> Vec<String> + Send + Sync>,
    /// Whether a request that names this Host is served: a web page that has its own name point at
    /// this machine must not look in.
    pub serves_host: Box<dyn Fn(&str) -> bool + Send + Sync>,
    /// Other machines reach the listener: monitors call it by host names that it was not given.
    pub exposed: bool,
    /// The secret that clients of the API must send, if one is needed.
    pub token: Option<Token>,
    /// The secret that managed identities must send, if tokens are accepted.
    pub identity: Option<Token>,
}

/// The control surface of a server: its socket, and its admin address if there is one. Ends when
/// dropped, and with it all that its clients hold.
pub struct ApiServer {
    socket: PathBuf,
    /// Tells its socket from that of another server which took the path since.
    place: Option<DeviceAndInode>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

type DeviceAndInode = (u64, u64);

fn place_of(path: &Path) -> Option<DeviceAndInode> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// The listeners of a runtime.
struct Listeners {
    socket: UnixListener,
    admin: Option<TcpListener>,
}

impl ApiServer {
    /// Answers on the socket of that path, and on the admin address.
    pub fn start(
        path: &Path,
        serving: &Arc<dyn Serving>,
        mut admin: Option<AdminOptions>,
    ) -> Result<Self, SocketError> {
        let system = |source| SocketError::System { path: path.to_owned(), source };
        let socket = socket::listen(path)?;
        let tcp = admin.as_mut().map(|admin| admin.listener.try_clone()).transpose();
        let (runtime, listeners) = tcp.and_then(|tcp| listen(socket, tcp)).map_err(system)?;
        let (stop, stopped) = oneshot::channel();
        let site = Arc::new(Site::new(Arc::clone(serving), admin));
        let thread = thread::Builder::new()
            .name("latchfs-api".into())
            .spawn(move || run(runtime, listeners, &site, stopped))
            .map_err(system)?;
        let (socket, place) = (path.to_owned(), place_of(path));
        Ok(Self { socket, place, running: Some((stop, thread)) })
    }

    /// Ends all connections, and with them what they hold; the socket is gone afterwards. That of
    /// another server stays: the folder may have been removed and made anew since the start.
    pub fn stop(&mut self) {
        let Some((stop, thread)) = self.running.take() else { return };
        // An error says that the thread has ended by itself.
        let _ = stop.send(());
        if thread.join().is_err() {
            log::error!("the control surface panicked");
        }
        if self.place.is_some() && place_of(&self.socket) == self.place {
            drop(fs::remove_file(&self.socket));
        }
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn listen(
    socket: std::os::unix::net::UnixListener,
    admin: Option<std::net::TcpListener>,
) -> io::Result<(Runtime, Listeners)> {
    let runtime = Builder::new_current_thread()
        .max_blocking_threads(THREADS_MAX)
        .thread_name("latchfs-api")
        .enable_all()
        .build()?;
    let inside = runtime.enter();
    socket.set_nonblocking(true)?;
    let socket = UnixListener::from_std(socket)?;
    let tcp = |listener: std::net::TcpListener| {
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    };
    let admin = admin.map(tcp).transpose()?;
    drop(inside);
    Ok((runtime, Listeners { socket, admin }))
}

fn run(runtime: Runtime, listeners: Listeners, site: &Arc<Site>, stopped: oneshot::Receiver<()>) {
    let Listeners { socket, admin } = listeners;
    let served = async {
        let admin = async {
            match admin {
                Some(listener) => accept_strangers(listener, site).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // An error says that the sender is gone, which is the same wish.
            _ = stopped => {}
            () = accept_owners(socket, site) => {}
            () = admin => {}
        }
    };
    front_end::during("event loop of the control surface", || runtime.block_on(served));
    site.stop();
    runtime.shutdown_timeout(STOP_WAIT);
}

/// Takes connections to the admin address.
async fn accept_strangers(listener: TcpListener, site: &Arc<Site>) {
    let connections = Connections::all();
    let own = connections.listener();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // An event that waits for the next one in the kernel comes late.
                if let Err(error) = stream.set_nodelay(true) {
                    log::debug!("an admin connection: {error}");
                }
                let place = connections.enter(own, CONNECTIONS_MAX).await;
                tokio::spawn(serve(stream, Arc::clone(site), Peer::Stranger, place));
            }
            Err(error) => {
                // Out of descriptors, most likely: an idle connection gives one back.
                log::warn!("the admin listener: {error}");
                connections.shed(None);
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Takes connections to the control socket.
async fn accept_owners(listener: UnixListener, site: &Arc<Site>) {
    let connections = Connections::of_owners();
    let [own, spare, last] = [(); 3].map(|()| connections.listener());
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let site = Arc::clone(site);
                tokio::spawn(async move {
                    let own = connections.enter_unless_full(own, CONNECTIONS_MAX).await;
                    let (place, room) = if let Some(place) = own {
                        (place, Room::Everything)
                    } else if let Some(place) = connections.enter_unless_full(spare, SPARE).await {
                        (place, Room::ShortCalls)
                    } else {
                        (connections.enter(last, SPARE).await, Room::Stop)
                    };
                    match speaks_lines(&stream, &place).await {
                        Some(true) => tell_version(stream).await,
                        Some(false) => {
                            let peer = peer(&stream, room);
                            serve(stream, site, peer, place).await;
                        }
                        None => {}
                    }
                });
            }
            Err(error) => {
                log::warn!("the control socket: {error}");
                connections.shed(None);
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The client of a connection to the control socket. Root may change the mode of its file, and let
/// others connect.
fn peer(stream: &UnixStream, room: Room) -> Peer {
    match socket::peer(stream) {
        Ok((uid, pid)) if socket::may_enter(uid, rustix::process::geteuid().as_raw()) => {
            Peer::Owner { pid, room }
        }
        Ok((uid, _)) => Peer::Foreign { uid },
        Err(error) => {
            log::warn!("a connection to the control socket: {error}");
            Peer::Foreign { uid: u32::MAX }
        }
    }
}

/// Whether a connection speaks the control protocol of 0.2, lines of JSON, not HTTP; `None` if it
/// has ended. An object of JSON opens with a bracket, and no request of HTTP does.
async fn speaks_lines(stream: &UnixStream, place: &ConnectionGuard) -> Option<bool> {
    let first = stream.async_io(Interest::READABLE, || {
        let mut first = [0];
        let (_, read) = rustix::net::recv(stream, &mut first, RecvFlags::PEEK)?;
        Ok((read == 1).then_some(first[0] == b'{'))
    });
    tokio::select! {
        first = first => first.ok().flatten(),
        () = place.asked_to_leave() => None,
    }
}

/// Answers a command of 0.2, which reads from it that the versions differ.
async fn tell_version(mut stream: UnixStream) {
    // A socket that is closed with bytes unread is reset, and the answer with it.
    let mut asked = vec![0; 1 << 16];
    if stream.read(&mut asked).await.is_ok() {
        drop(stream.write_all(OTHER_VERSION).await);
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    site: Arc<Site>,
    peer: Peer,
    place: ConnectionGuard,
) {
    let state = Arc::clone(&place);
    let watched = TimedStream::new(stream, Arc::clone(&state.turn), LIMITS);
    let service = service_fn(move |request| {
        let (site, state) = (Arc::clone(&site), Arc::clone(&state));
        state.begin();
        async move {
            let answer = site.answer(request, peer).await;
            Ok::<_, Infallible>(answer.map(|body| ConnectionBody::new(body, state)))
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_WAIT)
        .serve_connection(TokioIo::new(watched), service);
    tokio::select! {
        served = served => {
            if let Err(error) = served {
                log::debug!("a connection to the control surface ended: {error}");
            }
        }
        () = place.asked_to_leave() => log::debug!("a connection ended to make room"),
    }
}
