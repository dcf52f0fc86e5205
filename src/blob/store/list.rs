//! Pages of blobs: by name, where a page seeks past a common prefix instead of reading through it,
//! and by tag, with the index of tags. Which parameters, tags and queries are legal is decided by
//! the service.

use std::ops::Bound;

use rusqlite::{OptionalExtension, params};
use serde::de::DeserializeOwned;

use super::janitor;
use super::states::{blob_row, select_blob};
use super::tx::{BlobTx, WriteTx};
use super::types::{ContainerId, StateId, StateKey, StateRow, text};
use crate::db::DbError;

/// The most entries of a page.
pub const LIST_MAX: usize = 5000;

/// The entries of a page: Current states, and others as asked for. The last column: whether the row
/// stands for a blob that is deleted and has versions, as the newest of them. By CASE, so that a
/// page which does not ask for that looks for no other states.
pub(super) const PAGE: &str = select_blob!(
    ", CASE WHEN ?10 AND rank = 1 AND deleted IS NULL THEN NOT EXISTS (
         SELECT 1 FROM blob AS other
         WHERE other.container = ?1 AND other.name = blob.name AND other.deleted IS NULL
           AND (other.rank = 3 OR (other.rank = 1 AND other.time > blob.time)))
       ELSE 0 END AS stands",
    "container = ?1 AND (name, rank, time) >= (?2, ?3, ?4) AND name < ?5
       AND (rank = 3 OR (rank = 0 AND ?6) OR (rank = 1 AND ?7) OR (rank = 2 AND ?8)
            OR (rank = 4 AND ?9) OR stands)
       AND (deleted IS NULL OR ?8)
     ORDER BY name, rank, time"
);

/// What a listing of blobs asks for.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own in the request")]
pub struct ListBlobs {
    /// Names begin with this.
    pub prefix: String,
    /// Names that go on after the prefix with something and this are shown as one prefix.
    pub delimiter: Option<String>,
    /// The first entry to show: `next` of the page before.
    pub from: Option<ListPosition>,
    /// Names are below this one.
    pub before: Option<String>,
    /// The most entries, and never more than [`LIST_MAX`].
    pub limit: usize,
    pub snapshots: bool,
    pub versions: bool,
    /// Also what is deleted and kept.
    pub deleted: bool,
    /// Also names that have only uncommitted blocks.
    pub uncommitted: bool,
    /// Also names that have only versions, by the newest of them.
    pub deleted_with_versions: bool,
}

/// Where a page begins: the first entry that was not shown yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListPosition {
    pub name: String,
    /// The state; `None`: the first of the name.
    pub key: Option<StateKey>,
}

/// An entry of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListedBlob<R> {
    /// Names with this prefix, up to and with the delimiter.
    Prefix(String),
    /// A state of a blob.
    Blob(Box<StateRow<R>>),
    /// The newest version of a blob that is deleted: it stands for the blob.
    DeletedWithVersions(Box<StateRow<R>>),
}

/// A page of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlobListing<R> {
    /// The entries, in order of their bytes.
    pub items: Vec<ListedBlob<R>>,
    /// Where the next page begins.
    pub next: Option<ListPosition>,
}

/// How far a scan got.
enum Scan {
    /// To the end of the names.
    End,
    /// To the first entry of the next page.
    Full(ListPosition),
    /// To a common prefix; it goes on at these bytes.
    Prefix(Vec<u8>),
}

impl BlobTx<'_> {
    /// A page of a container's blobs.
    pub fn list_blobs<R: DeserializeOwned>(
        &self,
        container: ContainerId,
        ask: &ListBlobs,
    ) -> Result<BlobListing<R>, DbError> {
        let from = ask.from.as_ref().filter(|from| from.name >= ask.prefix);
        let mut name = from.map_or(&ask.prefix, |from| &from.name).clone().into_bytes();
        let mut key = from.and_then(|from| from.key);
        let mut items = Vec::new();
        loop {
            match self.scan(container, ask, (&name, key), &mut items)? {
                Scan::End => return Ok(BlobListing { items, next: None }),
                Scan::Full(next) => return Ok(BlobListing { items, next: Some(next) }),
                Scan::Prefix(next) => (name, key) = (next, None),
            }
        }
    }

    fn scan<R: DeserializeOwned>(
        &self,
        container: ContainerId,
        ask: &ListBlobs,
        (name, key): (&[u8], Option<StateKey>),
        items: &mut Vec<ListedBlob<R>>,
    ) -> Result<Scan, DbError> {
        let mut select = self.conn.prepare_cached(PAGE)?;
        let (rank, time) = key.map_or((0, i64::MIN), StateKey::columns);
        let mut end = successor(ask.prefix.as_bytes());
        if let Some(before) = &ask.before {
            end = end.min(before.clone().into_bytes());
        }
        let (snapshots, versions) = (ask.snapshots, ask.versions);
        let given = params![
            container.0,
            name,
            rank,
            time,
            end,
            snapshots,
            versions,
            ask.deleted,
            ask.uncommitted,
            ask.deleted_with_versions
        ];
        let mut rows = select.query(given)?;
        while let Some(row) = rows.next()? {
            let full = items.len() >= ask.limit.min(LIST_MAX);
            if let Some(prefix) = ask.common_prefix(row.get_ref(1)?.as_blob().unwrap_or(&[])) {
                if full {
                    return Ok(Scan::Full(ListPosition { name: prefix, key: None }));
                }
                let next = successor(prefix.as_bytes());
                items.push(ListedBlob::Prefix(prefix));
                return Ok(Scan::Prefix(next));
            }
            let stands: bool = row.get("stands")?;
            let row = blob_row(row)?;
            if full {
                return Ok(Scan::Full(ListPosition { name: row.name, key: Some(row.key) }));
            }
            let kind = if stands { ListedBlob::DeletedWithVersions } else { ListedBlob::Blob };
            items.push(kind(Box::new(row)));
        }
        Ok(Scan::End)
    }
}

impl ListBlobs {
    /// The prefix that stands for this name in the listing, if it does not stand for itself.
    fn common_prefix(&self, name: &[u8]) -> Option<String> {
        let delimiter = self.delimiter.as_ref().filter(|delimiter| !delimiter.is_empty())?;
        let rest = name.get(self.prefix.len()..)?;
        let found = rest.windows(delimiter.len()).position(|at| at == delimiter.as_bytes())?;
        let end = self.prefix.len() + found + delimiter.len();
        String::from_utf8(name[..end].to_vec()).ok()
    }
}

/// The least bytes that are greater than all that begin with `prefix`. No name has a byte 0xff, so
/// that one is greater than all names.
pub(super) fn successor(prefix: &[u8]) -> Vec<u8> {
    let mut next = prefix.to_vec();
    match next.last_mut() {
        // UTF-8 has no byte above 0xf4.
        Some(last) => *last += 1,
        None => next.push(0xff),
    }
    next
}

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
            janitor::tags(self.conn, id)?;
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
