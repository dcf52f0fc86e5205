//! Listing: seeks to where a page begins, and past a common prefix instead of through it.
//! Which parameters are legal is decided by the engine.

use rusqlite::params;
use serde::de::DeserializeOwned;

use super::states::{blob_row, select_blob};
use super::tx::BlobTx;
use super::types::{ContainerId, StateKey, StateRow};
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
