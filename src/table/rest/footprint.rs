//! What operations on tables and entities read and write. The keys of an entity that is inserted,
//! and the parts of a transaction, are in the body, which comes later: such a request writes the
//! whole table, or all tables.

use super::locator;
use super::locator::Locator;
use crate::http::frame::footprint::{all_read, all_written, root};
use crate::http::frame::service::Operation;
use crate::http::request::Request;
use crate::rules::footprint::Footprint;
use crate::rules::service::ServiceKind::Table;

pub(super) fn of_request(operation: &Operation, request: &Request) -> Footprint {
    let table = |name: &str| root(Table, request).below(name.to_ascii_lowercase());
    let resource = match locator(request).ok() {
        Some(Locator::Entity(name, key)) => table(&name).below(key.partition).below(key.row),
        Some(Locator::Table(name) | Locator::Beneath(name)) => table(&name),
        _ if operation.changes => return all_written(Table, request),
        _ => return all_read(Table, request),
    };
    if operation.changes { Footprint::of([], [resource]) } else { Footprint::of([resource], []) }
}
