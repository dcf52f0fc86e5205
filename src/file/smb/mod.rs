//! The SMB face of the File service: SMB 2.0.2 to 3.1.1 over TCP. Decides the bytes that clients
//! send and receive; every grant and refusal comes from [`super::service`].
//!
//! ```text
//!   wire      messages from bytes and to bytes, no I/O, nothing of the service
//!   auth      SPNEGO and NTLMv2, keys, signatures, encryption
//!   status    the NTSTATUS numbers; times: FILETIME; names: paths and wildcards
//! ```

pub mod auth;
pub mod names;
pub mod status;
pub mod times;
pub mod wire;
