//! What the journal is told of a request: its row, if the journal records requests, and each
//! refusal.
//!
//! Decides what a refusal is: an answer with a status of 400 or more, whatever gave it. Which
//! refusals are conflicts is decided in the rules; the File service notes refusals by its rules
//! itself, since it knows who holds a file. What is counted and logged is in
//! [`crate::http::observer`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::{Response, StatusCode};

use super::call::Call;
use super::refusal::{Denied, Refusal};
use super::service::Operation;
use super::site::Site;
use super::{facts, wording};
use crate::http::request::Request;
use crate::journal::AccountJournal;
use crate::journal::Event;
use crate::journal::row::{AnswerEnd, AnsweredRequest, RefusedRequest, RequestRefusal};
use crate::rules::who::{ClientBy, Who};
use crate::rules::{Caller, Cause, Context, Noted, Owner, RefusalKind, Spelled};

/// A request under way, for the journal. Dropped without an answer, its client went away.
pub struct RequestEvent(Option<Gathered>);

struct Gathered {
    site: Arc<Site>,
    connection: Arc<Owner>,
    began: Instant,
    account: Option<Arc<str>>,
    noted: Arc<Noted>,
    /// The operation changes something.
    changes: bool,
    /// The row: built in its place, so that it is moved by its address.
    answered: Box<AnsweredRequest>,
}

impl RequestEvent {
    /// Begins the row of a request; empty if requests are not recorded.
    pub fn begin(
        site: &Arc<Site>,
        connection: &Arc<Owner>,
        request_id: &str,
        began: Instant,
    ) -> Self {
        let noted = site.accounts.controls().journal.noted();
        Self(noted.map(|noted| {
            let mut answered = Box::new(AnsweredRequest::of(site.service.kind, Who::default()));
            request_id.clone_into(&mut answered.request_id);
            Gathered {
                site: Arc::clone(site),
                connection: Arc::clone(connection),
                began,
                account: None,
                noted,
                changes: false,
                answered,
            }
        }))
    }

    /// Its head was read.
    pub fn request(&mut self, account: &Arc<str>, request: &Request, caller: &Caller) {
        let Some(told) = &mut self.0 else { return };
        told.account = Some(Arc::clone(account));
        told.answered.path = told.site.service.named_path(&request.address);
        told.answered.client_request.clone_from(&caller.request_id);
        told.answered.user_agent.clone_from(&caller.user_agent);
        told.answered.who.clone_from(&caller.who);
    }

    /// It was authorised. The operation notes in its context what it reads and changes.
    pub fn admitted(&mut self, request: &Request, operation: &Operation, context: &mut Context) {
        let Some(told) = &mut self.0 else { return };
        let service = told.answered.service;
        told.answered.operation = operation.title;
        told.answered.who.named.clone_from(&context.caller.who.named);
        told.answered.asked = facts::asked(service, operation.title, request);
        told.changes = operation.changes;
        context.noted = Some(Arc::clone(&told.noted));
    }

    pub fn refused(&mut self, refusal: &Refusal) {
        let Some(told) = &mut self.0 else { return };
        refusal.code.spelled(told.site.options.error_names).clone_into(&mut told.answered.code);
        told.answered.refusal = Some(RequestRefusal {
            message: told_message(refusal, &told.answered.code).to_owned(),
            cause: match refusal.denied.as_deref() {
                Some(Denied::Because(cause)) => Some(Box::new(cause.clone())),
                _ => None,
            },
            conflict: refusal.conflict,
        });
    }

    /// It is answered, unless a fault closes the connection instead.
    pub fn answered<B>(
        mut self,
        operation: Option<&'static Operation>,
        answer: &Response<B>,
        (end, took): (AnswerEnd, Duration),
    ) {
        let Some(mut told) = self.0.take() else { return };
        let row = &mut told.answered;
        if let Some(operation) = operation {
            row.operation = operation.title;
        }
        row.status = (end != AnswerEnd::Dropped).then(|| answer.status().as_u16());
        (row.answer, row.took) = (end, took);
        let status = answer.status();
        row.given = told.noted.take();
        if !status.is_success() {
            row.given.changed.clear();
        }
        // An answer 304 tells which version the client has.
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            facts::note_answer(&mut row.given, told.changes, answer.headers());
        }
        told.push();
    }
}

impl Gathered {
    fn push(self) {
        let Self { site, connection, account, mut answered, .. } = self;
        if answered.who.connection.is_empty() {
            answered.who.connection = connection.client.name.as_str().into();
        }
        site.accounts.controls().journal.push(account, Event::Request(answered));
    }
}

impl Drop for RequestEvent {
    fn drop(&mut self) {
        let Some(mut told) = self.0.take() else { return };
        told.answered.answer = AnswerEnd::ClientGone;
        told.answered.took = told.began.elapsed();
        told.answered.given = told.noted.take();
        told.push();
    }
}

/// The message of a refusal as others may read it: texts of the request are for its sender alone.
fn told_message<'a>(refusal: &'a Refusal, code: &str) -> &'a str {
    match wording::of(code) {
        Some(sentence) if refusal.sender_only => sentence,
        _ => &refusal.message,
    }
}

/// A request that may be refused, for the log of events.
pub struct Refusable<'a> {
    pub site: &'a Site,
    /// The journal of the account; none if the request names none that is known.
    pub journal: Option<&'a AccountJournal>,
    pub who: &'a Owner,
    pub client_by: Option<ClientBy>,
    /// The operation, as the service's documentation names it.
    pub operation: &'static str,
    /// The object as the command line names it, without the service.
    pub object: String,
}

impl Refusable<'_> {
    /// Notes a refusal, unless it is a 304 or the File service has noted it.
    pub fn note(self, refusal: &Refusal) {
        if refusal.status < StatusCode::BAD_REQUEST || refusal.denied.is_some() {
            return;
        }
        let service = self.site.service.kind;
        let code = refusal.code.spelled(self.site.options.error_names);
        let spelled = Spelled { code, status: refusal.status.as_u16(), errno: "" };
        let by_answer = || RefusalKind::of_answer(spelled.status, code);
        let kind = refusal.conflict.map_or_else(by_answer, RefusalKind::from);
        let message = told_message(refusal, code).to_owned();
        let object = refusal.object.as_ref().map_or(self.object, |object| object.0.clone());
        let event = Event::refused(RefusedRequest {
            service,
            object,
            who: self.who.clone(),
            client_by: self.client_by,
            operation: self.operation,
            cause: Cause { kind, spelled, message, holder: None },
        });
        match self.journal {
            Some(journal) => journal.push(event),
            None => drop(self.site.accounts.controls().journal.push(None, event)),
        }
    }
}

impl Call<'_> {
    /// Notes the refusal of a part of a batch: the batch as a whole is answered well.
    pub fn note_part(&self, refusal: &Refusal) {
        let refusable = Refusable {
            site: self.site,
            journal: Some(self.account.journal()),
            who: self.context.owner(),
            client_by: self.context.caller.who.named.as_ref().map(|named| named.by),
            operation: self.context.caller.operation,
            object: (self.site.service.object)(self.request),
        };
        refusable.note(refusal);
    }
}
