//! What the calls of the API mean: a module for each subject, with the types of its requests and
//! answers.
//!
//! ```text
//!   session      one request: its account, its shares, who asks
//!   serving      what the server offers, as this module sees it
//!   socket       where the control socket is, who may enter
//!   rows         parts of answers
//!   refusal      what a refusal is called here
//!   report       opens as people are told of them: program names, process ids
//!   looks        status, handles, why
//!   holds        opens that a client keeps
//!   held         locks, pending files, leases and hidden messages, one by one
//!   address      blob:CONTAINER/NAME and its like
//!   objects      blobs, queues, messages and entities as people are told of them
//!   object_lease  one lease, shown or broken
//!   controls     the clock, gates and faults; request_path: which requests those mean
//!   states       the state of the server as a whole
//!   account      shares as a whole, their leases and snapshots
//!   events       which rows of the journal a request is given
//! ```

pub mod account;
pub mod address;
pub mod controls;
pub mod events;
pub mod held;
pub mod holds;
pub mod looks;
pub mod object_lease;
pub mod objects;
mod refusal;
pub(super) mod report;
mod request_path;
pub mod rows;
mod serving;
pub mod session;
pub(super) mod socket;
pub mod states;

pub use holds::LOCKS_MAX;
pub use refusal::RefusalKind;
pub use report::HANDLES_MAX;
pub use serving::{About, KnownOperation, MountedAt, ServedAccount, Serving};
pub use socket::{SOCKET_NAME, SocketError, is_served};
