//! The operations of the Table service: what a SAS must permit for each and the function that
//! carries it out, and which one a request asks for.
//!
//! By method, or the one that a POST names, and by what the path names; an update is told from an
//! upsert by its `If-Match` (S80).

use hyper::{Method, StatusCode};

use super::error::refusal_of_form;
use super::locator::Locator;
use super::{TableCall, footprint, headers, locator};
use crate::http::auth::Permission::{Add, Create, Delete, List, Read, Update, Write};
use crate::http::auth::{ResourceLevel, TABLE_SIGNATURES};
use crate::http::frame::host::{HostedAccount, service};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::routing::Verb;
use crate::http::frame::service::{ErrorFormat, Operation, Service};
use crate::http::frame::service_operations::{
    SERVICE_GET_PROPERTIES, SERVICE_GET_STATISTICS, SERVICE_PREFLIGHT, SERVICE_SET_PROPERTIES,
};
use crate::http::request::Request;
use crate::rules::policy::StoredPolicy;
use crate::rules::service::ServiceKind;
use crate::table::rules::{TableDenial, TableName};
use crate::table::service::TableService;

pub static SERVICE_TABLE: Service = Service {
    kind: ServiceKind::Table,
    route,
    operations: &OPERATIONS,
    first_version: "2009-07-17",
    needs_version: false,
    errors: ErrorFormat::Json,
    signatures: &TABLE_SIGNATURES,
    target: |address, _| (address.container.as_deref(), address.path()),
    object,
    touches: footprint::of_request,
    policy,
    anonymous: |_, _, _| false,
    answered: None,
    properties: &["Logging", "HourMetrics", "MinuteMetrics", "Cors"],
};

static TABLE_QUERY: Operation =
    Operation::pool_read("TableQuery", ResourceLevel::Container, &[List], |call| {
        TableCall(call).list_tables()
    });
static TABLE_CREATE: Operation =
    Operation::change("TableCreate", ResourceLevel::Container, &[Create, Write], |call, body| {
        Box::pin(TableCall(call).create_table(body))
    });
static TABLE_GET: Operation =
    Operation::read("TableGet", ResourceLevel::Container, &[List], |call| {
        TableCall(call).get_table()
    });
static TABLE_DELETE: Operation =
    Operation::change("TableDelete", ResourceLevel::Container, &[Delete], |call, body| {
        Box::pin(TableCall(call).delete_table(body))
    });
// No SAS reaches the access policies: a SAS must not lengthen its own life.
static TABLE_GET_ACCESS_POLICY: Operation =
    Operation::read("TableGetAccessPolicy", ResourceLevel::Container, &[], |call| {
        TableCall(call).access_policy()
    });
static TABLE_SET_ACCESS_POLICY: Operation =
    Operation::change("TableSetAccessPolicy", ResourceLevel::Container, &[], |call, body| {
        Box::pin(TableCall(call).set_access_policy(body))
    });
static TABLE_QUERY_ENTITIES: Operation =
    Operation::pool_read("TableQueryEntities", ResourceLevel::Object, &[Read], |call| {
        TableCall(call).query_entities()
    })
    .or_level(ResourceLevel::Container);
static TABLE_GET_ENTITY: Operation =
    Operation::read("TableGetEntity", ResourceLevel::Object, &[Read], |call| {
        TableCall(call).get_entity()
    });
static TABLE_INSERT_ENTITY: Operation =
    Operation::change("TableInsertEntity", ResourceLevel::Object, &[Add], |call, body| {
        Box::pin(TableCall(call).insert_entity(body))
    });
static TABLE_UPDATE_ENTITY: Operation =
    Operation::change("TableUpdateEntity", ResourceLevel::Object, &[Update], |call, body| {
        Box::pin(TableCall(call).replace_entity(body))
    });
static TABLE_MERGE_ENTITY: Operation =
    Operation::change("TableMergeEntity", ResourceLevel::Object, &[Update], |call, body| {
        Box::pin(TableCall(call).merge_entity(body))
    });
// An upsert takes both letters; the operation itself asks for the second one.
static TABLE_INSERT_OR_REPLACE_ENTITY: Operation = Operation::change(
    "TableInsertOrReplaceEntity",
    ResourceLevel::Object,
    &[Add, Update],
    |call, body| Box::pin(TableCall(call).replace_entity(body)),
);
static TABLE_INSERT_OR_MERGE_ENTITY: Operation = Operation::change(
    "TableInsertOrMergeEntity",
    ResourceLevel::Object,
    &[Add, Update],
    |call, body| Box::pin(TableCall(call).merge_entity(body)),
);
static TABLE_DELETE_ENTITY: Operation =
    Operation::change("TableDeleteEntity", ResourceLevel::Object, &[Delete], |call, body| {
        Box::pin(TableCall(call).delete_entity(body))
    });
// The operations of a transaction are checked one by one.
static TABLE_BATCH: Operation = Operation::change(
    "TableBatch",
    ResourceLevel::Object,
    &[Read, Add, Update, Delete],
    |call, body| Box::pin(TableCall(call).batch(body)),
);

static OPERATIONS: [&Operation; 19] = [
    &SERVICE_PREFLIGHT,
    &SERVICE_SET_PROPERTIES,
    &SERVICE_GET_PROPERTIES,
    &SERVICE_GET_STATISTICS,
    &TABLE_QUERY,
    &TABLE_CREATE,
    &TABLE_GET,
    &TABLE_DELETE,
    &TABLE_GET_ACCESS_POLICY,
    &TABLE_SET_ACCESS_POLICY,
    &TABLE_QUERY_ENTITIES,
    &TABLE_GET_ENTITY,
    &TABLE_INSERT_ENTITY,
    &TABLE_UPDATE_ENTITY,
    &TABLE_MERGE_ENTITY,
    &TABLE_INSERT_OR_REPLACE_ENTITY,
    &TABLE_INSERT_OR_MERGE_ENTITY,
    &TABLE_DELETE_ENTITY,
    &TABLE_BATCH,
];

fn route(request: &Request) -> Result<&'static Operation, Refusal> {
    if request.method == Method::OPTIONS {
        return Ok(&SERVICE_PREFLIGHT);
    }
    let named: Vec<_> = request
        .headers
        .get_all("x-http-method")
        .iter()
        .map(|value| value.to_str().unwrap_or_default())
        .collect();
    let verb = headers::verb(&request.method, &named)?.ok_or_else(method_not_allowed)?;
    let comp = request.query.get("comp").unwrap_or_default();
    let locator = locator(request)?;
    if comp.is_empty() {
        return of_data(verb, &locator, request.headers.contains_key("if-match"));
    }
    let operation = match (&locator, comp.to_ascii_lowercase().as_str(), verb) {
        (Locator::Service, "properties", Verb::Get) => &SERVICE_GET_PROPERTIES,
        (Locator::Service, "properties", Verb::Put) => &SERVICE_SET_PROPERTIES,
        (Locator::Service, "stats", Verb::Get) => &SERVICE_GET_STATISTICS,
        (Locator::Table(_), "acl", Verb::Get | Verb::Head) => &TABLE_GET_ACCESS_POLICY,
        (Locator::Table(_), "acl", Verb::Put) => &TABLE_SET_ACCESS_POLICY,
        (Locator::Service, "properties" | "stats", _) | (Locator::Table(_), "acl", _) => {
            return Err(method_not_allowed());
        }
        _ => return Err(Refusal::query("comp", comp, "it names no operation on this resource")),
    };
    Ok(operation)
}

/// The operation on tables and entities. `conditional` says whether there is an `If-Match`.
fn of_data(
    verb: Verb,
    locator: &Locator,
    conditional: bool,
) -> Result<&'static Operation, Refusal> {
    Ok(match (locator, verb) {
        (Locator::Tables, Verb::Get) => &TABLE_QUERY,
        (Locator::Tables, Verb::Post) => &TABLE_CREATE,
        (Locator::TableEntry(_), Verb::Get) => &TABLE_GET,
        (Locator::TableEntry(_), Verb::Delete) => &TABLE_DELETE,
        (Locator::Table(_), Verb::Get) => &TABLE_QUERY_ENTITIES,
        // What goes on after the table is refused by the operation: it depends on table and body.
        (Locator::Table(_) | Locator::Beneath(_), Verb::Post) => &TABLE_INSERT_ENTITY,
        (Locator::Entity(..), Verb::Get) => &TABLE_GET_ENTITY,
        (Locator::Entity(..), Verb::Put) if conditional => &TABLE_UPDATE_ENTITY,
        (Locator::Entity(..), Verb::Put) => &TABLE_INSERT_OR_REPLACE_ENTITY,
        (Locator::Entity(..), Verb::Merge | Verb::Patch) if conditional => &TABLE_MERGE_ENTITY,
        (Locator::Entity(..), Verb::Merge | Verb::Patch) => &TABLE_INSERT_OR_MERGE_ENTITY,
        (Locator::Entity(..), Verb::Delete) => &TABLE_DELETE_ENTITY,
        (Locator::Batch, Verb::Post) => &TABLE_BATCH,
        (Locator::Beneath(_), Verb::Get) => {
            let why = "a path does not go on after the name of a table";
            return Err(refusal_of_form(TableDenial::NotImplemented(why.to_owned())));
        }
        (Locator::Beneath(table), _) => return Err(refusal_of_form(TableDenial::beneath(table))),
        (Locator::Service, _) => {
            return Err(Refusal::bad("InvalidUri", "The path alone names no operation."));
        }
        _ => return Err(method_not_allowed()),
    })
}

fn method_not_allowed() -> Refusal {
    let message = "The specified resource does not support the requested Http Verb.";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
}

/// The table or the entity that a request addresses. The keys of an insertion are in its body.
fn object(request: &Request) -> String {
    match locator(request) {
        Ok(Locator::Entity(table, key)) => format!("{table}/{}/{}", key.partition, key.row),
        Ok(Locator::Table(table) | Locator::TableEntry(table) | Locator::Beneath(table)) => table,
        Ok(Locator::Service | Locator::Tables | Locator::Batch) | Err(_) => String::new(),
    }
}

/// The stored access policy `id` of a table.
fn policy(account: &dyn HostedAccount, table: &str, id: &str) -> Option<StoredPolicy> {
    let table = TableName::parse(table).ok()?;
    service::<TableService>(account, ServiceKind::Table).ok()?.policy(&table, id)
}
