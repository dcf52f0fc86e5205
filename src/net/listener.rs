//! Listening: accepting connections, giving each a place and an event loop, and ending all of them.
//!
//! The places for connections are in [`super::Connections`], the threads that serve them in
//! [`super::workers`]. What a connection speaks is decided by its face.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use super::workers::{WorkerLimits, Workers};
use super::{ConnectionState, Connections, descriptors};

/// How long to wait before the next connection where the last one could not be had.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The bounds of a listener.
#[derive(Clone, Copy, Debug)]
pub struct ListenerLimits {
    /// Connections at a time. For a further one the connection ends that has been idle longest;
    /// where none is idle, the further one waits.
    pub connections: usize,
    pub workers: WorkerLimits,
}

/// A connection that was accepted, on the event loop that serves it.
pub struct Accepted {
    pub stream: TcpStream,
    pub peer: SocketAddr,
    /// Its place among all.
    pub place: Arc<ConnectionState>,
    /// Changes when the listener stops: no further request is to be taken.
    pub end: watch::Receiver<bool>,
}

/// A socket that listens, and that nobody accepts from yet.
pub struct BoundListener {
    listener: TcpListener,
    runtime: Runtime,
    workers: Workers,
    limits: ListenerLimits,
    addr: SocketAddr,
}

/// A listener being served. Ends when dropped.
pub struct Listener {
    addr: SocketAddr,
    name: &'static str,
    /// Tells the thread to stop, until it was told.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl BoundListener {
    /// Listens on this address; port 0 for any.
    pub fn bind(listen: SocketAddr, limits: ListenerLimits) -> io::Result<Self> {
        descriptors::raise_limit();
        let listener = std::net::TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let workers = Workers::start(&limits.workers)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        Ok(Self { listener, runtime, workers, limits, addr })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Starts to accept connections; each is served by the future that `serve` makes.
    pub fn serve<F: Future<Output = ()> + Send + 'static>(
        self,
        serve: impl Fn(Accepted) -> F + Clone + Send + Sync + 'static,
    ) -> io::Result<Listener> {
        let (addr, name) = (self.addr, self.limits.workers.name);
        let (stop, stopped) = oneshot::channel();
        let Self { listener, runtime, workers, limits, .. } = self;
        let thread = thread::Builder::new().name("latchfs-accept".into()).spawn(move || {
            runtime.block_on(accept(listener, &workers, limits, serve, stopped));
        })?;
        Ok(Listener { addr, name, stop: Some(stop), thread: Some(thread) })
    }
}

impl Listener {
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Takes no new connections from now on, and gives requests under way their time to finish.
    /// False if that was done before.
    pub fn begin_stop(&mut self) -> bool {
        // An error says that the thread has ended.
        self.stop.take().map(|stop| stop.send(())).is_some()
    }

    /// Ends it: no new connections, requests under way are finished, within limits.
    pub fn stop(&mut self) {
        self.begin_stop();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            log::error!("the listener {} did not end well", self.name);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn accept<F: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    workers: &Workers,
    limits: ListenerLimits,
    serve: impl Fn(Accepted) -> F + Clone + Send + Sync + 'static,
    mut stopped: oneshot::Receiver<()>,
) {
    let ListenerLimits { connections: most, workers: WorkerLimits { name, stop_wait, .. } } =
        limits;
    let connections = Connections::all();
    let own = connections.listener();
    let (ending, end) = watch::channel(false);
    loop {
        let accepted = tokio::select! {
            _ = &mut stopped => break,
            accepted = listener.accept() => accepted,
        };
        // Out of this loop, for another one to take it.
        match accepted.and_then(|(stream, peer)| Ok((stream.into_std()?, peer))) {
            Ok((stream, peer)) => {
                let entry = tokio::select! {
                    _ = &mut stopped => break,
                    entry = connections.enter(own, most) => entry,
                };
                let (serve, end) = (serve.clone(), end.clone());
                workers.serve(async move {
                    let place = Arc::clone(&entry);
                    let serving = async {
                        match TcpStream::from_std(stream) {
                            Ok(stream) => {
                                let _ = stream.set_nodelay(true);
                                serve(Accepted { stream, peer, place, end }).await;
                            }
                            Err(error) => log::warn!("the connection of {peer} is lost: {error}"),
                        }
                    };
                    tokio::select! {
                        () = serving => {}
                        () = entry.asked_to_leave() => {
                            log::debug!("the connection of {peer} ended to make room");
                        }
                    }
                });
            }
            Err(error) => {
                // Out of descriptors, most likely: an idle connection gives one back.
                log::warn!("the listener {name}: {error}");
                connections.shed(None);
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    ending.send_replace(true);
    if timeout(stop_wait, connections.ended(own)).await.is_err() {
        log::warn!("{name}: a request is still under way and is left to the end of the process");
    }
}
