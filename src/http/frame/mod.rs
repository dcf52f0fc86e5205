//! The frame of every request: from its first header to the operation that it asks for, and from
//! the operation's answer or refusal to HTTP. What an operation does is its service's to decide.
//!
//! ```text
//!   handle              one request from its first header to its answer
//!   receive             the body of a request
//!   call                an authorised request, as an operation gets it
//!   service             a service as a table of operations
//!   routing             the shapes of requests, and the operation that each one asks for
//!   service_operations  operations that every service has: properties, preflight, statistics
//!   documented          the name of each operation in the services' documentation
//!   host                the accounts of the server, and the first use of a service
//!   site                state that all requests to one listener share
//!   address             account, container and path of a URL; which Host is served
//!   version             versions of the service
//!   source              URLs that requests name as sources of copies; all listeners of the server
//!   gates_and_faults    gates and faults, applied to a request
//!   footprint           what a request reads and writes, for explorations
//!   request_event       what the journal is told of a request
//!   facts               what the heads of request and answer say for the journal
//!   refusal             how an error is sent
//!   wording             the service's own message for each error code
//!   coverage            the tables of operations in docs/, written by tests
//! ```

pub(crate) mod address;
pub(crate) mod call;
#[cfg(test)]
pub(crate) mod coverage;
pub(crate) mod facts;
pub(crate) mod footprint;
pub(crate) mod gates_and_faults;
pub(crate) mod handle;
pub(crate) mod host;
pub(crate) mod receive;
pub(crate) mod refusal;
pub(crate) mod request_event;
pub(crate) mod routing;
pub(crate) mod service;
pub(crate) mod service_operations;
pub(crate) mod site;
pub(crate) mod source;
pub(crate) mod version;
pub(crate) mod wording;

pub use address::{Address, host_name, is_this_machine};
pub use footprint::of as footprint_of;
pub use host::{Host, HostedAccount, PropertyParts};
pub use refusal::{Code, ErrorNames, Refusal};
pub use service::{Operation, Service};
pub use source::{Siblings, asked_at};
