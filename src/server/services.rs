//! The services that a server offers, in the order they are shown.
//!
//! To add a service: a line in [`SERVICES`] here, and its option with a line in
//! `Listen::addresses` of `src/cli/serve/listen.rs`. Listeners, endpoints, connection strings,
//! certificates, the ready file and the start screen follow this list.

use crate::blob::rest::operations::SERVICE_TABLE as BLOB;
use crate::file::rest::operations::SERVICE_TABLE as FILE;
use crate::http::frame::Service;
use crate::queue::rest::operations::SERVICE_TABLE as QUEUE;
use crate::rules::service::ServiceKind;
use crate::table::rest::operations::SERVICE_TABLE as TABLE;

/// Every service that exists.
pub static SERVICES: &[&Service] = &[&FILE, &BLOB, &QUEUE, &TABLE];

/// The kinds of [`SERVICES`].
pub fn kinds() -> impl Iterator<Item = ServiceKind> {
    SERVICES.iter().map(|service| service.kind)
}
