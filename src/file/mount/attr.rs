//! A file's attributes as the kernel wants them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo};

use crate::file::service::{FileKind, Stat};
use crate::rules::Timestamp;

/// How long the kernel may answer from its cache. latchfs tells it of changes made by other front
/// ends.
pub const TTL: Duration = Duration::from_secs(1);

/// The lifetime of a name that may vanish when a handle closes.
pub const NO_TTL: Duration = Duration::ZERO;

/// The block size that `stat` shows: a page of the page cache.
const BLOCK: u32 = 4096;

/// The attributes of a node.
pub fn attr(node: u64, stat: &Stat) -> FileAttr {
    FileAttr {
        ino: INodeNo(node),
        size: stat.size,
        blocks: stat.allocated.div_ceil(512),
        atime: time(stat.accessed),
        mtime: time(stat.written),
        ctime: time(stat.changed),
        crtime: time(stat.created),
        kind: kind(stat),
        perm: u16::try_from(stat.mode & 0o7777).expect("twelve bits"),
        nlink: stat.links,
        uid: stat.uid,
        gid: stat.gid,
        rdev: u32::try_from(stat.rdev).unwrap_or(0),
        blksize: BLOCK,
        flags: 0,
    }
}

fn kind(stat: &Stat) -> FileType {
    match stat.kind {
        FileKind::File => FileType::RegularFile,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Special => match stat.mode & libc::S_IFMT {
            libc::S_IFIFO => FileType::NamedPipe,
            libc::S_IFCHR => FileType::CharDevice,
            libc::S_IFBLK => FileType::BlockDevice,
            _ => FileType::Socket,
        },
    }
}

/// The kind of a directory entry that was listed without attributes.
pub fn entry_kind(kind: FileKind) -> FileType {
    match kind {
        FileKind::File => FileType::RegularFile,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Special => FileType::NamedPipe,
    }
}

fn time(moment: Timestamp) -> SystemTime {
    let span = Duration::from_nanos(moment.0.unsigned_abs());
    if moment.0 < 0 { UNIX_EPOCH - span } else { UNIX_EPOCH + span }
}

/// The moment of a time that a request carries. fuser reads the kernel's -1 s + 0.3 s as 1.3 s
/// before the epoch: whole seconds count back from it, the rest forward.
pub fn timestamp(time: SystemTime) -> Timestamp {
    let nanos = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    Timestamp(match time.duration_since(UNIX_EPOCH) {
        Ok(after) => nanos(after),
        Err(before) => {
            let before = before.duration();
            let rest = i64::from(before.subsec_nanos());
            2 * rest - nanos(before)
        }
    })
}
