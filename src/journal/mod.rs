//! The journal of a server: what was asked, what was refused and why, in the order it happened.
//!
//! One numbering for all accounts and services. The stream of events, `latchfs events`, the event
//! file, `history` and `why` are reads of it.
//!
//! ```text
//!   ring      the rows that are kept, and how followers wait for the next one
//!   row       one row, and what it may tell of
//!   history   the latest changes of a service
//!   json      a row as clients read it
//!   programs  the names of programs behind process ids
//!   peers     the processes behind connections from this machine
//! ```

pub mod history;
pub mod json;
pub mod peers;
pub mod programs;
pub mod ring;
pub mod row;

pub use history::History;
pub use ring::{AccountJournal, Journal, Page, Reads};
pub use row::{Change, Event, FileEvent, Happening, Row};

pub use crate::rules::given::{self, ChangedObject, Given, GivenMessage, ListedObject};
