//! Content files on disk: their names, which are open for writing, which are not yet synced.
//! Where a body goes is decided in [`super::content`]; when a file is removed, in
//! [`super::reclaim`].

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, OFlags, fstatvfs};

use super::janitor::Chores;
use super::types::ContentId;
use crate::db::{DbError, SyncMode, check_place};
use crate::disk::folder::make_all;
use crate::disk::synced;
use crate::sync::front_end::assert_may_block;

pub(super) struct Files {
    folder: PathBuf,
    /// The folder itself, to sync the names in it.
    handle: File,
    sync: SyncMode,
    /// Files with smaller numbers were made before this process opened the store.
    start: u64,
    next: AtomicU64,
    /// Files that may still get bytes or references.
    open: Mutex<HashSet<ContentId>>,
    /// Files with bytes that may not be on the disk yet.
    dirty: Mutex<Dirty>,
    chores: Arc<Chores>,
}

/// What is not on the disk yet.
#[derive(Default)]
struct Dirty {
    /// Files with bytes that a commit may refer to.
    files: HashSet<ContentId>,
    /// A checkpoint is under way, which makes commits durable: bytes are synced before a commit
    /// can refer to them.
    at_once: bool,
}

/// A content file that is being written. It counts as open until the last owner is gone, and a
/// commit keeps it until its outcome is known. So a file that is not open gets no reference any
/// more, except from states that refer to it already.
pub(super) struct OpenFile {
    pub(super) id: ContentId,
    pub(super) file: File,
    files: Arc<Files>,
    /// The name is on the disk.
    name_synced: AtomicBool,
}

impl Files {
    /// `known` is the highest number in the database. Numbers follow the clock, so that files of
    /// this process can be told from those of earlier ones.
    pub(super) fn open(
        folder: PathBuf,
        sync: SyncMode,
        known: u64,
        chores: Arc<Chores>,
    ) -> Result<Self, DbError> {
        let failed = |what| {
            let folder = folder.clone();
            move |error: io::Error| DbError::from_io(what, &folder, &error)
        };
        // With its own name on the disk: SQLite may have synced the folder above it already.
        make_all(&folder, fs::DirBuilder::new().mode(0o700)).map_err(failed("create"))?;
        let handle = File::open(&folder).map_err(failed("open"))?;
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let clock = clock.map_or(0, |clock| u64::try_from(clock.as_nanos()).unwrap_or(0));
        let start = clock.max(known + 1);
        Ok(Self {
            folder,
            handle,
            sync,
            start,
            next: AtomicU64::new(start),
            open: Mutex::default(),
            dirty: Mutex::default(),
            chores,
        })
    }

    pub(super) fn path(&self, id: ContentId) -> PathBuf {
        self.folder.join(id.to_string())
    }

    /// An error if the folder has lost its name since it was opened.
    pub(super) fn check_place(&self) -> Result<(), DbError> {
        check_place(&self.handle, &self.folder)
    }

    /// The folder of the database.
    pub(super) fn place(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A new file. It has its final name at once: nothing refers to it before a commit does.
    pub(super) fn create(self: &Arc<Self>) -> Result<Arc<OpenFile>, DbError> {
        assert_may_block("a new content file");
        loop {
            let id = ContentId(self.next.fetch_add(1, Ordering::Relaxed));
            let path = self.path(id);
            // Before the file exists, so that it is never taken for a leftover.
            lock(&self.open).insert(id);
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
            match rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => {
                    return Ok(Arc::new(OpenFile {
                        id,
                        file: File::from(file),
                        files: Arc::clone(self),
                        name_synced: AtomicBool::new(false),
                    }));
                }
                // The clock was set back since an earlier process made this file.
                Err(rustix::io::Errno::EXIST) => _ = lock(&self.open).remove(&id),
                Err(errno) => {
                    lock(&self.open).remove(&id);
                    return Err(DbError::from_errno("create", &path, errno));
                }
            }
        }
    }

    /// Refuses a body that is longer than what is free on the disk. Takes no space: a client that
    /// only promises bytes must not fill the disk.
    pub(super) fn check_room(&self, length: u64) -> Result<(), DbError> {
        assert_may_block("the file system");
        let found = fstatvfs(&self.handle);
        let found = found.map_err(|errno| DbError::from_errno("ask", &self.folder, errno))?;
        // Some file systems do not tell how much they have.
        if found.f_blocks > 0 && found.f_bavail.saturating_mul(found.f_frsize) < length {
            return Err(DbError::Full { file: self.folder.clone() });
        }
        Ok(())
    }

    /// Opens a file for reading.
    pub(super) fn read(&self, id: ContentId) -> Result<File, DbError> {
        let path = self.path(id);
        File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DbError::Damaged { file: path, why: "it is missing".into() },
            _ => DbError::from_io("open", &path, &error),
        })
    }

    pub(super) fn is_open(&self, id: ContentId) -> bool {
        lock(&self.open).contains(&id)
    }

    /// True if an earlier process made the file.
    pub(super) fn is_old(&self, id: ContentId) -> bool {
        id.0 < self.start
    }

    /// Removes the file. One that is gone already is no error.
    pub(super) fn unlink(&self, id: ContentId) -> Result<(), DbError> {
        assert_may_block("the removal of a content file");
        let path = self.path(id);
        self.dirty().files.remove(&id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(DbError::from_io("remove", &path, &error))
            }
            _ => Ok(()),
        }
    }

    /// Puts all bytes that were finished before this call on the disk, names included, but for
    /// files that nothing refers to. Bytes that are finished from now on until
    /// [`Files::checkpoint_ended`] are put there before a commit can refer to them.
    pub(super) fn sync_all(&self, unused: &[ContentId]) -> Result<(), DbError> {
        let mut ids = {
            let mut dirty = self.dirty();
            dirty.at_once = true;
            std::mem::take(&mut dirty.files)
        };
        for id in unused {
            ids.remove(id);
        }
        if ids.is_empty() {
            return Ok(());
        }
        let synced = self.sync_these(&ids);
        if synced.is_err() {
            self.dirty().files.extend(ids);
        }
        synced
    }

    /// Commits are durable with the next checkpoint again, and so are their bytes.
    pub(super) fn checkpoint_ended(&self) {
        self.dirty().at_once = false;
    }

    /// These files, or their names, may not be on the disk yet.
    pub(super) fn add_dirty(&self, ids: impl IntoIterator<Item = ContentId>) {
        self.dirty().files.extend(ids);
    }

    fn dirty(&self) -> MutexGuard<'_, Dirty> {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sync_these(&self, ids: &HashSet<ContentId>) -> Result<(), DbError> {
        for id in ids {
            let path = self.path(*id);
            let synced = match File::open(&path) {
                Ok(file) => synced::data(&file, &path),
                // Given up, or already reclaimed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(error),
            };
            synced.map_err(|error| DbError::from_io("sync", &path, &error))?;
        }
        self.sync_names()
    }

    pub(super) fn sync_names(&self) -> Result<(), DbError> {
        let synced = synced::names(&self.handle, &self.folder);
        synced.map_err(|error| DbError::from_io("sync", &self.folder, &error))
    }
}

impl OpenFile {
    /// Bytes were written that a commit may refer to soon. With [`SyncMode::Always`] and while a
    /// checkpoint is under way they are on the disk when this returns (true), else before the next
    /// checkpoint.
    pub(super) fn written(&self) -> Result<bool, DbError> {
        if self.try_written() {
            return Ok(false);
        }
        let path = self.files.path(self.id);
        let synced = synced::data(&self.file, &path);
        synced.map_err(|error| DbError::from_io("sync", &path, &error))?;
        if !self.name_synced.load(Ordering::Acquire) {
            self.files.sync_names()?;
            self.name_synced.store(true, Ordering::Release);
        }
        Ok(true)
    }

    /// As [`OpenFile::written`], for event loops: false if they have to be synced now.
    pub(super) fn try_written(&self) -> bool {
        let mut dirty = self.files.dirty();
        let later = self.files.sync == SyncMode::Normal && !dirty.at_once;
        if later {
            dirty.files.insert(self.id);
        }
        later
    }

    /// True if the file is one of these.
    pub(super) fn is_of(&self, files: &Arc<Files>) -> bool {
        Arc::ptr_eq(&self.files, files)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.files.path(self.id)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        lock(&self.files.open).remove(&self.id);
        self.files.chores.file_closed(self.id);
    }
}

fn lock(set: &Mutex<HashSet<ContentId>>) -> MutexGuard<'_, HashSet<ContentId>> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}
