//! Entities and tables as JSON: reading what clients send, writing what they ask for.
//!
//! Decides inference and conversion of types ([`read`]) and the members at each level of metadata
//! ([`mod@write`]). Limits are checked in [`crate::table::rules::entity`].

pub mod read;
pub mod write;

pub use read::{EntityBody, read_entity, read_table_name};
pub use write::{MetadataLevel, Scope};

/// Ends the name of a member that names the type of another one.
const TYPE_SUFFIX: &str = "@odata.type";
