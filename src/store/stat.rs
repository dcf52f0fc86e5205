//! What the file system says of a file: identity, kind, size, times.
//!
//! The one place where a file's identity is made (inode number and birth time); everything else
//! takes [`FileId`] as it comes.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, StatxTimestamp};

use super::error::{StoreError, doing};
use crate::core::{FileId, Timestamp};

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, not followed.
    Symlink,
    /// A socket, FIFO or device.
    Special,
}

/// The file system's answer about one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    /// Identity; survives renames.
    pub id: FileId,
    /// What it is.
    pub kind: Kind,
    /// Length in bytes.
    pub size: u64,
    /// Bytes of disk in use.
    pub allocated: u64,
    /// Number of names.
    pub links: u32,
    /// Type and permission bits, as `st_mode`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number of a special file.
    pub rdev: u64,
    /// Birth time; the change time where the file system keeps none.
    pub created: Timestamp,
    /// Last read.
    pub accessed: Timestamp,
    /// Last change of the bytes.
    pub written: Timestamp,
    /// Last change of anything: bytes, size, name count, attributes.
    pub changed: Timestamp,
}

const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

impl Stat {
    /// Of an open descriptor (an `O_PATH` one will do).
    pub fn of(fd: impl AsFd) -> Result<Self, StoreError> {
        rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, WANTED)
            .map(|raw| Self::from_statx(&raw))
            .map_err(doing("reading attributes"))
    }

    /// Of the entry `name` of an open directory, not following a link.
    pub fn at(dir: impl AsFd, name: &str) -> Result<Self, StoreError> {
        rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, WANTED)
            .map(|raw| Self::from_statx(&raw))
            .map_err(doing("reading attributes"))
    }

    fn from_statx(raw: &Statx) -> Self {
        let changed = timestamp(raw.stx_ctime);
        let born = (raw.stx_mask & StatxFlags::BTIME.bits() != 0).then(|| timestamp(raw.stx_btime));
        Self {
            id: FileId { ino: raw.stx_ino, born: born.map_or(0, |time| time.0) },
            kind: match FileType::from_raw_mode(raw.stx_mode.into()) {
                FileType::RegularFile => Kind::File,
                FileType::Directory => Kind::Directory,
                FileType::Symlink => Kind::Symlink,
                _ => Kind::Special,
            },
            size: raw.stx_size,
            allocated: raw.stx_blocks * 512,
            links: raw.stx_nlink,
            mode: raw.stx_mode.into(),
            uid: raw.stx_uid,
            gid: raw.stx_gid,
            rdev: rustix::fs::makedev(raw.stx_rdev_major, raw.stx_rdev_minor),
            created: born.unwrap_or(changed),
            accessed: timestamp(raw.stx_atime),
            written: timestamp(raw.stx_mtime),
            changed,
        }
    }
}

fn timestamp(raw: StatxTimestamp) -> Timestamp {
    Timestamp(raw.tv_sec.saturating_mul(1_000_000_000).saturating_add(raw.tv_nsec.into()))
}
