//! Reading a snapshot: its names, files and records. Nothing can be changed through it, and no
//! rule of opens, locks or leases applies.
//!
//! Decides how records too large for an extended attribute come along: they are sidecars in the
//! state folder under the file's identity, which a copy does not share. Each snapshot has a
//! folder of its own for them, under the identities of its copies, filled when it is taken.
//!
//! Not the same in a snapshot as in the share: a file's identity and hence its `ETag`, since a
//! copy is another inode. A file that is moved while the snapshot is taken may lose a large
//! record there, and symbolic links have none.

use std::fs;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use super::super::error::{FileError, Result};
use super::super::opens::io::IO_MAX;
use super::super::requests::links::symbolic_link_in;
use super::super::requests::momentary::check_kind;
use super::super::requests::{FileProperties, SmbProperties};
use super::super::share::Share;
use crate::disk::StoreError;
use crate::file::rules::{Denial, SharePath};
use crate::file::store::share::difference::ChangedRange;
use crate::file::store::share::pages::{Accounted, changed_pages, data_pages};
use crate::file::store::share::snapshot::origin;
use crate::file::store::share::{
    Case, FileKind, FoundFile, ListedName, OpenFor, RangeAccount, Record, Records, ShareDir, Stat,
    data,
};
use crate::rules::lease::FileLease;
use crate::rules::{FileId, Timestamp};

/// Entries of a directory looked at in one step.
const WALK_PAGE: usize = 1_000;

/// A snapshot, open for reading.
#[derive(Debug)]
pub struct SnapshotView {
    dir: ShareDir,
    records: Records,
    taken: Timestamp,
}

/// A file of a snapshot, open for reading, with the account of its pages.
pub struct EarlierFile {
    fd: OwnedFd,
    /// Kind, identity, size and times of the copy.
    pub stat: Stat,
    /// The file of the share that it is a copy of, where that is known.
    origin: Option<FileId>,
    account: Option<RangeAccount>,
}

impl EarlierFile {
    /// True if it may be the copy of that file. Where copies do not tell, births decide: a file
    /// that is younger than the copy under its name was made anew.
    pub(crate) fn may_be_of(&self, file: FileId) -> bool {
        match self.origin {
            Some(origin) => origin == file,
            None => file.born <= self.stat.id.born,
        }
    }

    /// The file with its account.
    pub(crate) fn accounted(&self) -> Accounted<'_> {
        Accounted { fd: self.fd.as_fd(), account: self.account.as_ref() }
    }
}

impl SnapshotView {
    pub(super) fn open(
        tree: &Path,
        records: &Path,
        case: Case,
        taken: Timestamp,
    ) -> std::result::Result<Self, StoreError> {
        Ok(Self { dir: ShareDir::open(tree, case)?, records: Records::new(records)?, taken })
    }

    /// The file or directory that a path in any spelling led to.
    pub fn lookup(&self, path: &SharePath) -> Result<FoundFile> {
        Ok(self.dir.lookup(path)?)
    }

    /// A page of a directory, in the order of folded names: those that begin with `prefix`,
    /// spelled in any case, and follow `after`.
    pub fn list(
        &self,
        dir: &SharePath,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ListedName>> {
        let dir = self.dir.lookup(dir)?;
        Ok(self.dir.list_prefix(&dir.path, prefix, after, limit)?)
    }

    /// The properties of a file, or of a directory.
    pub fn properties(&self, path: &SharePath, directory: bool) -> Result<FileProperties> {
        let found = self.file(path)?;
        check_kind(found.stat.kind, directory)?;
        Ok(found)
    }

    /// The properties of whatever has that name.
    pub fn file(&self, path: &SharePath) -> Result<FileProperties> {
        let FoundFile { path, stat } = self.dir.lookup(path)?;
        let fd = self.dir.open_file(&path, OpenFor::Path)?;
        let record = match self.records.load(&fd, stat.id) {
            Err(StoreError::Damaged { what, why }) => {
                log::warn!("{}: {what} is damaged: {why}", self.dir.root_path().display());
                Record::default()
            }
            loaded => loaded?,
        };
        let parent = match path.parent() {
            Some(parent) => self.dir.stat(&parent)?.id,
            None => FileId::default(),
        };
        Ok(FileProperties { path, stat, record, parent, lease: FileLease::default() })
    }

    /// A symbolic link and its text; none if the name is not that of a symbolic link.
    pub fn link(&self, path: &SharePath) -> Result<Option<(SmbProperties, String)>> {
        Ok(symbolic_link_in(&self.dir, path)?)
    }

    /// A file to copy from, and what is known of it.
    pub(crate) fn open_to_copy(&self, path: &SharePath) -> Result<(OwnedFd, FileProperties)> {
        Ok((self.open_file(path)?, self.file(path)?))
    }

    /// Up to `length` bytes of a file; fewer at its end.
    pub fn read(&self, path: &SharePath, offset: u64, length: usize) -> Result<Vec<u8>> {
        let fd = self.open_file(path)?;
        let mut bytes = vec![0; length.min(IO_MAX)];
        let got = data::read_at(&fd, &mut bytes, offset)?;
        if got == 0 && length > 0 {
            return Err(Denial::EndOfFile.into());
        }
        bytes.truncate(got);
        Ok(bytes)
    }

    /// The parts of a file within `window` that hold data.
    pub fn data_ranges(&self, path: &SharePath, window: Range<u64>) -> Result<Vec<Range<u64>>> {
        let file = self.open_accounted(path)?;
        Ok(data_pages(file.accounted(), window)?)
    }

    /// The parts of `window` that differ from the older snapshot `since`, at most `most` of them. A
    /// file that was made anew in between is compared like any other: its copies do not show that.
    pub fn changes_since(
        &self,
        since: &Self,
        path: &SharePath,
        window: Range<u64>,
        most: usize,
    ) -> Result<Vec<ChangedRange>> {
        let (new, old) = (self.open_accounted(path)?, since.earlier(path)?);
        let old = old.as_ref().map(EarlierFile::accounted);
        Ok(changed_pages(new.accounted(), old, window, since.taken(), most)?)
    }

    /// When it was taken, by the engine's clock.
    pub(crate) fn taken(&self) -> Timestamp {
        self.taken
    }

    fn open_accounted(&self, path: &SharePath) -> Result<EarlierFile> {
        let fd = self.open_file(path)?;
        let FileProperties { stat, record, .. } = self.file(path)?;
        let origin = origin::of(&fd);
        Ok(EarlierFile { fd, stat, origin, account: record.ranges })
    }

    /// The copy of a file, under whichever name it has here; none where copies do not tell.
    pub(crate) fn copy_of(&self, file: FileId) -> Result<Option<EarlierFile>> {
        let mut found = None;
        walk(&self.dir, |path, kind| {
            let copy = match kind {
                FileKind::File => self.dir.open_file(path, OpenFor::Read)?,
                _ => return Ok(Walk::On),
            };
            if origin::of(&copy) != Some(file) {
                return Ok(Walk::On);
            }
            found = Some(path.clone());
            Ok(Walk::End)
        })?;
        found.map(|path| self.open_accounted(&path)).transpose()
    }

    /// The file of that path, if it was there.
    pub(crate) fn earlier(&self, path: &SharePath) -> Result<Option<EarlierFile>> {
        match self.open_accounted(path) {
            Ok(file) => Ok(Some(file)),
            Err(FileError::Denied(
                Denial::NotFound | Denial::PathNotFound | Denial::IsDirectory,
            )) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// When its first directory was made, by the clock that gives files their birth times.
    pub(crate) fn begun(&self) -> Result<Timestamp> {
        Ok(self.dir.stat(&SharePath::default())?.created)
    }

    fn open_file(&self, path: &SharePath) -> Result<OwnedFd> {
        let FoundFile { path, stat } = self.dir.lookup(path)?;
        check_kind(stat.kind, false)?;
        Ok(self.dir.open_file(&path, OpenFor::Read)?)
    }
}

/// Gives the copies in a new snapshot the records that their originals have in sidecars. A share
/// without sidecars costs one look; otherwise the snapshot is walked.
pub(super) fn copy_sidecars(
    share: &Share,
    view: &SnapshotView,
) -> std::result::Result<(), StoreError> {
    let sidecars = share.state().path().join("records");
    if fs::read_dir(sidecars).map_or(true, |mut entries| entries.next().is_none()) {
        return Ok(());
    }
    walk(&view.dir, |path, kind| {
        if matches!(kind, FileKind::Directory | FileKind::File) {
            copy_sidecar(share, view, path)?;
        }
        Ok(Walk::On)
    })
}

/// Whether a walk goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Walk {
    On,
    End,
}

/// Shows every path of a tree, the root first, until `see` has seen enough.
fn walk(
    tree: &ShareDir,
    mut see: impl FnMut(&SharePath, FileKind) -> std::result::Result<Walk, StoreError>,
) -> std::result::Result<(), StoreError> {
    let mut pending = vec![SharePath::default()];
    while let Some(dir) = pending.pop() {
        if see(&dir, FileKind::Directory)? == Walk::End {
            return Ok(());
        }
        let mut after: Option<String> = None;
        loop {
            let page = tree.list(&dir, after.as_deref(), WALK_PAGE)?;
            let Some(last) = page.last() else { break };
            after = Some(last.name.clone());
            for entry in &page {
                let Ok(path) = dir.join(&entry.name) else { continue };
                if entry.kind == FileKind::Directory {
                    pending.push(path);
                } else if see(&path, entry.kind)? == Walk::End {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Only a copy that lacks its record is given one: it points to a sidecar it does not have, or
/// the file system has no attributes.
fn copy_sidecar(
    share: &Share,
    view: &SnapshotView,
    path: &SharePath,
) -> std::result::Result<(), StoreError> {
    let copy = view.dir.open_file(path, OpenFor::Read)?;
    let copy_id = Stat::of(&copy)?.id;
    match view.records.load(&copy, copy_id) {
        Ok(record) if !record.is_default() => return Ok(()),
        Ok(_) | Err(StoreError::Damaged { .. }) => {}
        Err(error) => return Err(error),
    }
    match share.record_on_disk(path) {
        Ok(record) if record.is_default() => Ok(()),
        Ok(mut record) => view.records.save(&copy, copy_id, &mut record),
        // Moved or removed since it was copied.
        Err(error) => {
            log::warn!("{path}: its record is not in the snapshot: {error}");
            Ok(())
        }
    }
}
