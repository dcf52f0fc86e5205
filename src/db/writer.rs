//! The writer thread: takes all requests that wait into one transaction, commits, then answers.
//! What happens inside the transaction is decided in [`super::transaction`].

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::ballast::Ballast;
use super::error::Naming;
use super::job::Job;
use super::transaction;
use super::version::Versions;
use super::wal::Wal;
use super::{DbError, GROUP_MAX, Purpose, QUEUE_MAX, Tuning};

pub(super) struct Writer {
    file: Arc<Path>,
    pub(super) tuning: Tuning,
    gate: Mutex<Gate>,
    /// The writer thread waits here for requests.
    work: Condvar,
    /// Locked by the writer thread for a group, or by a [`Hold`].
    connection: Mutex<Connection>,
    thread: OnceLock<ThreadId>,
    pub(super) ballast: Ballast,
    pub(super) wal: Arc<Wal>,
    /// The versions of the rows, for readers and for one who replaces all rows.
    pub(super) versions: Versions,
    /// The files have lost their names: writes are refused with this error.
    gone: Mutex<Option<DbError>>,
    /// When the log was last told that the disk is full.
    told_full: Mutex<Option<Instant>>,
}

/// The log is told of a full disk once in this time.
const FULL_TOLD_EVERY: Duration = Duration::from_mins(10);
/// Attempts to make room for one deletion.
const ATTEMPTS_MAX: u32 = 3;
/// How long deletions wait for a checkpoint that lets the WAL begin again.
const ROOM_PATIENCE: Duration = Duration::from_secs(5);
/// How long a group waits for the checkpoint of a very long WAL.
const LONG_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Gate {
    queue: VecDeque<Box<dyn Job>>,
    /// Callers of [`Writer::hold`] that have the connection or wait for it.
    holds: u32,
    closing: bool,
}

/// While it lives, the writer thread takes no requests.
pub(super) struct Hold<'a>(&'a Writer);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.lock().holds -= 1;
        self.0.work.notify_all();
    }
}

impl Writer {
    pub(super) fn new(
        file: Arc<Path>,
        tuning: Tuning,
        connection: Connection,
        ballast: Ballast,
        wal: Arc<Wal>,
    ) -> Self {
        Self {
            file,
            tuning,
            gate: Mutex::default(),
            work: Condvar::new(),
            connection: Mutex::new(connection),
            thread: OnceLock::new(),
            ballast,
            wal,
            versions: Versions::default(),
            gone: Mutex::default(),
            told_full: Mutex::default(),
        }
    }

    /// Refuses all writes from now on, or none any more.
    pub(super) fn set_gone(&self, why: Option<&DbError>) {
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(error), None) = (why, &*gone) {
            log::error!("{error}");
        }
        *gone = why.cloned();
    }

    /// An error while writes are refused, since the files have lost their names.
    pub(super) fn check_place(&self) -> Result<(), DbError> {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.clone().map_or(Ok(()), Err)
    }

    /// Puts the request into the queue, or answers at once if there is no place.
    pub(super) fn submit(&self, mut job: Box<dyn Job>) {
        let mut gate = self.lock();
        if gate.closing {
            drop(gate);
            return drop(job);
        }
        if gate.queue.len() >= QUEUE_MAX {
            drop(gate);
            job.fail(DbError::Busy(format!("{QUEUE_MAX} writes wait already; try again")));
            return job.answer();
        }
        gate.queue.push_back(job);
        let is_first = gate.queue.len() == 1;
        drop(gate);
        // The writer thread looks at the queue whenever it has ended a group.
        if is_first {
            self.work.notify_all();
        }
    }

    /// The writer thread: groups of waiting requests, until the database is closed.
    pub(super) fn run(&self) {
        _ = self.thread.set(std::thread::current().id());
        let _naming = Naming::file(&self.file);
        while let Some(jobs) = self.take_jobs() {
            self.run_jobs(jobs);
        }
    }

    /// Waits for requests. `None`: the database closes and nothing waits.
    fn take_jobs(&self) -> Option<Vec<Box<dyn Job>>> {
        let mut gate = self.lock();
        while gate.holds > 0 || gate.queue.is_empty() {
            if gate.closing && gate.queue.is_empty() {
                return None;
            }
            gate = self.work.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        let count = gate.queue.len().min(GROUP_MAX);
        let jobs = gate.queue.drain(..count).collect();
        Some(jobs)
    }

    fn run_jobs(&self, mut jobs: Vec<Box<dyn Job>>) {
        if let Err(error) = self.check_place() {
            return refuse(&mut jobs, &error, |_| true);
        }
        let full = DbError::Full { file: self.file.to_path_buf() };
        let is_store = |job: &dyn Job| job.purpose() == Purpose::Store;
        let (mut most, mut attempts) = (GROUP_MAX, 0);
        while !jobs.is_empty() {
            if self.wal.outgrows(self.tuning.wait_pages) {
                self.wal.counters.waits.fetch_add(1, Ordering::Relaxed);
                self.wal.wait_while_outgrown(self.tuning.wait_pages, LONG_PATIENCE);
            }
            if jobs.iter().any(|job| is_store(&**job)) && !self.ballast.covers(self.wal.bytes()) {
                self.tell_full(&full);
                // A checkpoint lets the WAL begin again, which then needs less.
                self.wal.ask(false);
                refuse(&mut jobs, &full, is_store);
                continue;
            }
            let count = jobs.len().min(most);
            let (ran, failed) = self.run_group(&mut jobs[..count]);
            let (counters, requests) = (&self.wal.counters, ran as u64);
            counters.requests.fetch_add(requests, Ordering::Relaxed);
            counters.largest_group.fetch_max(requests, Ordering::Relaxed);
            if let Some(error) = failed {
                let is_full = matches!(error, DbError::Full { .. });
                if is_full {
                    self.tell_full(&full);
                }
                let deletions = jobs[..ran].iter().filter(|job| !is_store(&***job)).count();
                if is_full && deletions > 0 && attempts < ATTEMPTS_MAX {
                    refuse(&mut jobs, &full, is_store);
                    // A smaller group needs less.
                    (most, attempts) = match deletions {
                        1 => (1, attempts + 1),
                        several => (several / 2, attempts),
                    };
                    self.make_room();
                    continue;
                }
                transaction::fail_all(&mut jobs[..ran], &error);
            }
            attempts = 0;
            jobs.drain(..ran).for_each(Job::answer);
        }
    }

    /// Runs and commits requests from the front of `jobs`. Returns how many ran, and the error that
    /// undid all of them.
    fn run_group(&self, jobs: &mut [Box<dyn Job>]) -> (usize, Option<DbError>) {
        let conn = self.connection();
        let done = match transaction::begin(&conn, self.tuning.busy_patience) {
            Ok(()) => {
                let _changing = self.versions.change();
                transaction::run_group(&conn, jobs, self.tuning.group_time)
            }
            Err(error) => (jobs.len(), Some(error)),
        };
        drop(conn);
        self.wal.committed();
        done
    }

    fn tell_full(&self, full: &DbError) {
        let mut told = self.told_full.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|at| at.elapsed() > FULL_TOLD_EVERY) {
            log::warn!("{full}: requests that store something are refused until there is room");
            *told = Some(Instant::now());
        }
    }

    /// Makes room for deletions on a full disk: gives the ballast back, and has the WAL begin again
    /// in the space that it has.
    fn make_room(&self) {
        self.ballast.release();
        self.wal.wait_a_while_for(self.wal.ask(true), ROOM_PATIENCE);
    }

    /// Waits for the group under way and keeps the writer thread from taking requests.
    pub(super) fn hold(&self) -> (Hold<'_>, MutexGuard<'_, Connection>) {
        self.assert_outside();
        self.lock().holds += 1;
        (Hold(self), self.connection())
    }

    /// The writing connection, when the threads have ended.
    pub(super) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// New requests are refused; the writer thread ends after those that wait.
    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.work.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A closure that waits for the writer it runs on would wait for ever.
    pub(super) fn assert_outside(&self) {
        assert!(
            self.thread.get() != Some(&std::thread::current().id()),
            "a write inside a write of the same database waits for itself"
        );
    }
}

/// Answers those requests with an error.
fn refuse(jobs: &mut Vec<Box<dyn Job>>, error: &DbError, which: impl Fn(&dyn Job) -> bool) {
    for mut job in jobs.extract_if(.., |job| which(&**job)) {
        job.fail(error.clone());
        job.answer();
    }
}
