//! TLS: certificates of the server, and the handshake.
//!
//! ```text
//!   handshake   certificates and keys of the user; handshakes with limits
//!   authority   generated certificates, signed by a local authority
//!   absent      replaces both where the feature `tls` is off: `Tls` has no values
//! ```
//!
//! Where keys are stored is decided in `server/`.

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod authority;
#[cfg(feature = "tls")]
mod handshake;

#[cfg(not(feature = "tls"))]
pub use absent::Tls;
#[cfg(feature = "tls")]
pub use authority::Authority;
#[cfg(feature = "tls")]
pub use handshake::{HANDSHAKE_WAIT, Tls, TlsError};
