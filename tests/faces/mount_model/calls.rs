//! One call, and doing it below a directory with descriptors of its own.
//!
//! What a call says is put in words, so that two worlds can be compared: nothing that must differ
//! (numbers of files, times that the system chose, sizes of directories) is in them.

use std::fmt::Debug;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FallocateFlags, FileType, Mode, OFlags, RenameFlags, SeekFrom, Stat,
    Timespec, Timestamps, XattrFlags,
};
use rustix::io::{Errno, Result};

/// How many descriptors a world has.
pub const SLOTS: usize = 6;

/// A name, from the top or from the directory that is open in a slot.
#[derive(Clone, Debug)]
pub struct Place {
    pub from: Option<usize>,
    pub path: String,
}

/// What a call about a file names it by.
#[derive(Clone, Debug)]
pub enum Which {
    Name(String),
    Link(String),
    Open(usize),
}

#[derive(Clone, Debug)]
pub enum Call {
    Open { slot: usize, at: Place, flags: OFlags, mode: u32 },
    Close { slot: usize },
    Duplicate { slot: usize, to: usize },
    Read { slot: usize, length: usize },
    ReadAt { slot: usize, length: usize, offset: u64 },
    Write { slot: usize, byte: u8, length: usize },
    WriteAt { slot: usize, byte: u8, length: usize, offset: u64 },
    Seek { slot: usize, to: SeekFrom },
    SeekHole { slot: usize, to: SeekFrom },
    Resize { slot: usize, size: u64 },
    Allocate { slot: usize, flags: FallocateFlags, offset: u64, length: u64 },
    Copy { slot: usize, to: usize, offset: u64, length: usize },
    Sync { slot: usize },
    List { slot: usize },
    ListAt { at: Place },
    Unlink { at: Place },
    RemoveDir { at: Place },
    MakeDir { at: Place, mode: u32 },
    MakeFile { at: Place, mode: u32 },
    Rename { from: Place, to: Place, flags: RenameFlags },
    Link { from: Place, to: Place, follow: bool },
    LinkOpen { slot: usize, to: Place },
    Symlink { target: String, at: Place },
    ReadLink { at: Place },
    Stat { at: Place, follow: bool },
    StatOpen { slot: usize },
    SetMode { file: Which, mode: u32 },
    SetTime { file: Which, seconds: i64 },
    SetXattr { file: Which, name: &'static str, value: Vec<u8>, flags: XattrFlags },
    GetXattr { file: Which, name: &'static str },
    RemoveXattr { file: Which, name: &'static str },
    ListXattr { file: Which },
}

/// What a call said, or its errno.
pub type Answer = Result<String>;

/// A directory and what is open below it.
pub struct World {
    top: PathBuf,
    root: OwnedFd,
    slots: [Option<OwnedFd>; SLOTS],
}

fn words(value: impl Debug) -> String {
    format!("{value:?}")
}

fn done(result: Result<()>) -> Answer {
    result.map(|()| String::new())
}

impl World {
    pub fn below(top: &Path) -> Self {
        let root = rustix::fs::open(top, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        Self { top: top.to_owned(), root, slots: Default::default() }
    }

    fn slot(&self, slot: usize) -> Result<BorrowedFd<'_>> {
        self.slots[slot].as_ref().map(AsFd::as_fd).ok_or(Errno::BADF)
    }

    fn dir(&self, at: &Place) -> Result<BorrowedFd<'_>> {
        at.from.map_or(Ok(self.root.as_fd()), |slot| self.slot(slot))
    }

    fn keep(&mut self, slot: usize, fd: OwnedFd) {
        self.slots[slot] = Some(fd);
    }

    pub fn call(&mut self, call: &Call) -> Answer {
        match call {
            Call::Open { slot, at, flags, mode } => {
                let mode = Mode::from_raw_mode(*mode);
                let fd = rustix::fs::openat(self.dir(at)?, &at.path, *flags, mode)?;
                self.keep(*slot, fd);
                Ok(String::new())
            }
            Call::Close { slot } => Ok(words(self.slots[*slot].take().is_some())),
            Call::Duplicate { slot, to } => {
                let fd = rustix::io::dup(self.slot(*slot)?)?;
                self.keep(*to, fd);
                Ok(String::new())
            }
            Call::Unlink { .. }
            | Call::RemoveDir { .. }
            | Call::MakeDir { .. }
            | Call::MakeFile { .. }
            | Call::Rename { .. }
            | Call::Link { .. }
            | Call::LinkOpen { .. }
            | Call::Symlink { .. }
            | Call::ReadLink { .. }
            | Call::ListAt { .. }
            | Call::Stat { .. } => self.names(call),
            Call::StatOpen { .. }
            | Call::SetMode { .. }
            | Call::SetTime { .. }
            | Call::SetXattr { .. }
            | Call::GetXattr { .. }
            | Call::RemoveXattr { .. }
            | Call::ListXattr { .. } => self.attributes(call),
            _ => self.bytes(call),
        }
    }

    fn bytes(&self, call: &Call) -> Answer {
        match call {
            Call::Read { slot, length } => {
                let mut bytes = vec![0; *length];
                let count = rustix::io::read(self.slot(*slot)?, &mut bytes[..])?;
                Ok(runs(&bytes[..count]))
            }
            Call::ReadAt { slot, length, offset } => {
                let mut bytes = vec![0; *length];
                let count = rustix::io::pread(self.slot(*slot)?, &mut bytes[..], *offset)?;
                Ok(runs(&bytes[..count]))
            }
            Call::Write { slot, byte, length } => {
                rustix::io::write(self.slot(*slot)?, &vec![*byte; *length]).map(words)
            }
            Call::WriteAt { slot, byte, length, offset } => {
                let bytes = vec![*byte; *length];
                rustix::io::pwrite(self.slot(*slot)?, &bytes, *offset).map(words)
            }
            // A directory's offsets are its file system's own.
            Call::Seek { slot, to } => {
                let directory = kind(&rustix::fs::fstat(self.slot(*slot)?)?) == "directory";
                let at = if directory { SeekFrom::Start(0) } else { *to };
                rustix::fs::seek(self.slot(*slot)?, at).map(words)
            }
            // Where holes are is the file system's business; what may be asked is not.
            Call::SeekHole { slot, to } => {
                let stat = rustix::fs::fstat(self.slot(*slot)?)?;
                if kind(&stat) == "directory" {
                    return Ok(String::new());
                }
                let sought = rustix::fs::seek(self.slot(*slot)?, *to).map(drop);
                rustix::fs::seek(self.slot(*slot)?, SeekFrom::Start(0))?;
                done(sought)
            }
            Call::Resize { slot, size } => done(rustix::fs::ftruncate(self.slot(*slot)?, *size)),
            Call::Allocate { slot, flags, offset, length } => {
                done(rustix::fs::fallocate(self.slot(*slot)?, *flags, *offset, *length))
            }
            Call::Copy { slot, to, offset, length } => {
                let (from, to, mut at) = (self.slot(*slot)?, self.slot(*to)?, *offset);
                rustix::fs::copy_file_range(from, Some(&mut at), to, None, *length).map(words)
            }
            Call::Sync { slot } => done(rustix::fs::fsync(self.slot(*slot)?)),
            Call::List { slot } => list(self.slot(*slot)?),
            _ => unreachable!("the other calls are elsewhere"),
        }
    }

    fn names(&self, call: &Call) -> Answer {
        match call {
            Call::Unlink { at } => {
                done(rustix::fs::unlinkat(self.dir(at)?, &at.path, AtFlags::empty()))
            }
            Call::RemoveDir { at } => {
                done(rustix::fs::unlinkat(self.dir(at)?, &at.path, AtFlags::REMOVEDIR))
            }
            Call::MakeDir { at, mode } => {
                done(rustix::fs::mkdirat(self.dir(at)?, &at.path, Mode::from_raw_mode(*mode)))
            }
            Call::MakeFile { at, mode } => {
                let mode = Mode::from_raw_mode(*mode);
                done(rustix::fs::mknodat(self.dir(at)?, &at.path, FileType::RegularFile, mode, 0))
            }
            Call::Rename { from, to, flags } => {
                let (old, new) = (self.dir(from)?, self.dir(to)?);
                done(rustix::fs::renameat_with(old, &from.path, new, &to.path, *flags))
            }
            Call::Link { from, to, follow } => {
                let flags = if *follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
                let (old, new) = (self.dir(from)?, self.dir(to)?);
                done(rustix::fs::linkat(old, &from.path, new, &to.path, flags))
            }
            Call::LinkOpen { slot, to } => {
                // The kernel counts the links of each name of a file apart, and refuses where it
                // believes that there is none left: it is made to look.
                rustix::fs::fstat(self.slot(*slot)?)?;
                let file = format!("/proc/self/fd/{}", self.slot(*slot)?.as_raw_fd());
                let flags = AtFlags::SYMLINK_FOLLOW;
                done(rustix::fs::linkat(CWD, file, self.dir(to)?, &to.path, flags))
            }
            Call::Symlink { target, at } => {
                done(rustix::fs::symlinkat(target, self.dir(at)?, &at.path))
            }
            Call::ReadLink { at } => {
                rustix::fs::readlinkat(self.dir(at)?, &at.path, Vec::new()).map(words)
            }
            Call::ListAt { at } => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                list(rustix::fs::openat(self.dir(at)?, &at.path, flags, Mode::empty())?.as_fd())
            }
            Call::Stat { at, follow } => {
                let flags = if *follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
                rustix::fs::statat(self.dir(at)?, &at.path, flags).map(|stat| shown(&stat))
            }
            _ => unreachable!("the other calls are elsewhere"),
        }
    }

    fn attributes(&self, call: &Call) -> Answer {
        match call {
            Call::StatOpen { slot } => rustix::fs::fstat(self.slot(*slot)?).map(|s| shown(&s)),
            Call::SetMode { file, mode } => self.set_mode(file, Mode::from_raw_mode(*mode)),
            Call::SetTime { file, seconds } => self.set_time(file, *seconds),
            Call::SetXattr { file, name, value, flags } => done(match file {
                Which::Name(path) => rustix::fs::setxattr(self.path(path), *name, value, *flags),
                Which::Link(path) => rustix::fs::lsetxattr(self.path(path), *name, value, *flags),
                Which::Open(slot) => rustix::fs::fsetxattr(self.slot(*slot)?, *name, value, *flags),
            }),
            Call::GetXattr { file, name } => {
                let mut value = [0; 64];
                let length = match file {
                    Which::Name(path) => {
                        rustix::fs::getxattr(self.path(path), *name, &mut value[..])
                    }
                    Which::Link(path) => {
                        rustix::fs::lgetxattr(self.path(path), *name, &mut value[..])
                    }
                    Which::Open(slot) => {
                        rustix::fs::fgetxattr(self.slot(*slot)?, *name, &mut value[..])
                    }
                }?;
                Ok(words(&value[..length]))
            }
            Call::RemoveXattr { file, name } => done(match file {
                Which::Name(path) => rustix::fs::removexattr(self.path(path), *name),
                Which::Link(path) => rustix::fs::lremovexattr(self.path(path), *name),
                Which::Open(slot) => rustix::fs::fremovexattr(self.slot(*slot)?, *name),
            }),
            Call::ListXattr { file } => {
                let mut names = vec![0_u8; 256];
                let length = match file {
                    Which::Name(path) => rustix::fs::listxattr(self.path(path), &mut names[..]),
                    Which::Link(path) => rustix::fs::llistxattr(self.path(path), &mut names[..]),
                    Which::Open(slot) => rustix::fs::flistxattr(self.slot(*slot)?, &mut names[..]),
                }?;
                let mut names: Vec<&[u8]> = names[..length].split(|byte| *byte == 0).collect();
                names.sort_unstable();
                Ok(words(names))
            }
            _ => unreachable!("the other calls are elsewhere"),
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    fn set_mode(&self, file: &Which, mode: Mode) -> Answer {
        done(match file {
            Which::Name(path) | Which::Link(path) => {
                rustix::fs::chmodat(&self.root, path, mode, AtFlags::empty())
            }
            Which::Open(slot) => rustix::fs::fchmod(self.slot(*slot)?, mode),
        })
    }

    /// Says the time that is shown then.
    fn set_time(&self, file: &Which, seconds: i64) -> Answer {
        let time = Timespec { tv_sec: seconds, tv_nsec: 500 };
        let times = Timestamps { last_access: time, last_modification: time };
        let stat = match file {
            Which::Open(slot) => {
                rustix::fs::futimens(self.slot(*slot)?, &times)?;
                rustix::fs::fstat(self.slot(*slot)?)?
            }
            Which::Name(path) | Which::Link(path) => {
                let follow = matches!(file, Which::Name(_));
                let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
                rustix::fs::utimensat(&self.root, path, &times, flags)?;
                rustix::fs::statat(&self.root, path, flags)?
            }
        };
        Ok(words((stat.st_mtime, stat.st_mtime_nsec)))
    }
}

/// What of a file must be the same.
fn shown(stat: &Stat) -> String {
    let kind = kind(stat);
    let mode = stat.st_mode & 0o7777;
    // Both are the file system's own for a directory.
    let (size, links) = if kind == "directory" { (0, 0) } else { (stat.st_size, stat.st_nlink) };
    format!("{kind} {mode:o}, {size} bytes, {links} links")
}

fn kind(stat: &Stat) -> &'static str {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "link",
        _ => "special",
    }
}

/// Bytes, short: each run of one byte with its length.
pub fn runs(bytes: &[u8]) -> String {
    let of_run = |run: &[u8]| format!("{}x{:02x}", run.len(), run[0]);
    bytes.chunk_by(|one, other| one == other).map(of_run).collect::<Vec<_>>().join(" ")
}

/// The entries of an open directory from its start.
fn list(dir: BorrowedFd<'_>) -> Answer {
    rustix::fs::seek(dir, SeekFrom::Start(0))?;
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        names.push(format!("{} {:?}", entry.file_name().to_string_lossy(), entry.file_type()));
    }
    names.sort_unstable();
    Ok(names.join(", "))
}
