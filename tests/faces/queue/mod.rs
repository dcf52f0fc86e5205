//! The Queue service over HTTP: each numbered behaviour is a test, `q1_` to `q44_`.
//!
//! ```text
//!   fixture      a server in this process, with a clock that is turned by hand
//!   messages     put, get, peek, update, delete, clear
//!   texts        what a message's text and a request's document may be
//!   queues       create, list, metadata, policies; crowd: many clients at once
//!   access       shared access signatures, stored policies
//!   service      properties, statistics, CORS, versions
//!   restart      what is there after a restart
//!   numbers      that every number has its test; page: what docs/queue.md says
//! ```

mod access;
mod crowd;
pub mod fixture;
mod messages;
mod numbers;
mod page;
mod queues;
mod restart;
mod service;
mod texts;
