//! Stored access policies of tables. They have no condition: the last writer wins (S78).

use super::{Done, Size, TableResult, TableService};
use crate::core::table::{Denial, Policy, TableName, policy};
use crate::engine::context::Context;
use crate::engine::non_blocking::check_may_wait;

impl TableService {
    /// Get Table ACL.
    pub async fn policies(&self, table: &TableName) -> TableResult<Vec<Policy>> {
        let name = table.clone();
        self.look(move |tx| Ok(tx.policies(&name)?.ok_or(Denial::TableNotFound)?)).await
    }

    /// The stored access policy of that ID, for a caller that is about to authorise a request.
    pub fn policy(&self, table: &TableName, id: &str) -> Option<Policy> {
        let policies = if let Some(found) = self.store.try_read(|tx| tx.policies(table)) {
            found
        } else {
            // On an event loop the caller gives up here and asks again where it may wait.
            check_may_wait().ok()?;
            self.store.read(|tx| tx.policies(table))
        };
        policies.ok()??.into_iter().find(|policy| policy.id == id)
    }

    /// Set Table ACL.
    pub async fn set_policies(
        &self,
        context: &Context,
        table: &TableName,
        policies: Vec<Policy>,
    ) -> TableResult<()> {
        policy::check(&policies)?;
        let name = table.clone();
        self.change(context, Size::Small, move |change| {
            change.table(&name)?;
            if !change.tx.set_policies(&name, &policies)? {
                return Err(Denial::TableNotFound.into());
            }
            Ok(Done::with((), vec![change.of_table(&name, "Set Table ACL")]))
        })
        .await
    }
}
