//! How mounts behave, as the user says it: the options that `serve` and `mount` share.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};

use crate::core::ShareMode;
use crate::engine::{Case, ShareOptions};
use crate::fuse::{MountOptions, ShareRule, UnlinkMode};

/// How mounts behave
#[derive(Debug, Args)]
#[command(next_help_heading = "Mounts")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Behaviour {
    /// What opens tolerate by default: letters r, w, d, or none
    #[arg(long, value_name = "MODE", default_value = "rwd", env = "LATCHFS_DEFAULT_SHARE")]
    #[arg(value_parser = share_mode)]
    pub default_share: ShareMode,

    /// Likewise for some files: '*.xlsx=r'
    #[arg(long = "share-rule", value_name = "GLOB=MODE", env = "LATCHFS_SHARE_RULES")]
    #[arg(value_delimiter = ',', value_parser = share_rule)]
    pub rules: Vec<ShareRule>,

    /// What becomes of an open file that is unlinked
    #[arg(long, value_enum, default_value_t = Unlink::Nt, env = "LATCHFS_UNLINK")]
    #[arg(hide_short_help = true)]
    pub unlink: Unlink,

    /// Byte-range locks stop reads and writes, not only other locks
    #[arg(long, env = "LATCHFS_MANDATORY_LOCKS", value_parser = BoolishValueParser::new())]
    #[arg(hide_short_help = true)]
    pub mandatory_locks: bool,

    /// flock counts as a share mode: exclusive as none, shared as all
    #[arg(long, env = "LATCHFS_FLOCK_AS_SHARE_MODE", value_parser = BoolishValueParser::new())]
    #[arg(hide_short_help = true)]
    pub flock_as_share_mode: bool,

    /// Names that differ by case alone are different names
    #[arg(long, env = "LATCHFS_CASE_SENSITIVE", value_parser = BoolishValueParser::new())]
    #[arg(hide_short_help = true)]
    pub case_sensitive: bool,

    /// Other users may enter the mounts
    #[arg(long, env = "LATCHFS_ALLOW_OTHER", value_parser = BoolishValueParser::new())]
    #[arg(hide_short_help = true)]
    pub allow_other: bool,

    /// Nothing can be changed through the mounts
    #[arg(long, env = "LATCHFS_READ_ONLY", value_parser = BoolishValueParser::new())]
    #[arg(hide_short_help = true)]
    pub read_only: bool,

    /// Show every file as this user's
    #[arg(long, value_name = "N", env = "LATCHFS_UID", hide_short_help = true)]
    pub uid: Option<u32>,

    /// Show every file as this group's
    #[arg(long, value_name = "N", env = "LATCHFS_GID", hide_short_help = true)]
    pub gid: Option<u32>,

    /// Permission bits to show no file with, in octal
    #[arg(long, value_name = "OCT", value_parser = umask, env = "LATCHFS_UMASK")]
    #[arg(hide_short_help = true)]
    pub umask: Option<u32>,

    /// Threads that serve each mount
    #[arg(long, value_name = "N", default_value_t = 2, env = "LATCHFS_WORKERS")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64), hide_short_help = true)]
    pub workers: u16,
}

/// What becomes of an open file that is unlinked.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Unlink {
    /// It is delete pending and keeps its name until its last open closes
    Nt,
    /// Its name is free at once
    Posix,
}

impl Behaviour {
    /// For a mount of the server with that control socket.
    pub fn mount_options(&self, control: PathBuf) -> MountOptions {
        MountOptions {
            default_share: self.default_share,
            rules: self.rules.clone(),
            mandatory_locks: self.mandatory_locks,
            flock_as_share_mode: self.flock_as_share_mode,
            allow_other: self.allow_other,
            read_only: self.read_only,
            workers: self.workers.into(),
            unlink: match self.unlink {
                Unlink::Nt => UnlinkMode::Nt,
                Unlink::Posix => UnlinkMode::Posix,
            },
            uid: self.uid,
            gid: self.gid,
            umask: self.umask,
            control: Some(control),
            ..MountOptions::default()
        }
    }

    /// For the shares behind them.
    pub fn share_options(&self) -> ShareOptions {
        let case = if self.case_sensitive { Case::Sensitive } else { Case::Insensitive };
        ShareOptions { case, ..ShareOptions::default() }
    }
}

fn share_mode(text: &str) -> Result<ShareMode, String> {
    ShareMode::parse(text).ok_or_else(|| "letters r, w, d, or none".into())
}

fn share_rule(text: &str) -> Result<ShareRule, String> {
    ShareRule::parse(text).ok_or_else(|| "a pattern and a share mode, as in *.xlsx=r".into())
}

fn umask(text: &str) -> Result<u32, String> {
    let bits = u32::from_str_radix(text, 8).ok().filter(|bits| *bits <= 0o777);
    bits.ok_or_else(|| "octal permission bits, as in 022".into())
}
