//! The services that a server offers, in the order they are shown.
//!
//! To add a service: a line in [`SERVICES`] here, and its option with a line in
//! `Listen::addresses` of `src/cli/serve/listen.rs`. Listeners, endpoints, connection strings,
//! certificates, the ready file and the start screen follow this list.

use crate::rest::{self, Service};
use crate::rules::service::ServiceKind;

/// Every service that exists.
pub static SERVICES: &[&Service] = &[&rest::FILE, &rest::BLOB, &rest::QUEUE, &rest::TABLE];

/// The kinds of [`SERVICES`].
pub fn kinds() -> impl Iterator<Item = ServiceKind> {
    SERVICES.iter().map(|service| service.kind)
}
