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
//!   backings          the files the kernel reads and writes itself
//!   watch             what happens beside the mount and concerns it
//!   outside           asking about the mount from a process of its own
//!   session           the life of a mount; attach: mounting and unmounting
//!   mounts            what is mounted where, and who uses it
//! ```

mod attach;
mod attr;
mod attrs;
mod backings;
mod data;
mod dirs;
mod driver;
mod errno;
mod ioctl;
mod locks;
pub mod mounts;
mod names;
mod nodes;
mod notify;
mod opens;
mod orphans;
mod outside;
mod park;
mod policy;
mod privileges;
mod session;
mod state;
mod unchecked;
mod watch;

pub use errno::name_of as errno_name;
pub use policy::ShareRule;
pub use session::{Mount, MountError, clear_dead, may_administer};

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::core::ShareMode;
use crate::engine::Space;

/// What becomes of an open file that is unlinked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UnlinkMode {
    /// It is delete pending and keeps its name until its last open closes.
    #[default]
    Nt,
    /// Its name is free at once.
    Posix,
}

/// Tells how much room the mounted share has; none where only the disk below knows.
#[derive(Clone)]
pub struct SpaceSource(Arc<dyn Fn() -> Option<Space> + Send + Sync>);

impl SpaceSource {
    /// Asks `source` each time.
    pub fn new(source: impl Fn() -> Option<Space> + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    fn ask(&self) -> Option<Space> {
        (self.0)()
    }
}

impl fmt::Debug for SpaceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SpaceSource")
    }
}

/// Is called once when a mount has ended, whoever ended it.
#[derive(Clone)]
pub struct OnEnd(Arc<dyn Fn() + Send + Sync>);

impl OnEnd {
    /// Calls `tell`, which must not wait for the mount.
    pub fn new(tell: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    fn tell(&self) {
        (self.0)();
    }
}

impl fmt::Debug for OnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnEnd")
    }
}

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
    /// For `statfs(2)`: the share's quota and use.
    pub space: Option<SpaceSource>,
    /// Threads that read requests.
    pub workers: usize,
    /// What becomes of an open file that is unlinked.
    pub unlink: UnlinkMode,
    /// Every file is shown as this user's.
    pub uid: Option<u32>,
    /// Every file is shown as this group's.
    pub gid: Option<u32>,
    /// Every file is shown with all permission bits but these.
    pub umask: Option<u32>,
    /// The server's control socket: shown in the mount's source, so that a path on the mount
    /// leads to it.
    pub control: Option<PathBuf>,
    /// Whom to tell of its end.
    pub on_end: Option<OnEnd>,
    /// For the benchmark: `open(2)` asks nobody and is not in the table.
    #[doc(hidden)]
    pub unchecked: bool,
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
            space: None,
            workers: 2,
            unlink: UnlinkMode::default(),
            uid: None,
            gid: None,
            umask: None,
            control: None,
            on_end: None,
            unchecked: false,
        }
    }
}
