//! The listener: connections, their bounds, and an end to all of them.
//!
//! Decides the most connections, and the time limits for the head of a request and for a client
//! that does not read. Which connection makes room for the next is decided in
//! [`crate::net`], answers in [`super::site`].

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::guard::Token;
use super::metrics::Metrics;
use super::site::AdminSite;
use crate::api::calls::WAITS_MAX;
use crate::api::control::Serving;
use crate::net::timeouts::{StreamLimits, TimedStream};
use crate::net::{ConnectionBody, ConnectionState, Connections};

/// The most connections at a time. For a further one the connection ends that has been idle
/// longest; where none is idle, the further one waits.
pub const CONNECTIONS_MAX: usize = 256;
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
const STOP_WAIT: Duration = Duration::from_secs(1);
/// How long to wait before the next connection where the last one could not be had.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Threads for requests that do not wait for anything.
const CALL_THREADS: usize = 16;

/// The options of the listener.
pub struct AdminOptions {
    pub listener: std::net::TcpListener,
    /// The server that is controlled.
    pub serving: Arc<dyn Serving>,
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
}

/// The listener. Ends when dropped.
pub struct AdminServer {
    addr: SocketAddr,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl AdminServer {
    pub fn start(options: AdminOptions) -> io::Result<Self> {
        let listener = options.listener.try_clone()?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(CALL_THREADS + WAITS_MAX)
            .thread_name("latchfs-admin")
            .enable_all()
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let site = Arc::new(AdminSite::new(options));
        let thread = thread::Builder::new()
            .name("latchfs-admin".into())
            .spawn(move || run(runtime, listener, &site, stopped))?;
        Ok(Self { addr, running: Some((stop, thread)) })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.running.take() else { return };
        // An error says that the thread has ended by itself.
        let _ = stop.send(());
        if thread.join().is_err() {
            log::error!("the admin listener panicked");
        }
    }
}

fn run(
    runtime: Runtime,
    listener: TcpListener,
    site: &Arc<AdminSite>,
    stopped: oneshot::Receiver<()>,
) {
    runtime.block_on(async {
        tokio::select! {
            // An error says that the sender is gone, which is the same wish.
            _ = stopped => {}
            () = accept(listener, site) => {}
        }
    });
    site.stop();
    runtime.shutdown_timeout(STOP_WAIT);
}

async fn accept(listener: TcpListener, site: &Arc<AdminSite>) {
    let connections = Connections::all();
    let own = connections.listener();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let entry = connections.enter(own, CONNECTIONS_MAX).await;
                let site = Arc::clone(site);
                tokio::spawn(async move {
                    tokio::select! {
                        () = serve(stream, site, Arc::clone(&entry)) => {}
                        () = entry.asked_to_leave() => {
                            log::debug!("an admin connection ended to make room");
                        }
                    }
                });
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

async fn serve(stream: TcpStream, site: Arc<AdminSite>, place: Arc<ConnectionState>) {
    // An event that waits for the next one in the kernel comes late.
    if let Err(error) = stream.set_nodelay(true) {
        log::debug!("an admin connection: {error}");
    }
    let turn = Arc::clone(&place.turn);
    let watched = TimedStream::new(stream, turn, LIMITS);
    let service = service_fn(move |request| {
        let (site, place) = (Arc::clone(&site), Arc::clone(&place));
        place.begin();
        async move {
            let answer = site.answer(request).await;
            Ok::<_, Infallible>(answer.map(|body| ConnectionBody::new(body, place)))
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_WAIT)
        .serve_connection(TokioIo::new(watched), service)
        .await;
    if let Err(error) = served {
        log::debug!("an admin connection ended: {error}");
    }
}
