//! HTTP, the same for every service: listening, limits, TLS, signatures, and the frame that routes
//! a request by the table of its service.
//!
//! ```text
//!   frame        one request from its first header to its answer
//!   auth         which requests are accepted: Shared Key, SAS, bearer
//!   server       accepting, serving and ending connections
//!   limits       the bounds of the listener
//!   tls          handshakes; generated certificates
//!   request      a request: address, query, headers, body
//!   reply        an answer before it is HTTP
//!   sending      the body of an answer that is read piece by piece
//!   checksum     MD5 and CRC64 of bodies
//!   structured   answers with CRC64 inside their body
//!   unframed     requests with CRC64 inside their body
//!   multipart    bodies of batches
//!   xml          XML, written and read
//!   policies     stored access policies as XML
//!   header_case  the case of metadata names on the wire
//!   cors         what pages of other origins may do, and may have a browser send
//!   fetch        sources of copies on other servers
//!   client       a client of the server's own endpoints, for commands
//!   observer     reports of each answer, for metrics and the log
//! ```

pub mod auth;
pub mod checksum;
pub mod client;
pub mod cors;
pub mod fetch;
pub mod frame;
pub mod header_case;
pub mod limits;
pub mod multipart;
pub mod observer;
pub mod policies;
pub mod reply;
pub mod request;
pub mod sending;
pub mod server;
pub mod structured;
pub mod tls;
pub mod unframed;
pub mod xml;

pub(crate) use frame::service::handler;
