//! Routes paths to their handlers: metrics and health, the page, the API.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode};
use tokio::sync::Semaphore;

use super::body::{AdminResponse, bytes, text};
use super::calls::Api;
use super::failure::ApiFailure;
use super::guard::{Guard, Token, VERSION, VERSION_HEADER, is_api};
use super::identity::{IDENTITY_PATH, of_managed_identity};
use super::metrics::Metrics;
use super::page;
use super::server::{AdminOptions, CONNECTIONS_MAX};
use super::serving::Serving;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The client of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// The owner of the server, by the control socket.
    Owner { pid: u32, room: Room },
    /// Another user who reached the control socket.
    Foreign { uid: u32 },
    /// Anybody who reaches the admin address.
    Stranger,
}

/// What a connection to the control socket may do, by how many others are at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    Everything,
    /// Calls whose answers do not go on and that wait for no event.
    ShortCalls,
    /// The call that stops the server.
    Stop,
}

impl Peer {
    pub fn is_owner(self) -> bool {
        matches!(self, Self::Owner { .. })
    }

    /// Refuses a call that waits, or whose answer goes on, where the connection has no place for
    /// it.
    pub fn check_may_stay(self) -> Result<(), ApiFailure> {
        match self {
            Self::Owner { room: Room::Everything, .. } | Self::Foreign { .. } | Self::Stranger => {
                Ok(())
            }
            Self::Owner { .. } => Err(ApiFailure::busy(format!(
                "the server has {CONNECTIONS_MAX} connections already: end some"
            ))),
        }
    }
}

/// The parts that the listeners answer with.
pub struct Site {
    api: Arc<Api>,
    admin: Option<Admin>,
}

/// The parts that the admin address has beside the API.
struct Admin {
    guard: Guard,
    exposed: bool,
    identity: Option<Token>,
    looks: Arc<Looks>,
}

/// The most looks at metrics and health at a time; a further one waits.
pub const LOOKS_MAX: usize = 8;

struct Looks {
    places: Arc<Semaphore>,
    metrics: Arc<Metrics>,
    ailments: Box<dyn Fn() -> Vec<String> + Send + Sync>,
}

impl Site {
    /// The site of a server, with an admin address of these options.
    pub fn new(serving: Arc<dyn Serving>, admin: Option<AdminOptions>) -> Self {
        let admin = admin.map(|options| {
            let AdminOptions { metrics, ailments, serves_host, exposed, token, identity, .. } =
                options;
            let places = Arc::new(Semaphore::new(LOOKS_MAX));
            let looks = Arc::new(Looks { places, metrics, ailments });
            Admin { guard: Guard { serves_host, token }, exposed, identity, looks }
        });
        Self { api: Arc::new(Api::new(serving)), admin }
    }

    /// Ends what requests hold and wait for.
    pub fn stop(&self) {
        self.api.stop();
    }

    pub async fn answer(&self, request: Request<Incoming>, peer: Peer) -> AdminResponse {
        let answered = self.try_answer(request, peer).await;
        let mut answer = answered.unwrap_or_else(|failure| failure.answer());
        answer.headers_mut().insert(VERSION_HEADER, HeaderValue::from_static(VERSION));
        answer
    }

    async fn try_answer(
        &self,
        request: Request<Incoming>,
        peer: Peer,
    ) -> Result<AdminResponse, ApiFailure> {
        let (head, body) = request.into_parts();
        let client = match (peer, &self.admin) {
            (Peer::Foreign { uid }, _) => {
                let message = format!("user {uid} may not ask this server: its owner and root may");
                log::warn!("{message}");
                return Err(ApiFailure::new(StatusCode::FORBIDDEN, "forbidden", message));
            }
            (Peer::Stranger, Some(admin)) => {
                Guard::check_site(&head)?;
                match head.uri.path() {
                    "/metrics" | "/healthz" => return Ok(admin.look(&head).await),
                    IDENTITY_PATH => return admin.identity(&head),
                    _ if !is_api(&head) => return admin.page(&head),
                    _ => admin.admit(&head)?,
                }
                Guard::client(&head)?
            }
            // The mode of the socket's file says who may ask.
            _ => {
                Guard::check_version(&head)?;
                Guard::named(&head)?
            }
        };
        Ok(self.api.answer(head, body, peer, client).await)
    }
}

impl Admin {
    /// Lets a request of the API pass. The token of the stream of events may be in the query: a
    /// browser sends no headers of a page's choice there.
    fn admit(&self, head: &Parts) -> Result<(), ApiFailure> {
        let host = self.guard.host(head)?;
        Guard::check_origin(head, host)?;
        let in_query = Api::takes_token_in_query(&head.method, head.uri.path());
        let query = in_query.then(|| token_of(head)).flatten();
        self.guard.check_token(&head.headers, query)
    }

    /// A token for a managed identity, whose secret stands for that of the address.
    fn identity(&self, head: &Parts) -> Result<AdminResponse, ApiFailure> {
        let host = self.guard.host(head)?;
        Guard::check_origin(head, host)?;
        let secret = self.identity.as_ref().ok_or_else(|| {
            ApiFailure::not_found("this server gives no tokens: start it with --oauth basic")
        })?;
        of_managed_identity(head, secret)
    }

    /// A file of the page. The page itself needs the token; what the page loads holds no secret,
    /// and a browser asks for it without the token.
    fn page(&self, head: &Parts) -> Result<AdminResponse, ApiFailure> {
        let host = self.guard.host(head)?;
        Guard::check_origin(head, host)?;
        let path = head.uri.path();
        let not_found = || {
            let message = "the page is at /, the API below /api/v1/, metrics at /metrics";
            ApiFailure::new(StatusCode::NOT_FOUND, "not_found", message.to_owned())
        };
        let file = page::file(path).ok_or_else(not_found)?;
        if !is_look(&head.method) {
            return Err(ApiFailure::method_not_allowed("GET, HEAD"));
        }
        if path == "/" {
            self.guard.check_token(&head.headers, token_of(head))?;
        }
        Ok(file)
    }

    /// Metrics or health. Both look at files and locks, which may take a while.
    async fn look(&self, head: &Parts) -> AdminResponse {
        if !self.exposed
            && let Err(failure) = self.guard.host(head)
        {
            return failure.answer();
        }
        if !is_look(&head.method) {
            let mut answer =
                text(StatusCode::METHOD_NOT_ALLOWED, "there is only GET and HEAD here\n");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        let (looks, healthy) = (Arc::clone(&self.looks), head.uri.path() == "/healthz");
        // The work keeps the place: a client that hangs up leaves its thread busy.
        let place = Arc::clone(&looks.places).acquire_owned().await;
        let look = tokio::task::spawn_blocking(move || {
            let _place = place;
            if healthy { looks.health() } else { looks.metrics() }
        });
        look.await.unwrap_or_else(|error| {
            log::error!("a look at the server panicked: {error}");
            text(StatusCode::INTERNAL_SERVER_ERROR, "the server met an error of its own\n")
        })
    }
}

fn is_look(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// The token in the query of a request.
fn token_of(head: &Parts) -> Option<&str> {
    head.uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

impl Looks {
    fn health(&self) -> AdminResponse {
        let ailments = (self.ailments)();
        if ailments.is_empty() {
            return text(StatusCode::OK, "ok\n");
        }
        text(StatusCode::SERVICE_UNAVAILABLE, ailments.join("\n") + "\n")
    }

    fn metrics(&self) -> AdminResponse {
        match self.metrics.text() {
            Ok(metrics) => bytes(StatusCode::OK, OPEN_METRICS, metrics),
            Err(error) => {
                log::error!("the metrics cannot be written down: {error}");
                text(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written down\n")
            }
        }
    }
}
