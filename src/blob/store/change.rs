//! Changes of blobs and their content: make, replace, share, append, write pages, remove.
//! Which state a request makes, and when, is decided by the engine.

use std::ops::Range;

use rusqlite::{OptionalExtension, params};
use serde::Serialize;

use super::content::{Bytes, Content};
use super::extents::Extent;
use super::states::Standing;
use super::tx::WriteTx;
use super::types::{ContainerId, Retained, StateId, StateKey, encode, signed, text, unsigned};
use super::{extents, janitor, reclaim};
use crate::db::DbError;
use crate::rules::Timestamp;

impl WriteTx<'_> {
    /// Makes the state of this name and key, or replaces it with all its content. Its block list
    /// and its tags are empty; uncommitted blocks stay.
    pub fn put(
        &self,
        container: ContainerId,
        name: &str,
        key: StateKey,
        record: &impl Serialize,
        content: Content,
    ) -> Result<StateId, DbError> {
        let (length, record) = (content.length(), encode(record)?);
        let place = (container, name, key);
        let id = self.put_row(place, &record, length, inline(&content))?;
        self.fill(id, content)?;
        Ok(id)
    }

    /// Makes the state of this name and key. It is an error if there is one.
    pub fn add(
        &self,
        container: ContainerId,
        name: &str,
        key: StateKey,
        record: &impl Serialize,
        content: Content,
    ) -> Result<StateId, DbError> {
        let (length, record) = (content.length(), encode(record)?);
        let id = StateId(self.shared.new_id());
        self.add_row(id, (container, name, key), &record, length, inline(&content))?;
        self.fill(id, content)?;
        Ok(id)
    }

    /// Gives a state that has no content what is not in its row.
    fn fill(&self, id: StateId, content: Content) -> Result<(), DbError> {
        if inline(&content).is_none()
            && let Some(extent) = self.refer(id.0, content, 0, 0)?
        {
            extents::insert_row(self.conn, id, &[extent], None)?;
        }
        Ok(())
    }

    /// Makes a state, or replaces one, that shares the content and the block list of another.
    pub fn put_shared(
        &self,
        container: ContainerId,
        name: &str,
        key: StateKey,
        record: &impl Serialize,
        from: StateId,
        retained: Option<Retained>,
    ) -> Result<StateId, DbError> {
        let record = encode(record)?;
        if let Some(standing) = self.standing(container, name, key)? {
            if standing.id == from {
                self.rekey_row(from, key, &record, retained)?;
                return Ok(from);
            }
            janitor::state(self.conn, self.shared, standing.id)?;
        }
        let id = StateId(self.shared.new_id());
        let (rank, time) = key.columns();
        let (deleted, until) = Retained::columns(retained);
        let made = self
            .conn
            .prepare_cached(
                "INSERT INTO blob (id, container, name, rank, time, deleted, until, generation,
                                   length, record, data)
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?1, length, ?8, data FROM blob WHERE id = ?9",
            )?
            .execute(params![
                id.0,
                container.0,
                name.as_bytes(),
                rank,
                time,
                deleted,
                until,
                record,
                from.0
            ])?;
        if made == 0 {
            return Err(DbError::Io(format!("there is no state {} to share", from.0)));
        }
        extents::copy(self.conn, from, id)?;
        reclaim::copy_references(self.conn, from.0, id.0)?;
        Ok(id)
    }

    /// Gives a state another key and record. What stands at that key is removed.
    pub fn rekey(
        &self,
        id: StateId,
        key: StateKey,
        record: &impl Serialize,
        retained: Option<Retained>,
    ) -> Result<(), DbError> {
        let found = self
            .conn
            .prepare_cached("SELECT container, name FROM blob WHERE id = ?1")?
            .query_row([id.0], |row| Ok((ContainerId(row.get(0)?), row.get::<_, Vec<u8>>(1)?)))
            .optional()?;
        let Some((container, name)) = found else { return Ok(()) };
        let name = text(name)?;
        if let Some(standing) = self.standing(container, &name, key)?
            && standing.id != id
        {
            janitor::state(self.conn, self.shared, standing.id)?;
        }
        self.rekey_row(id, key, &encode(record)?, retained)
    }

    fn rekey_row(
        &self,
        id: StateId,
        key: StateKey,
        record: &[u8],
        retained: Option<Retained>,
    ) -> Result<(), DbError> {
        let (rank, time) = key.columns();
        let (deleted, until) = Retained::columns(retained);
        if key != StateKey::Current {
            janitor::tags(self.conn, id)?;
        }
        self.conn
            .prepare_cached(
                "UPDATE blob SET rank = ?2, time = ?3, deleted = ?4, until = ?5, record = ?6,
                                 tagged = tagged AND ?7
                 WHERE id = ?1",
            )?
            .execute(params![id.0, rank, time, deleted, until, record, key == StateKey::Current])?;
        Ok(())
    }

    /// Replaces the record alone.
    pub fn update(&self, id: StateId, record: &impl Serialize) -> Result<(), DbError> {
        self.conn
            .prepare_cached("UPDATE blob SET record = ?2 WHERE id = ?1")?
            .execute(params![id.0, encode(record)?])?;
        Ok(())
    }

    /// Removes a state with its content and tags.
    pub fn remove(&self, id: StateId) -> Result<(), DbError> {
        janitor::state(self.conn, self.shared, id)
    }

    /// Removes at most `limit` states and containers whose time has come, and returns how many.
    pub fn purge(&self, now: Timestamp, limit: usize) -> Result<usize, DbError> {
        let ids = |sql: &str| -> Result<Vec<i64>, DbError> {
            let mut select = self.conn.prepare_cached(sql)?;
            let rows = select.query_map((now.0, signed(limit as u64)), |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        };
        let states = ids("SELECT id FROM blob WHERE until <= ?1 LIMIT ?2")?;
        for id in &states {
            self.remove(StateId(*id))?;
        }
        let containers = ids("SELECT id FROM container WHERE until <= ?1 LIMIT ?2")?;
        for id in &containers {
            self.delete_container(ContainerId(*id), None)?;
        }
        Ok(states.len() + containers.len())
    }

    /// Adds bytes at the end and returns the offset they begin at.
    pub fn append(&self, id: StateId, content: Content) -> Result<u64, DbError> {
        let start = self.length_without_inline(id)?;
        if let Some(extent) = self.refer(id.0, content, start, 0)? {
            extents::push(self.conn, id, extent)?;
            self.set_length(id, extent.end())?;
        }
        Ok(start)
    }

    /// Writes bytes at `offset`, inside the blob, in place of what was there.
    pub fn write_pages(
        &self,
        id: StateId,
        offset: u64,
        content: Content,
        write: u64,
    ) -> Result<(), DbError> {
        let length = self.length_without_inline(id)?;
        if offset.saturating_add(content.length()) > length {
            return Err(DbError::Io(format!("pages at {offset} end behind the blob's {length}")));
        }
        if let Some(extent) = self.refer(id.0, content, offset, write)? {
            extents::replace(self.conn, id, &(offset..extent.end()), Some(extent))?;
        }
        Ok(())
    }

    /// Takes written bytes away: the range reads as zeros.
    pub fn clear_pages(&self, id: StateId, range: Range<u64>, write: u64) -> Result<(), DbError> {
        self.length_without_inline(id)?;
        extents::replace(self.conn, id, &range, Some(Extent::cleared(&range, write)))
    }

    /// Sets the length. A shorter blob loses what is behind its end; a longer one has zeros there.
    pub fn resize(&self, id: StateId, length: u64) -> Result<(), DbError> {
        let old = self.length_without_inline(id)?;
        if length < old {
            extents::replace(self.conn, id, &(length..old), None)?;
        }
        self.set_length(id, length)
    }

    fn set_length(&self, id: StateId, length: u64) -> Result<(), DbError> {
        self.conn
            .prepare_cached("UPDATE blob SET length = ?2 WHERE id = ?1")?
            .execute([id.0, signed(length)])?;
        Ok(())
    }

    /// The length of a state whose content can be changed in parts: all of it is in files.
    fn length_without_inline(&self, id: StateId) -> Result<u64, DbError> {
        let mut select =
            self.conn.prepare_cached("SELECT length, data IS NOT NULL FROM blob WHERE id = ?1")?;
        let found = select.query_row([id.0], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)));
        match found.optional()? {
            Some((length, false)) => unsigned(length),
            Some((_, true)) => {
                Err(DbError::Io("a blob in a row cannot be changed in parts".into()))
            }
            None => Err(DbError::Io(format!("there is no state {}", id.0))),
        }
    }

    /// Makes or replaces a row; the content of the old one is removed.
    pub(super) fn put_row(
        &self,
        (container, name, key): (ContainerId, &str, StateKey),
        record: &[u8],
        length: u64,
        inline: Option<&[u8]>,
    ) -> Result<StateId, DbError> {
        let standing = self.standing(container, name, key)?;
        if let Some(standing) = standing {
            if self.clear(&standing)? {
                self.conn
                    .prepare_cached(
                        "UPDATE blob SET deleted = NULL, until = NULL, tagged = 0,
                                         generation = generation + 1,
                                         length = ?2, record = ?3, data = ?4
                         WHERE id = ?1",
                    )?
                    .execute(params![standing.id.0, signed(length), record, inline])?;
                return Ok(standing.id);
            }
            janitor::state(self.conn, self.shared, standing.id)?;
        }
        let id = StateId(self.shared.new_id());
        self.add_row(id, (container, name, key), record, length, inline)?;
        Ok(id)
    }

    fn add_row(
        &self,
        id: StateId,
        (container, name, key): (ContainerId, &str, StateKey),
        record: &[u8],
        length: u64,
        inline: Option<&[u8]>,
    ) -> Result<(), DbError> {
        let (rank, time) = key.columns();
        self.conn
            .prepare_cached(
                "INSERT INTO blob
                    (id, container, name, rank, time, generation, length, record, data)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?1, ?6, ?7, ?8)",
            )?
            .execute(params![
                id.0,
                container.0,
                name.as_bytes(),
                rank,
                time,
                signed(length),
                record,
                inline
            ])?;
        Ok(())
    }

    /// Removes content and tags, so that the row can be used again. False: it cannot.
    fn clear(&self, standing: &Standing) -> Result<bool, DbError> {
        if standing.tagged {
            janitor::tags(self.conn, standing.id)?;
        }
        if standing.inline {
            return Ok(true);
        }
        self.shared.add_garbage(standing.length);
        janitor::content(self.conn, self.shared, standing.id)
    }
}

/// The bytes of a content that are stored in the row.
fn inline(content: &Content) -> Option<&[u8]> {
    match &content.bytes {
        Bytes::Inline(bytes) if !bytes.is_empty() => Some(bytes),
        _ => None,
    }
}
