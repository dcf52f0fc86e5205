//! Background removal on a thread of its own: removes rows in slices, unlinks files, and sweeps
//! content that an earlier process left without a reference. The code that adds a chore decides
//! what may be removed.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use rusqlite::Connection;

use super::effects::Effects;
use super::places::ForgottenParts;
use super::shared::Shared;
use super::types::{ContainerId, ContentId, StateId};
use super::{extents, references, remove};
use crate::store::db::{Database, DbError, Purpose};

/// Rows of extents, of blocks, and states of a container that one transaction removes.
const EXTENT_ROWS: u32 = 32;
const BLOCK_ROWS: u32 = 1000;
const STATES: u32 = 100;
/// Leftovers that are looked up in one read transaction.
const SWEEP_BATCH: usize = 256;

/// A thing to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chore {
    /// A file is no longer written: remove it if nothing ever referred to it.
    Check(ContentId),
    /// Remove the rows of a state or upload without references.
    Drop(i64),
    /// Remove the blobs of a deleted container.
    DropContainer(ContainerId),
    /// Unlink files that a checkpoint has released and no reader needs. `era` is
    /// [`Shared::era`] before they were found.
    Unlink { era: u64, files: Vec<ContentId> },
    /// Close the file of a blob's parts, cutting what was not used.
    Close(ForgottenParts),
    /// Ask for a checkpoint: content waits for one.
    Checkpoint,
    /// Look for files of an earlier process that nothing refers to.
    Sweep,
}

#[derive(Default)]
pub(super) struct Chores {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Chore>,
    busy: bool,
    closing: bool,
}

impl Chores {
    pub(super) fn add(&self, chore: Chore) {
        let mut state = self.lock();
        state.queue.push_back(chore);
        drop(state);
        self.changed.notify_all();
    }

    /// The thread ends after the chore it is at. What is left is found again at the next start.
    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.changed.notify_all();
    }

    #[cfg(test)]
    pub(super) fn contains(&self, chore: &Chore) -> bool {
        self.lock().queue.contains(chore)
    }

    /// Waits until there is nothing to do.
    pub(super) fn wait_until_idle(&self) {
        let mut state = self.lock();
        while !state.closing && (state.busy || !state.queue.is_empty()) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn next(&self) -> Option<Chore> {
        let mut state = self.lock();
        state.busy = false;
        self.changed.notify_all();
        loop {
            if state.closing {
                return None;
            }
            if let Some(chore) = state.queue.pop_front() {
                state.busy = true;
                return Some(chore);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread.
pub(super) struct Janitor {
    pub(super) database: Weak<Database>,
    pub(super) shared: Arc<Shared>,
}

impl Janitor {
    pub(super) fn run(&self) {
        while let Some(chore) = self.shared.chores.next() {
            let Some(database) = self.database.upgrade() else { return };
            let what = format!("{chore:?}");
            // What failed is found again at the next start.
            match self.carry_out(&database, chore) {
                Ok(()) | Err(DbError::Closed) => {}
                Err(error) => log::warn!("cleaning up ({what}): {error}"),
            }
        }
    }

    fn carry_out(&self, database: &Database, chore: Chore) -> Result<(), DbError> {
        match chore {
            Chore::Check(file) => self.check(database, file),
            Chore::Drop(owner) => self.in_slices(database, move |conn, _| drop_slice(conn, owner)),
            Chore::DropContainer(container) => self.in_slices(database, move |conn, effects| {
                drop_container_slice(conn, effects, container)
            }),
            Chore::Unlink { era, files } => self.unlink(database, era, &files),
            Chore::Close(parts) => {
                drop(parts);
                Ok(())
            }
            Chore::Checkpoint => {
                database.request_checkpoint();
                Ok(())
            }
            Chore::Sweep => self.sweep(database),
        }
    }

    fn check(&self, database: &Database, file: ContentId) -> Result<(), DbError> {
        let _replacing = self.shared.replacing.lock();
        if database.read(|conn| references::count(conn, file))?.is_none() {
            self.shared.files.unlink(file)?;
            self.shared.counters.given_up.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Runs `slice` in one transaction after the other until it says that it is done.
    fn in_slices(
        &self,
        database: &Database,
        slice: impl Fn(&Connection, &mut Effects) -> Result<bool, DbError> + Copy + Send + 'static,
    ) -> Result<(), DbError> {
        while !self.shared.chores.lock().closing {
            let write = move |conn: &Connection| {
                let mut effects = Effects::default();
                slice(conn, &mut effects).map(|done| (done, effects))
            };
            let (done, effects) = database.write_for(Purpose::Delete, write)?;
            effects.committed(&self.shared);
            if done {
                break;
            }
        }
        Ok(())
    }

    fn unlink(&self, database: &Database, era: u64, files: &[ContentId]) -> Result<(), DbError> {
        let unlinked = self.unlink_unused(database, era, files);
        self.shared.unlinking.done(files);
        if let Ok(false) = unlinked {
            database.request_checkpoint();
        }
        unlinked.map(drop)
    }

    /// False if the files have to be released by another checkpoint.
    fn unlink_unused(
        &self,
        database: &Database,
        era: u64,
        files: &[ContentId],
    ) -> Result<bool, DbError> {
        let _replacing = self.shared.replacing.lock();
        // A state that was restored since may have referred to the files and be gone again: then
        // other readers may need them, and no checkpoint has covered the end of the references.
        if self.shared.era.load(Ordering::Acquire) != era {
            return Ok(false);
        }
        let unused = database.read(|conn| {
            let mut unused = Vec::new();
            for file in files {
                if references::count(conn, *file)? == Some(0) {
                    unused.push(*file);
                }
            }
            Ok::<_, DbError>(unused)
        })?;
        for file in &unused {
            self.shared.files.unlink(*file)?;
            self.shared.counters.reclaimed.fetch_add(1, Ordering::Relaxed);
        }
        database.write_for(Purpose::Delete, move |conn| references::forget(conn, &unused))?;
        Ok(true)
    }

    fn sweep(&self, database: &Database) -> Result<(), DbError> {
        let folder = self.shared.files.folder();
        let failed = |error: std::io::Error| DbError::from_io("list", folder, &error);
        let mut batch = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let id = name.to_str().filter(|name| name.len() == 16);
            let id = id.and_then(|name| u64::from_str_radix(name, 16).ok()).map(ContentId);
            match id {
                Some(id) if self.shared.files.is_old(id) => batch.push(id),
                Some(_) => {}
                None => log::warn!("{} does not belong to {}", name.display(), folder.display()),
            }
            if batch.len() >= SWEEP_BATCH {
                self.sweep_batch(database, &mut batch)?;
            }
            if self.shared.chores.lock().closing {
                return Ok(());
            }
        }
        self.sweep_batch(database, &mut batch)
    }

    fn sweep_batch(&self, database: &Database, batch: &mut Vec<ContentId>) -> Result<(), DbError> {
        let files = std::mem::take(batch);
        let _replacing = self.shared.replacing.lock();
        let unknown = database.read(|conn| {
            let mut unknown = Vec::new();
            for file in files {
                if references::count(conn, file)?.is_none() {
                    unknown.push(file);
                }
            }
            Ok::<_, DbError>(unknown)
        })?;
        for file in unknown {
            self.shared.files.unlink(file)?;
            self.shared.counters.swept.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Removes some rows of a state or upload; at the end its references.
fn drop_slice(conn: &Connection, owner: i64) -> Result<bool, DbError> {
    if !remove::is_doomed(conn, remove::Doomed::Rows(owner))? {
        return Ok(true);
    }
    let extents = extents::remove(conn, StateId(owner), EXTENT_ROWS)?;
    let blocks = conn
        .prepare_cached(
            "DELETE FROM block WHERE upload = ?1 AND id IN
                 (SELECT id FROM block WHERE upload = ?1 LIMIT ?2)",
        )?
        .execute((owner, BLOCK_ROWS))?;
    if extents + blocks > 0 {
        return Ok(false);
    }
    references::drop_all(conn, owner)?;
    remove::pardon(conn, remove::Doomed::Rows(owner))?;
    Ok(true)
}

fn drop_container_slice(
    conn: &Connection,
    effects: &mut Effects,
    container: ContainerId,
) -> Result<bool, DbError> {
    if !remove::is_doomed(conn, remove::Doomed::Container(container))? {
        return Ok(true);
    }
    let ids = |sql: &str| -> Result<Vec<i64>, DbError> {
        let mut select = conn.prepare_cached(sql)?;
        let rows = select.query_map((container.0, STATES), |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    };
    let states = ids("SELECT id FROM blob WHERE container = ?1 LIMIT ?2")?;
    for state in &states {
        remove::state(conn, effects, StateId(*state))?;
    }
    let uploads = ids("SELECT id FROM upload WHERE container = ?1 LIMIT ?2")?;
    for upload in &uploads {
        remove::upload(conn, effects, *upload)?;
    }
    if states.is_empty() && uploads.is_empty() {
        remove::pardon(conn, remove::Doomed::Container(container))?;
        return Ok(true);
    }
    Ok(false)
}
