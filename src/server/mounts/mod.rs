//! The mounts of a server: made at the start, ended one by one or all together.
//!
//! A latchfs that was built without the feature `fuse` has none.

#[cfg(not(feature = "fuse"))]
mod absent;
#[cfg(feature = "fuse")]
mod fuse;

#[cfg(not(feature = "fuse"))]
pub use absent::Mounts;
#[cfg(feature = "fuse")]
pub use fuse::Mounts;
