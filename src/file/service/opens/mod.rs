//! Handles: who has a file open, and what is done through a handle.
//!
//! ```text
//!   table        files in use, each with its lock and the requests that wait for a range
//!   open         opening and closing; posix: what the mount adds
//!   io           reading and writing through a handle
//!   locks        byte-range locks
//!   force_close  closing other clients' handles
//!   handles       List Handles
//! ```

pub(crate) mod force_close;
pub(crate) mod handles;
pub(crate) mod io;
pub(crate) mod locks;
pub(crate) mod open;
pub(crate) mod posix;
pub(crate) mod table;

pub use force_close::{ClosedHandle, ForceClosed, WhichHandles};
pub use handles::{Described, HandlePage, ListedHandle};
pub use io::{BasicTimes, HandleInfo, IO_MAX, Standard};
pub use open::{Handle, OpenedFile};
pub use posix::{Creation, PosixOpen};
