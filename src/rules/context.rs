//! The context of an operation: the time at which it is decided, and the caller.
//!
//! One value for a whole request, made by the front end that received it: all rules of one
//! operation see the same moment.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::rules::Noted;
use crate::rules::address::ObjectAddress;
use crate::rules::asked::Parts;
use crate::rules::given::{ChangedObject, Given};
use crate::rules::who::{Identity, Who};
use crate::rules::writer::shortened;
use crate::rules::{Owner, Timestamp, Writer};

/// The circumstances of one operation.
#[derive(Clone, Debug)]
pub struct Context {
    /// The moment the operation is decided at.
    pub now: Timestamp,
    pub caller: Caller,
    /// Where the operation notes what it reads and changes; none if nobody records it.
    pub noted: Option<Arc<Noted>>,
}

impl Context {
    pub fn new(now: Timestamp, caller: Caller) -> Self {
        Self { now, caller, noted: None }
    }

    /// Notes a change of an object: its `ETag` before the change, and after it.
    pub fn changed(
        &self,
        object: &ObjectAddress,
        (etag_before, etag_after): (Option<String>, Option<String>),
        parts: Option<Parts>,
    ) {
        self.note(|given| match given.changed.last_mut() {
            // Another step of the same change.
            Some(last) if last.object == *object => last.etag_after = etag_after,
            _ => {
                let object = object.clone();
                let guarded = None;
                // Mostly there is one, and the first growth would be for four.
                given.changed.reserve_exact(1);
                given.changed.push(ChangedObject {
                    object,
                    etag_before,
                    etag_after,
                    parts,
                    guarded,
                });
            }
        });
    }

    /// Notes what the operation reads or changes.
    pub fn note(&self, note: impl FnOnce(&mut Given)) {
        if let Some(noted) = &self.noted {
            noted.note(note);
        }
    }

    /// An operation that a caller on this machine asks for, without a request over the network.
    pub fn local(now: Timestamp, owner: Owner, operation: &'static str) -> Self {
        Self::new(now, Caller::local(Arc::new(owner), operation))
    }

    /// The client as the table of opens and the log of events know it.
    pub fn owner(&self) -> &Owner {
        &self.caller.owner
    }

    /// The request as the last writer of what it changes. `operation` is as the service's
    /// documentation names it.
    pub fn writer(&self, operation: &str) -> Writer {
        let text = |text: &Option<Arc<str>>| {
            let sent = text.as_deref().filter(|text| !text.is_empty());
            sent.map(|text| shortened(text).to_owned())
        };
        Writer {
            operation: operation.to_owned(),
            client: self.caller.who.named.as_ref().map(|client| client.name.to_string()),
            client_request: text(&self.caller.request_id),
            user_agent: text(&self.caller.user_agent),
            address: self.caller.address.map(|address| address.to_string()),
            when: self.now,
        }
    }
}

/// Who asks for an operation, as other clients are told about it.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The client as the table of opens and the log of events know it.
    pub owner: Arc<Owner>,
    /// The operation, as the service's documentation names it.
    pub operation: &'static str,
    /// The address of a client on the network.
    pub address: Option<SocketAddr>,
    /// The ID that the client gave the request.
    pub request_id: Option<Arc<str>>,
    /// The program that the client says it is.
    pub user_agent: Option<Arc<str>>,
    pub who: Who,
}

impl Caller {
    /// A caller on this machine, without a request over the network.
    pub fn local(owner: Arc<Owner>, operation: &'static str) -> Self {
        let who = Who { connection: owner.client.name.as_str().into(), ..Who::default() };
        Self { owner, operation, address: None, request_id: None, user_agent: None, who }
    }

    /// The caller is a client with this name: others are told it.
    pub fn is_named(&mut self, client: Identity) {
        let program = Some(Arc::clone(&client.name));
        self.owner = Arc::new(Owner { program, ..(*self.owner).clone() });
        self.who.named = Some(client);
    }
}
