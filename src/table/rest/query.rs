//! Query Entities: the options of a query, and a page of entities as JSON.
//!
//! Decides how options are read and how many bytes a page has. The engine decides which entities it
//! has.

use std::ops::ControlFlow;
use std::sync::Arc;

use hyper::StatusCode;

use super::error::refusal_of_form;
use super::headers::json;
use super::json::write::EntityListWriter;
use super::token;
use super::{TableCall, option};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::rules::Noted;
use crate::rules::address::ObjectAddress;
use crate::table::rules::etag::etag;
use crate::table::rules::{
    EntityFields as _, EntityKey, Filter, Select, TableDenial, TableName, Top,
};
use crate::table::service::{EntityQuery, EntityRef, EntitySink};

/// Bytes after which a page ends.
const PAGE_BYTES: usize = 4 << 20;

/// Options of OData that the service does not have.
const ABSENT: [&str; 5] = ["$orderby", "$skip", "$count", "$expand", "$inlinecount"];

/// A page of entities, while it is written.
struct JsonPage {
    list: EntityListWriter,
    table: TableName,
    noted: Option<Arc<Noted>>,
}

impl EntitySink for JsonPage {
    fn add(&mut self, entity: &EntityRef<'_>) -> ControlFlow<()> {
        self.list.entity(entity);
        if let Some(noted) = &self.noted {
            let (partition, row) = (entity.partition().to_owned(), entity.row().to_owned());
            let table = self.table.to_string();
            let object = ObjectAddress::Entity { table, partition, row };
            noted.note(|given| given.lists(object, Some(etag(entity.timestamp()))));
        }
        let is_full = self.list.len() >= PAGE_BYTES;
        if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl TableCall<'_> {
    pub(super) fn query_entities(self) -> Answer {
        let scope = self.scope()?;
        let table = self.table()?;
        let select = option(self.request, "$select");
        let select = Select::parse(select.as_deref()).map_err(refusal_of_form)?;
        let query = self.entity_query(table.clone())?;
        let list = scope.entities(table.as_str(), select);
        let page = JsonPage { list, table, noted: self.context.noted.clone() };
        let found = self.service()?.query(&query, page);
        let (JsonPage { list, .. }, next) = found.map_err(|error| self.refusal(&error))?;
        let mut answer = json(StatusCode::OK, scope.level, list.finish());
        if let Some(EntityKey { partition, row }) = next {
            answer = answer
                .header("x-ms-continuation-nextpartitionkey", token::write(&partition))
                .header("x-ms-continuation-nextrowkey", token::write(&row));
        }
        Ok(answer)
    }

    fn entity_query(self, table: TableName) -> Result<EntityQuery, Refusal> {
        self.check_options()?;
        let get = |name| option(self.request, name);
        let filter = get("$filter").filter(|text| !text.trim().is_empty());
        let filter = filter.map(|text| Filter::parse(&text)).transpose();
        let key = |name| token::read(&get(name).unwrap_or_default()).map_err(refusal_of_form);
        let from = match (key("nextpartitionkey")?, key("nextrowkey")?) {
            (Some(partition), row) => Some(EntityKey { partition, row: row.unwrap_or_default() }),
            (None, _) => None,
        };
        Ok(EntityQuery {
            table,
            filter: filter.map_err(refusal_of_form)?,
            top: Top::parse(get("$top").as_deref()).map_err(refusal_of_form)?,
            from,
            reach: self.reach(),
        })
    }

    /// Refuses options that the service does not have. Others that are unknown pass, as a SAS is
    /// made of them too.
    pub(super) fn check_options(self) -> Result<(), Refusal> {
        let absent = ABSENT.into_iter().find(|name| option(self.request, name).is_some());
        match absent {
            None => Ok(()),
            Some(name) => {
                let why = format!("queries have no option {name}");
                Err(refusal_of_form(TableDenial::NotImplemented(why)))
            }
        }
    }
}
