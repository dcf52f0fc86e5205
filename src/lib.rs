//! latchfs: a file share on your own machine that behaves like Azure Files.
//!
//! ```text
//!   local programs     SDKs, curl       scripts (play)     latchfs hold / handles / why
//!        | open(2)...      | HTTP           |                   | unix socket
//!   +----v-----+     +-----v----+     +-----v----+       +------v------+
//!   |  fuse/   |     |  rest/   |     |  play/   |       |  control/   |  front ends: translate,
//!   +----+-----+     +-----+----+     +-----+----+       +------+------+  nothing else
//!        +-----------------+----------------+-------------------+
//!                                  v
//!                           +-------------+      engine/: one method per operation;
//!                           |   engine/   |      the only shared mutable state
//!                           +--+-------+--+
//!                      +-------+       +-------+
//!                 +----v----+             +----v----+
//!                 |  core/  |             | store/  |     rules | bytes and metadata
//!                 +---------+             +---------+
//! ```
//!
//! Rules are pure, I/O is at the rim, all front ends go through one door. [`observe`] looks on.
//!
//! Start reading at [`core`].

pub mod cli;
pub mod client;
pub mod control;
pub mod core;
pub mod engine;
pub mod fuse;
pub mod observe;
pub mod play;
pub mod rest;
pub mod store;
pub mod sync;
