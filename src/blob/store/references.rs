//! Which content files are in use: one reference for each state or upload that has bytes in a
//! file, however many extents that is. Files without a reference go away in [`super::reclaim`].

use rusqlite::{Connection, params};

use super::types::{ContentId, signed, unsigned};
use crate::db::DbError;

/// `owner`, the number of a state or an upload, has bytes in `file`.
pub(super) fn add(conn: &Connection, owner: i64, file: ContentId) -> Result<(), DbError> {
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
pub(super) fn copy(conn: &Connection, from: i64, to: i64) -> Result<(), DbError> {
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
pub(super) fn drop_all(conn: &Connection, owner: i64) -> Result<(), DbError> {
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

/// How many owners refer to the file; `None` if the database never heard of it.
pub(super) fn count(conn: &Connection, file: ContentId) -> Result<Option<i64>, DbError> {
    use rusqlite::OptionalExtension;
    let mut select = conn.prepare_cached("SELECT refs FROM file WHERE id = ?1")?;
    Ok(select.query_row([signed(file.0)], |row| row.get(0)).optional()?)
}

/// Forgets files that were unlinked.
pub(super) fn forget(conn: &Connection, files: &[ContentId]) -> Result<(), DbError> {
    let mut delete = conn.prepare_cached("DELETE FROM file WHERE id = ?1 AND refs = 0")?;
    for file in files {
        delete.execute([signed(file.0)])?;
    }
    Ok(())
}
