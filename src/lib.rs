//! latchfs: Azure Storage on your own machine, built for testing concurrency.
//!
//! ```text
//!  SMB clients   local programs   SDKs, az, azcopy, curl     commands, page, fixtures
//!       |             | open(2)          | HTTP                  | unix socket, HTTP
//!  +----v-------------v------------------v--------------+  +----v--------------------+
//!  | file/                  | blob/    | queue/ | table/ |  | api/  routes, page,     |
//!  |   smb/  mount/  rest/  |   rest/  |  rest/ |  rest/ |  |       metrics, health   |
//!  |   service/             |   service/   in each       |  +----+--------------------+
//!  |   rules/  store/       |   rules/  store/  in each  |       |
//!  +----------------------------------------------------+       |
//!  | bench/    clock, gates, faults, saved states,      |       |
//!  |           explorations, the report                 <-------+
//!  | journal/  who asked what, who was in the way       |
//!  | http/  listener, signatures, frame                 |
//!  | db/  disk/  net/  clock  sync/                     |
//!  | rules/    conditions, lease, etag, metadata, time  |
//!  +----------------------------------------------------+
//!    server/ puts one together; cli/ starts it, and asks api/
//! ```
//!
//! A service is a folder. Its `rules` are pure, its `store` keeps the bytes, its `service` has one
//! method for each operation and the only shared mutable state, and a folder for each face
//! translates: `rest`, and for File `mount` and `smb`. Services never see each other.
//!
//! ```text
//!   file         the File service
//!   blob         the Blob service
//!   queue        the Queue service
//!   table        the Table service
//!   rules        rules and values that services share
//!   clock        the time that rules are asked with
//!   sync         locks and threads: the standard ones, or those that tests schedule
//!   disk         the data directory, and files that are replaced as a whole
//!   db           SQLite, and what services with rows share
//!   net          bounds that all listeners share: connections, descriptors, slow clients
//!   journal      what was asked, what was refused and why
//!   bench        clock, gates, faults, saved states, explorations, the report
//!   http         HTTP, the same for every service
//!   api          the control surface: the socket of the commands, HTTP API, page, metrics
//!   server       a server as a whole: accounts, listeners, mounts
//!   cli          the command line
//!   testing      a server for tests of other programs, in their process
//!   client       share modes for programs that know latchfs
//! ```
//!
//! To write a test, start at [`testing`]; to read the source, at [`rules`] and one service.

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
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
#[path = "../fuzz/entry.rs"]
pub mod fuzzing;
pub mod http;
pub mod journal;
mod net;
pub mod queue;
pub mod rules;
pub mod server;
pub mod sync;
pub mod table;
pub mod testing;

pub use server::Server;
