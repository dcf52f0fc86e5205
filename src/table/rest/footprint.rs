//! What requests to the Table service read and write. A table has its entities, below their
//! partitions, and its access policies; the list of tables has its name.
//!
//! The name of a new table, the keys of an insertion and the parts of a transaction are in the
//! body, which a request of an exploration has received before it waits for its turn. A request
//! that cannot be read writes all tables.

use super::json::read::{read_entity, read_table_name};
use super::locator::Locator;
use super::{batch, locator, option};
use crate::http::frame::footprint::{PROPERTIES, all_read, all_written, root};
use crate::http::frame::service::Operation;
use crate::http::request::Request;
use crate::rules::footprint::{Footprint, Resource};
use crate::rules::service::ServiceKind::Table;
use crate::table::rules::footprint::{entity, partition, table};
use crate::table::rules::range::{Edge, Position, Range, Side};
use crate::table::rules::{EntityKey, Filter};

/// The names of the tables.
const TABLES: &str = "$tables";
/// Whether a table is there, without what is in it.
const NAME: &str = "name";

pub(super) fn of_request(operation: &Operation, request: &Request) -> Footprint {
    let account = &request.address.account;
    let listed = || root(Table, request).below(TABLES);
    let whole = |name: &str| table(account, name);
    let touched = if operation.changes { written } else { read };
    let unread = if operation.changes { all_written } else { all_read };
    match locator(request).ok() {
        Some(Locator::Entity(name, key)) => touched(vec![entity(account, &name, key)]),
        Some(Locator::Table(name)) if request.query.get("comp").is_some() => {
            touched(vec![whole(&name).below(PROPERTIES)])
        }
        Some(Locator::Table(name)) if !operation.changes => read(queried(request, &name)),
        Some(Locator::Table(name) | Locator::Beneath(name)) => {
            touched(vec![inserted(request).map_or(whole(&name), |key| entity(account, &name, key))])
        }
        Some(Locator::Tables) if operation.changes => match read_table_name(&request.body) {
            Ok(name) => written(vec![whole(&name), listed()]),
            Err(_) => unread(Table, request),
        },
        Some(Locator::TableEntry(name)) if operation.changes => {
            written(vec![whole(&name), listed()])
        }
        Some(Locator::Tables | Locator::TableEntry(_)) => read(vec![listed()]),
        Some(Locator::Batch) => match batch::entities(request) {
            Some(parts) => {
                written(parts.into_iter().map(|(name, key)| entity(account, &name, key)).collect())
            }
            None => unread(Table, request),
        },
        _ => unread(Table, request),
    }
}

fn read(resources: Vec<Resource>) -> Footprint {
    Footprint::of(resources, [])
}

fn written(resources: Vec<Resource>) -> Footprint {
    Footprint::of([], resources)
}

/// The entity that an insertion makes.
fn inserted(request: &Request) -> Option<EntityKey> {
    let [partition, row] = read_entity(&request.body).ok()?.keys.ok()?;
    Some(EntityKey::new(partition?, row?))
}

/// What a query can find: the entities of its filter's keys.
fn queried(request: &Request, name: &str) -> Vec<Resource> {
    let account = &request.address.account;
    let filter = option(request, "$filter").and_then(|text| Filter::parse(&text).ok());
    let found = filter.map_or_else(|| vec![Range::ALL], |filter| filter.ranges());
    let of_range = |range: &Range| match (&range.start, &range.end) {
        (Position::In(from, first), Position::In(to, last)) if from == to => {
            Some(match (first, last) {
                (Edge::At(row, Side::Before), Edge::At(end, Side::After)) if row == end => {
                    entity(account, name, EntityKey::new(from, row))
                }
                _ => partition(account, name, from),
            })
        }
        _ => None,
    };
    let found = found.iter().map(of_range).collect::<Option<Vec<_>>>();
    // Whether the table is there is read in any case.
    let mut found = found.unwrap_or_else(|| vec![table(account, name)]);
    found.push(table(account, name).below(NAME));
    found
}
