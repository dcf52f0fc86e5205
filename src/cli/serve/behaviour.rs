//! The options of `serve` and `mount` for the behaviour of mounts; and those of `serve` that say
//! how copies and the Blob service behave where the real service takes its time or has a setting of
//! the account.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::file::mount::{MountOptions, ShareRule, UnlinkMode};
use crate::file::rules::ShareMode;
use crate::file::service::{Case, ShareOptions};
use crate::server::ServerOptions;

/// How mounts behave
#[derive(Debug, Args)]
#[command(next_help_heading = "Mounts")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Behaviour {
    /// Default share mode of opens: letters r, w, d, or none
    #[arg(long, value_name = "MODE", default_value = "rwd", env = "LATCHFS_DEFAULT_SHARE")]
    #[arg(value_parser = share_mode)]
    pub default_share: ShareMode,

    /// Share mode for matching files: '*.xlsx=r'
    #[arg(long = "share-rule", value_name = "GLOB=MODE", env = "LATCHFS_SHARE_RULES")]
    #[arg(value_delimiter = ',', value_parser = share_rule)]
    pub rules: Vec<ShareRule>,

    /// What happens to an open file that is unlinked
    #[arg(long, value_enum, default_value_t = Unlink::Nt, env = "LATCHFS_UNLINK")]
    #[arg(hide_short_help = true)]
    pub unlink: Unlink,

    /// Byte-range locks refuse reads and writes, not only other locks
    #[arg(long, env = "LATCHFS_MANDATORY_LOCKS", hide_short_help = true)]
    pub mandatory_locks: bool,

    /// Treat flock as a share mode: exclusive as none, shared as rwd
    #[arg(long, env = "LATCHFS_FLOCK_AS_SHARE_MODE", hide_short_help = true)]
    pub flock_as_share_mode: bool,

    /// Names that differ only in case are different names
    #[arg(long, env = "LATCHFS_CASE_SENSITIVE", hide_short_help = true)]
    pub case_sensitive: bool,

    /// Turn kernel passthrough off: slower, but every read and write goes through latchfs
    #[arg(long, env = "LATCHFS_NO_PASSTHROUGH", hide_short_help = true)]
    pub no_passthrough: bool,

    /// Let other users use the mounts
    #[arg(long, env = "LATCHFS_ALLOW_OTHER", hide_short_help = true)]
    pub allow_other: bool,

    /// Allow no changes through the mounts
    #[arg(long, env = "LATCHFS_READ_ONLY", hide_short_help = true)]
    pub read_only: bool,

    /// Show every file as owned by this user
    #[arg(long, value_name = "N", env = "LATCHFS_UID", hide_short_help = true)]
    pub uid: Option<u32>,

    /// Show every file as owned by this group
    #[arg(long, value_name = "N", env = "LATCHFS_GID", hide_short_help = true)]
    pub gid: Option<u32>,

    /// Show every file with mode 777 less these bits (octal), whatever its own mode is; 0 with
    /// --allow-other lets other users write
    #[arg(long, value_name = "OCT", value_parser = umask, env = "LATCHFS_UMASK")]
    #[arg(hide_short_help = true)]
    pub umask: Option<u32>,

    /// When writes over HTTP reach the disk
    #[arg(long, value_enum, default_value_t = SyncChoice::Normal, env = "LATCHFS_SYNC")]
    #[arg(hide_short_help = true, help_heading = "Data")]
    pub sync: SyncChoice,

    /// Threads that serve each mount
    ///
    /// A thread that waits for the disk serves nobody else meanwhile.
    #[arg(long, value_name = "N", default_value_t = 8, env = "LATCHFS_WORKERS")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64), hide_short_help = true)]
    pub workers: u16,
}

/// The treatment of an open file that is unlinked.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Unlink {
    /// The file is delete pending and keeps its name until its last handle closes
    Nt,
    /// The name is free at once
    Posix,
}

/// When writes over HTTP reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SyncChoice {
    /// Acknowledged writes survive the end of the server, not always that of the machine
    Normal,
    /// Each write is on the disk before it is acknowledged
    Always,
}

impl Behaviour {
    /// The options of every mount.
    pub fn mount_options(&self) -> MountOptions {
        MountOptions {
            default_share: self.default_share,
            rules: self.rules.clone(),
            mandatory_locks: self.mandatory_locks,
            flock_as_share_mode: self.flock_as_share_mode,
            allow_other: self.allow_other,
            read_only: self.read_only,
            passthrough: !self.no_passthrough,
            workers: self.workers.into(),
            unlink: match self.unlink {
                Unlink::Nt => UnlinkMode::Nt,
                Unlink::Posix => UnlinkMode::Posix,
            },
            uid: self.uid,
            gid: self.gid,
            umask: self.umask,
            ..MountOptions::default()
        }
    }

    /// For the shares behind them.
    pub fn share_options(&self) -> ShareOptions {
        let case = if self.case_sensitive { Case::Sensitive } else { Case::Insensitive };
        let sync_always = self.sync == SyncChoice::Always;
        ShareOptions { case, sync_always, ..ShareOptions::default() }
    }
}

fn share_mode(text: &str) -> Result<ShareMode, String> {
    ShareMode::parse(text).ok_or_else(|| "expected letters r, w, d, or none".into())
}

fn share_rule(text: &str) -> Result<ShareRule, String> {
    ShareRule::parse(text)
        .ok_or_else(|| "expected a pattern and a share mode, as in *.xlsx=r".into())
}

fn umask(text: &str) -> Result<u32, String> {
    let bits = u32::from_str_radix(text, 8).ok().filter(|bits| *bits <= 0o777);
    bits.ok_or_else(|| "expected octal permission bits, as in 022".into())
}

/// The longest delay: a day.
const DELAY_MAX: u64 = 86_400;

/// How blobs behave
#[derive(Debug, Args)]
#[command(next_help_heading = "Behaviour")]
pub struct Blobs {
    /// Keep a version of a blob whenever it is overwritten or deleted
    #[arg(long, env = "LATCHFS_BLOB_VERSIONING", hide_short_help = true)]
    pub blob_versioning: bool,

    /// Seconds that copies of blobs and files stay pending, so that they can be aborted
    #[arg(long, value_name = "SECONDS", default_value_t = 0, env = "LATCHFS_COPY_DELAY")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=DELAY_MAX), hide_short_help = true)]
    pub copy_delay: u64,

    /// Seconds until changed policies and public access of a container take effect
    #[arg(long, value_name = "SECONDS", default_value_t = 0, env = "LATCHFS_ACL_DELAY")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=DELAY_MAX), hide_short_help = true)]
    pub acl_delay: u64,
}

impl Blobs {
    pub fn apply(&self, options: &mut ServerOptions) {
        let copy_delay = Duration::from_secs(self.copy_delay);
        options.listen.copy_delay = copy_delay;
        options.blob.copy_delay = copy_delay;
        options.blob.acl_delay = Duration::from_secs(self.acl_delay);
        options.blob.versioning = self.blob_versioning;
    }
}
