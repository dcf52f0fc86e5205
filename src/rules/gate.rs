//! What a gate says of a request: where the request stands, and who it is.
//!
//! Which requests stop is decided in the bench.

use std::sync::Arc;

use super::asked::Asked;
use super::named::named;
use super::service::ServiceKind;
use super::who::Who;

named! {
    /// A point on the way of a request.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Point, name: &'static str {
        /// The request was authorised; nothing was looked at yet.
        Received = "received",
        /// The request is done; the client does not know yet.
        Committed = "committed",
    }
}

/// The description of a request that may have to stop, for the client that releases it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Visitor {
    pub service: ServiceKind,
    pub account: Arc<str>,
    pub operation: String,
    /// The path of the request without the account.
    pub path: String,
    pub who: Who,
    /// The ID that its client gave it.
    pub client_request: Option<Arc<str>>,
    /// The program that the client says it is.
    pub user_agent: Option<Arc<str>>,
    pub asked: Asked,
}
