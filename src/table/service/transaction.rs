//! Entity group transactions: all writes of a set or none.
//!
//! Decides that all entities of a transaction get one timestamp, as the service does, and that
//! the fault of the first operation that fails is told.

use super::entities::Write;
use super::{TableResult, TableService, WrittenEntity, table_of};
use crate::db::DbService as _;
use crate::rules::context::Context;
use crate::table::rules::{TableName, transaction};

impl TableService {
    /// Carries all writes out, or none. The first name is the table's; the others have been
    /// checked to be of the same table by form.
    pub async fn transact(
        &self,
        context: &Context,
        writes: Vec<(TableName, Write)>,
    ) -> TableResult<Vec<WrittenEntity>> {
        transaction::check(writes.iter().map(|(table, write)| (table.as_str(), &write.key)))?;
        for (index, (_, write)) in writes.iter().enumerate() {
            write.check().map_err(|denial| super::TableError::Denied(denial).at(index))?;
        }
        let Some(name) = writes.first().map(|(name, _)| name.clone()) else {
            return Ok(Vec::new());
        };
        self.change(context, move |change| {
            let table = table_of(change.tx, &name).map_err(|error| error.at(0))?;
            let ticks = change.tick();
            let writes = writes.into_iter().enumerate().map(|(index, (_, write))| {
                let one = change.write(table, &name, write, ticks, " in a transaction");
                one.map_err(|error| error.at(index))
            });
            writes.collect()
        })
        .await
    }
}
