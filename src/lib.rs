//! latchfs: Azure Storage on your own machine, built for testing concurrency.
//!
//! ```text
//!   local programs    SDKs, az, azcopy, curl       scripts (play)    latchfs hold / why / ...
//!        | open(2)         | HTTP                       |                  | unix socket
//!   +----v----+  +---------v-----------------+     +----v----+       +-----v----+
//!   |  fuse/  |  | rest/  http auth | file   |     |  play/  |       | control/ |  front ends:
//!   +----+----+  +---------+-----------------+     +----+----+       +-----+----+  translate
//!        +-----------------+----------------------------+------------------+
//!                          v
//!        +-----------------------------------------+     one method per operation;
//!        | engine/  account { file }               |     the only shared mutable state
//!        |          clock, context, events         |
//!        +---------+-----------------------+-------+
//!                  v                       v
//!        +---------+----------+   +--------+-------------+
//!        | core/  rules, pure |   | store/  bytes on disk|
//!        | conditions  lease  |   | share   db           |
//!        | smb                |   | data_root            |
//!        +--------------------+   +----------------------+
//! ```
//!
//! Rules are pure, I/O is at the edge, every front end goes through the engine. A service has a
//! folder of its own in each layer, and services never see each other. [`admin`] counts and
//! reports; `connections` are those of all listeners; [`server`] puts the parts together; [`testing`] is a server for tests of other
//! programs.
//!
//! Start reading at [`core`].

pub mod admin;
#[cfg(feature = "cli")]
pub mod cli;
pub mod client;
mod connections;
pub mod control;
pub mod core;
pub mod engine;
#[cfg(feature = "fuse")]
pub mod fuse;
pub mod play;
pub mod rest;
pub mod server;
pub mod store;
pub mod sync;
pub mod testing;

pub use server::Server;
