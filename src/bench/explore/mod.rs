//! Explorations: a test is run under every order of its clients' requests that matters, and the
//! order that fails is made short and written down.
//!
//! ```text
//!   token        choices, and a row of them as text
//!   search       which order is run next
//!   shrink       a failing order made short
//!   plan         the runs of an exploration, one after the other
//!   live         where the clients of a run are, and when they are ready for the next step
//!   quiet        whether a process waits for somebody else
//!   stage        where their requests wait for their turn
//! ```
//!
//! Knows no service: a request comes as a name, an object and a footprint.

mod live;
mod plan;
mod quiet;
mod search;
mod shrink;
mod stage;
mod token;

#[cfg(test)]
mod tests;

pub use crate::rules::footprint::{Footprint, Resource, Time};
pub use live::{LiveClient, RunStage, Stance};
pub use plan::{Done, Failure, Halt, Phase, Plan, PlanOptions, Step, Verdict};
pub use quiet::Watched;
pub use stage::{Entry, Patience, Shown, Stage, StageError, Staged};
pub use token::{BadToken, Choice, Token};
