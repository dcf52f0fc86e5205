//! Blocks: those that are not committed, and lists of them that become a blob. Which IDs and lists
//! are legal is decided by the engine.

use std::collections::{HashMap, HashSet};

use rusqlite::{OptionalExtension, params};
use serde::Serialize;

use super::content::Content;
use super::extents::Extent;
use super::tx::{BlobTx, WriteTx};
use super::types::{ContainerId, ContentId, StateId, StateKey, encode, signed, text, unsigned};
use super::{extents, janitor, reclaim};
use crate::blob::rules::blocks::{BlockSearch, ListedBlock};
use crate::db::DbError;
use crate::rules::Timestamp;

/// A block list whose blocks were found, to be committed in the same transaction.
pub struct BlockList {
    /// Length of the blob that the list makes.
    pub length: u64,
    /// A block of the list was not committed before.
    pub uncommitted: bool,
    /// A block of the list is one of the blob as it is.
    pub committed: bool,
    /// The extent of each block.
    extents: Vec<Extent>,
    ids: Vec<Vec<u8>>,
    files: HashSet<ContentId>,
}

impl BlobTx<'_> {
    /// How many uncommitted blocks a name has, and the length of their IDs.
    pub fn block_summary(
        &self,
        container: ContainerId,
        name: &str,
    ) -> Result<(usize, Option<usize>), DbError> {
        let mut select = self.conn.prepare_cached(
            "SELECT blocks, id_length FROM upload WHERE container = ?1 AND name = ?2",
        )?;
        let found = select.query_row(params![container.0, name.as_bytes()], |row| {
            Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?))
        });
        let found = found.optional()?;
        Ok(found.map_or((0, None), |(blocks, length)| (blocks as usize, Some(length as usize))))
    }

    /// True if there is an uncommitted block of this ID.
    pub fn has_block(
        &self,
        container: ContainerId,
        name: &str,
        id: &[u8],
    ) -> Result<bool, DbError> {
        let sql = "SELECT 1 FROM block JOIN upload ON upload.id = block.upload
                   WHERE container = ?1 AND name = ?2 AND block.id = ?3";
        let mut select = self.conn.prepare_cached(sql)?;
        Ok(select.exists(params![container.0, name.as_bytes(), id])?)
    }

    /// IDs and lengths of the uncommitted blocks, in order of their IDs.
    pub fn uncommitted_blocks(
        &self,
        container: ContainerId,
        name: &str,
    ) -> Result<Vec<(Vec<u8>, u64)>, DbError> {
        let Some(upload) = self.upload(container, name)? else { return Ok(Vec::new()) };
        let sql = "SELECT id, length FROM block WHERE upload = ?1 ORDER BY id";
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query([upload])?;
        let mut blocks = Vec::new();
        while let Some(row) = rows.next()? {
            blocks.push((row.get(0)?, unsigned(row.get(1)?)?));
        }
        Ok(blocks)
    }

    /// IDs and lengths of the blocks that a state was made of, in the order of its list.
    pub fn committed_blocks(&self, id: StateId) -> Result<Vec<(Vec<u8>, u64)>, DbError> {
        let blocks = extents::blocks_of(self.conn, id)?.into_iter();
        Ok(blocks.map(|(id, extent)| (id, extent.length)).collect())
    }

    /// Names whose uncommitted blocks were last changed before this time.
    pub fn stale_uploads(
        &self,
        touched_before: Timestamp,
        limit: usize,
    ) -> Result<Vec<(ContainerId, String)>, DbError> {
        let sql = "SELECT container, name FROM upload WHERE touched < ?1 LIMIT ?2";
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query([touched_before.0, signed(limit as u64)])?;
        let mut names = Vec::new();
        while let Some(row) = rows.next()? {
            names.push((ContainerId(row.get(0)?), text(row.get(1)?)?));
        }
        Ok(names)
    }

    /// Finds the blocks of a list. `current` is the state with the committed blocks. `None`: an
    /// entry names no block.
    pub fn resolve_blocks(
        &self,
        container: ContainerId,
        name: &str,
        current: Option<StateId>,
        list: &[ListedBlock],
    ) -> Result<Option<BlockList>, DbError> {
        let upload = self.upload(container, name)?;
        let (uncommitted, committed) = (None, None);
        let mut search =
            Search { tx: self, upload, current, uncommitted, committed, took_uncommitted: false };
        let mut extents = Vec::with_capacity(list.len());
        let mut files = HashSet::new();
        let mut length = 0;
        for listed in list {
            let Some(block) = search.find(listed)? else { return Ok(None) };
            extents.push(Extent { start: length, write: 0, ..block });
            files.insert(block.file);
            length += block.length;
        }
        let (uncommitted, committed) = (search.took_uncommitted, search.committed.is_some());
        let ids = list.iter().map(|listed| listed.id.as_bytes().to_vec()).collect();
        Ok(Some(BlockList { length, uncommitted, committed, extents, ids, files }))
    }

    /// The number of the upload of a name.
    fn upload(&self, container: ContainerId, name: &str) -> Result<Option<i64>, DbError> {
        let sql = "SELECT id FROM upload WHERE container = ?1 AND name = ?2";
        let mut select = self.conn.prepare_cached(sql)?;
        let given = params![container.0, name.as_bytes()];
        Ok(select.query_row(given, |row| row.get(0)).optional()?)
    }

    fn all_uncommitted(&self, upload: i64) -> Result<HashMap<Vec<u8>, Extent>, DbError> {
        let sql = "SELECT id, file, offset, length FROM block WHERE upload = ?1";
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query([upload])?;
        let mut blocks = HashMap::new();
        while let Some(row) = rows.next()? {
            let found = Extent {
                file: ContentId(unsigned(row.get(1)?)?),
                offset: unsigned(row.get(2)?)?,
                length: unsigned(row.get(3)?)?,
                start: 0,
                write: 0,
            };
            blocks.insert(row.get(0)?, found);
        }
        Ok(blocks)
    }
}

/// Looks blocks up for one list. The blocks of a kind are read when the first is asked for.
struct Search<'a, 'b> {
    tx: &'a BlobTx<'b>,
    upload: Option<i64>,
    current: Option<StateId>,
    uncommitted: Option<HashMap<Vec<u8>, Extent>>,
    committed: Option<HashMap<Vec<u8>, Extent>>,
    /// One of the uncommitted blocks was found.
    took_uncommitted: bool,
}

impl Search<'_, '_> {
    fn find(&mut self, listed: &ListedBlock) -> Result<Option<Extent>, DbError> {
        let id = listed.id.as_bytes();
        if listed.search != BlockSearch::Committed {
            let found = self.uncommitted()?.get(id).copied();
            self.took_uncommitted |= found.is_some();
            if found.is_some() || listed.search == BlockSearch::Uncommitted {
                return Ok(found);
            }
        }
        Ok(self.committed()?.get(id).copied())
    }

    fn uncommitted(&mut self) -> Result<&HashMap<Vec<u8>, Extent>, DbError> {
        let blocks = match (self.uncommitted.take(), self.upload) {
            (Some(blocks), _) => blocks,
            (None, Some(upload)) => self.tx.all_uncommitted(upload)?,
            (None, None) => HashMap::new(),
        };
        Ok(self.uncommitted.insert(blocks))
    }

    fn committed(&mut self) -> Result<&HashMap<Vec<u8>, Extent>, DbError> {
        let blocks = match (self.committed.take(), self.current) {
            (Some(blocks), _) => blocks,
            (None, Some(current)) => {
                let mut committed = HashMap::new();
                for (id, extent) in extents::blocks_of(self.tx.conn, current)? {
                    committed.entry(id).or_insert(extent);
                }
                committed
            }
            (None, None) => HashMap::new(),
        };
        Ok(self.committed.insert(blocks))
    }
}

impl WriteTx<'_> {
    /// Puts an uncommitted block, in place of one of the same ID.
    pub fn put_block(
        &self,
        container: ContainerId,
        name: &str,
        id: &[u8],
        content: Content,
        now: Timestamp,
    ) -> Result<(), DbError> {
        let upload = self.upload_or_new(container, name)?;
        let Some(extent) = self.refer(upload, content, 0, 0)? else {
            return Err(DbError::Io("a block has no bytes".to_owned()));
        };
        let place = (signed(extent.file.0), signed(extent.offset), signed(extent.length));
        let replaced = self
            .conn
            .prepare_cached(
                "UPDATE block SET file = ?3, offset = ?4, length = ?5
                 WHERE upload = ?1 AND id = ?2",
            )?
            .execute(params![upload, id, place.0, place.1, place.2])?;
        if replaced == 0 {
            self.conn
                .prepare_cached(
                    "INSERT INTO block (upload, id, file, offset, length)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![upload, id, place.0, place.1, place.2])?;
        }
        self.conn
            .prepare_cached(
                "UPDATE upload SET changes = changes + 1, blocks = blocks + ?2, id_length = ?3,
                                   touched = ?4
                 WHERE id = ?1",
            )?
            .execute(params![upload, i64::from(replaced == 0), signed(id.len() as u64), now.0])?;
        Ok(())
    }

    fn upload_or_new(&self, container: ContainerId, name: &str) -> Result<i64, DbError> {
        if let Some(upload) = self.upload(container, name)? {
            return Ok(upload);
        }
        let upload = self.shared.new_id();
        self.conn
            .prepare_cached(
                "INSERT INTO upload (id, container, name, changes, blocks, id_length, touched)
                 VALUES (?1, ?2, ?3, 0, 0, 0, 0)",
            )?
            .execute(params![upload, container.0, name.as_bytes()])?;
        Ok(upload)
    }

    /// Removes the uncommitted blocks of a name.
    pub fn drop_blocks(&self, container: ContainerId, name: &str) -> Result<(), DbError> {
        if let Some(upload) = self.upload(container, name)? {
            janitor::upload(self.conn, self.shared, upload)?;
        }
        Ok(())
    }

    /// Makes the blob of a list, in place of the current state, and removes the uncommitted
    /// blocks.
    pub fn commit_blocks(
        &self,
        container: ContainerId,
        name: &str,
        record: &impl Serialize,
        list: &BlockList,
    ) -> Result<StateId, DbError> {
        if let Some(only_blocks) = self.standing(container, name, StateKey::Uncommitted)? {
            janitor::state(self.conn, self.shared, only_blocks.id)?;
        }
        let place = (container, name, StateKey::Current);
        let id = self.put_row(place, &encode(record)?, list.length, None)?;
        let ids = list.ids.iter().map(Vec::as_slice);
        extents::insert_blocks(self.conn, id, &list.extents, ids)?;
        for file in &list.files {
            reclaim::add_reference(self.conn, id.0, *file)?;
        }
        self.drop_blocks(container, name)?;
        Ok(id)
    }
}
