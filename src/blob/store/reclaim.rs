//! Which content files are in use, and when the others are unlinked.
//!
//! A state or an upload has one reference to each file that it has bytes in, however many extents
//! that is. A file without a reference is unlinked after a checkpoint has made the end of its last
//! reference durable, and when no reader can need the file. The checkpoint syncs new content before
//! its rows become durable, also the rows that are committed while it runs. The order, and its
//! reason, is in [`super::unsynced`]; [`super::janitor`] unlinks.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use rusqlite::{Connection, OptionalExtension, params};

use super::tx::Meta;
use super::types::{ContentId, signed, unsigned};
use super::{Shared, unsynced};
use crate::db::{CheckpointHooks, DbError};

/// Files that one checkpoint releases; more wait for the next.
const FILES_MAX: usize = 4096;

/// `owner`, the number of a state or an upload, has bytes in `file`.
pub(super) fn add_reference(conn: &Connection, owner: i64, file: ContentId) -> Result<(), DbError> {
    let added = conn
        .prepare_cached("INSERT OR IGNORE INTO uses (owner, file) VALUES (?1, ?2)")?
        .execute(params![owner, signed(file.0)])?;
    if added > 0 {
        conn.prepare_cached(
            "INSERT INTO file (id, refs) VALUES (?1, 1)
             ON CONFLICT (id) DO UPDATE SET refs = refs + 1",
        )?
        .execute([signed(file.0)])?;
    }
    Ok(())
}

/// `to`, which has no references yet, gets those of `from`.
pub(super) fn copy_references(conn: &Connection, from: i64, to: i64) -> Result<(), DbError> {
    let copied = conn
        .prepare_cached(
            "INSERT INTO uses (owner, file) SELECT ?2, file FROM uses WHERE owner = ?1",
        )?
        .execute([from, to])?;
    if copied > 0 {
        conn.prepare_cached(
            "UPDATE file SET refs = refs + 1 WHERE id IN (SELECT file FROM uses WHERE owner = ?1)",
        )?
        .execute([to])?;
    }
    Ok(())
}

/// Ends all references of `owner`.
pub(super) fn drop_references(conn: &Connection, owner: i64) -> Result<(), DbError> {
    conn.prepare_cached(
        "UPDATE file SET refs = refs - 1 WHERE id IN (SELECT file FROM uses WHERE owner = ?1)",
    )?
    .execute([owner])?;
    conn.prepare_cached("DELETE FROM uses WHERE owner = ?1")?.execute([owner])?;
    Ok(())
}

/// Files without a reference, at most `limit`.
pub(super) fn unused(conn: &Connection, limit: usize) -> Result<Vec<ContentId>, DbError> {
    let mut select = conn.prepare_cached("SELECT id FROM file WHERE refs = 0 LIMIT ?1")?;
    let mut rows = select.query([signed(limit as u64)])?;
    let mut files = Vec::new();
    while let Some(row) = rows.next()? {
        files.push(ContentId(unsigned(row.get(0)?)?));
    }
    Ok(files)
}

/// How many owners refer to the file; `None` if the database does not know it.
pub(super) fn references(conn: &Connection, file: ContentId) -> Result<Option<i64>, DbError> {
    let mut select = conn.prepare_cached("SELECT refs FROM file WHERE id = ?1")?;
    Ok(select.query_row([signed(file.0)], |row| row.get(0)).optional()?)
}

/// Those of the files that have so many references.
pub(super) fn with_references(
    conn: &Connection,
    files: &[ContentId],
    count: Option<i64>,
) -> Result<Vec<ContentId>, DbError> {
    let mut found = Vec::new();
    for file in files {
        if references(conn, *file)? == count {
            found.push(*file);
        }
    }
    Ok(found)
}

/// Makes files known that nothing refers to.
pub(super) fn add_unused(conn: &Connection, files: &[ContentId]) -> Result<(), DbError> {
    let mut insert = conn.prepare_cached("INSERT OR IGNORE INTO file (id, refs) VALUES (?1, 0)")?;
    for file in files {
        insert.execute([signed(file.0)])?;
    }
    Ok(())
}

/// Forgets files that were unlinked.
pub(super) fn forget(conn: &Connection, files: &[ContentId]) -> Result<(), DbError> {
    let mut delete = conn.prepare_cached("DELETE FROM file WHERE id = ?1 AND refs = 0")?;
    for file in files {
        delete.execute([signed(file.0)])?;
    }
    Ok(())
}

/// Readers that began between two checkpoints share one `Arc`, from before they look into the
/// database until they have opened what they found.
pub(super) type ReaderToken = Arc<()>;

#[derive(Default)]
pub(super) struct Readers(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    now: ReaderToken,
    older: Vec<Weak<()>>,
}

impl Readers {
    pub(super) fn enter(&self) -> ReaderToken {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner).now)
    }

    /// The readers of this moment. Those that enter from now on see all that was committed before.
    fn advance(&self) -> Vec<Weak<()>> {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut generations.now);
        generations.older.push(Arc::downgrade(&before));
        drop(before);
        generations.older.retain(|readers| readers.strong_count() > 0);
        generations.older.clone()
    }
}

/// Files without a reference that a checkpoint has released.
pub(super) struct Released {
    /// Readers that can have seen a reference to the files.
    readers: Vec<Weak<()>>,
    /// [`Meta::Replaced`] before the files were found: a state that was restored since may have
    /// referred to them.
    pub(super) replaced: i64,
    pub(super) files: Vec<ContentId>,
}

impl Released {
    /// False while readers may need the files.
    pub(super) fn is_due(&self) -> bool {
        self.readers.iter().all(|readers| readers.strong_count() == 0)
    }
}

/// The part of a checkpoint that concerns content.
pub(super) struct Reclaim {
    shared: Arc<Shared>,
    /// What the checkpoint under way releases when the WAL is synced, and the last row whose
    /// content it has synced.
    found: Mutex<Option<(i64, Released)>>,
}

impl Reclaim {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, found: Mutex::default() }
    }

    /// Files without a reference that cannot get one any more.
    fn unused(&self, conn: &Connection) -> Result<Vec<ContentId>, DbError> {
        let mut files = unused(conn, FILES_MAX)?;
        self.shared.segments.close(&files);
        // An open file can get a reference from a commit under way. One that is not open is never
        // opened again, so what is counted after this line stays.
        files.retain(|file| !self.shared.files.is_open(*file));
        with_references(conn, &files, Some(0))
    }
}

impl CheckpointHooks for Reclaim {
    fn before_checkpoint(&self, conn: &Connection) -> Result<(), DbError> {
        let replaced = Meta::Replaced.get(conn)?;
        let noted = unsynced::last(conn)?;
        let files = self.unused(conn)?;
        // Readers from now on see the database without references to these files.
        let readers = self.shared.readers.advance();
        self.shared.files.sync_all(&files)?;
        let found = Released { readers, replaced, files };
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some((noted, found));
        Ok(())
    }

    fn log_synced(&self) -> Result<(), DbError> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((noted, found)) = found else { return Ok(()) };
        // Not before the WAL is synced: the content of unused files is not, and the commit that
        // ended their last reference must be durable before their rows count as synced.
        unsynced::synced(&self.shared, noted)?;
        if !found.files.is_empty() {
            // Files that wait for their readers go first. The others are found again, and so are
            // those that could not be unlinked.
            let mut released = self.shared.released();
            if released.as_ref().is_none_or(Released::is_due) {
                *released = Some(found);
            }
            self.shared.chores.wake();
        }
        Ok(())
    }

    fn check_place(&self) -> Result<(), DbError> {
        self.shared.files.check_place()
    }

    fn checkpoint_ended(&self) {
        self.shared.files.checkpoint_ended();
    }
}
