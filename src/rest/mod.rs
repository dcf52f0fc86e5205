//! FileREST over HTTP: requests to engine calls, answers back. Nothing is decided about files
//! here but how things are spelled.
//!
//! ```text
//!   server       listening, connections, an end to both; workers: the threads for them
//!   limits       the bounds of all that; stall: clients that do not keep up
//!   tls          handshakes; certificates made on the spot
//!   handle       one request from its first header to its answer
//!   authorise    who is let through; signed, auth: by signature
//!   address      account, share and path of a URL; which Host is served
//!   route        the operation a request asks for
//!   source       URLs that requests name; fetch: those on other servers
//!   request      reading headers and query; reply, download: writing the answer
//!   headers      property headers both ways; xml: bodies; checksum: MD5, CRC64
//!   structured   downloads with CRC64
//!   spelling     metadata names as they were written
//!   cors         what pages of other origins may do
//!   observer     what is told of each answer, to those who count and to the log
//!   error        from cause to status and code; refusal: how that is sent
//!   file         the operations of the File service
//! ```
//!
//! Sources: FILEREST, LOCKING section 8.

mod address;
pub mod auth;
mod authorise;
mod checksum;
mod cors;
#[cfg(test)]
mod coverage;
mod download;
mod error;
mod fetch;
mod file;
mod handle;
mod headers;
mod limits;
mod observer;
mod refusal;
mod reply;
mod request;
mod route;
mod server;
mod signed;
mod source;
mod spelling;
mod stall;
mod structured;
pub mod tls;
mod workers;
mod xml;

pub use address::{Address, host_name, is_this_machine};
pub use authorise::{Authorise, Loose};
pub use fetch::{CopySources, SOURCE_WAIT};
pub use limits::{BODY_MAX, CONNECTIONS_MAX, Limits};
pub use observer::Observer;
pub use refusal::{Code, ErrorNames, Refusal};
pub use request::{Query, Request};
pub use route::Operation;
pub use server::{RestOptions, Server};
pub use signed::Signed;
