//! The mount: every program's `open(2)` takes part in the share-mode rules.
//!
//! Translates the kernel's requests into engine calls and refusals into errno; all fuser types
//! stay in here. Where the process has the privilege, the kernel reads and writes the backing files
//! itself (passthrough).
//!
//! ```text
//!   driver            the kernel's requests, passed to the modules below
//!   opens             opening, creating, flushing and releasing files
//!   nameless          opening files that have lost their name
//!   names             lookup, making, removing, renaming, linking
//!   dirs              opening, reading and closing directories
//!   attrs             stat, chmod, chown, times, size, extended attributes
//!   attr              a file's attributes in the form of the kernel
//!   data              reads, writes, allocation and copies that the kernel sends to latchfs
//!   locks             fcntl locks and flock
//!   ioctl             share mode, delete mark and handle of a program's own open
//!   privileges        set-id bits and file capabilities, removed before a write
//!   errno             the errno of each refusal
//!   state             the state of one mount: its share, nodes and open files
//!   open_files        the table of open files and directories
//!   nodes             node ids: which name and file the kernel means by a number
//!   backings          the files that the kernel reads and writes itself
//!   policy            the share mode of opens whose program does not name one
//!   gates_and_faults  gates and faults, applied to calls on the mount
//!   park              requests that wait for another program
//!   pool              threads for calls that take long by their kind
//!   aside             a thread that may wait on the mount itself
//!   notify            notices to the kernel's caches
//!   watch             forced closes and changes made by other front ends
//!   cut               has the kernel drop what is open through a node
//!   retries           opens of missing files, which the kernel repeats once
//!   session           the life of a mount
//!   attach      mounting and unmounting a FUSE device, also in the place of a dead mount
//!   mounts            the table of mounts, and the processes that use one
//! ```

mod aside;
mod attach;
mod attr;
mod attrs;
mod backings;
mod cut;
mod data;
mod dirs;
mod driver;
mod errno;
mod gates_and_faults;
mod ioctl;
mod locks;
pub mod mounts;
mod nameless;
mod names;
mod nodes;
mod notify;
mod open_files;
mod opens;
mod park;
mod policy;
mod pool;
mod privileges;
mod retries;
mod session;
mod state;
mod watch;

pub use attach::clear_dead;
pub use errno::name_of as errno_name;
pub use gates_and_faults::{MountCall, MountControls};
pub use policy::ShareRule;
pub use session::{Mount, MountError, is_bounded_root, may_administer};

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::file::rules::ShareMode;
use crate::file::service::{FileSystemSpace, NameRules};

/// How an open file is unlinked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UnlinkMode {
    /// It is delete pending and keeps its name until its last open closes.
    #[default]
    Nt,
    /// Its name is free at once.
    Posix,
}

impl From<UnlinkMode> for NameRules {
    fn from(mode: UnlinkMode) -> Self {
        match mode {
            UnlinkMode::Nt => Self::Nt,
            UnlinkMode::Posix => Self::Posix,
        }
    }
}

/// Returns the size and use of the share for `statfs(2)`; `None` to show those of the disk.
pub type SpaceSource = Arc<dyn Fn() -> Option<FileSystemSpace> + Send + Sync>;

/// A callback that is called once when the mount has ended, for whatever reason. It must not wait
/// for the mount.
pub type OnEnd = Arc<dyn Fn() + Send + Sync>;

/// The number of workers of a mount. On two cores an open and its close take half the time that
/// they take with one worker.
pub const WORKERS: usize = 8;

/// How a mount behaves.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct MountOptions {
    /// The share mode of opens that no rule and no policy names another for.
    pub default_share: ShareMode,
    /// Path rules, tried in order.
    pub rules: Vec<ShareRule>,
    /// Byte-range locks refuse reads and writes.
    pub mandatory_locks: bool,
    /// `flock` sets the share mode.
    pub flock_as_share_mode: bool,
    /// Other users may enter; the kernel then checks permission bits.
    pub allow_other: bool,
    /// The mount is read-only.
    pub read_only: bool,
    /// Let the kernel read and write the backing files itself where it can.
    pub passthrough: bool,
    /// For `statfs(2)`: the share's quota and use.
    pub space: Option<SpaceSource>,
    /// Threads that serve requests. Each may wait for the disk, and for locks of files and names.
    pub workers: usize,
    /// How an open file is unlinked.
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
    /// The account of the share, shown in the mount's source as well; none for the server's first.
    pub account: Option<String>,
    /// Called when the mount has ended.
    pub on_end: Option<OnEnd>,
    /// The gates and faults that calls on the mount meet.
    pub controls: Option<MountControls>,
}

impl fmt::Debug for MountOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MountOptions").finish_non_exhaustive()
    }
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
            workers: WORKERS,
            unlink: UnlinkMode::default(),
            uid: None,
            gid: None,
            umask: None,
            control: None,
            account: None,
            on_end: None,
            controls: None,
        }
    }
}
