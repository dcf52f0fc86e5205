//! Background removal on a thread of its own: removes rows in slices, unlinks files, and sweeps
//! content that an earlier process left without a reference. Removals that fail are tried again
//! later. The code that adds a chore decides what may be removed.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::shared::Shared;
use super::tx::Effects;
use super::types::{ContainerId, ContentId, StateId};
use super::{extents, references, remove};
use crate::db::{Database, DbError, Purpose};

/// Rows of extents, of blocks, and states of a container that one transaction removes.
const EXTENT_ROWS: u32 = 32;
const BLOCK_ROWS: u32 = 1000;
const STATES: u32 = 100;
/// Leftovers that are looked up in one read transaction.
const SWEEP_BATCH: usize = 256;
/// First and longest pause before a chore that failed is tried again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_mins(1));

/// How often it is looked whether the readers of released files have ended.
const READERS: Duration = Duration::from_millis(100);

/// A thing to do.
#[derive(Debug)]
pub(super) enum Chore {
    /// A file is no longer written: remove it if nothing ever referred to it.
    Check(ContentId),
    /// Remove the rows of a state or upload without references.
    Drop(i64),
    /// Remove the blobs of a deleted container.
    DropContainer(ContainerId),
    /// Unlink files that a checkpoint has released, when their readers have ended. `era` is
    /// [`Shared::era`] before they were found.
    Unlink { readers: Vec<Weak<()>>, era: u64, files: Vec<ContentId> },
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
    /// Unlinks whose readers had not ended.
    waiting: Vec<Chore>,
    /// Chores that failed, and when each is tried again.
    failed: Vec<(Instant, Attempt)>,
    busy: bool,
    closing: bool,
}

/// A chore that is being done.
struct Attempt {
    chore: Chore,
    /// The pause after the last failure; zero at first.
    pause: Duration,
}

impl Chores {
    pub(super) fn add(&self, chore: Chore) {
        let mut state = self.lock();
        if chore.is_due() {
            state.queue.push_back(chore);
        } else {
            state.waiting.push(chore);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The thread ends after the chore it is at. What is left is found again at the next start.
    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.changed.notify_all();
    }

    /// Adds a chore that failed, for later.
    fn add_failed(&self, attempt: Attempt) {
        self.lock().failed.push((Instant::now() + attempt.pause, attempt));
    }

    /// Waits until there is nothing to do, but for chores that failed or wait for readers.
    pub(super) fn wait_until_idle(&self) {
        let mut state = self.lock();
        while !state.closing && (state.busy || state.has_due()) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn next(&self) -> Option<Attempt> {
        let mut state = self.lock();
        state.busy = false;
        self.changed.notify_all();
        while !state.closing {
            if let Some(attempt) = state.next(Instant::now()) {
                state.busy = true;
                return Some(attempt);
            }
            let mut due = state.failed.iter().map(|(due, _)| *due).min();
            if !state.waiting.is_empty() {
                let next = Instant::now() + READERS;
                due = Some(due.map_or(next, |due| due.min(next)));
            }
            state = match due {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(due) => {
                    let left = due.saturating_duration_since(Instant::now());
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self, now: Instant) -> Option<Attempt> {
        if let Some(index) = self.failed.iter().position(|(due, _)| *due <= now) {
            return Some(self.failed.swap_remove(index).1);
        }
        let ended = self.waiting.iter().position(Chore::is_due);
        let chore = match ended {
            Some(index) => self.waiting.swap_remove(index),
            None => self.queue.pop_front()?,
        };
        Some(Attempt { chore, pause: Duration::ZERO })
    }

    fn has_due(&self) -> bool {
        !self.queue.is_empty() || self.waiting.iter().any(Chore::is_due)
    }
}

impl Chore {
    /// False while readers may need what it removes.
    fn is_due(&self) -> bool {
        match self {
            Self::Unlink { readers, .. } => readers.iter().all(|it| it.strong_count() == 0),
            _ => true,
        }
    }
}

pub(super) struct Janitor {
    pub(super) database: Weak<Database>,
    pub(super) shared: Arc<Shared>,
}

impl Janitor {
    pub(super) fn run(&self) {
        while let Some(attempt) = self.shared.chores.next() {
            let Some(database) = self.database.upgrade() else { return };
            match self.carry_out(&database, &attempt.chore) {
                Ok(()) | Err(DbError::Closed) => {}
                Err(error) => self.failed(&database, attempt, &error),
            }
        }
    }

    /// Lets a chore be tried again, unless trying again cannot help. What is not done when the
    /// store is closed is found again at the next start.
    fn failed(&self, database: &Database, mut attempt: Attempt, error: &DbError) {
        let first = attempt.pause.is_zero();
        let level = if first { log::Level::Warn } else { log::Level::Debug };
        log::log!(level, "cleaning up ({:?}): {error}", attempt.chore);
        match error {
            // A checkpoint lets the log begin again, in the space that it has.
            DbError::Full { .. } => database.request_checkpoint(),
            DbError::Busy(_)
            | DbError::TooManyFiles { .. }
            | DbError::ReadOnly { .. }
            | DbError::Io(_) => {}
            _ => return,
        }
        attempt.pause = (attempt.pause * 2).clamp(PAUSES.0, PAUSES.1);
        if let Chore::Unlink { .. } = attempt.chore {
            // The next checkpoint releases the files again. One comes with the next commit.
            attempt = Attempt { chore: Chore::Checkpoint, pause: PAUSES.1 };
        }
        self.shared.chores.add_failed(attempt);
    }

    fn carry_out(&self, database: &Database, chore: &Chore) -> Result<(), DbError> {
        match *chore {
            Chore::Check(file) => self.check(database, file),
            Chore::Drop(owner) => self.in_slices(database, move |conn, _| drop_slice(conn, owner)),
            Chore::DropContainer(container) => self.in_slices(database, move |conn, effects| {
                drop_container_slice(conn, effects, container)
            }),
            Chore::Unlink { era, ref files, .. } => self.unlink(database, era, files),
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
        let mut removed = false;
        while !self.shared.chores.lock().closing {
            let write = move |conn: &Connection| {
                let mut effects = Effects::default();
                slice(conn, &mut effects).map(|done| (done, effects))
            };
            match database.write_for(Purpose::Delete, write) {
                Ok((done, effects)) => {
                    effects.committed(&self.shared);
                    if done {
                        break;
                    }
                    removed = true;
                }
                // The slices before have used up the space for deletions: a checkpoint lets the
                // log begin again.
                Err(DbError::Full { .. }) if removed => {
                    database.checkpoint()?;
                    removed = false;
                }
                Err(error) => return Err(error),
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
