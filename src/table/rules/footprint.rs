//! The resources of the Table service, however a client names them.

use super::EntityKey;
use crate::rules::footprint::Resource;
use crate::rules::service::ServiceKind;

/// A table of an account, with all in it.
pub fn table(account: &str, name: &str) -> Resource {
    let service = format!("{}:{account}", ServiceKind::Table);
    Resource::new([service, name.to_ascii_lowercase()])
}

/// The entities of a partition.
pub fn partition(account: &str, name: &str, partition: &str) -> Resource {
    table(account, name).below("entity").below(partition)
}

pub fn entity(account: &str, name: &str, key: EntityKey) -> Resource {
    partition(account, name, &key.partition).below(key.row)
}
