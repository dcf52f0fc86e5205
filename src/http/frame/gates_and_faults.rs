//! Applies gates and faults to a request over HTTP.
//!
//! Decides how a fault looks on the wire. Which gates and faults apply to a request is decided in
//! [`crate::bench::controls`]. The parts of a batch are not requests of their own here.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};
use tokio::time::{Sleep, sleep, timeout};

use super::refusal::Refusal;
use super::service::{Operation, Service};
use super::site::Site;
use super::{facts, footprint};
use crate::bench::controls::{EndedAtGate, FaultAction, Passed, Point, Visitor};
use crate::bench::explore::{Entry, Staged, Step};
use crate::http::request::Request;
use crate::journal::Event;
use crate::journal::json::object_of;
use crate::journal::row::AnswerEnd;
use crate::rules::Caller;
use crate::rules::pattern::PatternSubject;

/// The longest piece of a slow answer.
const SLOW_PIECE: u64 = 16 << 10;

/// An answer as it goes out.
pub type HttpAnswer = Response<BoxBody<Bytes, std::io::Error>>;

/// How long a body that is cut short stays open after its last byte.
const CUT_PAUSE: Duration = Duration::from_millis(20);

/// A fault, or a replacement of all data, closed the connection.
#[derive(Debug, thiserror::Error)]
#[error("a fault, a reset or a restore closed the connection")]
pub struct Dropped;

/// The effect of gates and faults on a request, as far as its answer shows it.
#[derive(Default)]
pub struct RequestControls {
    dropped: bool,
    answer: Option<FaultAction>,
    /// The request is one of an exploration's client.
    staged: Option<Staged>,
}

/// A request as gates and faults see it, once it is carried out.
pub struct Visit {
    headers: HeaderMap,
    visitor: Visitor,
}

impl Visit {
    fn new(service: &Service, operation: &Operation, request: &Request, caller: &Caller) -> Self {
        let address = &request.address;
        let visitor = Visitor {
            service: service.kind,
            account: address.account.as_str().into(),
            operation: operation.title.to_owned(),
            path: service.named_path(address),
            who: caller.who.clone(),
            client_request: caller.request_id.clone(),
            user_agent: caller.user_agent.clone(),
            asked: facts::asked(service.kind, operation.title, request),
        };
        Self { headers: request.headers.clone(), visitor }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl RequestControls {
    /// A request that was authorised, before anything is looked at: as gates after the commit see
    /// it. An error is its answer.
    pub async fn arrive(
        &mut self,
        site: &Site,
        operation: &Operation,
        request: &mut Request,
        caller: &Caller,
    ) -> Result<Visit, Refusal> {
        let visit = Visit::new(site.service, operation, request, caller);
        let header = |name: &str| visit.header(name);
        let seen = seen(site, operation, &visit, &header);
        let controls = site.accounts.controls();
        let mut passed =
            controls.gates.pass(Point::Received, &seen, || visit.visitor.clone()).await;
        let step = || step_of(site, operation, request, &visit.visitor);
        match controls.enter_stage(&caller.who, None, || visit.visitor.clone(), step) {
            Entry::Passes => {}
            Entry::Ends => passed = Err(EndedAtGate),
            Entry::Waits(place, staged) => {
                self.staged = Some(staged);
                passed = controls.gates.wait(place).await;
            }
        }
        match passed {
            Ok(Passed::AtOnce) => {}
            Ok(passed) => {
                request.now = site.now();
                if passed == Passed::AnswerDropped {
                    self.answer = Some(FaultAction::DropAfter);
                    return Ok(visit);
                }
            }
            Err(EndedAtGate) => return Err(self.ended(site)),
        }
        let Some(fault) = controls.faults.meet(&seen) else { return Ok(visit) };
        let met = Event::Fault { fault: fault.id, visitor: Box::new(visit.visitor.clone()) };
        controls.journal.push(Some(Arc::clone(&visit.visitor.account)), met);
        match fault.action {
            FaultAction::Answer { status, code } => {
                let status = StatusCode::from_u16(status);
                let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let why = format!("the answer was injected by fault {}", fault.id);
                return Err(Refusal::explained(status, code, why));
            }
            FaultAction::Delay(time) => {
                let mut ended = controls.faults.delayed();
                if timeout(time, ended.changed()).await.is_ok() {
                    return Err(self.ended(site));
                }
                request.now = site.now();
            }
            FaultAction::DropBefore => return Err(self.close()),
            after => self.answer = Some(after),
        }
        Ok(visit)
    }

    /// True if the connection is closed without an answer.
    pub fn drops(&self) -> bool {
        self.dropped
    }

    /// A request that waited and is not carried out: the server stops, or all data is replaced.
    fn ended(&mut self, site: &Site) -> Refusal {
        if site.stopping.load(Ordering::Acquire) {
            return Refusal::busy("the server stops").closing();
        }
        self.close()
    }

    /// Has the connection closed without an answer.
    fn close(&mut self) -> Refusal {
        self.dropped = true;
        Refusal::busy("the connection is closed").closing()
    }

    /// A request that is done and not answered yet.
    pub async fn leave(&mut self, site: &Site, operation: &Operation, visit: &Visit) {
        let header = |name: &str| visit.header(name);
        let seen = seen(site, operation, visit, &header);
        let gates = &site.accounts.controls().gates;
        let passed = gates.pass(Point::Committed, &seen, || visit.visitor.clone()).await;
        // What is done when the server stops is answered.
        let stops = site.stopping.load(Ordering::Acquire);
        let dropped = matches!(passed, Err(EndedAtGate) | Ok(Passed::AnswerDropped));
        self.dropped = dropped && !stops;
    }

    /// What becomes of the answer.
    pub fn end(&self) -> AnswerEnd {
        match self.answer {
            _ if self.dropped => AnswerEnd::Dropped,
            Some(FaultAction::DropAfter) => AnswerEnd::Dropped,
            Some(FaultAction::Cut(_)) => AnswerEnd::Cut,
            _ => AnswerEnd::Sent,
        }
    }

    /// The answer as the client gets it.
    pub fn shape(mut self, answer: HttpAnswer) -> Result<HttpAnswer, Dropped> {
        if let Some(staged) = &mut self.staged {
            staged.status = Some(answer.status().as_u16());
        }
        if self.dropped || self.answer == Some(FaultAction::DropAfter) {
            log::info!("a fault, a reset or a restore closed the connection of a request");
            return Err(Dropped);
        }
        let shaped = |shape: Shape| move |body| Shaped { body, shape }.boxed();
        Ok(match self.answer {
            Some(FaultAction::Cut(bytes)) => {
                answer.map(shaped(Shape::Cut { left: bytes, end: None }))
            }
            Some(FaultAction::Slow(speed)) => {
                let shape = Shape::Slow { speed: speed.max(1), piece: Bytes::new(), pause: None };
                answer.map(shaped(shape))
            }
            _ => answer,
        })
    }
}

/// A request as an exploration sees it.
fn step_of(site: &Site, operation: &Operation, request: &Request, visitor: &Visitor) -> Step {
    Step {
        operation: visitor.operation.clone(),
        object: object_of(visitor.service, &visitor.path).unwrap_or_default(),
        fingerprint: footprint::fingerprint(request),
        footprint: footprint::of(site.service, operation, request),
        can_drop: true,
    }
}

fn seen<'a>(
    site: &Site,
    operation: &'a Operation,
    visit: &'a Visit,
    header: &'a (dyn Fn(&str) -> Option<&'a str> + Sync),
) -> PatternSubject<'a> {
    PatternSubject {
        service: site.service.kind,
        operation: operation.name,
        documented: operation.title,
        account: &visit.visitor.account,
        path: &visit.visitor.path,
        header,
    }
}

/// How the body of an answer comes.
enum Shape {
    /// So much of it, then the connection ends.
    Cut { left: u64, end: Option<Pin<Box<Sleep>>> },
    /// At so many bytes a second.
    Slow { speed: u64, piece: Bytes, pause: Option<Pin<Box<Sleep>>> },
}

/// The body of an answer that a fault has met.
struct Shaped {
    body: BoxBody<Bytes, std::io::Error>,
    shape: Shape,
}

type NextFrame = Poll<Option<Result<Frame<Bytes>, std::io::Error>>>;

impl Body for Shaped {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> NextFrame {
        let Self { body, shape } = &mut *self;
        match shape {
            Shape::Cut { left: 0, end } => {
                // A pause, in which all that came before goes out; an error would hold it back.
                ready!(end.get_or_insert_with(|| Box::pin(sleep(CUT_PAUSE))).as_mut().poll(cx));
                Poll::Ready(Some(Err(std::io::Error::other(Dropped))))
            }
            Shape::Cut { left, .. } => {
                let Some(mut data) = ready!(next_data(body, cx)?) else { return Poll::Ready(None) };
                data.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= data.len() as u64;
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            Shape::Slow { speed, piece, pause } => {
                if let Some(sleeping) = pause {
                    ready!(sleeping.as_mut().poll(cx));
                    *pause = None;
                }
                if piece.is_empty() {
                    let Some(data) = ready!(next_data(body, cx)?) else { return Poll::Ready(None) };
                    *piece = data;
                }
                let most = SLOW_PIECE.min((*speed).div_ceil(4)).min(piece.len() as u64);
                let data = piece.split_to(usize::try_from(most).unwrap_or(usize::MAX));
                let micros = data.len() as u64 * 1_000_000 / *speed;
                let time = Duration::from_micros(micros);
                *pause = Some(Box::pin(sleep(time)));
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        // The head of the answer says how long it was to be.
        SizeHint::default()
    }
}

/// The next bytes of a body.
fn next_data(
    body: &mut BoxBody<Bytes, std::io::Error>,
    cx: &mut TaskContext<'_>,
) -> Poll<Result<Option<Bytes>, std::io::Error>> {
    match ready!(Pin::new(body).poll_frame(cx)) {
        None => Poll::Ready(Ok(None)),
        Some(frame) => Poll::Ready(frame.map(|frame| Some(frame.into_data().unwrap_or_default()))),
    }
}
