//! The SMB listener of a server.
//!
//! A latchfs that was built without the feature `smb` has none.

#[cfg(not(feature = "smb"))]
mod absent;
#[cfg(feature = "smb")]
mod listen;

#[cfg(not(feature = "smb"))]
pub use absent::Smb;
#[cfg(feature = "smb")]
pub use listen::Smb;
