//! The HTTP API, `/api/v1`: reads calls, has them carried out, and writes their answers.
//!
//! Decides how many calls may wait at a time. The meaning of a request and its answer are decided
//! in the module of its subject; who may call is decided in [`super::guard`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::body::{AdminResponse, json as json_answer};
use super::call::{ApiCall, Call as _, decoded, has_body, name_in, with_body};
use super::events::{self, FOLLOWERS_MAX, PAGES_MAX};
use super::failure::ApiFailure;
use super::holds::Holds;
use super::owner::Stop;
use super::routes::{ROUTES, Route, RouteHandler};
use super::server::{CONNECTIONS_MAX, SPARE};
use super::site::{Peer, Room};

use super::controls::{WaitAtGate, Waiting};
use super::serving::Serving;
use super::session::Session;
use crate::rules::{Client, Owner};

/// The longest body of a call, in bytes: a hold with its most locks fits.
pub const BODY_MAX: usize = 128 << 10;
/// How long a body may take.
const BODY_WAIT: Duration = Duration::from_secs(10);
/// The most calls of owners, and of strangers, that wait for something at a time.
pub const WAITS_MAX: usize = 64;
/// The longest that a call waits for something.
pub const WAIT_MAX: Duration = Duration::from_millis(WAIT_MS_MAX);
/// [`WAIT_MAX`] in milliseconds.
const WAIT_MS_MAX: u64 = 600_000;

/// How long a call waits at a gate unless it says so, in milliseconds.
const TIMEOUT_MS: u64 = 30_000;
/// Threads for calls of owners, and of strangers, that do not wait for anything.
pub const CALL_THREADS: usize = 16;
/// How long a call waits for one of these threads.
const THREAD_WAIT: Duration = Duration::from_secs(10);

/// Session numbers of clients start here, past those of mounts and scripts.
const SESSIONS: u64 = 1 << 32;

/// The API of one server.
pub struct Api {
    pub(super) serving: Arc<dyn Serving>,
    pub(super) holds: Arc<Holds>,
    owners: Places,
    strangers: Places,
    sessions: AtomicU64,
}

/// How many calls may do something at a time. Owners and strangers have a set each: neither keeps
/// the other out.
pub(super) struct Places {
    threads: Arc<Semaphore>,
    waits: Semaphore,
    pub followers: Arc<Semaphore>,
    pub pages: Arc<Semaphore>,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            threads: Arc::new(Semaphore::new(CALL_THREADS)),
            waits: Semaphore::new(WAITS_MAX),
            followers: Arc::new(Semaphore::new(FOLLOWERS_MAX)),
            pages: Arc::new(Semaphore::new(PAGES_MAX)),
        }
    }
}

impl Api {
    /// The API of that server.
    pub fn new(serving: Arc<dyn Serving>) -> Self {
        Self {
            serving,
            holds: Arc::default(),
            owners: Places::default(),
            strangers: Places::default(),
            sessions: AtomicU64::new(SESSIONS),
        }
    }

    /// Ends what clients hold.
    pub fn stop(&self) {
        self.holds.release_all();
    }

    /// Whether the token of a call may be in its query.
    pub fn takes_token_in_query(method: &Method, path: &str) -> bool {
        *method == Method::GET && path == events::PATH
    }

    pub async fn answer(
        self: &Arc<Self>,
        head: Parts,
        body: Incoming,
        peer: Peer,
        client: Option<Arc<str>>,
    ) -> AdminResponse {
        let answered = async {
            let (route, in_path) = route(&head.method, head.uri.path())?;
            if let Peer::Owner { room: Room::Stop, .. } = peer
                && route.path != Stop::PATH
            {
                let most = CONNECTIONS_MAX + SPARE;
                let message = format!("{most} connections are at work already: try again later");
                return Err(ApiFailure::busy(message).closing());
            }
            if route.for_owner && !peer.is_owner() {
                let message = "only the control socket takes this call, from the owner of the \
                               server: use a command, or curl --unix-socket";
                let status = StatusCode::FORBIDDEN;
                return Err(ApiFailure::new(status, "forbidden", message.to_owned()));
            }
            let query = head.uri.query().unwrap_or_default();
            let mut call = ApiCall::new(peer, client, &head.headers);
            let values = call.values(route, in_path, query)?;
            let body = collect(body).await?;
            let values =
                if has_body(&route.method) { with_body(values, &body)? } else { values.into() };
            self.carry_out(route, call, values).await
        };
        answered.await.unwrap_or_else(|failure| failure.answer())
    }

    async fn carry_out(
        self: &Arc<Self>,
        route: &'static Route,
        call: ApiCall,
        values: Value,
    ) -> Result<AdminResponse, ApiFailure> {
        let (run, replaces) = match &route.run {
            RouteHandler::Task(run) => return run(Arc::clone(self), call, values).await,
            RouteHandler::Plain(run) => (run, false),
            RouteHandler::Replace(run) => (run, true),
        };
        let (session, holds) = (self.session(&call)?, Arc::clone(&self.holds));
        let work = move || {
            let answer = run(&session, values);
            if replaces {
                // All handles were closed: nobody has to release them. On this thread, since the
                // client may hang up before the answer.
                holds.forget_closed();
            }
            answer
        };
        let answer = self.blocking(call.peer, work).await??;
        Ok(json_answer(StatusCode::from_u16(route.status).unwrap_or_default(), &answer))
    }

    /// The request of a call: who asks, and about which account.
    pub(super) fn session(&self, call: &ApiCall) -> Result<Session, ApiFailure> {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        let (name, pid) = match call.peer {
            Peer::Owner { pid, .. } => ("the control socket", pid),
            Peer::Foreign { .. } | Peer::Stranger => ("the HTTP API", 0),
        };
        let client = Arc::new(Client { session, name: name.into() });
        let owner = Owner { client, pid, program: call.client.clone() };
        let (serving, is_owner) = (Arc::clone(&self.serving), call.peer.is_owner());
        Session::new(serving, call.account.as_deref(), owner, is_owner)
    }

    pub(super) fn places(&self, peer: Peer) -> &Places {
        if peer.is_owner() { &self.owners } else { &self.strangers }
    }

    /// A place among the calls that have a thread.
    pub(super) async fn thread(&self, peer: Peer) -> Result<OwnedSemaphorePermit, ApiFailure> {
        let threads = Arc::clone(&self.places(peer).threads);
        let place = timeout(THREAD_WAIT, threads.acquire_owned()).await;
        place.ok().and_then(Result::ok).ok_or_else(|| {
            ApiFailure::busy(format!("{CALL_THREADS} calls are at work already: try again later"))
        })
    }

    /// Does `work` on one of the [`CALL_THREADS`].
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        peer: Peer,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiFailure> {
        let place = self.thread(peer).await?;
        // Kept by the work: a client that hangs up leaves its thread busy.
        blocking(move || {
            let _place = place;
            work()
        })
        .await
    }

    /// A place among the calls that wait for something, for so long.
    pub(super) fn wait(
        &self,
        peer: Peer,
        patience: Duration,
    ) -> Result<SemaphorePermit<'_>, ApiFailure> {
        if !patience.is_zero() {
            peer.check_may_stay()?;
        }
        self.places(peer).waits.try_acquire().map_err(|_| {
            ApiFailure::busy(format!("{WAITS_MAX} calls wait already: try again later"))
        })
    }

    /// Waits until so many requests wait at a gate.
    pub(super) async fn wait_at_gate(
        self: Arc<Self>,
        call: ApiCall,
        WaitAtGate { id, count, timeout_ms }: WaitAtGate,
    ) -> Result<AdminResponse, ApiFailure> {
        let count = count.map_or(1, |count| usize::try_from(count).unwrap_or(usize::MAX));
        let patience = Duration::from_millis(timeout_ms.unwrap_or(TIMEOUT_MS));
        let _place = self.wait(call.peer, patience)?;
        let gates = &self.serving.controls().gates;
        match timeout(patience, gates.fill(id, count)).await {
            Ok(Some(waiting)) => Ok(json_answer(StatusCode::OK, &json!(Waiting { waiting }))),
            Ok(None) => Err(ApiFailure::not_found(format!("there is no gate {id}"))),
            Err(_) => Err(ApiFailure::timeout(format!(
                "{} of {count} requests wait at gate {id} after {} ms",
                gates.wait_for(id, 0, Duration::ZERO),
                patience.as_millis()
            ))),
        }
    }
}

/// Reads any bytes as a call: a line with method and target, then the body.
pub fn read_any(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (line, body) = bytes.split_at(end);
    let line = String::from_utf8_lossy(line);
    let (method, target) = line.split_once(' ').unwrap_or((&line, ""));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let Ok(method) = Method::from_bytes(method.as_bytes()) else { return };
    let Ok((route, in_path)) = route(&method, path) else { return };
    let mut call = ApiCall::new(Peer::Stranger, None, &HeaderMap::new());
    let Ok(values) = call.values(route, in_path, query) else { return };
    if let Ok(values) = with_body(values, &Bytes::copy_from_slice(body)) {
        drop((route.check)(values));
    }
}

/// Does `work` on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiFailure> {
    // A system that has no more threads makes this panic.
    let spawned = catch_unwind(AssertUnwindSafe(|| tokio::task::spawn_blocking(work)));
    let spawned = spawned.map_err(|_| ApiFailure::busy("the server has no thread for the call"))?;
    spawned.await.map_err(|error| {
        log::error!("a call of the HTTP API panicked: {error}");
        ApiFailure::failed("the server met an error of its own; its log has more")
    })
}

/// Drops a value whose end may wait for the disk, on a thread that may block.
pub(super) fn drop_elsewhere<T: Send + 'static>(value: T) {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || drop(value))),
        Err(_) => drop(value),
    }
}

/// The values in a path, by name.
type PathValues = Vec<(&'static str, String)>;

/// The route of a request, and the values in its path.
fn route(method: &Method, path: &str) -> Result<(&'static Route, PathValues), ApiFailure> {
    let mut allowed = Vec::new();
    for route in &ROUTES.routes {
        let Some(values) = values(route.path, path)? else { continue };
        if route.method == *method {
            return Ok((route, values));
        }
        allowed.push(route.method.as_str());
    }
    if allowed.is_empty() {
        return Err(ApiFailure::not_found(format!(
            "{path} is not a call of the API: /api/v1/openapi.json lists the calls"
        )));
    }
    Err(ApiFailure::method_not_allowed(&allowed.join(", ")))
}

/// The values that a path has where the template has names; `None` if it does not fit.
fn values<'a>(template: &'a str, path: &str) -> Result<Option<Vec<(&'a str, String)>>, ApiFailure> {
    let mut values = Vec::new();
    let mut given = path.split('/');
    for part in template.split('/') {
        let Some(segment) = given.next() else { return Ok(None) };
        match name_in(part) {
            Some(name) if !segment.is_empty() => values.push((name, decoded(segment)?)),
            _ if part == segment => {}
            _ => return Ok(None),
        }
    }
    Ok(given.next().is_none().then_some(values))
}

/// Takes a whole body in.
async fn collect(body: Incoming) -> Result<Bytes, ApiFailure> {
    let too_large = || {
        let message = format!("a body has at most {BODY_MAX} bytes");
        ApiFailure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message).closing()
    };
    match timeout(BODY_WAIT, Limited::new(body, BODY_MAX).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(ApiFailure::bad(format!("the body broke off: {error}")).closing()),
        Err(_) => Err(ApiFailure::timeout("the body did not arrive in time").closing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_fits_a_template_by_its_parts() {
        let fits = |template, path| values(template, path).unwrap();
        assert_eq!(fits("/a/b", "/a/b").unwrap().len(), 0);
        assert_eq!(fits("/a/{id}/c", "/a/x%2Fy/c").unwrap(), [("id", "x/y".to_owned())]);
        for (template, path) in
            [("/a/b", "/a"), ("/a/b", "/a/b/"), ("/a/{id}", "/a/"), ("/a/{id}", "/b/1")]
        {
            assert!(fits(template, path).is_none(), "{template} {path}");
        }
    }

    #[test]
    fn a_path_that_is_there_names_its_methods() {
        let refused = |method: Method, path: &str| format!("{:?}", route(&method, path).err());
        assert!(refused(Method::PATCH, "/api/v1/gates").contains("GET, POST, DELETE"));
        assert!(refused(Method::GET, "/api/v1/nothing").contains("not_found"));
        assert!(route(&Method::GET, "/api/v1/gates/7").is_ok());
    }
}
