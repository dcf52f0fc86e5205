//! The blobs of one moment, saved in a folder: rows as a database of their own, and the content
//! files that the rows refer to by a second name, since content is never changed where a row
//! points.
//!
//! Decides what a saved state of blobs holds. When it is saved is decided in `bench/states`.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::reclaim::ReaderToken;
use super::types::{ContentId, signed, unsigned};
use super::{BlobStore, DbError};
use crate::db::Copy;
use crate::disk::synced;

/// Blobs that are being saved.
pub struct SavedBlobs<'a> {
    store: &'a BlobStore,
    copy: Copy,
    folder: PathBuf,
    /// Content that the rows refer to is not removed before it has its second name.
    token: Option<ReaderToken>,
    /// The last counter that was given out.
    counter: u64,
}

/// Where the content files of a saved state are.
pub(super) fn content_folder(folder: &Path) -> PathBuf {
    folder.join("blobs")
}

impl BlobStore {
    /// Prepares to save all blobs in `folder`.
    pub fn save(&self, folder: &Path) -> Result<SavedBlobs<'_>, DbError> {
        let copy = self.database.copy(&folder.join("blob.db"))?;
        Ok(SavedBlobs { store: self, copy, folder: folder.to_owned(), token: None, counter: 0 })
    }
}

impl SavedBlobs<'_> {
    /// The blobs of this moment are saved.
    pub fn begin(&mut self) -> Result<(), DbError> {
        self.token = Some(self.store.shared.readers.enter());
        self.counter = self.store.shared.last_counter.load(Ordering::Acquire);
        self.copy.begin()
    }

    /// Saves them. Takes as long as there are rows.
    pub fn finish(self) -> Result<(), DbError> {
        let Self { store, copy, folder, token, counter } = self;
        let used = copy.finish(|conn| {
            conn.execute("DELETE FROM copy.file WHERE refs = 0", [])?;
            // Not the ceiling, which lies ahead: else each save and restore would add to it.
            let exact = "UPDATE copy.meta SET value = ?1 WHERE name = 'counter'";
            conn.execute(exact, [signed(counter)])?;
            let mut select = conn.prepare("SELECT id FROM copy.file")?;
            let ids = select.query_map([], |row| row.get::<_, i64>(0))?;
            ids.map(|id| Ok(ContentId(unsigned(id?)?))).collect::<Result<Vec<_>, DbError>>()
        })?;
        let content = content_folder(&folder);
        let made = fs::DirBuilder::new().mode(0o700).create(&content);
        made.map_err(|error| DbError::from_io("create", &content, &error))?;
        for id in used {
            link_or_copy(&store.shared.files.path(id), &content.join(id.to_string()))?;
        }
        drop(token);
        Ok(())
    }
}

/// Gives a content file a second name, or copies it where that cannot be. A file that is there
/// already has the same bytes: numbers are given once, and content is never changed where a row
/// points. It is another file where links became copies, as `cp -r` makes them. Only one that is
/// shorter, a copy that was cut off, is replaced. A copy is synced. False: nothing was made.
pub(super) fn link_or_copy(from: &Path, to: &Path) -> Result<bool, DbError> {
    let failed = |error: std::io::Error| DbError::from_io("link", to, &error);
    let length = |path: &Path| fs::metadata(path).map(|found| found.len()).map_err(failed);
    match fs::hard_link(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if length(to)? >= length(from)? {
                return Ok(false);
            }
            fs::remove_file(to).map_err(failed)?;
            link_or_copy(from, to)
        }
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            let mut source = File::open(from).map_err(failed)?;
            let mut target = OpenOptions::new();
            let mut target = target.write(true).create_new(true).mode(0o600).open(to);
            let target = target.as_mut().map_err(|error| DbError::from_io("create", to, error))?;
            std::io::copy(&mut source, target).map_err(failed)?;
            synced::data(target, to).map_err(failed)?;
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::NotFound && !from.exists() => {
            Err(DbError::Damaged { file: from.to_owned(), why: "it is missing".to_owned() })
        }
        Err(error) => Err(failed(error)),
    }
}

impl std::fmt::Debug for SavedBlobs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SavedBlobs").field("folder", &self.folder).finish_non_exhaustive()
    }
}
