//! One request: received, routed, let through, carried out, answered.
//!
//! Decides the order: the Host, then the body with its limits (so that the connection stays
//! usable after an early refusal, FILEREST 10.6), then address, version, operation and
//! authorisation. What is quickly done is done on the connection's own thread, the rest on one
//! that may block.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};
use hyper::{Method, Response, StatusCode, Uri};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::address::{Address, check_host};
use super::auth::{Overrides, signing_account};
use super::cors::Cors;
use super::fetch::Fetcher;
use super::file::{Call, RANGE_MD5, Service};
use super::headers::guid;
use super::limits::Limits;
use super::observer::Asked;
use super::refusal::{Code, Refusal};
use super::reply::{Content, Reply};
use super::request::{Query, Request};
use super::route::{Operation, route};
use super::server::RestOptions;
use super::spelling;
use super::structured::Structured;
use crate::core::stamp::{iso, rfc1123};
use crate::core::{Client, Owner, Timestamp};
use crate::engine::{Engine, without_waiting};

/// The most bytes that are written on a connection's own thread.
const QUICK_BYTES: usize = 64 << 10;
/// The longest client request ID that is given back (FILEREST section 4).
const CLIENT_ID_MAX: usize = 1_024;
const VERSION: &str = "x-ms-version";
/// The version an answer to a request without one is of: a preflight, or one that nobody signed.
const VERSION_DEFAULT: &str = "2026-10-06";
/// The oldest version there is.
const VERSION_FIRST: &str = "2014-02-14";

/// What all requests share.
pub struct Site {
    pub engine: Arc<Engine>,
    pub options: RestOptions,
    pub addr: SocketAddr,
    pub service: Service,
    pub stopping: AtomicBool,
    /// Places for copies that go on after their answer.
    pub copies: Arc<Semaphore>,
    /// Asks other servers for sources of copies.
    pub fetcher: Fetcher,
    sessions: AtomicU64,
}

impl Site {
    pub fn new(engine: Arc<Engine>, options: RestOptions, addr: SocketAddr) -> Self {
        let copies = Arc::new(Semaphore::new(options.limits.copies));
        Self {
            service: Service::of(&engine),
            engine,
            fetcher: Fetcher::new(options.copy_sources, options.source_wait),
            options,
            addr,
            stopping: AtomicBool::new(false),
            copies,
            sessions: AtomicU64::new(1),
        }
    }

    /// Who a connection is, to those who look at the log of events.
    pub fn client(&self, peer: SocketAddr) -> Owner {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        let client = Arc::new(Client { session, name: format!("REST {peer}") });
        Owner { client, pid: 0, program: None }
    }

    fn now(&self) -> Timestamp {
        self.engine.options().clock.now()
    }
}

/// What of a request comes back in its answer, whatever becomes of it.
struct Echo {
    request_id: String,
    version: HeaderValue,
    client_id: Option<HeaderValue>,
    method: Method,
    origin: Option<HeaderValue>,
    now: Timestamp,
}

impl Echo {
    fn of(method: &Method, uri: &Uri, headers: &HeaderMap, now: Timestamp) -> Self {
        let version = headers.get(VERSION).filter(|value| is_version(value)).cloned();
        // A SAS brings the version it was signed for (FILEREST section 1).
        let signed = || {
            let query = Query::read(uri.query()?);
            HeaderValue::from_str(query.get("sv")?).ok().filter(is_version)
        };
        let version = version.or_else(signed);
        let client_id = headers.get("x-ms-client-request-id");
        Self {
            request_id: guid(),
            version: version.unwrap_or(HeaderValue::from_static(VERSION_DEFAULT)),
            client_id: client_id.filter(|value| value.len() <= CLIENT_ID_MAX).cloned(),
            method: method.clone(),
            origin: headers.get("origin").cloned(),
            now,
        }
    }
}

type Answer = Response<BoxBody<Bytes, std::io::Error>>;

/// Answers a request.
pub async fn handle(
    site: Arc<Site>,
    who: Arc<Owner>,
    peer: SocketAddr,
    request: hyper::Request<Incoming>,
) -> Answer {
    let now = site.now();
    let mut asked = Asked::now(&site.options, request.method());
    let echo = Echo::of(request.method(), request.uri(), request.headers(), now);
    let names = site.options.error_names;
    let cors = site.service.cors();
    let reply = match receive(&site, peer, now, request).await {
        Ok(request) => {
            let who = asking(who, echo.client_id.as_ref());
            on_some_thread(site, who, request, &mut asked).await
        }
        Err(refusal) => Err(refusal),
    };
    let stamp = format!("RequestId:{}\nTime:{}", echo.request_id, iso(now));
    let mut reply =
        reply.unwrap_or_else(|refusal| refusal.reply(names, echo.method == Method::HEAD, &stamp));
    let spelled = std::mem::take(&mut reply.spelled);
    let mut answer = finish(reply, echo, &cors);
    if !spelled.is_empty() {
        answer.extensions_mut().extend(spelling::write(&spelled).await);
    }
    asked.answered(&answer);
    answer
}

/// Carries a request out: here, if that is quickly done, else on a thread that may block.
async fn on_some_thread(
    site: Arc<Site>,
    who: Arc<Owner>,
    request: Request,
    asked: &mut Asked,
) -> Result<Reply, Refusal> {
    check_version(&request)?;
    let operation = *asked.operation.insert(route(&request)?);
    let quick = is_quick(&site, operation, &request);
    let carry_out = move || carry_out(&site, &who, &request, operation);
    let at_once = || catch_unwind(AssertUnwindSafe(|| without_waiting(&carry_out)));
    let carried = match quick.then(at_once) {
        Some(Ok(Some(answer))) => Some(answer),
        Some(Err(_)) => None,
        // What turns out to take longer is done anew where it may.
        Some(Ok(None)) | None => tokio::task::spawn_blocking(carry_out).await.ok(),
    };
    carried.unwrap_or_else(|| {
        log::error!("an operation ended badly");
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Err(Refusal::new(status, "InternalError", "The server met an error of its own."))
    })
}

/// True for what looks at one file, reads it, or writes a little of it: a few system calls, as a
/// rule, which cost less than to wake another thread.
fn is_quick(site: &Site, operation: Operation, request: &Request) -> bool {
    let live = || request.query.get("sharesnapshot").is_none();
    match operation {
        Operation::FileGetProperties => live(),
        Operation::FileDownload => live() && !request.headers.contains_key(RANGE_MD5),
        Operation::FileUploadRange => {
            let written = 1..=QUICK_BYTES;
            written.contains(&request.body.len()) && !site.engine.options().share.sync_always
        }
        _ => false,
    }
}

/// Who asks, to those who look at the log of events: the connection, and the request by the ID
/// that its client gave it.
fn asking(connection: Arc<Owner>, client_id: Option<&HeaderValue>) -> Arc<Owner> {
    let Some(id) = client_id.and_then(|id| id.to_str().ok()) else { return connection };
    let Client { session, name } = &*connection.client;
    let client = Client { session: *session, name: format!("{name}, request {id}") };
    Arc::new(Owner { client: Arc::new(client), pid: connection.pid, program: None })
}

/// Takes a request in as a whole.
async fn receive(
    site: &Site,
    peer: SocketAddr,
    now: Timestamp,
    request: hyper::Request<Incoming>,
) -> Result<Request, Refusal> {
    let (head, body) = request.into_parts();
    let accounts = site.options.authorise.accounts();
    let host = head.headers.get("host").and_then(|host| host.to_str().ok());
    let host = host.or(head.uri.host()).unwrap_or_default().to_owned();
    check_host(accounts, &site.options.hosts, &host).map_err(Refusal::closing)?;
    let chunked = head.headers.contains_key("transfer-encoding");
    let puts = matches!(head.method, Method::PUT | Method::POST);
    if puts && !chunked && !head.headers.contains_key(CONTENT_LENGTH) {
        let status = StatusCode::LENGTH_REQUIRED;
        let message = "The request has no Content-Length.";
        return Err(Refusal::new(status, "MissingContentLengthHeader", message));
    }
    let body = collect(body, &site.options.limits).await?;
    let signer = head.headers.get("authorization").and_then(|value| value.to_str().ok());
    let https = site.options.tls.is_some();
    let origin = (if https { "https" } else { "http" }, host.as_str());
    let address =
        Address::read(accounts, origin, head.uri.path(), signer.and_then(signing_account))?;
    let query = Query::read(head.uri.query().unwrap_or_default());
    let spelled = spelling::read(&head.headers, head.extensions).await;
    let (method, uri, headers) = (head.method, head.uri, head.headers);
    let listener = site.addr;
    Ok(Request { method, uri, headers, body, peer, listener, https, address, now, query, spelled })
}

async fn collect(body: Incoming, limits: &Limits) -> Result<Bytes, Refusal> {
    let most = limits.body_bytes;
    let too_large = || {
        let message = format!("The body of a request has at most {most} bytes.");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestBodyTooLarge", message).closing()
    };
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > most {
        return Err(too_large());
    }
    match timeout(limits.body_wait, joined(Limited::new(body, most), announced)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => {
            Err(Refusal::bad("InvalidInput", format!("The body broke off: {error}.")).closing())
        }
        Err(_) => {
            let message = "The body did not arrive in time.";
            let status = StatusCode::REQUEST_TIMEOUT;
            Err(Refusal::new(status, "OperationTimedOut", message).closing())
        }
    }
}

/// All bytes of a body, of which `announced` are expected. Those that come in one piece are not
/// copied.
async fn joined<B: Body<Data = Bytes> + Unpin>(
    mut body: B,
    announced: usize,
) -> Result<Bytes, B::Error> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(bytes) = frame?.into_data() else { continue };
        if all.is_empty() && bytes.len() >= announced && body.is_end_stream() {
            return Ok(bytes);
        }
        if all.is_empty() {
            all.reserve_exact(announced);
        }
        all.extend_from_slice(&bytes);
    }
    Ok(all.into())
}

fn carry_out(
    site: &Arc<Site>,
    who: &Owner,
    request: &Request,
    operation: Operation,
) -> Result<Reply, Refusal> {
    let overrides = site.options.authorise.authorise(request, operation)?;
    let mut answer = Call { site, request, who }.carry_out(operation);
    if let (Operation::FileDownload, Ok(reply)) = (operation, &mut answer) {
        override_headers(reply, &overrides);
    }
    match answer {
        // To look at a file as a directory, or the other way round, finds nothing (FILEREST 7).
        Err(refusal)
            if matches!(request.method, Method::GET | Method::HEAD)
                && refusal.code == Code::Is("ResourceTypeMismatch") =>
        {
            let message = "The specified resource does not exist.";
            Err(Refusal::new(StatusCode::NOT_FOUND, "ResourceNotFound", message))
        }
        other => other,
    }
}

/// A version must be one, and a request that is signed by its headers must have one.
fn check_version(request: &Request) -> Result<(), Refusal> {
    match request.header(VERSION)? {
        Some(_) if is_version(&request.headers[VERSION]) => Ok(()),
        Some(version) => Err(Refusal::header(VERSION, version, "it must be a date")),
        None if request.headers.contains_key("authorization") => {
            Err(Refusal::missing_header(VERSION))
        }
        None => Ok(()),
    }
}

/// A SAS may say how a download is to be presented (FILEREST 3.2).
fn override_headers(reply: &mut Reply, overrides: &Overrides) {
    let headers = [
        ("cache-control", &overrides.cache_control),
        ("content-disposition", &overrides.content_disposition),
        ("content-encoding", &overrides.content_encoding),
        ("content-language", &overrides.content_language),
        ("content-type", &overrides.content_type),
    ];
    for (name, value) in headers {
        if let Some(value) = value {
            reply.set(name, value);
        }
    }
}

/// Any date from the first version on, newer ones than we know too (FILEREST section 1).
fn is_version(value: &HeaderValue) -> bool {
    let Ok(text) = value.to_str() else { return false };
    let digit = |at: usize| text.as_bytes()[at].is_ascii_digit();
    text.len() == VERSION_FIRST.len()
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => digit(at),
        })
        && text >= VERSION_FIRST
}

/// The answer as HTTP, with what every answer carries.
fn finish(mut reply: Reply, echo: Echo, cors: &Cors) -> Answer {
    reply.set("x-ms-request-id", &echo.request_id);
    reply.set("date", rfc1123(echo.now));
    reply.set("server", "latchfs");
    reply.headers.insert("x-ms-version", echo.version);
    if let Some(id) = echo.client_id {
        reply.headers.insert("x-ms-client-request-id", id);
    }
    if echo.method != Method::OPTIONS {
        let origin = echo.origin.as_ref().and_then(|origin| origin.to_str().ok());
        reply = cors.tell(reply, &echo.method, origin);
    }
    let (length, body) = match reply.body {
        Content::Bytes(bytes) => (bytes.len() as u64, full(bytes)),
        Content::HeadOf(length) => (length, full(Bytes::new())),
        Content::Download(mut download) => {
            let length = download.length();
            (length, download.all_now().map_or_else(|| download.start().boxed(), full))
        }
        Content::Structured(download) => {
            let payload = download.range.end - download.range.start;
            let body = Structured::new(download.start(), payload);
            (body.length(), body.boxed())
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    *response.headers_mut() = reply.headers;
    if reply.status != StatusCode::NO_CONTENT {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response
}

fn full(bytes: Bytes) -> BoxBody<Bytes, std::io::Error> {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_any_date_since_the_first() {
        let is = |text| is_version(&HeaderValue::from_static(text));
        assert!(is("2014-02-14") && is("2026-10-06") && is("2099-12-31"));
        assert!(!is("2013-08-15") && !is("2026-1-06") && !is("latest") && !is(""));
    }
}
