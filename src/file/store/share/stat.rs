//! The attributes of a file: identity, kind, size, times.
//!
//! The only place where a file's identity is made: inode number and birth time, or the inode number
//! alone where the birth time is missing or is not the file's own.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, StatxTimestamp};

use super::listing::ListedName;
use crate::disk::error::{StoreError, doing};
use crate::rules::{FileId, Timestamp};

/// The kind of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum FileKind {
    File,
    Directory,
    /// A symbolic link, not followed.
    Symlink,
    /// A socket, FIFO or device.
    Special,
}

/// The file system's answer about one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    pub id: FileId,
    /// File, directory, link or special file.
    pub kind: FileKind,
    pub size: u64,
    /// Bytes of disk in use.
    pub allocated: u64,
    pub links: u32,
    /// Type and permission bits, as `st_mode`.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Device number of a special file.
    pub rdev: u64,
    /// Birth time; the change time where the file system keeps none.
    pub created: Timestamp,
    pub accessed: Timestamp,
    /// Last change of the bytes.
    pub written: Timestamp,
    /// Last change of anything: bytes, size, name count, attributes.
    pub changed: Timestamp,
}

/// How reliably the birth times of a file system tell files apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Births {
    /// A file keeps its birth time, and a new file of the same inode number has another one.
    Kept,
    /// The file system has none.
    Missing,
    /// overlayfs: a file gets another birth time when it is first opened for writing, since it
    /// is copied to the upper layer then. Its inode number stays.
    MovedByCopyUp,
}

/// The magic number that `statfs(2)` gives for overlayfs.
const OVERLAYFS_MAGIC: i64 = 0x794c_7630;

/// Devices whose birth times do not identify a file.
static COPY_UP: RwLock<Option<HashSet<(u32, u32)>>> = RwLock::new(None);
/// True once there is such a device: on other machines no [`Stat`] pays for the question.
static ANY_COPY_UP: AtomicBool = AtomicBool::new(false);

impl Births {
    /// Looks at the file system of the open directory `dir`, and has every later [`Stat`] of that
    /// device make identities accordingly. To be called before a directory is served.
    #[expect(clippy::useless_conversion, reason = "the type of the magic number differs by target")]
    pub fn learn(dir: impl AsFd) -> Result<Self, StoreError> {
        let raw = rustix::fs::statx(&dir, "", AtFlags::EMPTY_PATH, WANTED)
            .map_err(doing("reading attributes"))?;
        let system = rustix::fs::fstatfs(&dir).map_err(doing("asking for the file system"))?;
        let copies_up = i64::from(system.f_type) == OVERLAYFS_MAGIC;
        let mut devices = COPY_UP.write().unwrap_or_else(PoisonError::into_inner);
        let devices = devices.get_or_insert_default();
        if copies_up {
            devices.insert(device(&raw));
            ANY_COPY_UP.store(true, Ordering::Release);
            return Ok(Self::MovedByCopyUp);
        }
        // The number may have been an overlay's before.
        devices.remove(&device(&raw));
        let kept = raw.stx_mask & StatxFlags::BTIME.bits() != 0;
        Ok(if kept { Self::Kept } else { Self::Missing })
    }
}

fn device(raw: &Statx) -> (u32, u32) {
    (raw.stx_dev_major, raw.stx_dev_minor)
}

/// True if the birth time of a file on that device moves at its first opening for writing.
fn moves_by_copy_up(raw: &Statx) -> bool {
    ANY_COPY_UP.load(Ordering::Acquire) && {
        let devices = COPY_UP.read().unwrap_or_else(PoisonError::into_inner);
        devices.as_ref().is_some_and(|devices| devices.contains(&device(raw)))
    }
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
    pub fn at(dir: impl AsFd, name: impl rustix::path::Arg) -> Result<Self, StoreError> {
        rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, WANTED)
            .map(|raw| Self::from_statx(&raw))
            .map_err(doing("reading attributes"))
    }

    /// Of an entry that may be listed and not looked at: only its kind and number are known.
    pub fn unknown(entry: &ListedName) -> Self {
        let kind = match entry.kind {
            FileKind::File => FileType::RegularFile,
            FileKind::Directory => FileType::Directory,
            FileKind::Symlink => FileType::Symlink,
            FileKind::Special => FileType::Fifo,
        };
        let never = Timestamp(0);
        Self {
            id: FileId { ino: entry.ino, born: 0 },
            kind: entry.kind,
            size: 0,
            allocated: 0,
            links: 1,
            mode: kind.as_raw_mode(),
            uid: 0,
            gid: 0,
            rdev: 0,
            created: never,
            accessed: never,
            written: never,
            changed: never,
        }
    }

    fn from_statx(raw: &Statx) -> Self {
        let changed = timestamp(raw.stx_ctime);
        let born = (raw.stx_mask & StatxFlags::BTIME.bits() != 0).then(|| timestamp(raw.stx_btime));
        Self {
            id: FileId {
                ino: raw.stx_ino,
                born: born.filter(|_| !moves_by_copy_up(raw)).map_or(0, |time| time.0),
            },
            kind: match FileType::from_raw_mode(raw.stx_mode.into()) {
                FileType::RegularFile => FileKind::File,
                FileType::Directory => FileKind::Directory,
                FileType::Symlink => FileKind::Symlink,
                _ => FileKind::Special,
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
