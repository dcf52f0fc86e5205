//! The services of an account: one method per operation, for every front end.
//!
//! Holds the only shared mutable state. Rules are asked in `core/`, bytes are kept in `store/`.
//!
//! ```text
//!   account       an account and its services; all accounts of a server
//!   context       what every operation is told: time and caller
//!   bell          wakes a background thread of a service
//!   blocking      database work that an event loop must not wait for
//!   blob          the Blob service: containers, blobs, their states
//!   file          the File service: shares, opens, names, REST operations
//!   first_use     services that are opened when they are first used
//!   kept          values of rows in memory, which writes replace one by one
//!   queue         the Queue service: queues and messages
//!   clock         the time that rules are asked with
//!   controls      what tests control: the clock, gates, faults
//!   events        the log that observers follow
//!   non_blocking  the mode of callers on an event loop
//!   programs      the program behind a process id
//!   random        identities that nobody can guess
//!   recent        the latest changes of a service
//!   ring          a bounded ring of numbered events
//!   stream        the stream of events, all services in one order
//!   service_properties  CORS rules and the like, kept on disk
//!   states        the data of all accounts as a whole: saved, restored, reset
//!   sweeper       the background thread that removes what a service keeps no longer
//!   table         the Table service
//! ```

mod account;
mod bell;
pub mod blob;
mod blocking;
pub mod clock;
mod context;
pub mod controls;
pub mod events;
pub mod file;
mod first_use;
mod kept;
mod non_blocking;
pub mod programs;
pub mod queue;
mod random;
mod recent;
pub mod ring;
mod service_properties;
pub mod states;
pub mod stream;
mod sweeper;
pub mod table;

pub use account::{Account, AccountOptions, Accounts};
pub use clock::{ManualClock, SystemClock, TestClock, TimeSource};
pub use context::{Caller, Context};
pub use controls::Controls;
pub use events::EventLog;
pub use non_blocking::{rehearse, without_waiting};
pub use random::{new_guid, new_secret};
pub use recent::HISTORY_MAX;
pub use service_properties::{PropertyParts, ServiceProperties};
pub use states::{DamagedState, SavedState, StateError, States};

pub use crate::db::DbError;
