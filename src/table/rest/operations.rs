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
use crate::http::frame::service::{ErrorFormat, Operation, Service, operations};
use crate::http::frame::service_operations::{
    preflight, service_properties, service_stats, set_service_properties,
};
use crate::http::request::Request;
use crate::rules::policy::StoredPolicy;
use crate::rules::service::ServiceKind;
use crate::table::rules::{TableDenial, TableName};
use crate::table::service::TableService;

pub static SERVICE_TABLE: Service = Service {
    kind: ServiceKind::Table,
    route,
    operations: OPERATIONS,
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

operations! {
    TableCall;

    SERVICE_PREFLIGHT preflight ("ServicePreflight", "Preflight Table Request") Service &[]
        => (preflight);
    SERVICE_SET_PROPERTIES pool_change ("ServiceSetProperties", "Set Table Service Properties")
        Service &[Write] => (set_service_properties);
    SERVICE_GET_PROPERTIES read ("ServiceGetProperties", "Get Table Service Properties")
        Service &[Read] => (service_properties);
    SERVICE_GET_STATISTICS read ("ServiceGetStatistics", "Get Table Service Stats") Service &[Read]
        => (service_stats);
    TABLE_QUERY pool_read ("TableQuery", "Query Tables") Container &[List] => list_tables;
    #[by_body ()]
    TABLE_CREATE change ("TableCreate", "Create Table") Container &[Create, Write] => create_table;
    TABLE_GET read ("TableGet", "Query Tables") Container &[List] => get_table;
    TABLE_DELETE change ("TableDelete", "Delete Table") Container &[Delete] => delete_table;
    // No SAS reaches the access policies: a SAS must not lengthen its own life.
    TABLE_GET_ACCESS_POLICY read ("TableGetAccessPolicy", "Get Table ACL") Container &[]
        => access_policy;
    TABLE_SET_ACCESS_POLICY change ("TableSetAccessPolicy", "Set Table ACL") Container &[]
        => set_access_policy;
    #[or_level (ResourceLevel::Container)]
    TABLE_QUERY_ENTITIES pool_read ("TableQueryEntities", "Query Entities") Object &[Read]
        => query_entities;
    TABLE_GET_ENTITY read ("TableGetEntity", "Query Entities") Object &[Read] => get_entity;
    #[by_body ()]
    TABLE_INSERT_ENTITY change ("TableInsertEntity", "Insert Entity") Object &[Add]
        => insert_entity;
    TABLE_UPDATE_ENTITY change ("TableUpdateEntity", "Update Entity") Object &[Update]
        => replace_entity;
    TABLE_MERGE_ENTITY change ("TableMergeEntity", "Merge Entity") Object &[Update] => merge_entity;
    // An upsert takes both letters; the operation itself asks for the second one.
    TABLE_INSERT_OR_REPLACE_ENTITY change ("TableInsertOrReplaceEntity", "Insert Or Replace Entity")
        Object &[Add, Update] => replace_entity;
    TABLE_INSERT_OR_MERGE_ENTITY change ("TableInsertOrMergeEntity", "Insert Or Merge Entity")
        Object &[Add, Update] => merge_entity;
    TABLE_DELETE_ENTITY change ("TableDeleteEntity", "Delete Entity") Object &[Delete]
        => delete_entity;
    // The operations of a transaction are checked one by one.
    #[by_body ()]
    TABLE_BATCH change ("TableBatch", "Entity Group Transaction")
        Object &[Read, Add, Update, Delete] => batch;
}

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
