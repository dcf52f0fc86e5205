//! The row of a request in the journal.
//!
//! Decides nothing: the facts of a request are gathered while it is carried out, and only if the
//! journal records requests. What is counted and logged is in [`crate::http::observer`].

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;

use super::refusal::Refusal;
use super::site::Site;
use super::{documented, wording};
use crate::http::observer::UNKNOWN;
use crate::http::request::Request;
use crate::journal::Event;
use crate::journal::row::{AnsweredRequest, RequestRefusal};
use crate::rules::service::ServiceKind;
use crate::rules::{Caller, Owner};

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
        told.answered.path = request.address.named_path();
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
            cause: refusal.cause.clone(),
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
