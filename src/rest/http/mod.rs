//! HTTP, the same for every service: listening, limits, TLS, reading requests, writing answers.
//!
//! ```text
//!   server       accepting, serving and ending connections; workers: the threads for them
//!   connections  places for connections, and which one makes room; descriptors: how many there are
//!   limits       the bounds of the listener; timeouts: clients that are too slow
//!   lingering    clients that are still sending when they are answered
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
pub mod connections;
pub mod cors;
pub mod descriptors;
pub mod fetch;
pub mod header_case;
pub mod limits;
pub mod lingering;
pub mod multipart;
pub mod observer;
pub mod policies;
pub mod reply;
pub mod request;
pub mod sending;
pub mod server;
pub mod structured;
pub mod timeouts;
pub mod tls;
pub mod unframed;
pub mod workers;
pub mod xml;
