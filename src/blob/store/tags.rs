//! The index of tags: which current blobs have which tags.
//! Which tags are legal, and what a query means, is decided by the engine.

use std::ops::Bound;

use rusqlite::{OptionalExtension, params};
use serde::de::DeserializeOwned;

use super::remove;
use super::states::blob_row;
use super::tx::{BlobTx, WriteTx};
use super::types::{ContainerId, StateId, StateKey, StateRow, text};
use crate::db::DbError;

/// A search by one tag.
#[derive(Clone, Copy, Debug)]
pub struct TagSearch<'a> {
    /// Only in this container.
    pub container: Option<ContainerId>,
    pub key: &'a str,
    pub low: Bound<&'a str>,
    pub high: Bound<&'a str>,
    /// The first container and blob name to show: the second result of the page before.
    pub from: Option<(&'a str, &'a str)>,
    pub limit: usize,
}

/// A page of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaggedPage<R> {
    /// The container's name and the blob, in order of container and name.
    pub items: Vec<(String, StateRow<R>)>,
    /// Container and blob name where the next page begins.
    pub next: Option<(String, String)>,
}

impl BlobTx<'_> {
    /// Current blobs with the tag that `accept` takes, in order of container and name. `accept` is
    /// given the container's name.
    ///
    /// Goes from container to container by name, and in each to the first name of the page: a page
    /// costs what it shows, wherever it begins. One value is found by the table's key, which is in
    /// the order of names then; values of a range by an index that has them in that order.
    pub fn find<R: DeserializeOwned>(
        &self,
        search: &TagSearch<'_>,
        mut accept: impl FnMut(&str, &StateRow<R>) -> bool,
    ) -> Result<TaggedPage<R>, DbError> {
        let mut page = TaggedPage { items: Vec::new(), next: None };
        let (first, from) = search.from.unwrap_or(("", ""));
        let mut select = self.conn.prepare_cached(
            "SELECT id, name FROM container
             WHERE name >= ?1 AND version = '' AND (?2 IS NULL OR id = ?2) ORDER BY name",
        )?;
        let only = search.container.map(|container| container.0);
        let mut containers = select.query(params![first.as_bytes(), only])?;
        while let Some(row) = containers.next()? {
            let (id, container) = (row.get(0)?, text(row.get(1)?)?);
            let from = if container == first { from } else { "" };
            let mut take = |blob: StateRow<R>| {
                if !accept(&container, &blob) {
                    return true;
                }
                if page.items.len() >= search.limit {
                    page.next = Some((container.clone(), blob.name));
                    return false;
                }
                page.items.push((container.clone(), blob));
                true
            };
            self.find_in(id, search, from, &mut take)?;
            if page.next.is_some() {
                break;
            }
        }
        Ok(page)
    }

    /// Blobs of one container with the tag, from the name `from` on, until `take` returns false.
    fn find_in<R: DeserializeOwned>(
        &self,
        container: i64,
        search: &TagSearch<'_>,
        from: &str,
        take: &mut dyn FnMut(StateRow<R>) -> bool,
    ) -> Result<(), DbError> {
        const COLUMNS: &str = "SELECT blob.id, blob.name, blob.rank, blob.time, blob.deleted, \
                               blob.until, blob.length, blob.record FROM tag";
        let key = search.key;
        let equal = match (search.low, search.high) {
            (Bound::Included(low), Bound::Included(high)) if low == high => Some(low),
            _ => None,
        };
        let mut select = if equal.is_some() {
            self.conn.prepare_cached(&format!(
                "{COLUMNS} JOIN blob ON blob.id = tag.state
                 WHERE tag.key = ?1 AND tag.value = ?2 AND tag.container = ?3 AND tag.name >= ?4
                 ORDER BY tag.name"
            ))?
        } else {
            self.conn.prepare_cached(&format!(
                "{COLUMNS} JOIN blob ON blob.id = tag.state
                 WHERE tag.key = ?1 AND tag.container = ?3 AND tag.name >= ?4
                   AND tag.value >= ?2 AND (tag.value > ?2 OR ?5)
                   AND (?6 IS NULL OR tag.value < ?6 OR (tag.value = ?6 AND ?7))
                 ORDER BY tag.name"
            ))?
        };
        let (low, with_low) = match search.low {
            Bound::Included(low) => (low, true),
            Bound::Excluded(low) => (low, false),
            Bound::Unbounded => ("", true),
        };
        let (high, with_high) = match search.high {
            Bound::Included(high) => (Some(high), true),
            Bound::Excluded(high) => (Some(high), false),
            Bound::Unbounded => (None, true),
        };
        let from = from.as_bytes();
        let mut rows = if equal.is_some() {
            select.query(params![key, low, container, from])?
        } else {
            select.query(params![key, low, container, from, with_low, high, with_high])?
        };
        while let Some(row) = rows.next()? {
            if !take(blob_row(row)?) {
                break;
            }
        }
        Ok(())
    }
}

impl WriteTx<'_> {
    /// Replaces the index entries of a blob. States that are not current have none: they lose them
    /// when they stop being it.
    pub fn set_tags<'t>(
        &self,
        id: StateId,
        tags: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Result<(), DbError> {
        let found = self
            .conn
            .prepare_cached("SELECT container, name, rank, tagged FROM blob WHERE id = ?1")?
            .query_row([id.0], |row| {
                let place = (row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?);
                Ok((place, row.get::<_, i64>(2)?, row.get::<_, bool>(3)?))
            })
            .optional()?;
        let Some(((container, name), rank, tagged)) = found else { return Ok(()) };
        if tagged {
            remove::tags(self.conn, id)?;
        }
        let mut any = false;
        if StateKey::Current.columns().0 == rank {
            let mut insert = self.conn.prepare_cached(
                "INSERT OR REPLACE INTO tag (key, value, container, name, state)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            for (key, value) in tags {
                insert.execute(params![key, value, container, name, id.0])?;
                any = true;
            }
        }
        if tagged != any {
            self.conn
                .prepare_cached("UPDATE blob SET tagged = ?2 WHERE id = ?1")?
                .execute(params![id.0, any])?;
        }
        Ok(())
    }
}
