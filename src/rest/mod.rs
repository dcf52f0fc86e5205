//! The services over HTTP: requests to engine calls, answers back. Decides how things are
//! spelled; what is granted is decided by the engine.
//!
//! ```text
//!   http         listening, limits, TLS, requests, answers: the same for every service
//!   auth         which requests are accepted: Shared Key, SAS, bearer
//!   handle       one request from its first header to its answer; receive: its body; call: what an
//!                operation gets
//!   service      a service as a table of operations; routing: the shapes of requests
//!   service_operations  operations that every service has: properties, preflight
//!   opening      the first use of a service
//!   site         what all requests to one listener share
//!   address      account, container and path of a URL; which Host is served
//!   version      versions of the service
//!   told         what the stream of events is told of a request
//!   source       URLs that requests name as sources of copies; siblings: the server's listeners
//!   refusal      how an error is sent; wording: the service's sentence for each code
//!   common_errors  causes that every service has
//!   file         the operations of the File service
//!   blob         the operations of the Blob service
//!   queue        the operations of the Queue service
//!   table        the operations of the Table service
//! ```

mod address;
#[doc(hidden)]
pub mod any_input;
pub mod auth;
mod blob;
mod call;
mod common_errors;
mod conflicts;
#[cfg(test)]
mod coverage;
mod documented;
mod fate;
mod file;
mod handle;
mod http;
mod opening;
mod queue;
mod receive;
mod refusal;
mod routing;
mod service;
mod service_operations;
mod siblings;
mod site;
mod source;
mod table;
mod told;
mod version;
mod wording;

pub use address::{Address, host_name, is_this_machine};
pub use auth::Admission;
pub use blob::operations::SERVICE_TABLE as BLOB;
pub use documented::name_of as documented_name;
pub use file::operations::SERVICE_TABLE as FILE;
pub use http::client::{Client, Got};
pub use http::fetch::{CopySources, SOURCE_WAIT};
pub use http::limits::{BODY_MAX, CONNECTIONS_MAX, Limits};
pub use http::observer::Observer;
pub use http::request::{Query, Request};
pub use http::server::{RestOptions, Server};
pub use http::tls;
pub use http::xml::Element;
pub use queue::operations::SERVICE_TABLE as QUEUE;
pub use refusal::{Code, ErrorNames, Refusal};
pub use service::{Operation, Service};
pub use siblings::Siblings;
pub use table::operations::SERVICE_TABLE as TABLE;
