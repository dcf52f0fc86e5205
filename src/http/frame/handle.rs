//! One request: its head read, routed and authorised; then its body received, the operation
//! carried out, and the answer finished.
//!
//! Decides that order. A request is authorised by its head, before its body is taken: strangers
//! cannot make the server hold their bytes. The body of a request that is refused, or that anybody
//! may send, is read and thrown away up to a bound, so that the connection stays usable; past it
//! the connection ends with the answer, after more of the body has come ([`crate::net`]).
//! Work that may wait for a lock or the disk runs on a bounded pool of threads, everything else on
//! the connection's event loop.

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    AUTHORIZATION, CONTENT_LENGTH, DATE, EXPECT, HOST, HeaderMap, HeaderValue, SERVER,
    TRANSFER_ENCODING,
};
use hyper::http::uri::Authority;
use hyper::{Method, Response, StatusCode, Uri};
use tokio::task::spawn_blocking;

use super::address::Address;
use super::call::{Call, note_body};
use super::facts;
use super::gates_and_faults::{Dropped, HttpAnswer, RequestControls};
use super::host::{self, HostedAccount};
use super::receive::{Unread, collect};
use super::refusal::Refusal;
use super::request_event::{Refusable, RequestEvent};
use super::service::{Answer, Operation, OperationHandler, Working};
use super::site::Site;
use super::source::RENAME_SOURCE;
use super::version::{self, VERSION};
use crate::http::auth::{Grant, Overrides, is_client_name, signing_account};
use crate::http::cors::{Cors, check_foreign_page};
use crate::http::header_case;
use crate::http::limits::Limits;
use crate::http::observer::ObservedRequest;
use crate::http::reply::{Reply, ReplyBody};
use crate::http::request::{Query, Request, stamp};
use crate::journal::peers::process_of;
use crate::journal::row::{AnswerEnd, UNKNOWN};
use crate::net::ConnectionState;
use crate::net::workers::{Undone, on_a_thread};
use crate::rules::time::rfc1123;
use crate::rules::who::{ClientBy, Identity, Who};
use crate::rules::{Caller, Client, Context, Owner, Timestamp};
use crate::sync::random::new_guid;

/// The header that names the client of a request.
const CLIENT: &str = "x-latchfs-client";
/// The longest client request ID that is given back.
const CLIENT_ID_MAX: usize = 1_024;
/// The longest user agent that is remembered.
const USER_AGENT_MAX: usize = 256;

/// The parts of a request that its answer repeats, also if the request is refused.
struct Echo {
    request_id: String,
    version: HeaderValue,
    client_id: Option<HeaderValue>,
    method: Method,
    origin: Option<HeaderValue>,
    now: Timestamp,
}

impl Echo {
    fn of(site: &Site, method: &Method, uri: &Uri, headers: &HeaderMap, now: Timestamp) -> Self {
        let client_id = headers.get("x-ms-client-request-id");
        Self {
            request_id: new_guid(),
            version: version::of_answer(site.service, uri, headers),
            client_id: client_id.filter(|value| value.len() <= CLIENT_ID_MAX).cloned(),
            method: method.clone(),
            origin: headers.get("origin").cloned(),
            now,
        }
    }
}

/// What is known of a request before its answer.
struct UnderWay {
    asked: ObservedRequest,
    fate: RequestControls,
    told: RequestEvent,
    /// The client as refusals name it, and how its name is known.
    owner: Arc<Owner>,
    client_by: Option<ClientBy>,
}

impl UnderWay {
    fn caller_is(&mut self, caller: &Caller) {
        self.owner = Arc::clone(&caller.owner);
        self.client_by = caller.who.named.as_ref().map(|named| named.by);
    }
}

pub async fn handle(
    site: Arc<Site>,
    connection: Arc<Owner>,
    place: &ConnectionState,
    peer: SocketAddr,
    request: hyper::Request<Incoming>,
) -> Result<HttpAnswer, Dropped> {
    let now = site.now();
    let asked = ObservedRequest::now(&site.options, request.method());
    let echo = Echo::of(&site, request.method(), request.uri(), request.headers(), now);
    let told = RequestEvent::begin(&site, &connection, &echo.request_id, asked.began);
    let (fate, owner) = (RequestControls::default(), Arc::clone(&connection));
    let mut under_way = UnderWay { asked, fate, told, owner, client_by: None };
    let (head, body) = request.into_parts();
    let mut cors = Cors::default();
    let format = site.service.errors.of(&head.method, &head.uri);
    let expects = head.headers.contains_key(EXPECT);
    let body = Unread { body, place, expects, limits: &site.options.limits };
    let (mut journal, mut object) = (None, String::new());
    let reply = match read_head(&site, peer, &echo, head).await {
        Ok(request) => match site.accounts.account(&request.address.account) {
            Some(account) => {
                cors = site.cors(&*account);
                let caller = caller(&site, connection, peer, &request);
                under_way.told.request(account.journal().account(), &request, &caller);
                under_way.caller_is(&caller);
                object = (site.service.object)(&request);
                journal = Some(account.journal().clone());
                serve(&site, account, caller, request, body, &mut under_way).await
            }
            None => Err(body.refuse(unknown_account()).await),
        },
        Err(refusal) => Err(body.refuse(refusal).await),
    };
    if let Err(refusal) = &reply
        && !under_way.fate.drops()
    {
        let operation = under_way.asked.operation.map_or(UNKNOWN, |known| known.title);
        let UnderWay { owner: who, client_by, .. } = &under_way;
        let (site, journal, client_by) = (&*site, journal.as_ref(), *client_by);
        Refusable { site, journal, who, client_by, operation, object }.note(refusal);
    }
    let head = echo.method == Method::HEAD;
    let mut reply = reply.unwrap_or_else(|refusal| {
        under_way.told.refused(&refusal);
        if refusal.close {
            place.turn.end_unread();
        }
        let stamp = stamp(&echo.request_id, now);
        refusal.reply(format, site.options.error_names, head, &stamp)
    });
    let spelled = std::mem::take(&mut reply.spelled);
    let mut answer = finish(reply, echo, &cors);
    if !spelled.is_empty() {
        answer.extensions_mut().extend(header_case::write(&spelled).await);
    }
    let UnderWay { asked, fate, told, .. } = under_way;
    let end = fate.end();
    if end == AnswerEnd::Dropped {
        // Nobody can tell whose connection it was once it is closed.
        let (client, now) = (format!("REST {peer}"), site.clock.outside());
        drop(spawn_blocking(move || process_of(&client, now)).await);
    }
    let took = if end == AnswerEnd::Dropped { asked.took() } else { asked.answered(&answer) };
    told.answered(asked.operation, &answer, (end, took));
    fate.shape(answer)
}

fn unknown_account() -> Refusal {
    Refusal::bad_because("InvalidUri", "the account of the URL is not one of this server")
}

/// Reads the head of a request, without its body.
async fn read_head(
    site: &Site,
    peer: SocketAddr,
    echo: &Echo,
    head: hyper::http::request::Parts,
) -> Result<Request, Refusal> {
    let host = host_of(&head).map_err(Refusal::closing)?;
    site.names().check_host(&host).map_err(Refusal::closing)?;
    check_coding(&head.headers).map_err(Refusal::closing)?;
    if head.headers.get_all(AUTHORIZATION).iter().nth(1).is_some() {
        let why = "there is more than one Authorization";
        return Err(Refusal::bad_because("InvalidHeaderValue", why));
    }
    let chunked = head.headers.contains_key("transfer-encoding");
    let sends = matches!(head.method, Method::PUT | Method::POST | Method::PATCH);
    if sends && !chunked && !head.headers.contains_key(CONTENT_LENGTH) {
        let status = StatusCode::LENGTH_REQUIRED;
        let message = "You must provide the Content-Length HTTP header.";
        return Err(Refusal::new(status, "MissingContentLengthHeader", message));
    }
    let signer = head.headers.get("authorization").and_then(|value| value.to_str().ok());
    let https = site.options.tls.is_some();
    let origin = (if https { "https" } else { "http" }, host.as_str());
    let signer = signer.and_then(signing_account);
    // The JS client leaves the account out of a rename's target. A SAS or a token does not say
    // who signed: where there is one account, that one is meant.
    let renames = head.headers.contains_key(RENAME_SOURCE);
    let signer = signer.or_else(|| site.only_account().filter(|_| renames));
    let address = Address::read(site.names(), origin, head.uri.path(), signer)?;
    let query = Query::read(head.uri.query().unwrap_or_default());
    let spelled = header_case::read(&head.headers, head.extensions).await;
    let (method, uri, headers) = (head.method, head.uri, head.headers);
    let body = Bytes::new();
    let (id, now, outside) = (echo.request_id.clone(), echo.now, site.clock.outside());
    Ok(Request {
        method,
        uri,
        headers,
        body,
        peer,
        https,
        address,
        id,
        now,
        outside,
        query,
        spelled,
    })
}

/// The host that a request names, by its header or its target. If the two differ, a proxy between
/// client and server may have used the other one.
fn host_of(head: &hyper::http::request::Parts) -> Result<String, Refusal> {
    let bad = |why| Refusal::bad_because("InvalidHeaderValue", why);
    let mut sent = head.headers.get_all(HOST).iter();
    let first = match sent.next() {
        None => None,
        Some(host) => Some(host.to_str().map_err(|_| bad("Host is not text"))?),
    };
    if sent.next().is_some() {
        return Err(bad("there is more than one Host"));
    }
    match (first, head.uri.authority()) {
        (Some(host), Some(target)) if !host.eq_ignore_ascii_case(target.as_str()) => {
            Err(bad("Host is not that of the request's target"))
        }
        (host, target) => Ok(host.or(target.map(Authority::as_str)).unwrap_or_default().to_owned()),
    }
}

/// Refuses codings that would be stored as if they were the bytes.
fn check_coding(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let chunked =
        |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    if codings.next().is_some_and(|first| !chunked(first)) || codings.next().is_some() {
        let why = "the one Transfer-Encoding known here is chunked";
        return Err(Refusal::explained(StatusCode::NOT_IMPLEMENTED, "NotImplemented", why));
    }
    Ok(())
}

/// Who asks: the connection, the request by the ID that its client gave it, and the name that the
/// request gives for its client. The key that signs a request names its client later.
fn caller(site: &Site, connection: Arc<Owner>, peer: SocketAddr, request: &Request) -> Caller {
    let text = |name: &str, most: usize| {
        let value = request.headers.get(name)?.to_str().ok()?;
        (value.len() <= most).then(|| Arc::from(value))
    };
    let request_id: Option<Arc<str>> = text("x-ms-client-request-id", CLIENT_ID_MAX);
    let journal = &site.accounts.controls().journal;
    let who = Who {
        connection: connection.client.name.as_str().into(),
        named: None,
        thread: request_id.as_deref().and_then(|id| journal.thread_of(id)),
    };
    let owner = match &request_id {
        None => connection,
        Some(id) => {
            let Client { session, name } = &*connection.client;
            let client = Client { session: *session, name: format!("{name}, request {id}") };
            Arc::new(Owner { client: Arc::new(client), pid: connection.pid, program: None })
        }
    };
    let user_agent = text("user-agent", USER_AGENT_MAX);
    let mut caller =
        Caller { owner, operation: "", address: Some(peer), request_id, user_agent, who };
    if let Some(client) = named(&request.headers) {
        caller.is_named(client);
    }
    caller
}

/// The name that a header of a request gives for its client. A trace is no client: a piece of work
/// has one, whoever does it, and an SDK begins one for each call where the program has none.
fn named(headers: &HeaderMap) -> Option<Identity> {
    let name = facts::text(headers, CLIENT).filter(|name| is_client_name(name))?;
    Some(Identity { name: name.into(), by: ClientBy::Header })
}

/// Routes and authorises a request, and carries it out.
async fn serve(
    site: &Arc<Site>,
    account: Arc<dyn HostedAccount>,
    mut caller: Caller,
    mut request: Request,
    mut body: Unread<'_>,
    under_way: &mut UnderWay,
) -> Answer {
    let limits = &site.options.limits;
    let admitted = admit(site, &request).and_then(|operation| {
        check_foreign_page(site, &*account, &request, operation).map(|()| operation)
    });
    let operation = match admitted {
        Ok(operation) => operation,
        Err(refusal) => return Err(body.refuse(refusal).await),
    };
    under_way.asked.operation = Some(operation);
    caller.operation = operation.title;
    let mut context = Context::new(request.now, caller);
    let (given_back, grant) = match authorise(site, &account, request, operation).await {
        Ok(granted) => granted,
        Err(refusal) => return Err(body.refuse(refusal).await),
    };
    request = given_back;
    if let Some(name) = &grant.client {
        context.caller.is_named(Identity { name: Arc::clone(name), by: ClientBy::Key });
        under_way.caller_is(&context.caller);
    }
    let UnderWay { fate, told, .. } = under_way;
    told.admitted(&request, operation, &mut context);
    if let Some(why) = site.accounts.halted() {
        return Err(body.refuse(Refusal::busy(why)).await);
    }
    let mut visit = None;
    if operation.by_body && site.accounts.controls().stage.is_set() {
        match body.received().await {
            Ok(received) => request.body = received,
            Err(refusal) => return Err(body.refuse(refusal).await),
        }
    }
    if site.accounts.controls().are_set() {
        match fate.arrive(site, operation, &mut request, &context.caller).await {
            Ok(arrived) => visit = Some(arrived),
            Err(refusal) => return Err(body.refuse(refusal).await),
        }
        context.now = request.now;
    }
    let answer = if let (None, OperationHandler::Read(run)) = (&operation.needs, &operation.run) {
        // The sender is unknown: the body is not received and the connection proves nothing.
        let (account, context, grant) = (&account, &context, &grant);
        let call = Call::new(site, account, &request, context, grant);
        let answer = catch_unwind(AssertUnwindSafe(|| run(&call)));
        body.answer(answer.unwrap_or_else(|_| Err(broken()))).await
    } else {
        if let Err(refusal) = host::open(site.service.kind, &account, limits).await {
            return Err(body.refuse(refusal).await);
        }
        let body = body.admit();
        carry_out(site, account, operation, context, grant, request, body).await
    };
    if let (Some(visit), Ok(_)) = (visit, &answer) {
        fate.leave(site, operation, &visit).await;
    }
    // A request that waited for a replacement of all data which then failed: the next start undoes
    // what it did.
    match site.accounts.halted() {
        Some(why) => Err(Refusal::busy(why)),
        None => answer,
    }
}

/// Carries out a request that was let in.
async fn carry_out(
    site: &Arc<Site>,
    account: Arc<dyn HostedAccount>,
    operation: &'static Operation,
    context: Context,
    grant: Grant,
    mut request: Request,
    body: Incoming,
) -> Answer {
    match operation.run {
        OperationHandler::Read(run) => {
            let call = Call::new(site, &account, &request, &context, &grant);
            let answer = catch_unwind(AssertUnwindSafe(|| run(&call)));
            completed(&call, operation, answer.unwrap_or_else(|_| Err(broken())))
        }
        OperationHandler::Change(run) => {
            let call = Call::new(site, &account, &request, &context, &grant);
            let answer = unbroken(run(&call, body)).await;
            completed(&call, operation, answer)
        }
        OperationHandler::Work(run) => {
            let limits = &site.options.limits;
            request.body = collect(body, limits.body_bytes, limits).await?;
            note_body(&context, &request.body);
            let site = Arc::clone(site);
            let work = move || {
                let call = Call::new(&site, &account, &request, &context, &grant);
                let answer = run(&call);
                completed(&call, operation, answer)
            };
            on_pool(limits, work).await?
        }
    }
}

/// The answer of an operation; a refusal if it panics.
async fn unbroken(mut working: Working<'_>) -> Answer {
    poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| working.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(broken())))
    })
    .await
}

/// The answer of an operation, with what the service and the grant of the request add to it.
fn completed(call: &Call<'_>, operation: &Operation, mut answer: Answer) -> Answer {
    if let Some(answered) = call.site.service.answered {
        answer = answered(call, answer);
    }
    // A SAS may say how content is to be presented.
    if let (true, Ok(reply)) = (operation.overridable, &mut answer) {
        override_headers(reply, &call.grant.overrides);
    }
    answer
}

/// The operation of a request, if its version and location allow it.
fn admit(site: &Site, request: &Request) -> Result<&'static Operation, Refusal> {
    version::check(site.service, request, site.options.any_version)?;
    route(site, request)
}

/// The operation of a request, if its location allows it.
pub(crate) fn route(site: &Site, request: &Request) -> Result<&'static Operation, Refusal> {
    let operation = (site.service.route)(request)?;
    if operation.changes && request.address.secondary {
        let message = "Write operations are not allowed. [latchfs: this is the address of the \
                       secondary location, which only reads]";
        let code = "WriteOperationNotSupportedOnSecondary";
        return Err(Refusal::new(StatusCode::FORBIDDEN, code, message));
    }
    Ok(operation)
}

/// Grants a request what its signature permits, or refuses `operation`. Gives the request back
/// with the grant. Runs on the pool if data of the service decides.
pub(crate) async fn authorise(
    site: &Arc<Site>,
    account: &Arc<dyn HostedAccount>,
    request: Request,
    operation: &'static Operation,
) -> Result<(Request, Grant), Refusal> {
    let reads = site.options.admission.reads_service(&request);
    let (at, account) = (Arc::clone(site), Arc::clone(account));
    let work = move || {
        let grant = at.options.admission.grant(at.service, &*account, &request, operation);
        grant.map(|grant| (request, grant))
    };
    if reads {
        on_pool(&site.options.limits, work).await?
    } else {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(broken()))
    }
}

/// Does `work` on a thread that may block.
pub(super) async fn on_pool<T: Send + 'static>(
    limits: &Limits,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    on_a_thread(limits.thread_wait, work).await.map_err(|undone| match undone {
        Undone::NoThread => {
            Refusal::busy("all threads are busy, and the system gives no other; nothing was done")
        }
        Undone::Panicked => broken(),
    })
}

fn broken() -> Refusal {
    log::error!("an operation panicked");
    Refusal::explained(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "")
}

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

thread_local! {
    /// The second that this thread answered in last, and its date.
    static LAST_DATE: RefCell<(i64, HeaderValue)> =
        const { RefCell::new((i64::MIN, HeaderValue::from_static(""))) };
}

/// The date of an answer, spelled once a second.
fn date(now: Timestamp) -> HeaderValue {
    let second = now.0.div_euclid(1_000_000_000);
    LAST_DATE.with_borrow_mut(|(last, text)| {
        if *last != second
            && let Ok(spelled) = HeaderValue::from_str(&rfc1123(now))
        {
            (*last, *text) = (second, spelled);
        }
        text.clone()
    })
}

/// The answer as HTTP, with what every answer carries.
fn finish(mut reply: Reply, echo: Echo, cors: &Cors) -> HttpAnswer {
    reply.set("x-ms-request-id", &echo.request_id);
    reply.headers.insert(DATE, date(echo.now));
    reply.headers.insert(SERVER, HeaderValue::from_static("latchfs"));
    reply.headers.insert(VERSION, echo.version);
    if let Some(id) = echo.client_id {
        reply.headers.insert("x-ms-client-request-id", id);
    }
    if echo.method != Method::OPTIONS {
        let origin = echo.origin.as_ref().and_then(|origin| origin.to_str().ok());
        reply = cors.tell(reply, &echo.method, origin);
    }
    let (length, body) = match reply.body {
        ReplyBody::Bytes(bytes) => (bytes.len() as u64, full(bytes)),
        ReplyBody::HeadOf(length) => (length, full(Bytes::new())),
        ReplyBody::Stream(length, body) => (length, body),
    };
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    *response.headers_mut() = reply.headers;
    if !matches!(reply.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
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
    fn an_operation_that_panics_on_an_event_loop_is_answered_with_500() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let panics = |after: bool| async move {
            if after {
                tokio::task::yield_now().await;
            }
            panic!("of a test")
        };
        for after in [false, true] {
            let answer = runtime.block_on(unbroken(Box::pin(panics(after))));
            assert_eq!(answer.unwrap_err().status, StatusCode::INTERNAL_SERVER_ERROR);
        }
    }
}
