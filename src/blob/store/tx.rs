//! Transactions of the blob store: what may be read in one, what may be changed, and the work that
//! is left until the outcome is known. The database decides the outcome. The methods are with their
//! subjects: containers, states, blocks, list, tags, settings.

use std::cell::{RefCell, RefMut};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::Connection;

use super::blocks::Staged;
use super::content::{Bytes, Content};
use super::extent::Extent;
use super::files::OpenFile;
use super::janitor::Chore;
use super::reclaim::ReaderToken;
use super::shared::Shared;
use super::types::ContentId;
use super::{references, unsynced};
use crate::db::DbError;

/// A transaction that sees one committed state of all blobs.
pub struct BlobTx<'a> {
    pub(super) conn: &'a Connection,
    pub(super) shared: &'a Shared,
    pub(super) token: &'a ReaderToken,
    /// [`Shared::era`] before the transaction began.
    pub(super) era: u64,
}

/// A transaction that can change blobs, and sees its own changes.
pub struct WriteTx<'a> {
    tx: BlobTx<'a>,
    effects: RefCell<Effects>,
}

impl<'a> BlobTx<'a> {
    pub(super) fn new(
        conn: &'a Connection,
        shared: &'a Shared,
        token: &'a ReaderToken,
        era: u64,
    ) -> Self {
        Self { conn, shared, token, era }
    }
}

impl<'a> WriteTx<'a> {
    pub(super) fn new(tx: BlobTx<'a>) -> Self {
        Self { tx, effects: RefCell::default() }
    }

    pub(super) fn into_effects(self) -> Effects {
        self.effects.into_inner()
    }

    pub(super) fn effects(&self) -> RefMut<'_, Effects> {
        self.effects.borrow_mut()
    }

    /// Gives `owner` bytes that are in a file. The file stays open until the outcome is known.
    pub(super) fn refer(&self, owner: i64, content: Content) -> Result<Option<InFile>, DbError> {
        let (length, crc, synced) = (content.length(), content.crc64(), content.synced);
        match content.bytes {
            Bytes::Inline(bytes) if bytes.is_empty() => Ok(None),
            Bytes::Inline(_) => {
                Err(DbError::Io("a part of a blob was taken as a whole blob".to_owned()))
            }
            Bytes::InFile(file, _) if !file.is_of(&self.shared.files) => {
                Err(DbError::Io("content of another account was put into this one".to_owned()))
            }
            Bytes::InFile(file, offset) => {
                references::add(self.conn, owner, file.id)?;
                if !synced {
                    unsynced::note(self.conn, self.shared, (file.id, offset), length, crc)?;
                }
                let id = file.id;
                self.keep(file);
                Ok(Some(InFile { file: id, offset, length }))
            }
        }
    }

    fn keep(&self, file: Arc<OpenFile>) {
        self.effects().files.push(file);
    }
}

pub(super) struct InFile {
    pub(super) file: ContentId,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl InFile {
    pub(super) fn extent(&self, start: u64, write: u64) -> Extent {
        Extent { start, length: self.length, file: self.file, offset: self.offset, write }
    }
}

impl<'a> Deref for WriteTx<'a> {
    type Target = BlobTx<'a>;

    fn deref(&self) -> &BlobTx<'a> {
        &self.tx
    }
}

/// Content that the transaction refers to, and what follows from a commit. Dropped without a word,
/// the outcome is unclear: then no file is removed.
#[derive(Default)]
pub(super) struct Effects {
    /// Files with new references. They stay open until the commit is done.
    pub(super) files: Vec<Arc<OpenFile>>,
    pub(super) chores: Vec<Chore>,
    /// Rows that became those of a blob.
    pub(super) staged: Vec<Staged>,
    /// Bytes that one reference less needs.
    pub(super) dropped: u64,
    /// The number in the database that counters may reach now.
    pub(super) ceiling: Option<i64>,
}

impl Effects {
    /// The transaction was committed.
    pub(super) fn committed(mut self, shared: &Shared) {
        self.files.clear();
        if let Some(ceiling) = self.ceiling {
            shared.ceiling.fetch_max(ceiling, Ordering::AcqRel);
        }
        for chore in self.chores.drain(..) {
            shared.chores.add(chore);
        }
        shared.add_garbage(self.dropped);
    }

    /// The transaction was rolled back: content that nothing else refers to is removed.
    pub(super) fn rolled_back(mut self) {
        self.files.clear();
        self.staged.clear();
    }
}

impl Drop for Effects {
    fn drop(&mut self) {
        for file in &self.files {
            file.doubt();
        }
        for staged in &mut self.staged {
            staged.leave();
        }
    }
}
