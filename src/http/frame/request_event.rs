//! What the journal is told of a request: its row, if the journal records requests, and each
//! refusal because of another client.
//!
//! Decides nothing else: the facts of a request are gathered while it is carried out. Which
//! refusals are conflicts is decided in the rules; the File service notes its refusals itself,
//! since it knows who holds a file. What is counted and logged is in [`crate::http::observer`].

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;

use super::call::Call;
use super::refusal::{Denied, Refusal};
use super::service::Answer;
use super::site::Site;
use super::{documented, wording};
use crate::http::observer::UNKNOWN;
use crate::http::request::Request;
use crate::journal::Event;
use crate::journal::row::{AnsweredRequest, RefusedRequest, RequestRefusal};
use crate::rules::service::ServiceKind;
use crate::rules::{Caller, Cause, Owner, Spelled};

/// A request under way, for the journal.
pub struct RequestEvent(Option<Box<Gathered>>);

struct Gathered {
    site: Arc<Site>,
    account: Option<Arc<str>>,
    answered: AnsweredRequest,
}

impl RequestEvent {
    /// Begins the row of a request; empty if requests are not recorded.
    pub fn begin(site: &Arc<Site>, connection: &Owner, request_id: &str) -> Self {
        Self(site.accounts.controls().journal.records_all().then(|| {
            Box::new(Gathered {
                site: Arc::clone(site),
                account: None,
                answered: unknown(site.service.kind, connection, request_id),
            })
        }))
    }

    /// Its head was read.
    pub fn request(&mut self, request: &Request, caller: &Caller) {
        let Some(told) = &mut self.0 else { return };
        told.account = Some(request.address.account.as_str().into());
        told.answered.path = told.site.service.named_path(&request.address);
        told.answered.client_request.clone_from(&caller.request_id);
        told.answered.user_agent.clone_from(&caller.user_agent);
    }

    pub fn refused(&mut self, refusal: &Refusal) {
        let Some(told) = &mut self.0 else { return };
        refusal.code.spelled(told.site.options.error_names).clone_into(&mut told.answered.code);
        let message = match wording::of(&told.answered.code) {
            Some(sentence) if refusal.sender_only => sentence,
            _ => &refusal.message,
        };
        told.answered.refusal = Some(RequestRefusal {
            message: message.to_owned(),
            cause: match refusal.denied.as_deref() {
                Some(Denied::Because(cause)) => Some(Box::new(cause.clone())),
                _ => None,
            },
            conflict: refusal.conflict,
        });
    }

    /// It is answered; without a status if a fault closed the connection instead.
    pub fn answered(
        self,
        operation: Option<&'static str>,
        status: Option<StatusCode>,
        took: Duration,
    ) {
        let Some(told) = self.0 else { return };
        let Gathered { site, account, mut answered } = *told;
        if let Some(operation) = operation {
            answered.operation = documented::name_of(answered.service, operation);
        }
        answered.status = status.map(|status| status.as_u16());
        answered.took = took;
        site.accounts.controls().journal.push(account, Event::Request(answered));
    }
}

/// A request of which nothing is known but its connection.
fn unknown(service: ServiceKind, connection: &Owner, request_id: &str) -> AnsweredRequest {
    AnsweredRequest {
        service,
        operation: UNKNOWN,
        path: String::new(),
        client: connection.client.name.clone(),
        client_request: None,
        user_agent: None,
        request_id: request_id.to_owned(),
        status: None,
        code: String::new(),
        took: Duration::ZERO,
        refusal: None,
    }
}

impl Call<'_> {
    /// Notes the answer if it is a refusal by a conflict.
    pub fn note(&self, answer: &Answer) {
        if let Err(refusal) = answer {
            self.note_refusal(refusal, || match &refusal.object {
                Some(object) => object.0.clone(),
                None => (self.site.service.object)(self.request),
            });
        }
    }

    /// Notes a refusal on `object`, which is named as the command line names it, without the
    /// service.
    pub fn note_refusal(&self, refusal: &Refusal, object: impl FnOnce() -> String) {
        let Some(conflict) = refusal.conflict else { return };
        let code = refusal.code.spelled(self.site.options.error_names);
        let spelled = Spelled { code, status: refusal.status.as_u16(), errno: "" };
        let message = refusal.message.clone().into_owned();
        self.account.journal().push(Event::Refused(RefusedRequest {
            service: self.site.service.kind,
            object: object(),
            who: self.context.owner().clone(),
            operation: documented::name_of(self.site.service.kind, self.context.caller.operation),
            cause: Cause { kind: conflict.into(), spelled, message, holder: None },
        }));
    }
}
