//! The SMB face of the File service: SMB 2.0.2 to 3.1.1 over TCP. Decides the bytes that clients
//! send and receive; every grant and refusal comes from [`super::service`].
//!
//! ```text
//!   server, connection   the listener; one connection, its frames and its bounds
//!   chain, logon, tree   requests of a frame; who logs on; the shares of a session
//!   operations           the commands, each one call of the service
//!   request_row          the row of a request in the journal
//!   footprint            what a request reads and writes, for explorations
//!   wire      messages from bytes and to bytes, no I/O, nothing of the service
//!   auth      SPNEGO and NTLMv2, keys, signatures, encryption
//!   status    the NTSTATUS numbers; times: FILETIME; names: paths and wildcards
//! ```

pub mod auth;
mod chain;
mod connection;
mod credits;
mod footprint;
mod gates_and_faults;
mod logon;
pub mod names;
mod operations;
mod pending;
mod request_row;
mod server;
mod session;
pub mod status;
pub mod times;
mod tree;
pub mod wire;

pub use gates_and_faults::call_names;
pub use server::{Password, SmbAccounts, SmbOptions, SmbServer, SmbTally};
