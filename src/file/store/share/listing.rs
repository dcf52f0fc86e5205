//! Reading a directory once, from end to end.
//!
//! Decides what counts as an entry: everything with a UTF-8 name. Order, pages and keeping the
//! result are left to [`super::name_cache`].

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;

use super::stat::{FileKind, Stat};
use crate::disk::error::{StoreError, doing};

const BUFFER_BYTES: usize = 64 * 1024;

/// One entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedName {
    /// Its name as on disk.
    pub name: String,
    /// File, directory, link or special file.
    pub kind: FileKind,
    pub ino: u64,
}

/// All entries of a directory, in the order of the disk.
#[derive(Debug, Default)]
pub(crate) struct DirectoryEntries {
    pub(crate) listed: Vec<ListedName>,
    /// How many more have names that are no UTF-8: neither face can name those.
    pub(crate) unnameable: usize,
}

/// Reads the directory behind `dir`, from its start; an `O_PATH` descriptor will do. Nobody else
/// may read through the descriptor meanwhile.
pub(crate) fn read_dir(dir: impl AsFd) -> Result<DirectoryEntries, StoreError> {
    let mut entries = DirectoryEntries::default();
    let mut unknown = Vec::new();
    let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
    // A descriptor that can read is used itself: permission bits may let nobody open it again.
    let opened = match rustix::fs::seek(&dir, SeekFrom::Start(0)) {
        Err(Errno::BADF) => Some(readable(&dir)?),
        answer => answer.map(|_| None).map_err(doing("reading a directory"))?,
    };
    let from = opened.as_ref().map_or_else(|| dir.as_fd(), AsFd::as_fd);
    let mut reader = RawDir::new(from, &mut buffer);
    while let Some(entry) = reader.next() {
        let entry = entry.map_err(doing("reading a directory"))?;
        match entry.file_name().to_str() {
            Ok("." | "..") => {}
            Ok(name) => {
                let kind = kind(entry.file_type());
                if kind.is_none() {
                    unknown.push(entries.listed.len());
                }
                entries.listed.push(ListedName {
                    name: name.to_owned(),
                    kind: kind.unwrap_or(FileKind::Special),
                    ino: entry.ino(),
                });
            }
            Err(_) => entries.unnameable += 1,
        }
    }
    // Some file systems do not say what an entry is. Backwards, so that taking one out leaves the
    // earlier indices right.
    for index in unknown.into_iter().rev() {
        match Stat::at(&dir, &entries.listed[index].name) {
            Ok(stat) => entries.listed[index].kind = stat.kind,
            Err(StoreError::NotFound) => {
                entries.listed.swap_remove(index);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(entries)
}

/// True if the directory has no entry at all, nameable or not.
pub(crate) fn is_empty(dir: impl AsFd) -> Result<bool, StoreError> {
    let mut buffer = [MaybeUninit::uninit(); 1024];
    let mut reader = RawDir::new(readable(dir)?, &mut buffer);
    while let Some(entry) = reader.next() {
        let entry = entry.map_err(doing("reading a directory"))?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Opens the directory again, for reading.
fn readable(dir: impl AsFd) -> Result<OwnedFd, StoreError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, ".", flags, Mode::empty()).map_err(doing("opening a directory"))
}

fn kind(file_type: FileType) -> Option<FileKind> {
    Some(match file_type {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::Unknown => return None,
        _ => FileKind::Special,
    })
}
