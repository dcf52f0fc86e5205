//! The HTTP API, `/api/v1`: HTTP to requests of `api/control`, their answers to JSON.
//!
//! ```text
//!   routes    the table: which calls there are, what they take and give
//!   openapi   the OpenAPI document, made of the table
//!   call      one call: path, query, body
//!   failure   a call that was not carried out
//!   looks     calls that show something
//!   bench     the clock, gates and faults
//!   states    all data at once: saved, restored, reset
//!   holds     opens that clients of the API keep
//!   events    the stream of events, by page and as server-sent events
//! ```
//!
//! Decides how many calls may wait at a time. The meaning of a request and its answer are decided
//! in `api/control`; who may call is decided in [`super::guard`].

#![allow(clippy::unnecessary_wraps, reason = "the functions of the table of routes have one shape")]

mod bench;
mod call;
mod events;
mod failure;
mod holds;
mod looks;
mod openapi;
mod routes;
mod states;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::body::{AdminResponse, json};
use super::site::Peer;
use call::{ApiCall, decoded};
pub use events::{FOLLOWERS_MAX, PAGES_MAX};
pub use failure::ApiFailure;
use holds::Holds;
pub use holds::{HOLD_TIME_MAX, HOLDS_MAX};
use routes::{ROUTES, Route, RouteHandler};

use crate::api::control::{ControlAnswer, ControlConnection, ControlRequest, Serving};
use crate::rules::{Client, Owner};

/// The longest body of a call, in bytes.
pub const BODY_MAX: usize = 64 << 10;
/// How long a body may take.
const BODY_WAIT: Duration = Duration::from_secs(10);
/// The most calls that wait for something at a time.
pub const WAITS_MAX: usize = 64;
/// The longest that a call waits for something.
pub const WAIT_MAX: Duration = Duration::from_millis(WAIT_MS_MAX);
/// [`WAIT_MAX`] in milliseconds.
const WAIT_MS_MAX: u64 = 600_000;

/// Session numbers of clients start here, past those of the control socket.
const SESSIONS: u64 = 1 << 33;

/// The API of one server.
pub struct Api {
    serving: Arc<dyn Serving>,
    holds: Arc<Holds>,
    waits: Semaphore,
    followers: Arc<Semaphore>,
    pages: Arc<Semaphore>,
    sessions: AtomicU64,
}

impl Api {
    /// The API of that server.
    pub fn new(serving: Arc<dyn Serving>) -> Self {
        let followers = Arc::new(Semaphore::new(FOLLOWERS_MAX));
        let pages = Arc::new(Semaphore::new(PAGES_MAX));
        let (holds, waits) = (Arc::default(), Semaphore::new(WAITS_MAX));
        Self { serving, holds, waits, followers, pages, sessions: AtomicU64::new(SESSIONS) }
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
            let (route, values) = route(&head.method, head.uri.path())?;
            let query = head.uri.query().unwrap_or_default();
            let call = ApiCall::read(route, values, query, peer, client)?;
            let call = call.with_headers(&head.headers);
            let call = call.with_body(collect(body).await?);
            self.carry_out(route, call).await
        };
        answered.await.unwrap_or_else(|failure| failure.answer())
    }

    async fn carry_out(
        self: &Arc<Self>,
        route: &'static Route,
        call: ApiCall,
    ) -> Result<AdminResponse, ApiFailure> {
        let status = StatusCode::from_u16(route.status).unwrap_or_default();
        let value = match route.run {
            RouteHandler::Ask { ask, tell } => {
                let request = ask(&call)?;
                tell(&call, self.ask(&call, request).await?)
            }
            RouteHandler::Replace { ask, tell } => {
                let request = ask(&call)?;
                let answer = self.ask(&call, request).await?;
                // All handles were closed: nobody has to release them.
                self.forget_closed_holds().await?;
                tell(&call, answer)
            }
            RouteHandler::Document => openapi::document()?,
            RouteHandler::Gate => self.gate(&call).await?,
            RouteHandler::WaitAtGate => self.wait_at_gate(&call).await?,
            RouteHandler::ReleaseGate => self.release_gate(&call).await?,
            RouteHandler::ReleaseRequest => self.release_request(&call).await?,
            RouteHandler::CloseHandle => self.close_handle(&call).await?,
            RouteHandler::Events => return self.events(call).await,
            RouteHandler::Hold => return self.hold(call).await,
            RouteHandler::Holds => self.list_holds().await?,
            RouteHandler::Release => self.release(&call).await?,
        };
        Ok(json(status, &value))
    }

    /// Asks `api/control`, on a thread that may block.
    async fn ask(
        &self,
        call: &ApiCall,
        request: ControlRequest,
    ) -> Result<ControlAnswer, ApiFailure> {
        let mut connection = self.connection(call);
        let account = call.account.clone();
        let answer = blocking(move || connection.answer(account.as_deref(), request)).await?;
        ApiFailure::of(answer)
    }

    /// A connection for the client of a call.
    fn connection(&self, call: &ApiCall) -> ControlConnection {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        let (name, pid) = match call.peer {
            Peer::Owner { pid, .. } => ("the control socket", pid),
            Peer::Stranger => ("the HTTP API", 0),
        };
        let client = Arc::new(Client { session, name: name.into() });
        ControlConnection::new(
            Arc::clone(&self.serving),
            Owner { client, pid, program: call.client.clone() },
        )
    }
}

/// Does `work` on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiFailure> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        log::error!("a call of the HTTP API panicked: {error}");
        ApiFailure::failed("the server met an error of its own; its log has more")
    })
}

/// The fields of an answer, without the tag that the control socket has for it.
fn fields(answer: impl Serialize) -> Value {
    let mut value = match serde_json::to_value(answer) {
        Ok(value) => value,
        Err(error) => unreachable!("an answer is JSON: {error}"),
    };
    if let Value::Object(object) = &mut value {
        object.remove("answer");
    }
    value
}

/// The route of a request, and the values in its path.
fn route(
    method: &Method,
    path: &str,
) -> Result<(&'static Route, BTreeMap<&'static str, String>), ApiFailure> {
    let mut allowed = Vec::new();
    for route in &ROUTES {
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
fn values(
    template: &'static str,
    path: &str,
) -> Result<Option<BTreeMap<&'static str, String>>, ApiFailure> {
    let mut values = BTreeMap::new();
    let mut given = path.split('/');
    for part in template.split('/') {
        let Some(segment) = given.next() else { return Ok(None) };
        let name = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
        match name {
            Some(name) if !segment.is_empty() => {
                values.insert(name, decoded(segment)?);
            }
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
        assert_eq!(fits("/a/{id}/c", "/a/x%2Fy/c").unwrap()["id"], "x/y");
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
