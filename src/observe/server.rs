//! The listener for those who look after the server: `/metrics` and `/healthz`.
//!
//! Decides how much of it there is: few connections, one request each, and an end to all of them.
//! What makes a server healthy, and which Host is served, is told by whoever starts it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

use super::metrics::Metrics;

/// The most connections at a time; further ones wait to be accepted.
pub const CONNECTIONS_MAX: usize = 16;
/// How long the headers of a request may take.
const HEADER_WAIT: Duration = Duration::from_secs(10);
/// How long a connection may last in all.
const CONNECTION_WAIT: Duration = Duration::from_secs(30);
/// How long a stop waits for looks under way.
const STOP_WAIT: Duration = Duration::from_secs(1);
/// How long to wait before the next connection where the last one could not be had.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const PLAIN: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the listener shows, and to whom.
pub struct AdminOptions {
    /// Where to listen; port 0 for any.
    pub listen: SocketAddr,
    /// What was counted.
    pub metrics: Arc<Metrics>,
    /// Says what is wrong with the server, a line each; nothing if it is usable. May block, within
    /// bounds of its own.
    pub ailments: Box<dyn Fn() -> Vec<String> + Send + Sync>,
    /// Whether a request that names this Host is served: a web page that has its own name point at
    /// this machine must not look in.
    pub serves_host: fn(&str) -> bool,
}

/// The listener. Ends when dropped.
pub struct AdminServer {
    addr: SocketAddr,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl AdminServer {
    /// Starts to listen.
    pub fn start(options: AdminOptions) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(options.listen)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(CONNECTIONS_MAX)
            .thread_name("latchfs-admin")
            .enable_all()
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("latchfs-admin".into())
            .spawn(move || run(runtime, listener, Arc::new(options), stopped))?;
        Ok(Self { addr, running: Some((stop, thread)) })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.running.take() else { return };
        // It may have ended by itself.
        let _ = stop.send(());
        if thread.join().is_err() {
            log::error!("the admin listener did not end well");
        }
    }
}

fn run(
    runtime: Runtime,
    listener: TcpListener,
    options: Arc<AdminOptions>,
    stopped: oneshot::Receiver<()>,
) {
    runtime.block_on(async {
        tokio::select! {
            // An error says that the sender is gone, which is the same wish.
            _ = stopped => {}
            () = accept(listener, options) => {}
        }
    });
    runtime.shutdown_timeout(STOP_WAIT);
}

async fn accept(listener: TcpListener, options: Arc<AdminOptions>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        match listener.accept().await {
            Ok((stream, peer)) => {
                let options = Arc::clone(&options);
                tokio::spawn(async move {
                    if timeout(CONNECTION_WAIT, serve(stream, options)).await.is_err() {
                        log::debug!("the admin connection of {peer} took too long");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                log::warn!("the admin listener: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, options: Arc<AdminOptions>) {
    let service = service_fn(move |request| {
        let options = Arc::clone(&options);
        async move { Ok::<_, Infallible>(answer(options, request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_WAIT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        log::debug!("an admin connection ended: {error}");
    }
}

type Answer = Response<Full<Bytes>>;

async fn answer(options: Arc<AdminOptions>, request: Request<Incoming>) -> Answer {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or(request.uri().host()).unwrap_or_default();
    if !(options.serves_host)(host) {
        return said(StatusCode::FORBIDDEN, "a request must name this machine\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut answer = said(StatusCode::METHOD_NOT_ALLOWED, "there is only GET and HEAD here\n");
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    // Both look at files and locks, which may take a while.
    let look = match request.uri().path() {
        "/healthz" => tokio::task::spawn_blocking(move || health(&options)),
        "/metrics" => tokio::task::spawn_blocking(move || metrics(&options)),
        _ => return said(StatusCode::NOT_FOUND, "here are /healthz and /metrics\n"),
    };
    look.await.unwrap_or_else(|error| {
        log::error!("a look at the server ended badly: {error}");
        said(StatusCode::INTERNAL_SERVER_ERROR, "the server met an error of its own\n")
    })
}

fn health(options: &AdminOptions) -> Answer {
    let ailments = (options.ailments)();
    if ailments.is_empty() {
        return said(StatusCode::OK, "ok\n");
    }
    said(StatusCode::SERVICE_UNAVAILABLE, ailments.join("\n") + "\n")
}

fn metrics(options: &AdminOptions) -> Answer {
    match options.metrics.text() {
        Ok(text) => {
            let mut answer = said(StatusCode::OK, text);
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
            answer
        }
        Err(error) => {
            log::error!("the metrics cannot be written down: {error}");
            said(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written down\n")
        }
    }
}

fn said(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PLAIN));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
