//! The extents of a state: rows of at most 512, so that an append or a page write rewrites little.
//! How a row is packed is decided in [`super::extent`].

use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, params};

use super::extent::{Extent, ROW_MAX, pack, pack_ids, unpack, unpack_ids};
use super::types::{StateId, signed, unsigned};
use crate::db::DbError;

/// A row as it is stored. Its extents begin at or after `first`, and end before the next row.
#[derive(Clone, Debug)]
pub(super) struct PackedRow {
    pub(super) first: u64,
    pub(super) packed: Vec<u8>,
}

impl PackedRow {
    pub(super) fn unpack(&self) -> Result<Vec<Extent>, DbError> {
        unpack(self.first, &self.packed)
    }
}

/// The rows that can have bytes of `range`.
pub(super) fn rows_of(
    conn: &Connection,
    state: StateId,
    range: &Range<u64>,
) -> Result<Vec<PackedRow>, DbError> {
    some_rows_of(conn, state, range, usize::MAX)
}

/// The first rows, at most `most`, that can have bytes of `range`.
pub(super) fn some_rows_of(
    conn: &Connection,
    state: StateId,
    range: &Range<u64>,
    most: usize,
) -> Result<Vec<PackedRow>, DbError> {
    let mut select = conn.prepare_cached(
        "SELECT first, packed FROM extents
         WHERE state = ?1 AND first < ?3 AND first >= coalesce(
             (SELECT max(first) FROM extents WHERE state = ?1 AND first <= ?2), ?2)
         ORDER BY first LIMIT ?4",
    )?;
    let most = signed(most as u64);
    let mut found = select.query(params![state.0, signed(range.start), signed(range.end), most])?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        rows.push(PackedRow { first: unsigned(row.get(0)?)?, packed: row.get(1)? });
    }
    Ok(rows)
}

/// The extents in `range`, cut to it.
pub(super) fn extents_in(
    conn: &Connection,
    state: StateId,
    range: &Range<u64>,
) -> Result<Vec<Extent>, DbError> {
    let mut extents = Vec::new();
    for row in rows_of(conn, state, range)? {
        let inside = row.unpack()?.into_iter();
        extents.extend(inside.filter_map(|extent| extent.cut(range.start, range.end)));
    }
    Ok(extents)
}

/// Writes the row of these extents, of at most [`ROW_MAX`].
pub(super) fn insert_row(
    conn: &Connection,
    state: StateId,
    extents: &[Extent],
    ids: Option<&[u8]>,
) -> Result<(), DbError> {
    let Some(first) = extents.first() else { return Ok(()) };
    conn.prepare_cached("INSERT INTO extents (state, first, packed, ids) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![state.0, signed(first.start), pack(first.start, extents), ids])?;
    Ok(())
}

/// Writes the rows of blocks; `ids` has the block of each extent.
pub(super) fn insert_blocks<'a>(
    conn: &Connection,
    state: StateId,
    extents: &[Extent],
    mut ids: impl Iterator<Item = &'a [u8]>,
) -> Result<(), DbError> {
    for chunk in extents.chunks(ROW_MAX) {
        let ids = pack_ids(ids.by_ref().take(chunk.len()));
        insert_row(conn, state, chunk, Some(&ids))?;
    }
    Ok(())
}

/// Adds an extent behind all others. One that continues the last extent in its file becomes part
/// of it: small appends then do not make long lists.
pub(super) fn push(conn: &Connection, state: StateId, extent: Extent) -> Result<(), DbError> {
    let last = conn
        .prepare_cached(
            "SELECT first, packed FROM extents WHERE state = ?1 ORDER BY first DESC LIMIT 1",
        )?
        .query_row([state.0], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))
        .optional()?;
    let Some((first, packed)) = last else {
        return insert_row(conn, state, &[extent], None);
    };
    let row = PackedRow { first: unsigned(first)?, packed };
    let mut extents = row.unpack()?;
    let full = extents.len() >= ROW_MAX;
    match extents.last_mut() {
        Some(last) if continues(last, &extent) => {
            last.length += extent.length;
            last.write = extent.write;
        }
        _ if full => return insert_row(conn, state, &[extent], None),
        _ => extents.push(extent),
    }
    conn.prepare_cached("UPDATE extents SET packed = ?3 WHERE state = ?1 AND first = ?2")?
        .execute(params![state.0, first, pack(row.first, &extents)])?;
    Ok(())
}

fn continues(last: &Extent, next: &Extent) -> bool {
    last.end() == next.start && last.file == next.file && last.offset + last.length == next.offset
}

/// Replaces what is in `range` by `new`, or by nothing. Extents over a border are split.
pub(super) fn replace(
    conn: &Connection,
    state: StateId,
    range: &Range<u64>,
    new: Option<Extent>,
) -> Result<(), DbError> {
    let rows = rows_of(conn, state, range)?;
    let mut before = Vec::new();
    let mut after = Vec::new();
    for row in &rows {
        for extent in row.unpack()? {
            before.extend(extent.cut(0, range.start));
            after.extend(extent.cut(range.end, u64::MAX));
        }
    }
    let mut delete = conn.prepare_cached("DELETE FROM extents WHERE state = ?1 AND first = ?2")?;
    for row in &rows {
        delete.execute(params![state.0, signed(row.first)])?;
    }
    before.extend(new);
    before.append(&mut after);
    // Rows of about equal size: each keeps room for the next write.
    let count = before.len().div_ceil(ROW_MAX).max(1);
    for chunk in before.chunks(before.len().div_ceil(count).max(1)) {
        insert_row(conn, state, chunk, None)?;
    }
    Ok(())
}

/// Gives `to` the extents of `from`, which has none of its own.
pub(super) fn copy(conn: &Connection, from: StateId, to: StateId) -> Result<(), DbError> {
    conn.prepare_cached(
        "INSERT INTO extents (state, first, packed, ids)
         SELECT ?2, first, packed, ids FROM extents WHERE state = ?1",
    )?
    .execute([from.0, to.0])?;
    Ok(())
}

/// True if the state has more than `rows` rows.
pub(super) fn are_more_than(conn: &Connection, state: StateId, rows: u32) -> Result<bool, DbError> {
    let mut count = conn
        .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM extents WHERE state = ?1 LIMIT ?2)")?;
    let found: u32 = count.query_row(params![state.0, rows + 1], |row| row.get(0))?;
    Ok(found > rows)
}

/// Removes at most `limit` rows, and returns how many.
pub(super) fn remove(conn: &Connection, state: StateId, limit: u32) -> Result<usize, DbError> {
    let removed = conn
        .prepare_cached(
            "DELETE FROM extents WHERE state = ?1 AND first IN
                 (SELECT first FROM extents WHERE state = ?1 LIMIT ?2)",
        )?
        .execute(params![state.0, limit])?;
    Ok(removed)
}

/// The blocks of a state with their extents, in list order.
pub(super) fn blocks_of(
    conn: &Connection,
    state: StateId,
) -> Result<Vec<(Vec<u8>, Extent)>, DbError> {
    let mut select = conn.prepare_cached(
        "SELECT first, packed, ids FROM extents
         WHERE state = ?1 AND ids IS NOT NULL ORDER BY first",
    )?;
    let mut rows = select.query([state.0])?;
    let mut blocks = Vec::new();
    while let Some(row) = rows.next()? {
        let extents = unpack(unsigned(row.get(0)?)?, row.get_ref(1)?.as_blob().unwrap_or(&[]))?;
        let ids = unpack_ids(row.get_ref(2)?.as_blob().unwrap_or(&[]))?;
        if ids.len() != extents.len() {
            return Err(DbError::damaged("a block list and its extents differ in number"));
        }
        blocks.extend(ids.into_iter().zip(extents));
    }
    Ok(blocks)
}
