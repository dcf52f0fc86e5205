//! latchfs: a file share on your own machine that behaves like Azure Files.
//!
//! ```text
//!   scripted clients (latchfs play)        local programs, SDKs: to come
//!            |
//!       +----v-----+
//!       |  play/   |                       front ends: translate, nothing else
//!       +----+-----+
//!            v
//!     +-------------+                      engine/: one method per operation;
//!     |   engine/   |                      the only shared mutable state
//!     +--+-------+--+
//!        |       |
//!   +----v-+  +--v-----+
//!   | core/ |  | store/ |                 rules | bytes and metadata
//!   +-------+  +--------+
//! ```
//!
//! Start reading at [`core`].

pub mod cli;
pub mod client;
pub mod control;
pub mod core;
pub mod engine;
pub mod fuse;
pub mod play;
pub mod store;
pub mod sync;
