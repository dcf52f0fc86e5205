//! The journal of a server: what was asked, what was refused and why, in the order it happened.
//!
//! ```text
//!   events    refusals and what became of opens, with their causes
//!   stream    every request and change, for followers
//!   ring      the last entries, with numbers that never repeat
//!   recent    the last changes of one object
//!   programs  the names of programs behind process ids
//! ```

pub mod events;
pub mod programs;
pub(crate) mod recent;
pub mod ring;
pub mod stream;

pub use events::EventLog;
pub use recent::HISTORY_MAX;
