//! All rows of the blob store at once: replaced by none or by those of a saved state, while no
//! other write runs.
//!
//! Decides which counters stay, how content files of a saved state come back, and that content
//! without a reference goes the ordinary way, after a checkpoint. When all databases of a server
//! are replaced is decided in `bench/states`, how a state is saved in [`super::save`].

use std::cell::RefCell;
use std::path::Path;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use rusqlite::Connection;

use super::effects::Effects;
use super::janitor::Chore;
use super::save::{content_folder, link_or_copy};
use super::shared::Shared;
use super::types::{ContentId, unsigned};
use super::{BlobStore, DbError, StoreStart, WriteTx, run_write, settings};
use crate::db::HeldWriter;

/// Tables whose rows stay: the counter behind `ETag`s, which content files there are, and which of
/// them are not synced.
const KEPT: [&str; 3] = ["meta", "file", "unsynced"];

/// The blob store with its writer held: requests that write wait until the value is dropped.
pub struct HeldBlobs<'a> {
    held: HeldWriter<'a>,
    shared: &'a Shared,
    /// What follows from the commit of [`HeldBlobs::write`].
    effects: RefCell<Vec<Effects>>,
    /// After the writer, which the janitor may wait for with this lock.
    _replacing: MutexGuard<'a, ()>,
}

impl BlobStore {
    /// Holds the writer, and keeps content files from being removed.
    pub fn hold(&self) -> HeldBlobs<'_> {
        // In this order: the janitor waits for the writer with this lock.
        let replacing = self.shared.replacing.lock();
        let (held, shared) = (self.database.hold(), &self.shared);
        HeldBlobs { held, shared, effects: RefCell::default(), _replacing: replacing }
    }
}

impl HeldBlobs<'_> {
    /// Removes all rows, in a transaction that waits for [`HeldBlobs::commit`].
    pub fn empty(&self) -> Result<(), DbError> {
        self.held.begin()?;
        self.held.empty(&KEPT)?;
        self.held.run(drop_references)
    }

    /// Replaces all rows by those of the state that [`super::SavedBlobs`] saved in `folder`, in a
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
            settings::set_ceiling(conn, settings::ceiling(conn)?.max(saved))?;
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
        let written = self.held.run(|conn| Ok(run_write(conn, self.shared, f)))?;
        written.map(|(value, effects)| {
            self.effects.borrow_mut().push(effects);
            value
        })
    }

    /// Gives the content files of a saved state their names again. Those of a restore that fails
    /// are removed by the janitor, since no row refers to them. Their names are synced before a row
    /// refers to them; their bytes were synced when the state was saved, or here, if copied.
    fn link_content(&self, folder: &Path) -> Result<(), DbError> {
        let saved = self.held.run(|conn| {
            let mut select = conn.prepare("SELECT id FROM saved.file WHERE refs > 0")?;
            let ids = select.query_map([], |row| row.get::<_, i64>(0))?;
            ids.map(|id| Ok(ContentId(unsigned(id?)?))).collect::<Result<Vec<_>, DbError>>()
        })?;
        let content = content_folder(folder);
        let mut made = false;
        for id in &saved {
            made |= link_or_copy(&content.join(id.to_string()), &self.shared.files.path(*id))?;
            self.shared.chores.add(Chore::Check(*id));
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
        for effects in self.effects.take() {
            effects.committed(self.shared);
        }
        self.shared.era.fetch_add(1, Ordering::AcqRel);
        let known = self.held.run(StoreStart::read)?;
        self.shared.next_id.fetch_max(known.id + 1, Ordering::AcqRel);
        for parts in self.shared.places.forget_all_parts() {
            self.shared.chores.add(Chore::Close(parts));
        }
        for chore in known.left_over {
            self.shared.chores.add(chore);
        }
        // Content that nothing refers to any more goes after a checkpoint.
        self.shared.chores.add(Chore::Checkpoint);
        Ok(())
    }
}

fn drop_references(conn: &Connection) -> Result<(), DbError> {
    conn.execute("UPDATE main.file SET refs = 0 WHERE refs <> 0", [])?;
    Ok(())
}

impl std::fmt::Debug for HeldBlobs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.held.fmt(f)
    }
}
