//! The entry of a request in the stream of events.
//!
//! Decides nothing: the facts of a request are gathered while it is carried out, and only if the
//! stream can be followed. What is counted and logged is in [`crate::http::observer`].

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;

use super::refusal::{ErrorNames, Refusal};
use super::site::Site;
use super::{documented, wording};
use crate::http::observer::UNKNOWN;
use crate::http::request::Request;
use crate::journal::stream::{AnsweredRequest, EventStream, RefusalCause, StreamEvent};
use crate::rules::service::ServiceKind;
use crate::rules::{Caller, Owner};

/// A request under way, for the stream.
pub struct RequestEvent(Option<Box<Gathered>>);

struct Gathered {
    stream: Arc<EventStream>,
    names: ErrorNames,
    account: Option<Arc<str>>,
    answered: AnsweredRequest,
}

impl RequestEvent {
    /// Begins the entry of a request; empty if the stream cannot be followed.
    pub fn begin(site: &Site, connection: &Owner, request_id: &str) -> Self {
        let stream = &site.accounts.controls().stream;
        Self(stream.is_on().then(|| {
            Box::new(Gathered {
                stream: Arc::clone(stream),
                names: site.options.error_names,
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
        refusal.code.spelled(told.names).clone_into(&mut told.answered.code);
        let message = match wording::of(&told.answered.code) {
            Some(sentence) if refusal.sender_only => sentence,
            _ => &refusal.message,
        };
        told.answered.refusal = Some(RefusalCause {
            message: message.to_owned(),
            denial: refusal.denial.as_deref().cloned(),
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
        let Gathered { stream, account, mut answered, .. } = *told;
        if let Some(operation) = operation {
            answered.operation = documented::name_of(answered.service, operation);
        }
        answered.status = status.map(|status| status.as_u16());
        answered.took = took;
        stream.push(account, || StreamEvent::Request(answered));
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
