//! Listening: so many connections and no more, each with its limits, and an end to all of them.
//!
//! Connections are tasks; what an operation does to files is done on a bounded set of threads
//! that may block. A client that sends or reads too slowly loses its connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::authorise::Authorise;
use super::handle::{Site, handle};
use super::refusal::ErrorNames;
use super::stall::Watched;
use crate::engine::Engine;

/// The longest body: 4 MiB of bytes, and room for the frame of a structured one.
pub const BODY_MAX: usize = (4 << 20) + (64 << 10);
/// The most connections at a time; further ones wait to be accepted.
pub const CONNECTIONS_MAX: usize = 1_024;
/// The most headers of a request.
const HEADERS_MAX: usize = 128;
/// The most bytes of all headers together: a permission of 8 KiB, metadata of 8 KiB, and more.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// How long the headers of the next request may take, waiting for it to begin included.
const HEADER_WAIT: Duration = Duration::from_mins(2);
/// How long a client may leave an answer unread.
const WRITE_WAIT: Duration = Duration::from_secs(30);
/// How long a stop waits for requests under way.
const STOP_WAIT: Duration = Duration::from_secs(5);
/// Threads that may block at a time.
const BLOCKING_MAX: usize = 64;

/// How to serve.
#[derive(Clone)]
pub struct RestOptions {
    /// Where to listen; port 0 for any.
    pub listen: SocketAddr,
    /// Who is let through.
    pub authorise: Arc<dyn Authorise>,
    /// How codes are spelled.
    pub error_names: ErrorNames,
    /// Host names served besides this machine's and the accounts' own.
    pub hosts: Vec<String>,
}

impl RestOptions {
    /// On the usual port of this machine. Who is let through has no default: to let everybody in
    /// is to be asked for.
    pub fn new(authorise: Arc<dyn Authorise>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 10_004)),
            authorise,
            error_names: ErrorNames::default(),
            hosts: Vec::new(),
        }
    }
}

/// A listener being served. Ends when dropped.
pub struct Server {
    addr: SocketAddr,
    site: Arc<Site>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Server {
    /// Starts to listen.
    pub fn start(engine: Arc<Engine>, options: RestOptions) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(options.listen)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(BLOCKING_MAX)
            .thread_name("latchfs-rest")
            .enable_all()
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let site = Arc::new(Site::new(engine, options, addr));
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&site);
        let thread = thread::Builder::new()
            .name("latchfs-rest".into())
            .spawn(move || run(runtime, listener, serving, stopped))?;
        Ok(Self { addr, site, running: Some((stop, thread)) })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Ends it: no new connections, requests under way are finished, within limits.
    pub fn stop(&mut self) {
        let Some((stop, thread)) = self.running.take() else { return };
        self.site.stopping.store(true, Ordering::Release);
        let _ = stop.send(());
        if thread.join().is_err() {
            log::error!("the REST listener did not end well");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(runtime: Runtime, listener: TcpListener, site: Arc<Site>, stopped: oneshot::Receiver<()>) {
    runtime.block_on(accept(listener, site, stopped));
    // What still blocks is left to the end of the process.
    runtime.shutdown_timeout(STOP_WAIT);
}

async fn accept(listener: TcpListener, site: Arc<Site>, mut stopped: oneshot::Receiver<()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (ending, end) = watch::channel(false);
    loop {
        let entering = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            _ = &mut stopped => break,
            entered = entering => entered,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (site, end) = (Arc::clone(&site), end.clone());
                tokio::spawn(async move {
                    serve(stream, peer, site, end).await;
                    drop(place);
                });
            }
            Err(error) => {
                // Out of descriptors, most likely: the backlog waits while some are given back.
                log::warn!("the REST listener: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    ending.send_replace(true);
    let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    if timeout(STOP_WAIT, places.acquire_many(all)).await.is_err() {
        log::warn!("a REST request is still under way and is left to the end of the process");
    }
}

async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    site: Arc<Site>,
    mut end: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let who = Arc::new(site.client(peer));
    let service = service_fn(move |request| {
        let (site, who) = (Arc::clone(&site), Arc::clone(&who));
        async move { Ok::<_, std::convert::Infallible>(handle(site, who, peer, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_WAIT)
        .max_headers(HEADERS_MAX)
        .preserve_header_case(true) // For metadata: see `spelling`.
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(Watched::new(stream, WRITE_WAIT)), service);
    tokio::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        _ = end.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        log::debug!("the connection of {peer} ended: {error}");
    }
}
