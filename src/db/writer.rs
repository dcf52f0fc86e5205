//! The right to write: one request at a time on its caller's thread, or the writer thread with all
//! waiting requests. What happens inside the transaction is decided in [`super::transaction`].

use std::cell::Cell;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::error::Naming;
use super::job::{Job, Task};
use super::log_state::LogState;
use super::reserve::Reserve;
use super::stats::Counters;
use super::transaction::{self, NotBegun};
use super::version::{Changing, Versions};
use super::{DbError, GROUP_MAX, Purpose, QUEUE_MAX, SyncMode, Tuning};
use crate::sync::front_end::assert_may_block;

pub(super) struct Writer {
    file: Arc<Path>,
    sync: SyncMode,
    tuning: Tuning,
    gate: Mutex<Gate>,
    /// The writer thread waits here for requests.
    work: Condvar,
    /// Callers of `write` wait here for a place in the queue.
    room: Condvar,
    /// Callers of [`Writer::hold`] wait here for the turn.
    free: Condvar,
    /// Locked only by the owner of the turn, so no thread ever waits for it.
    connection: Mutex<Connection>,
    /// Nanoseconds to pause for each page that a group adds to the log; 0 at most times.
    pause_per_page: AtomicU64,
    reserve: Reserve,
    log: Arc<LogState>,
    counters: Arc<Counters>,
    versions: Versions,
    /// The log was told that the disk is full.
    told_full: AtomicBool,
    /// Deletions wait for a log that begins again.
    wants_space: AtomicBool,
    /// [`LogState::begun`] when deletions last waited in vain for a log that begins again. They do
    /// not wait again before it does.
    in_vain: AtomicU64,
    /// The files have lost their names: writes are refused with [`Writer::gone`].
    is_gone: AtomicBool,
    gone: Mutex<Option<DbError>>,
}

/// A slowed writer pauses at most this long after a group.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// On a full disk deletions wait at most this long for a checkpoint that lets the log begin again.
const SPACE_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Gate {
    queue: VecDeque<Box<dyn Job>>,
    /// Somebody has the turn.
    taken: bool,
    /// How many callers of [`Writer::hold`] wait for the turn, which is theirs next.
    holds_wanted: u32,
    closing: bool,
}

/// The right to use the writing connection.
pub(super) struct Turn<'a>(&'a Writer);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut gate = self.0.lock();
        gate.taken = false;
        if gate.holds_wanted > 0 {
            self.0.free.notify_one();
        } else if gate.closing || !gate.queue.is_empty() {
            self.0.work.notify_one();
        }
    }
}

thread_local! {
    /// Address of the writer whose closure runs on this thread, or 0.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// Marks that a closure of a writer runs on this thread, and that rows change.
struct Inside<'a> {
    before: usize,
    _changing: Changing<'a>,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        INSIDE.set(self.before);
    }
}

impl Writer {
    pub(super) fn new(
        file: Arc<Path>,
        sync: SyncMode,
        tuning: Tuning,
        connection: Connection,
        reserve: Reserve,
        log: Arc<LogState>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            file,
            sync,
            tuning,
            gate: Mutex::default(),
            work: Condvar::new(),
            room: Condvar::new(),
            free: Condvar::new(),
            connection: Mutex::new(connection),
            pause_per_page: AtomicU64::new(0),
            reserve,
            log,
            counters,
            versions: Versions::default(),
            told_full: AtomicBool::new(false),
            wants_space: AtomicBool::new(false),
            in_vain: AtomicU64::new(u64::MAX),
            is_gone: AtomicBool::new(false),
            gone: Mutex::default(),
        }
    }

    /// Refuses all writes from now on, or none any more.
    pub(super) fn set_gone(&self, why: Option<&DbError>) {
        if let Some(error) = why
            && !self.is_gone.load(Ordering::Relaxed)
        {
            log::error!("{error}");
        }
        *self.gone.lock().unwrap_or_else(PoisonError::into_inner) = why.cloned();
        self.is_gone.store(why.is_some(), Ordering::Release);
    }

    /// An error while writes are refused, since the files have lost their names.
    pub(super) fn check_place(&self) -> Result<(), DbError> {
        if !self.is_gone.load(Ordering::Acquire) {
            return Ok(());
        }
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).clone().map_or(Ok(()), Err)
    }

    /// Runs and commits on this thread, if no other request writes or waits. Returns `work`
    /// otherwise.
    pub(super) fn try_write<T, E, F>(&self, purpose: Purpose, work: F) -> Result<Result<T, E>, F>
    where
        E: From<DbError>,
        F: FnOnce(&Connection) -> Result<T, E>,
    {
        self.assert_outside();
        if let Err(error) = self.check_place() {
            return Ok(Err(error.into()));
        }
        let next = self.log.next_page();
        let has_space = match purpose {
            Purpose::Store => self.reserve.is_ample(next),
            Purpose::Delete => !self.reserve.is_scarce(next),
        };
        if !has_space {
            return Err(work);
        }
        let turn = match self.try_turn() {
            Some(turn) if self.sync == SyncMode::Normal && !self.is_slowed() => turn,
            _ => return Err(work),
        };
        let conn = self.connection();
        let _naming = Naming::file(&self.file);
        let outcome = match transaction::begin(&conn) {
            Ok(()) => {
                let _inside = self.inside();
                transaction::run_alone(&conn, work)
            }
            Err(NotBegun::Locked) => return Err(work),
            Err(NotBegun::Failed(error)) => return Ok(Err(error.into())),
        };
        self.counters.inline();
        drop(conn);
        drop(turn);
        self.log.committed();
        self.save_space();
        Ok(outcome)
    }

    /// Waits for a place in the queue, then for the outcome.
    pub(super) fn write_queued<T, E, F>(&self, purpose: Purpose, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        assert_may_block("the writer of a database");
        let (sender, receiver) = sync_channel(1);
        let task = Task::new(purpose, work, move |outcome| {
            // The receiver is gone only if its thread panicked.
            let _ = sender.send(outcome);
        });
        let mut gate = self.lock();
        while gate.queue.len() >= QUEUE_MAX && !gate.closing {
            gate = self.room.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        self.enqueue(gate, Box::new(task));
        receiver.recv().unwrap_or_else(|_| Err(DbError::Closed.into()))
    }

    /// Puts the request into the queue, or answers at once if there is no place.
    pub(super) fn submit(&self, mut job: Box<dyn Job>) {
        let gate = self.lock();
        if gate.queue.len() < QUEUE_MAX {
            return self.enqueue(gate, job);
        }
        drop(gate);
        job.fail(DbError::Busy(format!("{QUEUE_MAX} writes wait already; try again")));
        job.answer();
    }

    fn enqueue(&self, mut gate: MutexGuard<'_, Gate>, job: Box<dyn Job>) {
        if gate.closing {
            drop(gate);
            return drop(job);
        }
        gate.queue.push_back(job);
        // The thread that has the turn looks at the queue when its turn ends.
        if !gate.taken {
            self.work.notify_one();
        }
    }

    /// The writer thread: groups of waiting requests, until the database is closed.
    pub(super) fn run(&self) {
        let mut jobs = Vec::with_capacity(GROUP_MAX);
        while let Some(turn) = self.take_jobs(&mut jobs) {
            self.run_jobs(&mut jobs);
            drop(turn);
        }
    }

    /// Waits for requests and takes the turn. `None`: the database closes and nothing waits.
    fn take_jobs(&self, jobs: &mut Vec<Box<dyn Job>>) -> Option<Turn<'_>> {
        let mut gate = self.lock();
        let mut sought = false;
        loop {
            if !gate.taken && gate.holds_wanted == 0 {
                if !gate.queue.is_empty() {
                    if sought || self.reserve.is_ample(self.log.next_page()) {
                        break;
                    }
                    let deletes = gate.queue.iter().any(|job| job.purpose() == Purpose::Delete);
                    // Without the turn, which a checkpoint may need.
                    drop(gate);
                    self.seek_space(deletes);
                    sought = true;
                    gate = self.lock();
                    continue;
                }
                if gate.closing {
                    return None;
                }
            }
            gate = self.work.wait(gate).unwrap_or_else(PoisonError::into_inner);
            sought = false;
        }
        gate.taken = true;
        let count = self.group(&gate.queue);
        jobs.extend(gate.queue.drain(..count));
        self.room.notify_all();
        Some(Turn(self))
    }

    /// Takes space for the log. On a full disk, the log has to begin again before deletions have
    /// used up what is kept for them.
    fn seek_space(&self, deletes: bool) {
        if self.reserve.extend(self.log.next_page()) || !deletes {
            return;
        }
        let begun = self.log.begun();
        let is_scarce = self.reserve.is_scarce(self.log.next_page());
        if !is_scarce || begun == self.in_vain.load(Ordering::Relaxed) {
            return;
        }
        self.wants_space.store(true, Ordering::Release);
        if !self.wait_for_space() {
            self.in_vain.store(begun, Ordering::Relaxed);
        }
        self.wants_space.store(false, Ordering::Release);
    }

    /// True while deletions wait for the log to begin again: a checkpoint then waits for the
    /// readers of the log to end.
    pub(super) fn wants_space(&self) -> bool {
        self.wants_space.load(Ordering::Acquire)
    }

    /// Waits until the log can begin again. False: it could not in time.
    fn wait_for_space(&self) -> bool {
        let deadline = Instant::now() + SPACE_PATIENCE;
        while self.reserve.is_scarce(self.log.next_page()) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.log.wait_a_while_for(self.log.ask(), left) {
                return false;
            }
        }
        true
    }

    /// How many of the requests that wait are the next group: what its deletions write has to fit
    /// into the space that the log has.
    fn group(&self, queue: &VecDeque<Box<dyn Job>>) -> usize {
        // Not behind the next page: a reader may keep the log from beginning again.
        let most = self.reserve.deletions_ahead(self.log.pages());
        let mut deletions = 0;
        let purposes = queue.iter().take(GROUP_MAX).map(|job| job.purpose());
        let fitting = purposes.take_while(|purpose| {
            deletions += usize::from(*purpose == Purpose::Delete);
            deletions <= most
        });
        fitting.count()
    }

    fn run_jobs(&self, jobs: &mut Vec<Box<dyn Job>>) {
        if let Err(error) = self.check_place() {
            for mut job in jobs.drain(..) {
                job.fail(error.clone());
                job.answer();
            }
            return;
        }
        let conn = self.connection();
        let _naming = Naming::file(&self.file);
        while !jobs.is_empty() {
            let length = self.log.pages();
            if self.reserve.extend(self.log.next_page()) {
                self.told_full.store(false, Ordering::Relaxed);
            } else {
                // A log that begins again needs less.
                self.log.ask();
                self.refuse_stores(jobs);
                if jobs.is_empty() {
                    return;
                }
            }
            let ran = match transaction::begin_patiently(&conn, self.tuning.busy_patience) {
                Ok(()) => {
                    let _inside = self.inside();
                    transaction::run_group(&conn, jobs, self.tuning.group_time)
                }
                Err(error) => {
                    transaction::fail_all(jobs, &error);
                    jobs.len()
                }
            };
            self.counters.group(ran);
            self.log.committed();
            self.save_space();
            // The turn is kept: callers that are answered now and write again form the next group.
            jobs.drain(..ran).for_each(Job::answer);
            if self.is_slowed() {
                self.pause(self.log.pages().saturating_sub(length));
            }
        }
    }

    /// Asks for a checkpoint when deletions use up the space that is kept for them: then the log
    /// can begin again, in the space that it has.
    fn save_space(&self) {
        if !self.reserve.is_ample(self.log.pages()) {
            self.log.ask();
        }
    }

    /// A checkpoint has ended.
    pub(super) fn renew_space(&self) {
        self.reserve.renew();
    }

    /// Answers the requests that store something: what space there is, deletions need.
    fn refuse_stores(&self, jobs: &mut Vec<Box<dyn Job>>) {
        let full = DbError::Full { file: self.file.to_path_buf() };
        for mut job in jobs.extract_if(.., |job| job.purpose() == Purpose::Store) {
            if !self.told_full.swap(true, Ordering::Relaxed) {
                log::warn!("{full}: requests that store something are refused until there is room");
            }
            job.fail(full.clone());
            job.answer();
        }
    }

    /// Limits how fast the log grows, while a checkpoint catches up. Zero: no limit.
    pub(super) fn slow_down(&self, pause_per_page: Duration) {
        let nanos = u64::try_from(pause_per_page.as_nanos()).unwrap_or(u64::MAX);
        self.pause_per_page.store(nanos, Ordering::Relaxed);
    }

    fn is_slowed(&self) -> bool {
        self.pause_per_page.load(Ordering::Relaxed) > 0
    }

    fn pause(&self, pages: u32) {
        let nanos = self.pause_per_page.load(Ordering::Relaxed).saturating_mul(u64::from(pages));
        std::thread::sleep(Duration::from_nanos(nanos).min(LONGEST_PAUSE));
    }

    fn try_turn(&self) -> Option<Turn<'_>> {
        let mut gate = self.lock();
        let free = !gate.taken && gate.holds_wanted == 0 && !gate.closing && gate.queue.is_empty();
        free.then(|| {
            gate.taken = true;
            Turn(self)
        })
    }

    /// Waits for the turn ahead of all requests. They wait until it is dropped.
    pub(super) fn hold(&self) -> Turn<'_> {
        let mut gate = self.lock();
        gate.holds_wanted += 1;
        while gate.taken {
            gate = self.free.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        gate.holds_wanted -= 1;
        gate.taken = true;
        Turn(self)
    }

    /// The writing connection, for the owner of the turn.
    pub(super) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called after a commit by the owner of the turn.
    pub(super) fn committed(&self) {
        self.log.committed();
        self.save_space();
    }

    /// How long a write waits for another connection that holds the database.
    pub(super) fn patience(&self) -> Duration {
        self.tuning.busy_patience
    }

    /// New requests are refused; the writer thread ends after those that wait.
    pub(super) fn close(&self) {
        let mut gate = self.lock();
        gate.closing = true;
        self.work.notify_all();
        self.room.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn inside(&self) -> Inside<'_> {
        Inside { before: INSIDE.replace(self.address()), _changing: self.versions.change() }
    }

    /// The versions of the rows, for readers and for one who replaces all rows.
    pub(super) fn versions(&self) -> &Versions {
        &self.versions
    }

    /// A closure that waits for the writer it runs on would wait for ever.
    pub(super) fn assert_outside(&self) {
        assert!(
            INSIDE.get() != self.address(),
            "a write inside a write of the same database waits for itself"
        );
    }
}
