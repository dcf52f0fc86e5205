//! The rules of the Table service: names, keys, values, JSON, filters, conditions, transactions.
//!
//! Pure: no I/O, no clock. `table/service` asks and carries out; `table/rest` spells the answers.
//!
//! ```text
//!   name, key        legal table names and keys; locator: how a URL spells an entity
//!   datetime, value  Edm types and their values; number: Double as text
//!   entity           properties of an entity, merging, limits
//!   json             entities as JSON at three levels of metadata
//!   filter           $filter: parsing, evaluation, the key ranges it can match
//!   range            intervals of keys; token: where a page ends
//!   query            $select and $top
//!   etag             ETags and If-Match
//!   change           what a write does to an entity; transaction: several at once
//!   policy           letters and times of stored access policies
//!   denial           why a request was refused
//! ```

pub mod change;
pub mod datetime;
pub mod denial;
pub mod entity;
pub mod etag;
pub mod filter;
pub mod json;
pub mod key;
pub mod locator;
pub mod name;
pub mod number;
pub mod policy;
pub mod query;
pub mod range;
pub mod token;
pub mod transaction;
pub mod value;

pub use change::{Effect, EntityChange, How};
pub use datetime::Ticks;
pub use denial::{TableDenial, TransactionDenial};
pub use entity::{EntityFields, Properties};
pub use etag::IfMatch;
pub use filter::Filter;
pub use key::EntityKey;
pub use name::TableName;
pub use query::{Select, Top};
pub use range::{Position, Range};
pub use value::{EdmType, Value, ValueRef};
