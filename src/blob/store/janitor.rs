//! Removal of states, uploads and containers: a short one at once, a long one later and in slices,
//! so that no transaction is long. And the janitor, the thread that removes what was left for
//! later.
//!
//! What is left to remove is in the database: rows of the table `doomed`, and files without a
//! reference. So a pass of the janitor begins there, a pass that fails or panics is repeated, and
//! a kill loses nothing.

use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

use super::tx::Meta;
use super::types::{ContainerId, ContentId, StateId};
use super::{Shared, extents, reclaim};
use crate::db::{Database, DbError, Purpose, caught};

/// With more rows of extents, or more blocks, than this, content is removed later.
const ROWS_AT_ONCE: u32 = 16;
const BLOCKS_AT_ONCE: i64 = 256;
/// Rows of extents, of blocks, and states of a container that one transaction removes.
const EXTENT_ROWS: u32 = 32;
const BLOCK_ROWS: u32 = 1000;
const STATES: u32 = 100;
/// Files that are looked up in one transaction.
const FILES: usize = 256;
/// First and longest pause before a pass that failed is repeated.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_mins(1));
/// How often a pass looks whether the readers of released files have ended.
const READERS: Duration = Duration::from_millis(100);

/// Something that is removed later.
#[derive(Clone, Copy)]
pub(super) enum Doomed {
    /// Extents of a state, or blocks of an upload.
    Rows(i64),
    /// The blobs of a container.
    Container(ContainerId),
}

impl Doomed {
    fn columns(self) -> (i64, i64) {
        match self {
            Self::Rows(owner) => (0, owner),
            Self::Container(container) => (1, container.0),
        }
    }

    /// Notes that it has to be removed, by the next start at the latest.
    fn note(self, conn: &Connection) -> Result<(), DbError> {
        conn.prepare_cached("INSERT OR IGNORE INTO doomed (kind, id) VALUES (?1, ?2)")?
            .execute(self.columns())?;
        Ok(())
    }

    /// The removal is done.
    fn pardon(self, conn: &Connection) -> Result<(), DbError> {
        conn.prepare_cached("DELETE FROM doomed WHERE kind = ?1 AND id = ?2")?
            .execute(self.columns())?;
        Ok(())
    }

    /// True if it is still to be removed: a restored state may need it again.
    fn is_noted(self, conn: &Connection) -> Result<bool, DbError> {
        let mut select = conn.prepare_cached("SELECT 1 FROM doomed WHERE kind = ?1 AND id = ?2")?;
        Ok(select.exists(self.columns())?)
    }

    fn all(conn: &Connection) -> Result<Vec<Self>, DbError> {
        let mut select = conn.prepare_cached("SELECT kind, id FROM doomed")?;
        let rows = select.query_map([], |row| {
            Ok(match (row.get(0)?, row.get(1)?) {
                (0, owner) => Self::Rows(owner),
                (_, container) => Self::Container(ContainerId(container)),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Removes some of it. True if nothing is left.
    pub(super) fn remove_slice(self, conn: &Connection, shared: &Shared) -> Result<bool, DbError> {
        if !self.is_noted(conn)? {
            return Ok(true);
        }
        let removed = match self {
            Self::Rows(owner) => {
                let extents = extents::remove(conn, StateId(owner), EXTENT_ROWS)?;
                let mut delete = conn.prepare_cached(
                    "DELETE FROM block WHERE upload = ?1 AND id IN
                         (SELECT id FROM block WHERE upload = ?1 LIMIT ?2)",
                )?;
                extents + delete.execute((owner, BLOCK_ROWS))?
            }
            Self::Container(container) => {
                let ids = |sql: &str| -> Result<Vec<i64>, DbError> {
                    let mut select = conn.prepare_cached(sql)?;
                    let rows = select.query_map((container.0, STATES), |row| row.get(0))?;
                    Ok(rows.collect::<Result<_, _>>()?)
                };
                let states = ids("SELECT id FROM blob WHERE container = ?1 LIMIT ?2")?;
                for id in &states {
                    state(conn, shared, StateId(*id))?;
                }
                let uploads = ids("SELECT id FROM upload WHERE container = ?1 LIMIT ?2")?;
                for id in &uploads {
                    upload(conn, shared, *id)?;
                }
                states.len() + uploads.len()
            }
        };
        if removed > 0 {
            return Ok(false);
        }
        if let Self::Rows(owner) = self {
            reclaim::drop_references(conn, owner)?;
        }
        self.pardon(conn)?;
        Ok(true)
    }
}

/// Leaves it to the janitor, which runs after this transaction.
pub(super) fn doom(conn: &Connection, shared: &Shared, what: Doomed) -> Result<(), DbError> {
    what.note(conn)?;
    shared.chores.remove_doomed();
    Ok(())
}

/// Removes the extents and references of a state. True if that was done at once; else the number
/// of the state is spent, and the row needs a new one.
pub(super) fn content(conn: &Connection, shared: &Shared, state: StateId) -> Result<bool, DbError> {
    if extents::are_more_than(conn, state, ROWS_AT_ONCE)? {
        doom(conn, shared, Doomed::Rows(state.0))?;
        return Ok(false);
    }
    extents::remove(conn, state, ROWS_AT_ONCE)?;
    reclaim::drop_references(conn, state.0)?;
    Ok(true)
}

/// Removes a state with all that belongs to it.
pub(super) fn state(conn: &Connection, shared: &Shared, state: StateId) -> Result<(), DbError> {
    let mut delete =
        conn.prepare_cached("DELETE FROM blob WHERE id = ?1 RETURNING tagged, length")?;
    let found = delete.query_row([state.0], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)));
    let Some((tagged, length)) = found.optional()? else { return Ok(()) };
    if tagged {
        tags(conn, state)?;
    }
    content(conn, shared, state)?;
    shared.add_garbage(length.cast_unsigned());
    Ok(())
}

pub(super) fn tags(conn: &Connection, state: StateId) -> Result<(), DbError> {
    conn.prepare_cached("DELETE FROM tag WHERE state = ?1")?.execute([state.0])?;
    Ok(())
}

/// Removes an upload with its blocks.
pub(super) fn upload(conn: &Connection, shared: &Shared, id: i64) -> Result<(), DbError> {
    let mut delete = conn.prepare_cached("DELETE FROM upload WHERE id = ?1 RETURNING blocks")?;
    let blocks: Option<i64> = delete.query_row([id], |row| row.get(0)).optional()?;
    match blocks {
        None => Ok(()),
        Some(blocks) if blocks > BLOCKS_AT_ONCE => doom(conn, shared, Doomed::Rows(id)),
        Some(_) => {
            conn.prepare_cached("DELETE FROM block WHERE upload = ?1")?.execute([id])?;
            reclaim::drop_references(conn, id)
        }
    }
}

/// What the janitor is asked for.
#[derive(Default)]
pub(super) struct Chores {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Passes asked for, and the last one that has ended, whatever its outcome.
    asked: u64,
    ended: u64,
    /// Files that no body is written to any more. Without a row, nothing refers to them.
    closed: Vec<ContentId>,
    /// Rows were noted as doomed.
    doomed: bool,
    /// The next pass asks for a checkpoint.
    checkpoint: bool,
    closing: bool,
}

impl Chores {
    /// Asks for a pass.
    pub(super) fn wake(&self) {
        self.ask(|_| ());
    }

    /// Asks for a pass that removes what is noted as doomed.
    pub(super) fn remove_doomed(&self) {
        self.ask(|state| state.doomed = true);
    }

    /// Asks for a checkpoint: content waits for one.
    pub(super) fn request_checkpoint(&self) {
        self.ask(|state| state.checkpoint = true);
    }

    /// No body is written to the file any more.
    pub(super) fn file_closed(&self, file: ContentId) {
        self.ask(|state| state.closed.push(file));
    }

    fn ask(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        state.asked += 1;
        self.changed.notify_all();
    }

    /// The thread ends after the slice it is at. What is left is found again at the next start.
    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.changed.notify_all();
    }

    /// Waits for the end of the passes that were asked for.
    pub(super) fn wait_until_idle(&self) {
        let state = self.lock();
        let busy = |state: &mut State| !state.closing && state.ended < state.asked;
        drop(self.changed.wait_while(state, busy));
    }

    /// Waits until a pass is asked for, or for `pause`. `None`: the store closes.
    fn next(&self, pause: Option<Duration>) -> Option<u64> {
        let idle = |state: &mut State| !state.closing && state.ended == state.asked;
        let state = self.lock();
        let state = match pause {
            None => self.changed.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner),
            Some(pause) => {
                let waited = self.changed.wait_timeout_while(state, pause, idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        (!state.closing).then_some(state.asked)
    }

    fn ended(&self, pass: u64) {
        self.lock().ended = pass;
        self.changed.notify_all();
    }

    fn is_closing(&self) -> bool {
        self.lock().closing
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs passes until the store closes. A pass returns when to look again unasked; one that
    /// fails or panics is repeated after a pause.
    fn run(&self, mut pass: impl FnMut() -> Result<Option<Duration>, DbError>) {
        let (mut pause, mut failures) = (None, Duration::ZERO);
        while let Some(number) = self.next(pause) {
            match caught(&mut pass) {
                Ok(again) => (pause, failures) = (again, Duration::ZERO),
                Err(DbError::Closed) => pause = None,
                Err(error) => {
                    let first = failures.is_zero();
                    let level = if first { log::Level::Warn } else { log::Level::Debug };
                    log::log!(level, "cleaning up: {error}");
                    failures = (failures * 2).clamp(PAUSES.0, PAUSES.1);
                    pause = Some(failures);
                }
            }
            self.ended(number);
        }
    }
}

pub(super) struct Janitor {
    pub(super) database: Weak<Database>,
    pub(super) shared: Arc<Shared>,
    /// Whether files of earlier processes were looked at.
    pub(super) swept: bool,
}

impl Janitor {
    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        shared.chores.run(move || {
            let database = self.database.upgrade().ok_or(DbError::Closed)?;
            let passed = self.pass(&database);
            // A checkpoint lets the WAL begin again, in the space that it has.
            if let Err(DbError::Full { .. }) = passed {
                database.request_checkpoint();
            }
            passed.map(|()| self.shared.released().is_some().then_some(READERS))
        });
    }

    fn pass(&mut self, database: &Database) -> Result<(), DbError> {
        if std::mem::take(&mut self.shared.chores.lock().checkpoint) {
            database.request_checkpoint();
        }
        // One that fails does not keep the others from making room.
        let parts = [
            self.unlink_released(database),
            self.remove_doomed(database),
            self.sweep(),
            self.give_up_closed(database),
        ];
        parts.into_iter().collect()
    }

    /// Unlinks files that a checkpoint has released, when their readers have ended.
    fn unlink_released(&self, database: &Database) -> Result<(), DbError> {
        let Some(released) = self.shared.released().take_if(|released| released.is_due()) else {
            return Ok(());
        };
        let unlinked = self.unlink(database, &released);
        match unlinked {
            Ok(true) => {}
            Ok(false) => database.request_checkpoint(),
            // What is left is tried again after the pause.
            Err(_) => _ = self.shared.released().get_or_insert(released),
        }
        unlinked.map(drop)
    }

    /// False if the files have to be released by another checkpoint.
    fn unlink(&self, database: &Database, released: &reclaim::Released) -> Result<bool, DbError> {
        let _replacing = self.shared.replacing();
        let unused = database.read(|conn| {
            // A state that was restored since may have referred to the files and be gone again:
            // then other readers may need them, and no checkpoint has covered the end of the
            // references.
            if Meta::Replaced.get(conn)? != released.replaced {
                return Ok(None);
            }
            reclaim::with_references(conn, &released.files, Some(0)).map(Some)
        })?;
        let Some(unused) = unused else { return Ok(false) };
        let (mut gone, mut failed) = (Vec::new(), None);
        for file in unused {
            match self.shared.files.unlink(file) {
                Ok(()) => gone.push(file),
                Err(error) => failed = Some(error),
            }
        }
        database.write_for(Purpose::Delete, move |conn| reclaim::forget(conn, &gone))?;
        failed.map_or(Ok(true), Err)
    }

    fn remove_doomed(&self, database: &Database) -> Result<(), DbError> {
        if !std::mem::take(&mut self.shared.chores.lock().doomed) {
            return Ok(());
        }
        // Read by the writer, after the transaction that asked for this pass.
        let removed = database.write_for(Purpose::Delete, Doomed::all).and_then(|doomed| {
            doomed.into_iter().try_for_each(|what| self.remove_in_slices(database, what))
        });
        self.shared.chores.lock().doomed |= removed.is_err();
        removed
    }

    fn remove_in_slices(&self, database: &Database, what: Doomed) -> Result<(), DbError> {
        let mut removed = false;
        while !self.shared.chores.is_closing() {
            let shared = Arc::clone(&self.shared);
            let slice = move |conn: &Connection| what.remove_slice(conn, &shared);
            match database.write_for(Purpose::Delete, slice) {
                Ok(true) => break,
                Ok(false) => removed = true,
                // The slices before have used up the space for deletions: a checkpoint lets the
                // WAL begin again.
                Err(DbError::Full { .. }) if removed => {
                    database.checkpoint()?;
                    removed = false;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Looks, once, for files of earlier processes.
    fn sweep(&mut self) -> Result<(), DbError> {
        if self.swept {
            return Ok(());
        }
        let folder = self.shared.files.folder();
        let failed = |error: std::io::Error| DbError::from_io("list", folder, &error);
        let mut old = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let id = name.to_str().filter(|name| name.len() == 16);
            match id.and_then(|name| u64::from_str_radix(name, 16).ok()).map(ContentId) {
                Some(id) if self.shared.files.is_old(id) => old.push(id),
                Some(_) => {}
                None => log::warn!("{} does not belong to {}", name.display(), folder.display()),
            }
            if self.shared.chores.is_closing() {
                return Ok(());
            }
        }
        self.shared.chores.lock().closed.append(&mut old);
        self.swept = true;
        Ok(())
    }

    /// Gives closed files that no row refers to a row without a reference, so that the next
    /// checkpoint releases them. If the commit of a row failed in an unclear way, the commit of
    /// this transaction replaces it in the WAL: so the row does not come back after a kill.
    fn give_up_closed(&self, database: &Database) -> Result<(), DbError> {
        let mut closed = std::mem::take(&mut self.shared.chores.lock().closed);
        while !closed.is_empty() && !self.shared.chores.is_closing() {
            let batch = closed.split_off(closed.len().saturating_sub(FILES));
            if let Err(error) = self.give_up(database, &batch) {
                let mut state = self.shared.chores.lock();
                state.closed.extend(closed.into_iter().chain(batch));
                return Err(error);
            }
        }
        Ok(())
    }

    fn give_up(&self, database: &Database, files: &[ContentId]) -> Result<(), DbError> {
        let unknown = database.read(|conn| reclaim::with_references(conn, files, None))?;
        if unknown.is_empty() {
            return Ok(());
        }
        let path = |file: &ContentId| self.shared.files.path(*file);
        let bytes = unknown.iter().flat_map(|file| path(file).metadata());
        self.shared.add_garbage(bytes.map(|found| found.blocks() * 512).sum());
        database.write_for(Purpose::Delete, move |conn| reclaim::add_unused(conn, &unknown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_that_panics_or_fails_is_repeated() {
        let chores = Chores::default();
        let mut passes = 0;
        chores.wake();
        chores.run(|| {
            passes += 1;
            match passes {
                1 => panic!("a defect"),
                2 => Err(DbError::Io("a disk that fails".to_owned())),
                3 => Ok(Some(Duration::from_millis(1))),
                _ => {
                    chores.close();
                    Ok(None)
                }
            }
        });
        assert_eq!(passes, 4);
    }
}
