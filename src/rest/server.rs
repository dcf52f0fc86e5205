//! Listening: so many connections and no more, each with its limits, and an end to all of them.
//!
//! The bounds are [`super::limits`]'; the threads that connections are served on are
//! [`super::workers`]'.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::authorise::Authorise;
use super::fetch::{CopySources, SOURCE_WAIT};
use super::handle::{Site, handle};
use super::limits::Limits;
use super::observer::Observer;
use super::refusal::ErrorNames;
use super::stall::{Turn, Watched};
use super::tls::Tls;
use super::workers::Workers;
use crate::engine::Engine;

/// How long to wait before the next connection where the last one could not be had.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

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
    /// How much of everything.
    pub limits: Limits,
    /// Serves https with this, and http without.
    pub tls: Option<Tls>,
    /// Where sources of copies may be.
    pub copy_sources: CopySources,
    /// How long a source on another server may take.
    pub source_wait: Duration,
    /// Who is told of every answer.
    pub observer: Option<Arc<dyn Observer>>,
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
            limits: Limits::default(),
            tls: None,
            copy_sources: CopySources::default(),
            source_wait: SOURCE_WAIT,
            observer: None,
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
        let workers = Workers::start(&options.limits)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let site = Arc::new(Site::new(engine, options, addr));
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&site);
        let thread = thread::Builder::new()
            .name("latchfs-accept".into())
            .spawn(move || run(&runtime, listener, &serving, &workers, stopped))?;
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

fn run(
    runtime: &Runtime,
    listener: TcpListener,
    site: &Arc<Site>,
    workers: &Workers,
    stopped: oneshot::Receiver<()>,
) {
    runtime.block_on(accept(listener, site, workers, stopped));
}

async fn accept(
    listener: TcpListener,
    site: &Arc<Site>,
    workers: &Workers,
    mut stopped: oneshot::Receiver<()>,
) {
    let Limits { connections, stop_wait, .. } = site.options.limits;
    let places = Arc::new(Semaphore::new(connections));
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
        // Out of this loop, for another one to take it.
        match accepted.and_then(|(stream, peer)| Ok((stream.into_std()?, peer))) {
            Ok((stream, peer)) => {
                let (site, end) = (Arc::clone(site), end.clone());
                workers.serve(async move {
                    match TcpStream::from_std(stream) {
                        Ok(stream) => enter(stream, peer, site, end).await,
                        Err(error) => log::warn!("the connection of {peer} is lost: {error}"),
                    }
                    drop(place);
                });
            }
            Err(error) => {
                // Out of descriptors, most likely: the backlog waits while some are given back.
                log::warn!("the REST listener: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    ending.send_replace(true);
    let all = u32::try_from(connections).unwrap_or(u32::MAX);
    if timeout(stop_wait, places.acquire_many(all)).await.is_err() {
        log::warn!("a REST request is still under way and is left to the end of the process");
    }
}

/// Shakes hands first, where the listener speaks TLS.
async fn enter(
    stream: TcpStream,
    peer: SocketAddr,
    site: Arc<Site>,
    mut end: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let Some(tls) = site.options.tls.clone() else {
        return serve(stream, peer, site, end).await;
    };
    let secured = tokio::select! {
        secured = tls.accept(stream, peer) => secured,
        _ = end.changed() => None,
    };
    if let Some(stream) = secured {
        serve(stream, peer, site, end).await;
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: SocketAddr,
    site: Arc<Site>,
    mut end: watch::Receiver<bool>,
) {
    let limits = site.options.limits;
    let who = Arc::new(site.client(peer));
    let turn = Arc::new(Turn::default());
    let watched = Watched::new(stream, Arc::clone(&turn), &limits);
    let service = service_fn(move |request| {
        let (site, who, turn) = (Arc::clone(&site), Arc::clone(&who), Arc::clone(&turn));
        turn.pass();
        async move {
            let answer = handle(site, who, peer, request).await;
            turn.pass();
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_wait)
        .max_headers(limits.headers)
        .preserve_header_case(true) // For metadata: see `spelling`.
        .max_buf_size(limits.header_room())
        .serve_connection(TokioIo::new(watched), service);
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
