//! The services over HTTP: requests to engine calls, answers back. Decides how things are
//! spelled; what is granted is decided by the engine.
//!
//! ```text
//!   http                listening, limits, TLS, requests, answers: the same for every service
//!   auth                which requests are accepted: Shared Key, SAS, bearer
//!   cross_site          requests of foreign web pages
//!   handle              one request from its first header to its answer
//!   receive             the body of a request
//!   call                an authorised request, as an operation gets it
//!   service             a service as a table of operations
//!   routing             the shapes of requests, and the operation that each one asks for
//!   service_operations  operations that every service has: properties, preflight, statistics
//!   documented          the name of each operation in the services' documentation
//!   opening             the first use of a service
//!   site                state that all requests to one listener share
//!   address             account, container and path of a URL; which Host is served
//!   version             versions of the service
//!   source              URLs that requests name as sources of copies
//!   siblings            the other listeners of the server
//!   gates_and_faults    gates and faults, applied to a request
//!   request_event       the entry of a request in the stream of events
//!   conflicts           refusals of the Blob, Queue and Table services in the log of events
//!   refusal             how an error is sent
//!   wording             the service's own message for each error code
//!   common_errors       causes that every service has
//!   file                the operations of the File service
//!   blob                the operations of the Blob service
//!   queue               the operations of the Queue service
//!   table               the operations of the Table service
//!   coverage            the pages docs/SERVICE-coverage.md, written by a test
//!   any_input           entry points for fuzzers
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
mod cross_site;
mod documented;
mod file;
mod gates_and_faults;
mod handle;
mod http;
mod opening;
mod queue;
mod receive;
mod refusal;
mod request_event;
mod routing;
mod service;
mod service_operations;
mod siblings;
mod site;
mod source;
mod table;
mod version;
mod wording;

pub use address::{Address, host_name, is_this_machine};
pub use auth::Admission;
pub use blob::operations::SERVICE_TABLE as BLOB;
pub use documented::name_of as documented_name;
pub use file::operations::SERVICE_TABLE as FILE;
pub use http::client::{Got, HttpClient};
pub use http::fetch::{CopySources, SOURCE_WAIT};
pub use http::limits::{BODY_MAX, CONNECTIONS_MAX, Limits};
pub use http::observer::Observer;
pub use http::request::{Query, Request};
pub use http::server::{RestOptions, RestServer};
pub use http::tls;
pub use http::xml::Element;
pub use queue::operations::SERVICE_TABLE as QUEUE;
pub use refusal::{Code, ErrorNames, Refusal};
pub use service::{Operation, Service};
pub use siblings::{Siblings, asked_at};
pub use table::operations::SERVICE_TABLE as TABLE;
