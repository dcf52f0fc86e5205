//! HTTP, the same for every service: listening, limits, TLS, reading requests, writing answers.
//!
//! ```text
//!   server       accepting, serving and ending connections; workers: the threads for them
//!   limits       the bounds of the listener
//!   tls          handshakes; generated certificates
//!   request      reading headers and query; reply: writing the answer; sending: long ones
//!   policies     stored access policies as XML
//!   xml          bodies; checksum: MD5, CRC64; structured, unframed: bodies with CRC64 inside
//!   header_case  metadata names as they were written
//!   cors         what pages of other origins may do
//!   fetch        sources of copies on other servers; client: what commands ask with
//!   multipart    bodies of batches
//!   observer     reports of each answer, for metrics and the log
//! ```

pub mod blocking;
pub mod checksum;
pub mod client;
pub mod cors;
pub mod fetch;
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
pub mod workers;
pub mod xml;
