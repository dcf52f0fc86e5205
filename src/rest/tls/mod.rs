//! TLS: who the server says it is, and the handshake.
//!
//! ```text
//!   handshake   certificates and keys given by the user; shaking hands, with limits
//!   authority   certificates made on the spot, signed by an authority of one's own
//!   absent      in their place, where the feature `tls` is off: there is no value of `Tls`
//! ```
//!
//! Where keys are kept is the command line's.

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
