//! Saved states: the blobs of one moment in a folder, and all rows of the store replaced by those
//! of a saved state, or by none, while no other write runs.
//!
//! A saved state has its rows as a database of their own, and the content files that the rows refer
//! to by a second name, since content is never changed where a row points. Decides which counters
//! stay, how content files come back, and that content without a reference goes the ordinary way,
//! after a checkpoint. When states are saved and restored is decided in `bench/states`.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use rusqlite::Connection;

use super::reclaim::ReaderToken;
use super::tx::{Meta, OpenFiles};
use super::types::{ContentId, signed, unsigned};
use super::{BlobStore, DbError, Shared, StoreStart, WriteTx};
use crate::db::{Copy, HeldWriter};
use crate::disk::synced;

/// Tables whose rows stay: the counter behind `ETag`s, which content files there are, and which of
/// them are not synced.
const KEPT: [&str; 3] = ["meta", "file", "unsynced"];

/// The blob store with its writer held: requests that write wait until the value is dropped.
pub struct HeldBlobs<'a> {
    held: HeldWriter<'a>,
    shared: &'a Shared,
    /// Files that the transaction refers to.
    open: RefCell<OpenFiles>,
    /// After the writer, which the janitor may wait for with this lock.
    _replacing: MutexGuard<'a, ()>,
}

impl BlobStore {
    /// Holds the writer, and keeps content files from being removed.
    pub fn hold(&self) -> HeldBlobs<'_> {
        // In this order: the janitor waits for the writer with this lock.
        let replacing = self.shared.replacing();
        let (held, shared) = (self.database.hold(), &self.shared);
        HeldBlobs { held, shared, open: RefCell::default(), _replacing: replacing }
    }
}

impl HeldBlobs<'_> {
    /// Removes all rows, in a transaction that waits for [`HeldBlobs::commit`].
    pub fn empty(&self) -> Result<(), DbError> {
        self.held.begin()?;
        self.held.empty(&KEPT)?;
        self.held.run(drop_references)
    }

    /// Replaces all rows by those of the state that [`SavedBlobs`] saved in `folder`, in a
    /// transaction that waits for [`HeldBlobs::commit`].
    pub fn restore(&self, folder: &Path) -> Result<(), DbError> {
        self.replace_rows(folder).map_err(|error| self.held.blame(error))
    }

    fn replace_rows(&self, folder: &Path) -> Result<(), DbError> {
        self.held.attach(&folder.join("blob.db"))?;
        self.link_content(folder)?;
        self.held.begin()?;
        self.held.replace(&KEPT)?;
        self.held.run(|conn| {
            drop_references(conn)?;
            conn.execute(
                "INSERT INTO main.file (id, refs) SELECT id, refs FROM saved.file WHERE refs > 0
                 ON CONFLICT (id) DO UPDATE SET refs = excluded.refs",
                [],
            )?;
            let saved = "SELECT coalesce(max(value), 0) FROM saved.meta WHERE name = 'counter'";
            let saved: i64 = conn.query_row(saved, [], |row| row.get(0))?;
            Meta::Counter.set(conn, Meta::Counter.get(conn)?.max(saved))?;
            // Of a store whose counters were lost since, by `--reset`. Of this one it is not ahead.
            self.shared.last_counter.fetch_max(unsigned(saved)?, Ordering::AcqRel);
            Ok(())
        })
    }

    /// Changes rows in the transaction that waits for [`HeldBlobs::commit`].
    pub fn write<T, E: From<DbError>>(
        &self,
        f: impl FnOnce(&WriteTx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let written = self.held.run(|conn| Ok(WriteTx::run(conn, self.shared, f)))?;
        written.map(|(value, mut open)| {
            self.open.borrow_mut().append(&mut open);
            value
        })
    }

    /// Gives the content files of a saved state their names again. Those of a restore that fails
    /// are removed by the janitor, since no row refers to them. Their names are synced before a row
    /// refers to them; their bytes were synced when the state was saved, or here, if copied.
    fn link_content(&self, folder: &Path) -> Result<(), DbError> {
        let saved = self.held.run(|conn| {
            let mut select = conn.prepare(
                "SELECT id, EXISTS (SELECT 1 FROM main.file WHERE id = saved.file.id AND refs > 0)
                 FROM saved.file WHERE refs > 0",
            )?;
            let ids = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            ids.map(|row| {
                let (id, in_use): (i64, bool) = row?;
                Ok((ContentId(unsigned(id)?), in_use))
            })
            .collect::<Result<Vec<_>, DbError>>()
        })?;
        let content = content_folder(folder);
        let mut made = false;
        for (id, in_use) in saved {
            // A file in use has the bytes of all rows that ever referred to it, though the saved
            // one may be longer: segments of 0.2 have space in advance until they are closed.
            let may_replace = !in_use && !self.shared.files.is_open(id);
            let (from, to) = (content.join(id.to_string()), self.shared.files.path(id));
            made |= link_or_copy(&from, &to, may_replace)?;
            self.shared.chores.file_closed(id);
        }
        if made { self.shared.files.sync_names() } else { Ok(()) }
    }

    /// Has the commit need little more of the disk.
    pub fn flush(&self) -> Result<(), DbError> {
        self.held.flush()
    }

    /// Commits. Blocks that were found before do not become a blob any more.
    pub fn commit(&self) -> Result<(), DbError> {
        self.held.commit()?;
        let known = self.held.run(StoreStart::read)?;
        self.shared.next_id.fetch_max(known.id + 1, Ordering::AcqRel);
        // Content that nothing refers to any more goes after a checkpoint.
        self.shared.chores.request_checkpoint();
        self.shared.chores.remove_doomed();
        Ok(())
    }
}

/// Drops the references of all rows, which are replaced in this transaction.
fn drop_references(conn: &Connection) -> Result<(), DbError> {
    conn.execute("UPDATE main.file SET refs = 0 WHERE refs <> 0", [])?;
    Meta::Replaced.set(conn, Meta::Replaced.get(conn)? + 1)
}

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
            link_or_copy(&store.shared.files.path(id), &content.join(id.to_string()), true)?;
        }
        drop(token);
        Ok(())
    }
}

/// Gives a content file a second name, or copies it where that cannot be. A file that is there
/// already has the same bytes: numbers are given once, and content is never changed where a row
/// points. It is another file where links became copies, as `cp -r` makes them. Only one that is
/// shorter, a copy that was cut off, is replaced if it may be. A copy is synced. False: nothing was
/// made.
fn link_or_copy(from: &Path, to: &Path, may_replace: bool) -> Result<bool, DbError> {
    let failed = |error: std::io::Error| DbError::from_io("link", to, &error);
    let length = |path: &Path| fs::metadata(path).map(|found| found.len()).map_err(failed);
    match fs::hard_link(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if !may_replace || length(to)? >= length(from)? {
                return Ok(false);
            }
            fs::remove_file(to).map_err(failed)?;
            link_or_copy(from, to, false)
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
