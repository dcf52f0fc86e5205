//! Reading a snapshot: its names, files and records. Nothing can be changed through it, and no
//! rule of opens, locks or leases applies (LOCKING 2.2, last row).
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

use crate::core::{Denial, SharePath, Timestamp};
use crate::engine::error::{Error, Result};
use crate::engine::io::IO_MAX;
use crate::engine::share::Share;
use crate::store::difference::{Changed, changes};
use crate::store::{
    Case, ETag, Found, Kind, Listed, OpenFor, Record, Records, ShareDir, Stat, StoreError, data,
};

/// Entries of a directory looked at in one step.
const WALK_PAGE: usize = 1_000;

/// A snapshot, open for reading.
#[derive(Debug)]
pub struct SnapshotView {
    dir: ShareDir,
    records: Records,
}

/// What is known of a file or directory of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotFile {
    /// Its path as it was spelled.
    pub path: SharePath,
    /// What the disk says of it.
    pub stat: Stat,
    /// Its metadata record.
    pub record: Record,
    /// Its tag.
    pub tag: ETag,
}

impl SnapshotView {
    pub(super) fn open(
        tree: &Path,
        records: &Path,
        case: Case,
    ) -> std::result::Result<Self, StoreError> {
        Ok(Self { dir: ShareDir::open(tree, case)?, records: Records::new(records)? })
    }

    /// What a path stood for, in any spelling.
    pub fn lookup(&self, path: &SharePath) -> Result<Found> {
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
    ) -> Result<Vec<Listed>> {
        let dir = self.dir.lookup(dir)?;
        Ok(self.dir.list_prefix(&dir.path, prefix, after, limit)?)
    }

    /// What is known of a file or directory.
    pub fn file(&self, path: &SharePath) -> Result<SnapshotFile> {
        let Found { path, stat } = self.dir.lookup(path)?;
        let fd = self.dir.open_file(&path, OpenFor::Path)?;
        let record = match self.records.load(&fd, stat.id) {
            Err(StoreError::Damaged { what, why }) => {
                log::warn!("{}: {what} is damaged: {why}", self.dir.root_path().display());
                Record::default()
            }
            loaded => loaded?,
        };
        let tag = ETag::of(&stat, &record);
        Ok(SnapshotFile { path, stat, record, tag })
    }

    /// A file to copy from, and what is known of it.
    pub(in crate::engine) fn open_to_copy(
        &self,
        path: &SharePath,
    ) -> Result<(OwnedFd, SnapshotFile)> {
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
        Ok(data::data_ranges(self.open_file(path)?, window)?)
    }

    /// What of `window` is not as it was in the older snapshot `since`; no more than `most` parts.
    /// A file that was made anew in between is compared like any other: copies do not tell.
    pub fn changes_since(
        &self,
        since: &Self,
        path: &SharePath,
        window: Range<u64>,
        most: usize,
    ) -> Result<Vec<Changed>> {
        let (new, old) = (self.open_file(path)?, since.earlier(path)?);
        Ok(changes(new, old.as_ref().map(AsFd::as_fd), window, most)?)
    }

    /// The file of that path, if it was there.
    pub(in crate::engine) fn earlier(&self, path: &SharePath) -> Result<Option<OwnedFd>> {
        match self.open_file(path) {
            Ok(fd) => Ok(Some(fd)),
            Err(Error::Denied(Denial::NotFound | Denial::PathNotFound | Denial::IsDirectory)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// When its first directory was made, by the clock that gives files their birth times.
    pub(in crate::engine) fn begun(&self) -> Result<Timestamp> {
        Ok(self.dir.stat(&SharePath::default())?.created)
    }

    fn open_file(&self, path: &SharePath) -> Result<OwnedFd> {
        let Found { path, stat } = self.dir.lookup(path)?;
        match stat.kind {
            Kind::File => Ok(self.dir.open_file(&path, OpenFor::Read)?),
            Kind::Directory => Err(Denial::IsDirectory.into()),
            Kind::Symlink | Kind::Special => Err(Denial::NotFound.into()),
        }
    }
}

/// Gives the copies in a new snapshot the records that their originals have in sidecars. A share
/// without sidecars costs one look; otherwise the snapshot is walked.
pub(super) fn copy_sidecars(
    share: &Share,
    view: &SnapshotView,
) -> std::result::Result<(), StoreError> {
    let sidecars = share.disk_state.path().join("records");
    if fs::read_dir(sidecars).map_or(true, |mut entries| entries.next().is_none()) {
        return Ok(());
    }
    let mut pending = vec![SharePath::default()];
    while let Some(dir) = pending.pop() {
        copy_sidecar(share, view, &dir)?;
        let mut after: Option<String> = None;
        loop {
            let page = view.dir.list(&dir, after.as_deref(), WALK_PAGE)?;
            let Some(last) = page.last() else { break };
            after = Some(last.name.clone());
            for entry in &page {
                let Ok(path) = dir.join(&entry.name) else { continue };
                match entry.kind {
                    Kind::Directory => pending.push(path),
                    Kind::File => copy_sidecar(share, view, &path)?,
                    Kind::Symlink | Kind::Special => {}
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
    let original = share.dir.open_file(path, OpenFor::Read).and_then(|fd| {
        let id = Stat::of(&fd)?.id;
        share.table.with(id, |_, _| share.records.load(&fd, id))
    });
    match original {
        Ok(record) if record.is_default() => Ok(()),
        Ok(mut record) => view.records.save(&copy, copy_id, &mut record),
        // Moved or removed since it was copied.
        Err(error) => {
            log::warn!("{path}: its record is not in the snapshot: {error}");
            Ok(())
        }
    }
}
