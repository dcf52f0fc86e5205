//! The extents of a state: rows of at most 512 packed extents, so that an append or a page write
//! rewrites little.

use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, params};

use super::types::{ContentId, StateId, signed, unsigned};
use crate::db::DbError;

/// The most extents in a row.
pub(super) const ROW_MAX: usize = 512;

/// Bytes of a blob that lie in one piece in a content file, or pages that were cleared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    /// Where in the blob.
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) file: ContentId,
    /// Where in the file.
    pub(super) offset: u64,
    /// The counter of the write.
    pub(super) write: u64,
}

impl Extent {
    pub(super) fn end(&self) -> u64 {
        self.start + self.length
    }

    /// Pages that a write cleared. They read as zeros, and differences have to show them.
    pub(super) fn cleared(range: &Range<u64>, write: u64) -> Self {
        let (start, length) = (range.start, range.end - range.start);
        Self { start, length, file: ContentId::NONE, offset: 0, write }
    }

    pub(super) fn is_cleared(&self) -> bool {
        self.file == ContentId::NONE
    }

    /// Not empty, and no end beyond the largest number.
    fn is_sound(&self) -> bool {
        self.length > 0
            && self.start.checked_add(self.length).is_some()
            && self.offset.checked_add(self.length).is_some()
    }

    /// The part of it that lies in `from..to`.
    pub(super) fn cut(&self, from: u64, to: u64) -> Option<Self> {
        let start = self.start.max(from);
        let end = self.end().min(to);
        (start < end).then(|| Self {
            start,
            length: end - start,
            offset: self.offset + (start - self.start),
            ..*self
        })
    }
}

/// Packs extents in ascending order. Each is written as its difference to what would follow the
/// one before it without a gap, so that blocks of one upload take a few bytes each.
pub(super) fn pack(first: u64, extents: &[Extent]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(extents.len() * 8 + 24);
    let mut last = Last::new(first);
    for extent in extents {
        put_number(&mut bytes, extent.start.wrapping_sub(last.start));
        put_number(&mut bytes, extent.length);
        put_difference(&mut bytes, extent.file.0, last.file);
        put_difference(&mut bytes, extent.offset, last.offset);
        put_difference(&mut bytes, extent.write, last.write);
        last.follow(extent);
    }
    bytes
}

/// The extents of a row.
fn unpack(first: u64, packed: &[u8]) -> Result<Vec<Extent>, DbError> {
    let mut extents = Vec::new();
    let mut rest = packed;
    let mut last = Last::new(first);
    while !rest.is_empty() {
        let extent = last.read(&mut rest);
        let extent = extent.filter(Extent::is_sound);
        let extent = extent.ok_or_else(|| DbError::damaged("a list of extents ends too early"))?;
        last.follow(&extent);
        extents.push(extent);
    }
    Ok(extents)
}

/// What the next extent would be if it continued the last one.
struct Last {
    start: u64,
    file: u64,
    offset: u64,
    write: u64,
}

impl Last {
    fn new(first: u64) -> Self {
        Self { start: first, file: 0, offset: 0, write: 0 }
    }

    fn follow(&mut self, extent: &Extent) {
        self.start = extent.end();
        self.file = extent.file.0;
        self.offset = extent.offset + extent.length;
        self.write = extent.write;
    }

    fn read(&self, bytes: &mut &[u8]) -> Option<Extent> {
        Some(Extent {
            start: self.start.checked_add(take_number(bytes)?)?,
            length: take_number(bytes)?,
            file: ContentId(take_difference(bytes, self.file)?),
            offset: take_difference(bytes, self.offset)?,
            write: take_difference(bytes, self.write)?,
        })
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            return bytes.push(low);
        }
        bytes.push(low | 0x80);
    }
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The difference as a number that is small for small differences in both directions.
fn put_difference(bytes: &mut Vec<u8>, number: u64, last: u64) {
    let difference = number.wrapping_sub(last).cast_signed();
    put_number(bytes, ((difference << 1) ^ (difference >> 63)).cast_unsigned());
}

fn take_difference(bytes: &mut &[u8], last: u64) -> Option<u64> {
    let folded = take_number(bytes)?;
    let difference = (folded >> 1) ^ (folded & 1).wrapping_neg();
    Some(last.wrapping_add(difference))
}

/// Packs the IDs of blocks, 1 to 64 bytes each.
fn pack_ids<'a>(ids: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for id in ids {
        put_number(&mut bytes, id.len() as u64);
        bytes.extend_from_slice(id);
    }
    bytes
}

fn unpack_ids(packed: &[u8]) -> Result<Vec<Vec<u8>>, DbError> {
    let mut ids = Vec::new();
    let mut rest = packed;
    while !rest.is_empty() {
        let length = take_number(&mut rest).and_then(|length| usize::try_from(length).ok());
        let id = length.and_then(|length| rest.split_at_checked(length));
        let (id, after) = id.ok_or_else(|| DbError::damaged("a block list ends too early"))?;
        ids.push(id.to_vec());
        rest = after;
    }
    Ok(ids)
}

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_extents() -> impl Strategy<Value = (u64, Vec<Extent>)> {
        let part =
            (0_u64..1 << 40, 1_u64..1 << 33, 0..=u64::MAX >> 1, 0_u64..1 << 43, 0..=u64::MAX >> 1);
        prop::collection::vec(part, 0..40).prop_map(|parts| {
            let mut start = 0;
            let extents: Vec<_> = parts
                .into_iter()
                .map(|(gap, length, file, offset, write)| {
                    start += gap;
                    let extent = Extent { start, length, file: ContentId(file), offset, write };
                    start += length;
                    extent
                })
                .collect();
            (extents.first().map_or(0, |first| first.start), extents)
        })
    }

    proptest! {
        #[test]
        fn packed_extents_come_back((first, extents) in any_extents()) {
            prop_assert_eq!(unpack(first, &pack(first, &extents)).unwrap(), extents);
        }

        #[test]
        fn damaged_rows_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpack(7, &bytes);
            let _ = unpack_ids(&bytes);
        }

        #[test]
        fn packed_ids_come_back(
            ids in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..=64), 0..40),
        ) {
            let packed = pack_ids(ids.iter().map(Vec::as_slice));
            prop_assert_eq!(unpack_ids(&packed).unwrap(), ids);
        }
    }

    #[test]
    fn blocks_of_one_upload_take_few_bytes() {
        let block = |index: u64| Extent {
            start: index * 4096,
            length: 4096,
            file: ContentId(1_790_000_000_000_000_000),
            offset: 7_000_000 + index * 4096,
            write: 0,
        };
        let extents: Vec<_> = (0..512).map(block).collect();
        assert!(pack(0, &extents).len() < 512 * 6 + 20);
    }

    #[test]
    fn a_cut_keeps_start_and_offset_together() {
        let extent = Extent { start: 100, length: 50, file: ContentId(1), offset: 1000, write: 3 };
        let cut = extent.cut(110, 130).unwrap();
        assert_eq!((cut.start, cut.length, cut.offset, cut.write), (110, 20, 1010, 3));
        assert_eq!(extent.cut(0, 1000), Some(extent));
        assert_eq!(extent.cut(150, 200), None);
        assert_eq!(extent.cut(0, 100), None);
    }
}
