//! Blocks: those that are not committed, and lists of them that become a blob. The extents of a
//! long list are written before its commit, in slices, under a number that no row has yet. Which
//! IDs and lists are legal is decided by the engine.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rusqlite::{OptionalExtension, params};
use serde::Serialize;

use super::content::Content;
use super::extents::{Extent, ROW_MAX};
use super::janitor::{self, Doomed};
use super::tx::{BlobTx, Meta, WriteTx};
use super::types::{ContainerId, ContentId, StateId, StateKey, encode, signed, text, unsigned};
use super::{BlobStore, Shared, extents, reclaim};
use crate::blob::rules::blocks::BlockSearch;
use crate::db::DbError;
use crate::rules::Timestamp;

/// Lists of more blocks should be staged, so that their commit is short.
pub const STAGE_ABOVE: usize = ROW_MAX;
/// Blocks that one transaction of a long list writes.
const SLICE: usize = 8 * ROW_MAX;

/// An entry of a block list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockChoice<'a> {
    pub id: &'a [u8],
    /// Where to look for it.
    pub search: BlockSearch,
}

/// A block list whose blocks were found.
pub struct BlockList {
    length: u64,
    blocks: usize,
    /// An entry was found among the uncommitted blocks.
    uncommitted: bool,
    form: Form,
    files: HashSet<ContentId>,
    /// What was found is right while these are the same.
    basis: Basis,
}

enum Form {
    /// Extents, and the block of each.
    Loose(Vec<Extent>, Vec<Vec<u8>>),
    /// In the database already.
    Staged(Staged),
}

/// What a list was made from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Basis {
    /// [`Meta::Replaced`]: numbers of uploads and states come back with a saved state.
    replaced: i64,
    /// The uncommitted blocks: their number, and how often they changed.
    upload: Option<(i64, i64)>,
    /// The state with the committed blocks, and its generation, if any were used.
    committed: Option<(StateId, Option<i64>)>,
}

#[derive(Clone, Copy)]
struct Found {
    file: ContentId,
    offset: u64,
    length: u64,
}

impl BlockList {
    /// Length of the blob that the list makes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// How many blocks the list has.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// True if a block of the list was not committed before.
    pub fn has_uncommitted(&self) -> bool {
        self.uncommitted
    }

    /// True if a block of the list is one of the blob as it is.
    pub fn has_committed(&self) -> bool {
        self.basis.committed.is_some()
    }
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
        let Some((upload, _)) = self.upload(container, name)? else { return Ok(Vec::new()) };
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
        list: &[BlockChoice<'_>],
    ) -> Result<Option<BlockList>, DbError> {
        let upload = self.upload(container, name)?;
        let mut search = Search {
            tx: self,
            upload: upload.map(|(upload, _)| upload),
            current,
            uncommitted: None,
            committed: None,
            took_uncommitted: false,
        };
        let mut found = Vec::with_capacity(list.len());
        let mut ids = Vec::with_capacity(list.len());
        let mut files = HashSet::new();
        let mut length = 0;
        for choice in list {
            let Some(block) = search.find(choice)? else { return Ok(None) };
            found.push(Extent {
                start: length,
                length: block.length,
                file: block.file,
                offset: block.offset,
                write: 0,
            });
            files.insert(block.file);
            ids.push(choice.id.to_vec());
            length += block.length;
        }
        let committed = match current.filter(|_| search.committed.is_some()) {
            Some(state) => Some((state, self.generation(state)?)),
            None => None,
        };
        let basis = Basis { replaced: Meta::Replaced.get(self.conn)?, upload, committed };
        let form = Form::Loose(found, ids);
        let uncommitted = search.took_uncommitted;
        Ok(Some(BlockList { length, blocks: list.len(), uncommitted, form, files, basis }))
    }

    /// The upload of a name: its number, and how often it changed.
    fn upload(&self, container: ContainerId, name: &str) -> Result<Option<(i64, i64)>, DbError> {
        let sql = "SELECT id, changes FROM upload WHERE container = ?1 AND name = ?2";
        let mut select = self.conn.prepare_cached(sql)?;
        let given = params![container.0, name.as_bytes()];
        Ok(select.query_row(given, |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    fn all_uncommitted(&self, upload: i64) -> Result<HashMap<Vec<u8>, Found>, DbError> {
        let sql = "SELECT id, file, offset, length FROM block WHERE upload = ?1";
        let mut select = self.conn.prepare_cached(sql)?;
        let mut rows = select.query([upload])?;
        let mut blocks = HashMap::new();
        while let Some(row) = rows.next()? {
            let found = Found {
                file: ContentId(unsigned(row.get(1)?)?),
                offset: unsigned(row.get(2)?)?,
                length: unsigned(row.get(3)?)?,
            };
            blocks.insert(row.get(0)?, found);
        }
        Ok(blocks)
    }

    fn generation(&self, state: StateId) -> Result<Option<i64>, DbError> {
        let mut select = self.conn.prepare_cached("SELECT generation FROM blob WHERE id = ?1")?;
        Ok(select.query_row([state.0], |row| row.get(0)).optional()?)
    }
}

/// Looks blocks up for one list. The blocks of a kind are read when the first is asked for.
struct Search<'a, 'b> {
    tx: &'a BlobTx<'b>,
    upload: Option<i64>,
    current: Option<StateId>,
    uncommitted: Option<HashMap<Vec<u8>, Found>>,
    committed: Option<HashMap<Vec<u8>, Found>>,
    /// One of the uncommitted blocks was found.
    took_uncommitted: bool,
}

impl Search<'_, '_> {
    fn find(&mut self, choice: &BlockChoice<'_>) -> Result<Option<Found>, DbError> {
        if choice.search != BlockSearch::Committed {
            let found = self.uncommitted()?.get(choice.id).copied();
            self.took_uncommitted |= found.is_some();
            if found.is_some() || choice.search == BlockSearch::Uncommitted {
                return Ok(found);
            }
        }
        Ok(self.committed()?.get(choice.id).copied())
    }

    fn uncommitted(&mut self) -> Result<&HashMap<Vec<u8>, Found>, DbError> {
        let blocks = match (self.uncommitted.take(), self.upload) {
            (Some(blocks), _) => blocks,
            (None, Some(upload)) => self.tx.all_uncommitted(upload)?,
            (None, None) => HashMap::new(),
        };
        Ok(self.uncommitted.insert(blocks))
    }

    fn committed(&mut self) -> Result<&HashMap<Vec<u8>, Found>, DbError> {
        let blocks = match (self.committed.take(), self.current) {
            (Some(blocks), _) => blocks,
            (None, Some(current)) => {
                let mut committed = HashMap::new();
                for (id, extent) in extents::blocks_of(self.tx.conn, current)? {
                    let Extent { file, offset, length, .. } = extent;
                    committed.entry(id).or_insert(Found { file, offset, length });
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
        if let Some((upload, _)) = self.upload(container, name)? {
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
        if let Some((upload, _)) = self.upload(container, name)? {
            janitor::upload(self.conn, self.shared, upload)?;
        }
        Ok(())
    }

    /// Makes the blob of a list, in place of the current state, and removes the uncommitted
    /// blocks. `None`: the blocks changed since the list was resolved, and nothing was done.
    pub fn commit_blocks(
        &self,
        container: ContainerId,
        name: &str,
        record: &impl Serialize,
        list: BlockList,
    ) -> Result<Option<StateId>, DbError> {
        let committed = match list.basis.committed {
            Some((state, _)) => Some((state, self.generation(state)?)),
            None => None,
        };
        let upload = self.upload(container, name)?;
        let basis = Basis { replaced: Meta::Replaced.get(self.conn)?, upload, committed };
        if basis != list.basis {
            return Ok(None);
        }
        if let Some(only_blocks) = self.standing(container, name, StateKey::Uncommitted)? {
            janitor::state(self.conn, self.shared, only_blocks.id)?;
        }
        let number = match &list.form {
            Form::Staged(staged) => Some(staged.id),
            Form::Loose(..) => None,
        };
        let place = (container, name, StateKey::Current);
        let id = self.put_row(place, &encode(record)?, list.length, None, number)?;
        match list.form {
            Form::Loose(found, ids) => {
                let ids = ids.iter().map(Vec::as_slice);
                extents::insert_blocks(self.conn, id, &found, ids)?;
            }
            Form::Staged(_) => Doomed::Rows(id.0).pardon(self.conn)?,
        }
        for file in list.files {
            reclaim::add_reference(self.conn, id.0, file)?;
        }
        self.drop_blocks(container, name)?;
        Ok(Some(id))
    }
}

impl BlobStore {
    /// Writes a list of more than [`STAGE_ABOVE`] blocks in slices, so that its commit is short
    /// and other writes get their turn. Waits for commits: not for event loops.
    pub fn stage(&self, mut list: BlockList) -> Result<BlockList, DbError> {
        if let Form::Loose(found, ids) = &list.form
            && found.len() > STAGE_ABOVE
        {
            list.form = Form::Staged(self.write_slices(found, ids)?);
        }
        Ok(list)
    }

    fn write_slices(&self, found: &[Extent], ids: &[Vec<u8>]) -> Result<Staged, DbError> {
        let staged = Staged::new(&self.shared);
        let (id, doomed) = (staged.id, Doomed::Rows(staged.id.0));
        self.database.write(move |conn| doomed.note(conn))?;
        for (found, ids) in found.chunks(SLICE).zip(ids.chunks(SLICE)) {
            let (found, ids) = (found.to_vec(), ids.to_vec());
            self.database.write(move |conn| {
                if !doomed.is_noted(conn)? {
                    // All rows were replaced, those of the slices before too.
                    return Err(DbError::Busy("all blobs were replaced; try again".to_owned()));
                }
                extents::insert_blocks(conn, id, &found, ids.iter().map(Vec::as_slice))
            })?;
        }
        Ok(staged)
    }
}

/// Extents of a long block list, written under a number that no row has yet. They are noted as
/// doomed until a commit gives them to a blob, so that the janitor removes them when this value is
/// dropped, and the next start after a kill.
struct Staged {
    id: StateId,
    shared: Arc<Shared>,
}

impl Staged {
    fn new(shared: &Arc<Shared>) -> Self {
        let id = StateId(shared.new_id());
        shared.chores.staging(id.0);
        Self { id, shared: Arc::clone(shared) }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        self.shared.chores.staged(self.id.0);
    }
}
