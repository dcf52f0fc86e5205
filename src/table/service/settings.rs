//! Stored access policies of tables. They have no condition: the last writer wins (S78).

use super::{TableResult, TableService, table_of};
use crate::db::{DbService as _, Store as _};
use crate::rules::context::Context;
use crate::rules::policy::{SentPolicy, StoredPolicy};
use crate::table::rules::policy::{check_table_policies, policy_time};
use crate::table::rules::{TableDenial, TableName};

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
