//! The mount: every program's `open(2)` takes part in the share-mode rules.
//!
//! Translates the kernel's requests into engine calls and refusals into errno; all fuser types
//! stay in here. Bytes go past us, by kernel passthrough, wherever the process may.
//!
//! ```text
//!   driver            the kernel's requests, handed on
//!   opens, dirs       opening and closing; names; attrs; data; locks; ioctl
//!   nodes             which name the kernel means by a number
//!   policy            which share mode an open gets that could not name one
//!   park, notify      what waits; what the kernel is told
//!   watch             what happens beside the mount and concerns it
//!   session           mounting and unmounting
//! ```

mod attr;
mod attrs;
mod data;
mod dirs;
mod driver;
mod errno;
mod ioctl;
mod locks;
mod names;
mod nodes;
mod notify;
mod opens;
mod park;
mod policy;
mod privileges;
mod session;
mod state;
mod watch;

pub use policy::ShareRule;
pub use session::{Mount, MountError};

use crate::core::ShareMode;

/// How a mount behaves.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct MountOptions {
    /// What an open tolerates that nothing else speaks for.
    pub default_share: ShareMode,
    /// Path rules, tried in order.
    pub rules: Vec<ShareRule>,
    /// Reads and writes ask the byte-range locks.
    pub mandatory_locks: bool,
    /// `flock` reads as a share mode.
    pub flock_as_share_mode: bool,
    /// Other users may enter; the kernel then checks permission bits.
    pub allow_other: bool,
    /// Nothing can be changed.
    pub read_only: bool,
    /// Let the kernel read and write the backing files itself where it can.
    pub passthrough: bool,
    /// Threads that read requests.
    pub workers: usize,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            default_share: ShareMode::RWD,
            rules: Vec::new(),
            mandatory_locks: false,
            flock_as_share_mode: false,
            allow_other: false,
            read_only: false,
            passthrough: true,
            workers: 2,
        }
    }
}
