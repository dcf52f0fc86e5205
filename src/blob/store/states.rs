//! Rows of blobs and their bytes, for reading. How they change is in [`super::change`].

use std::ops::Range;
use std::sync::Arc;

use rusqlite::{OptionalExtension, Row as SqlRow, params};
use serde::de::DeserializeOwned;

use super::extents;
use super::reader::ContentReader;
use super::tx::BlobTx;
use super::types::{
    ContainerId, Retained, StateId, StateKey, StateKind, StateRow, decode, signed, text, unsigned,
};
use crate::db::DbError;
use crate::rules::Timestamp;

/// A statement that reads the columns of [`blob_row`], and perhaps more.
macro_rules! select_blob {
    ($more:literal, $rest:literal) => {
        concat!(
            "SELECT id, name, rank, time, deleted, until, length, record",
            $more,
            " FROM blob WHERE ",
            $rest
        )
    };
}
pub(super) use select_blob;

const BY_KEY: &str = select_blob!("", "container = ?1 AND name = ?2 AND rank = ?3 AND time = ?4");
const BY_KIND: &str = select_blob!("", "container = ?1 AND name = ?2 AND rank = ?3 ORDER BY time");
const BY_NAME: &str = select_blob!("", "container = ?1 AND name = ?2 ORDER BY rank, time");
const FROM_KIND: &str =
    select_blob!("", "container = ?1 AND name = ?2 AND rank >= ?3 ORDER BY rank, time");

/// Rows of extents that an event loop reads, and content files that it opens, for one reader.
const SHORT_ROWS: usize = 4;
const SHORT_FILES: usize = 4;

/// The most blobs that are searched for leases: the newest.
pub const SEARCHED_MAX: u64 = 100_000;

/// How a record that has a lease tells it: a record without one has a text there. A quote in a
/// value is written with a backslash, so nothing else in a record reads like this.
pub(super) const LEASE: &[u8] = b"\"lease\":{";

/// Blobs that have a lease.
pub struct LeasedBlobs<R> {
    /// With the names of their containers, in order.
    pub blobs: Vec<(String, StateRow<R>)>,
    /// How many rows of blobs were not searched.
    pub unsearched: u64,
}

/// Bytes of a page blob that one write wrote or cleared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrittenRange {
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    /// The counter of the write.
    pub write: u64,
    /// Whether the write cleared it.
    pub cleared: bool,
}

/// What a name leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head<R> {
    /// The blob, or the row of a name that has only uncommitted blocks.
    pub row: Option<StateRow<R>>,
    /// Whether deleted blobs are kept, which a new one buries.
    pub has_deleted: bool,
}

/// A row that stands where a new state goes.
pub(super) struct Standing {
    pub(super) id: StateId,
    pub(super) inline: bool,
    pub(super) tagged: bool,
    pub(super) length: u64,
}

impl BlobTx<'_> {
    /// The state of this name and key.
    pub fn state<R: DeserializeOwned>(
        &self,
        container: ContainerId,
        name: &str,
        key: StateKey,
    ) -> Result<Option<StateRow<R>>, DbError> {
        let (rank, time) = key.columns();
        let mut select = self.conn.prepare_cached(BY_KEY)?;
        let mut rows = select.query(params![container.0, name.as_bytes(), rank, time])?;
        rows.next()?.map(blob_row).transpose()
    }

    /// The blob of a name, or its uncommitted blocks.
    pub fn head<R: DeserializeOwned>(
        &self,
        container: ContainerId,
        name: &str,
    ) -> Result<Head<R>, DbError> {
        let deleted = StateKind::Deleted.rank();
        let mut select = self.conn.prepare_cached(FROM_KIND)?;
        let mut rows = select.query(params![container.0, name.as_bytes(), deleted])?;
        let mut has_deleted = false;
        while let Some(row) = rows.next()? {
            if row.get::<_, i64>(2)? != deleted {
                return Ok(Head { row: Some(blob_row(row)?), has_deleted });
            }
            has_deleted = true;
        }
        Ok(Head { row: None, has_deleted })
    }

    /// All states of a name, in order of their keys.
    pub fn states<R: DeserializeOwned>(
        &self,
        container: ContainerId,
        name: &str,
    ) -> Result<Vec<StateRow<R>>, DbError> {
        let mut select = self.conn.prepare_cached(BY_NAME)?;
        let mut rows = select.query(params![container.0, name.as_bytes()])?;
        let mut states = Vec::new();
        while let Some(row) = rows.next()? {
            states.push(blob_row(row)?);
        }
        Ok(states)
    }

    /// The states of a name that have this kind, in order of their times.
    pub fn states_of<R: DeserializeOwned>(
        &self,
        container: ContainerId,
        name: &str,
        kind: StateKind,
    ) -> Result<Vec<StateRow<R>>, DbError> {
        let mut select = self.conn.prepare_cached(BY_KIND)?;
        let mut rows = select.query(params![container.0, name.as_bytes(), kind.rank()])?;
        let mut states = Vec::new();
        while let Some(row) = rows.next()? {
            states.push(blob_row(row)?);
        }
        Ok(states)
    }

    /// When the retention of a deleted state or container ends first.
    pub fn next_retention_end(&self) -> Result<Option<Timestamp>, DbError> {
        let mut first: Option<i64> = None;
        for sql in [
            "SELECT min(until) FROM blob WHERE until IS NOT NULL",
            "SELECT min(until) FROM container WHERE until IS NOT NULL",
        ] {
            let until: Option<i64> =
                self.conn.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            first = first.into_iter().chain(until).min();
        }
        Ok(first.map(Timestamp))
    }

    /// True if the name has a state of this kind. Snapshots and versions that are deleted and
    /// kept do not count.
    pub fn has_states(
        &self,
        container: ContainerId,
        name: &str,
        kind: StateKind,
    ) -> Result<bool, DbError> {
        let mut select = self.conn.prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM blob WHERE container = ?1 AND name = ?2
                            AND rank = ?3 AND (deleted IS NULL OR ?4))",
        )?;
        let deleted = kind == StateKind::Deleted;
        let given = params![container.0, name.as_bytes(), kind.rank(), deleted];
        Ok(select.query_row(given, |row| row.get(0))?)
    }

    /// The bytes of a state.
    pub fn reader(&self, id: StateId) -> Result<ContentReader, DbError> {
        self.range_reader(id, 0..u64::MAX)
    }

    /// The bytes of a part of a state. Offsets remain those of the state.
    pub fn range_reader(&self, id: StateId, range: Range<u64>) -> Result<ContentReader, DbError> {
        let (length, data) = self.length_and_data(id)?;
        self.reader_of(id, length, data, range)
    }

    fn length_and_data(&self, id: StateId) -> Result<(u64, Option<Vec<u8>>), DbError> {
        let mut select = self.conn.prepare_cached("SELECT length, data FROM blob WHERE id = ?1")?;
        let found = select.query_row([id.0], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)));
        let missing = || DbError::Io(format!("there is no state {}", id.0));
        let (length, data) = found.optional()?.ok_or_else(missing)?;
        Ok((unsigned(length)?, data))
    }

    /// As [`BlobTx::range_reader`], for event loops: `None` if that takes more than a few rows and
    /// files.
    pub fn short_reader(
        &self,
        id: StateId,
        range: Range<u64>,
    ) -> Result<Option<ContentReader>, DbError> {
        let (length, data) = self.length_and_data(id)?;
        if data.is_some() {
            return self.reader_of(id, length, data, range).map(Some);
        }
        let range = range.start..range.end.min(length);
        let rows = extents::some_rows_of(self.conn, id, &range, SHORT_ROWS + 1)?;
        if rows.len() > SHORT_ROWS {
            return Ok(None);
        }
        let mut files = std::collections::HashSet::new();
        for row in &rows {
            for extent in row.unpack()? {
                if !extent.is_cleared() && extent.cut(range.start, range.end).is_some() {
                    files.insert(extent.file);
                }
            }
        }
        if files.len() > SHORT_FILES {
            return Ok(None);
        }
        let files = Arc::clone(&self.shared.files);
        ContentReader::open(length, range, rows, files, self.token).map(Some)
    }

    fn reader_of(
        &self,
        id: StateId,
        length: u64,
        data: Option<Vec<u8>>,
        range: Range<u64>,
    ) -> Result<ContentReader, DbError> {
        let files = Arc::clone(&self.shared.files);
        match data {
            Some(data) if data.len() as u64 == length => Ok(ContentReader::inline(data, files)),
            Some(_) => Err(DbError::damaged("a blob's length and its bytes differ")),
            None => {
                let range = range.start..range.end.min(length);
                let rows = extents::rows_of(self.conn, id, &range)?;
                ContentReader::open(length, range, rows, files, self.token)
            }
        }
    }

    /// The current states of blobs whose records have a lease. There is no index of leases, so the
    /// newest rows are searched. Whether a lease is in force is decided by the service.
    pub fn leased_blobs<R: DeserializeOwned>(&self) -> Result<LeasedBlobs<R>, DbError> {
        let mut select = self.conn.prepare_cached(
            "SELECT b.id, b.name, b.rank, b.time, b.deleted, b.until, b.length, b.record, c.name
             FROM (SELECT id, container, name, rank, time, deleted, until, length, record
                   FROM blob ORDER BY id DESC LIMIT ?1) b
             JOIN container c ON c.id = b.container AND c.version = ''
             WHERE b.rank = 3 AND b.deleted IS NULL AND instr(b.record, ?2) > 0
             ORDER BY c.name, b.name",
        )?;
        let mut rows = select.query(params![signed(SEARCHED_MAX), LEASE])?;
        let mut blobs = Vec::new();
        while let Some(row) = rows.next()? {
            blobs.push((text(row.get(8)?)?, blob_row(row)?));
        }
        let count = "SELECT count(*) FROM blob";
        let count: i64 = self.conn.prepare_cached(count)?.query_row([], |row| row.get(0))?;
        Ok(LeasedBlobs { blobs, unsearched: unsigned(count)?.saturating_sub(SEARCHED_MAX) })
    }

    /// The written and cleared ranges of a page blob within `window`, in order.
    pub fn written(&self, id: StateId, window: Range<u64>) -> Result<Vec<WrittenRange>, DbError> {
        let extents = extents::extents_in(self.conn, id, &window)?;
        let written = extents.iter().map(|extent| WrittenRange {
            start: extent.start,
            end: extent.end(),
            write: extent.write,
            cleared: extent.is_cleared(),
        });
        Ok(written.collect())
    }

    pub(super) fn standing(
        &self,
        container: ContainerId,
        name: &str,
        key: StateKey,
    ) -> Result<Option<Standing>, DbError> {
        let (rank, time) = key.columns();
        let mut select = self.conn.prepare_cached(
            "SELECT id, data IS NOT NULL, tagged, length FROM blob
             WHERE container = ?1 AND name = ?2 AND rank = ?3 AND time = ?4",
        )?;
        let given = params![container.0, name.as_bytes(), rank, time];
        let found = select.query_row(given, |row| {
            Ok(Standing {
                id: StateId(row.get(0)?),
                inline: row.get(1)?,
                tagged: row.get(2)?,
                length: row.get::<_, i64>(3)?.cast_unsigned(),
            })
        });
        Ok(found.optional()?)
    }
}

/// The first columns of a row that [`select_blob`] selects.
pub(super) fn blob_row<R: DeserializeOwned>(row: &SqlRow<'_>) -> Result<StateRow<R>, DbError> {
    Ok(StateRow {
        id: StateId(row.get(0)?),
        name: text(row.get(1)?)?,
        key: StateKey::from_columns(row.get(2)?, row.get(3)?)?,
        retained: Retained::from_columns(row.get(4)?, row.get(5)?),
        length: unsigned(row.get(6)?)?,
        record: decode(row.get_ref(7)?.as_blob().unwrap_or(&[]))?,
    })
}
