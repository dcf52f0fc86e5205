//! Create, delete, get and list tables; their stored access policies. Tables have no ETags and no
//! conditions (S78).
//!
//! Decides that a deleted table's name is free at once. Its entities go later, by the sweeper, and
//! what one step of that removes; [`crate::db::sweeper`] decides when a step is taken.

use std::sync::Arc;
use std::time::Duration;

use super::{TableResult, TableService, table_of};
use crate::db::sweeper::Sweeper;
use crate::db::{DbError, DbService as _, Store as _};
use crate::rules::context::Context;
use crate::rules::policy::{SentPolicy, StoredPolicy};
use crate::rules::service::ServiceKind;
use crate::sync::bell::Bell;
use crate::table::rules::policy::{check_table_policies, policy_time};
use crate::table::rules::query::PAGE_MAX;
use crate::table::rules::{Filter, TableDenial, TableName, Top, ValueRef};
use crate::table::store::TableStore;

/// The property that a table has in a filter.
const TABLE_NAME: &str = "TableName";
/// Tables that one request looks at.
const LOOKED_MAX: usize = 10_000;

/// Which tables to list.
#[derive(Clone, PartialEq, Debug)]
pub struct TableQuery {
    /// Those it matches; none means all.
    pub filter: Option<Filter>,
    /// The most of a page.
    pub top: Top,
    /// Where to continue: the name of the next table.
    pub from: Option<String>,
}

impl Default for TableQuery {
    fn default() -> Self {
        Self { filter: None, top: Top(PAGE_MAX), from: None }
    }
}

/// A page of tables, in the order of names without case.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TablePage {
    /// Their names as they were created.
    pub names: Vec<String>,
    /// Where the next page begins, if there may be one.
    pub next: Option<String>,
}

impl TableService {
    pub async fn create_table(&self, context: &Context, name: &TableName) -> TableResult<()> {
        let name = name.clone();
        self.change(context, move |change| {
            if change.tx.table_id(&name)?.is_some() || !change.tx.create_table(&name)? {
                return Err(TableDenial::TableAlreadyExists.into());
            }
            change.changed_table(&name, "Create Table");
            Ok(())
        })
        .await
    }

    /// Delete Table. Answers at once, however many entities there are.
    pub async fn delete_table(&self, context: &Context, name: &TableName) -> TableResult<()> {
        let name = name.clone();
        self.delete(context, move |change| {
            if !change.tx.delete_table(&name)? {
                return Err(TableDenial::ResourceNotFound.into());
            }
            change.changed_table(&name, "Delete Table");
            change.dropped.set(true);
            Ok(())
        })
        .await
    }

    /// The name of a table as it was created.
    pub fn table(&self, name: &TableName) -> TableResult<String> {
        self.store.read(|tx| Ok(tx.table(name)?.ok_or(TableDenial::ResourceNotFound)?.name))
    }

    /// A page of tables.
    pub fn list_tables(&self, query: TableQuery) -> TableResult<TablePage> {
        self.store.read(|tx| {
            let mut page = TablePage::default();
            let mut looked = 0;
            let from = query.from.unwrap_or_default().to_ascii_lowercase();
            tx.tables_from(&from, |folded, name| {
                looked += 1;
                let matches = query.filter.as_ref().is_none_or(|filter| {
                    filter.holds(|field| (field == TABLE_NAME).then_some(ValueRef::String(name)))
                });
                if looked > LOOKED_MAX || (matches && page.names.len() == query.top.0) {
                    // An empty page was asked for: there is nothing to continue.
                    page.next = (query.top.0 > 0).then(|| folded.to_owned());
                    return false;
                }
                if matches {
                    page.names.push(name.to_owned());
                }
                true
            })?;
            Ok(page)
        })
    }
}

/// Entities that one transaction removes.
const SLICE: usize = 500;
/// The longest sleep when nothing is left. The bell ends it earlier.
const IDLE: Duration = Duration::from_hours(24);

/// Starts the sweeper of a Table service. It looks when `bell` rings.
pub(super) fn start_sweeper(store: Arc<TableStore>, bell: Arc<Bell>) -> TableResult<Sweeper> {
    let step = move || {
        let is_left = store.delete(|tx| tx.sweep_deleted(SLICE))?;
        Ok::<_, DbError>(if is_left { Duration::ZERO } else { IDLE })
    };
    Ok(Sweeper::start(ServiceKind::Table, bell, step)?)
}

impl TableService {
    pub fn policies(&self, table: &TableName) -> TableResult<Vec<SentPolicy>> {
        self.store.read(|tx| Ok(tx.policies(table)?.ok_or(TableDenial::TableNotFound)?))
    }

    /// The stored access policy of that ID, for a caller that is about to authorise a request. Not
    /// for an event loop.
    pub fn policy(&self, table: &TableName, id: &str) -> Option<StoredPolicy> {
        let policies = self.store.read(|tx| tx.policies(table)).ok()??;
        let found = policies.into_iter().find(|policy| policy.id == id)?;
        found.timed(policy_time).ok()
    }

    pub async fn set_policies(
        &self,
        context: &Context,
        table: &TableName,
        policies: Vec<SentPolicy>,
    ) -> TableResult<()> {
        check_table_policies(&policies).map_err(TableDenial::from)?;
        let name = table.clone();
        self.change(context, move |change| {
            table_of(change.tx, &name)?;
            if !change.tx.set_policies(&name, &policies)? {
                return Err(TableDenial::TableNotFound.into());
            }
            change.changed_table(&name, "Set Table ACL");
            Ok(())
        })
        .await
    }
}
