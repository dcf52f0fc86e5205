//! A service over HTTP: serving each connection with its limits.
//!
//! The bounds are in [`super::limits`], accepting connections and the threads that serve them in
//! [`crate::net::listener`].

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::fetch::{CopySources, SOURCE_WAIT};
use super::limits::Limits;
use super::observer::Observer;
use super::tls::Tls;
use crate::http::auth::Admission;
use crate::http::frame::gates_and_faults::Dropped;
use crate::http::frame::handle::handle;
use crate::http::frame::host::Host;
use crate::http::frame::refusal::ErrorNames;
use crate::http::frame::service::Service;
use crate::http::frame::site::Site;
use crate::http::frame::source::Siblings;
use crate::net::listener::{Accepted, BoundListener, Listener};
use crate::net::timeouts::TimedStream;
use crate::net::{ConnectionBody, ConnectionState};

#[derive(Clone)]
pub struct RestOptions {
    /// Where to listen; port 0 for any.
    pub listen: SocketAddr,
    /// Which requests are accepted.
    pub admission: Admission,
    /// How codes are spelled.
    pub error_names: ErrorNames,
    /// Host names served besides this machine's and the accounts' own.
    pub hosts: Vec<String>,
    /// Whether the account is always the first segment of the path, whatever the host is.
    pub path_style: bool,
    /// Whether every value of `x-ms-version` is accepted.
    pub any_version: bool,
    /// How much of everything.
    pub limits: Limits,
    /// Serves https with this, and http without.
    pub tls: Option<Tls>,
    /// Where sources of copies may be.
    pub copy_sources: CopySources,
    /// How long a source on another server may take.
    pub source_wait: Duration,
    /// How long a copy within the server stays pending before its bytes are copied.
    pub copy_delay: Duration,
    /// The observer of every answer.
    pub observer: Option<Arc<dyn Observer>>,
    /// The listeners that are started with these options or a clone of them: one server.
    pub siblings: Siblings,
}

impl RestOptions {
    /// On any free port of this machine. Which requests are accepted has no default: a caller that
    /// wants to let everyone in must say so.
    pub fn new(admission: Admission) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            admission,
            error_names: ErrorNames::default(),
            hosts: Vec::new(),
            path_style: false,
            any_version: false,
            limits: Limits::default(),
            tls: None,
            copy_sources: CopySources::default(),
            source_wait: SOURCE_WAIT,
            copy_delay: Duration::ZERO,
            observer: None,
            siblings: Siblings::default(),
        }
    }
}

/// A listener being served. Ends when dropped.
pub struct RestServer {
    listener: Listener,
    site: Arc<Site>,
}

impl RestServer {
    /// Starts to serve `service` of these accounts.
    pub fn start(
        accounts: Arc<impl Host + 'static>,
        service: &'static Service,
        options: RestOptions,
    ) -> io::Result<Self> {
        let bound = BoundListener::bind(options.listen, options.limits.listener())?;
        options.siblings.add(service.kind, bound.addr());
        let site = Arc::new(Site::new(accounts, service, options, bound.addr()));
        let serving = Arc::clone(&site);
        let listener = bound.serve(move |accepted| enter(accepted, Arc::clone(&serving)))?;
        Ok(Self { listener, site })
    }

    pub fn addr(&self) -> SocketAddr {
        self.listener.addr()
    }

    /// Takes no new connections from now on, and gives requests under way their time to finish.
    pub fn begin_stop(&mut self) {
        if self.listener.begin_stop() {
            self.site.options.siblings.remove(self.addr());
            self.site.stopping.store(true, Ordering::Release);
        }
    }

    /// Ends it: no new connections, requests under way are finished, within limits.
    pub fn stop(&mut self) {
        self.begin_stop();
        self.listener.stop();
    }
}

impl Drop for RestServer {
    fn drop(&mut self) {
        self.begin_stop();
    }
}

/// Shakes hands first, where the listener speaks TLS.
async fn enter(accepted: Accepted, site: Arc<Site>) {
    let Accepted { stream, peer, place, mut end } = accepted;
    let Some(tls) = site.options.tls.clone() else {
        return serve(stream, peer, site, place, end).await;
    };
    let secured = tokio::select! {
        secured = tls.accept(stream, peer) => secured,
        _ = end.changed() => None,
    };
    if let Some(stream) = secured {
        serve(stream, peer, site, place, end).await;
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: SocketAddr,
    site: Arc<Site>,
    place: Arc<ConnectionState>,
    mut end: watch::Receiver<bool>,
) {
    let limits = site.options.limits;
    let who = Arc::new(site.client(peer));
    site.accounts.controls().journal.connected(&who.client.name);
    let turn = Arc::clone(&place.turn);
    let watched = TimedStream::new(stream, turn, limits.stream());
    let service = service_fn(move |request| {
        let (site, who, place) = (Arc::clone(&site), Arc::clone(&who), Arc::clone(&place));
        place.begin();
        async move {
            // An error ends the connection without an answer.
            let answer = handle(site, who, &place, peer, request).await?;
            Ok::<_, Dropped>(answer.map(|body| ConnectionBody::new(body, place)))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle_wait)
        .max_headers(limits.headers)
        .preserve_header_case(true) // For metadata: see `header_case`.
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
