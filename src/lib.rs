//! latchfs: Azure Storage on your own machine, built for testing concurrency.
//!
//! ```text
//!  local programs   SDKs, az, azcopy, curl        scripts     commands        browsers, tests
//!       | open(2)        | HTTP                      |           | unix socket     | HTTP
//!  +----v----+  +--------v------------------+  +-----v----+  +---v------+  +-------v---------+
//!  |  fuse/  |  | rest/  http, auth         |  |  play/   |  | control/ <--+ admin/  page,   |
//!  |         |  |  file  blob  queue  table |  |          |  |          |  |  api, metrics   |
//!  +----+----+  +--------+------------------+  +-----+----+  +---+------+  +-----------------+
//!       +----------------+---------------------------+-----------+    front ends: translate
//!                        v
//!  +-----------------------------------------------+   one method per operation;
//!  | engine/  account { file  blob  queue  table } |   the only shared mutable state
//!  |          clock, controls, events, states      |
//!  +--------+--------------------------+-----------+
//!           v                          v
//!  +--------+----------------+  +------+-----------------------+
//!  | core/  rules, pure      |  | store/  bytes on disk        |
//!  |  conditions, lease, ... |  |  data_root, root, db, saved  |
//!  |  smb  blob  queue table |  |  share  blob  queue  table   |
//!  +-------------------------+  +------------------------------+
//! ```
//!
//! Rules are pure, I/O is at the edge, every front end goes through the engine. A service has a
//! folder of its own in each layer, and services never see each other.
//!
//! ```text
//!   core         the rules: what is granted, and what refuses it
//!   store        bytes and records on disk
//!   engine       the services of an account: one method per operation
//!   fuse         the mount: requests of the kernel
//!   rest         the services over HTTP
//!   play         scripts of opens, locks and deletes
//!   control      what is asked of a running server, and the socket that commands ask it on
//!   admin        the page, the HTTP API, metrics and health
//!   connections  bounds that all listeners share: connections, descriptors, slow clients
//!   server       a server as a whole: starts the parts and stops them
//!   cli          the command line
//!   testing      a server for tests of other programs, in their process
//!   client       share modes for programs that know latchfs
//!   sync         locks and threads: the standard ones, or those that tests schedule
//! ```
//!
//! To write a test, start at [`testing`]; to read the source, at [`core`].

pub mod api;
pub mod bench;
pub mod blob;
#[cfg(feature = "cli")]
pub mod cli;
pub mod client;
pub mod clock;
pub mod db;
pub mod disk;
pub mod file;
pub mod http;
pub mod journal;
mod net;
pub mod play;
pub mod queue;
pub mod rules;
pub mod server;
pub mod sync;
pub mod table;
pub mod testing;

pub use server::Server;
