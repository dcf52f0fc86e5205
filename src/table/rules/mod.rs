//! The rules of the Table service: names, keys, values, filters, conditions, transactions.
//!
//! Pure: no I/O, no clock. `table/service` asks and carries out; `table/rest` spells the answers.
//!
//! ```text
//!   name, key        legal table names and keys
//!   datetime, value  Edm types and their values; number: Double as text
//!   entity           properties of an entity, merging, limits
//!   filter           $filter: parsing, evaluation, the key ranges it can match
//!   range            intervals of keys
//!   query            $select and $top
//!   etag             ETags and If-Match
//!   change           what a write does to an entity; transaction: several at once
//!   policy           letters and times of stored access policies
//!   footprint        the resources of explorations
//!   denial           why a request was refused
//! ```

pub mod change;
pub mod datetime;
pub mod denial;
pub mod entity;
pub mod etag;
pub mod filter;
pub mod footprint;
pub mod key;
pub mod name;
pub mod number;
pub mod policy;
pub mod query;
pub mod range;
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
