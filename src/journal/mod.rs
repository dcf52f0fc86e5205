//! The journal of a server: what was asked, what was refused and why, in the order it happened.
//!
//! One numbering for all accounts and services. The stream of events, `latchfs events`, the event
//! file and the refusals that `why` shows are reads of it.
//!
//! ```text
//!   ring      the rows that are kept, and how followers wait for the next one
//!   row       one row, and what it may tell of
//!   recent    the last changes of one object
//!   json      a row as clients read it
//!   programs  the names of programs behind process ids
//! ```

pub mod json;
pub mod programs;
pub(crate) mod recent;
pub mod ring;
pub mod row;

pub use recent::HISTORY_MAX;
pub use ring::{AccountJournal, Journal, Page, Reads};
pub use row::{Event, FileEvent, Happening, Row};
