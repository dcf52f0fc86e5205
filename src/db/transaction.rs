//! One write transaction, with one request in it or several in savepoints.
//! Who may write at this moment is decided in [`super::writer`].

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::DbError;
use super::error::{forget_last_serious, take_last_serious};
use super::job::{Job, run_caught};

/// First and longest pause between attempts to get a lock from another connection.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// Why a transaction could not begin.
pub(super) enum NotBegun {
    Locked,
    Failed(DbError),
}

pub(super) fn begin(conn: &Connection) -> Result<(), NotBegun> {
    forget_last_serious();
    match execute(conn, "BEGIN IMMEDIATE") {
        Ok(()) => Ok(()),
        Err(error) if DbError::is_lock(&error) => Err(NotBegun::Locked),
        Err(error) => Err(NotBegun::Failed(error.into())),
    }
}

/// Begins a transaction, waiting up to `patience` for another connection to end its own.
pub(super) fn begin_patiently(conn: &Connection, patience: Duration) -> Result<(), DbError> {
    let start = Instant::now();
    let mut pause = PAUSES.0;
    loop {
        match begin(conn) {
            Ok(()) => return Ok(()),
            Err(NotBegun::Failed(error)) => return Err(error),
            Err(NotBegun::Locked) if start.elapsed() < patience => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(PAUSES.1);
            }
            Err(NotBegun::Locked) => {
                let file = conn.path().unwrap_or("the database");
                return Err(DbError::Busy(format!("another connection writes to {file}")));
            }
        }
    }
}

/// Runs one request in the transaction that has begun, and ends the transaction.
pub(super) fn run_alone<T, E: From<DbError>>(
    conn: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, E>,
) -> Result<T, E> {
    let outcome = run_caught(work, conn);
    if outcome.is_ok() {
        commit(conn)?;
    } else {
        roll_back(conn);
    }
    outcome
}

/// Runs requests from the front of `jobs` in the transaction that has begun, and ends it.
/// Returns how many ran: all of them, unless `limit` was up or `SQLite` gave up the transaction.
pub(super) fn run_group(conn: &Connection, jobs: &mut [Box<dyn Job>], limit: Duration) -> usize {
    let start = Instant::now();
    let alone = jobs.len() == 1;
    let mut ran = 0;
    for job in &mut *jobs {
        let kept = if alone { Ok(job.run(conn)) } else { run_in_savepoint(conn, job.as_mut()) };
        ran += 1;
        // Some errors, a full disk among them, undo the whole transaction: then requests that
        // succeeded before are lost too.
        if kept.is_err() || conn.is_autocommit() {
            let error = kept.err().unwrap_or_else(take_last_serious);
            roll_back(conn);
            fail_all(&mut jobs[..ran], &error);
            return ran;
        }
        if alone && kept == Ok(false) {
            roll_back(conn);
            return ran;
        }
        if start.elapsed() > limit {
            break;
        }
    }
    if let Err(error) = commit(conn) {
        fail_all(&mut jobs[..ran], &error);
    }
    ran
}

fn run_in_savepoint(conn: &Connection, job: &mut dyn Job) -> Result<bool, DbError> {
    execute(conn, "SAVEPOINT request")?;
    let keep = job.run(conn);
    if conn.is_autocommit() {
        return Ok(keep);
    }
    if !keep {
        execute(conn, "ROLLBACK TO request")?;
    }
    execute(conn, "RELEASE request")?;
    Ok(keep)
}

pub(super) fn fail_all(jobs: &mut [Box<dyn Job>], error: &DbError) {
    for job in jobs {
        job.fail(error.clone());
    }
}

pub(super) fn commit(conn: &Connection) -> Result<(), DbError> {
    if conn.is_autocommit() {
        return Err(take_last_serious());
    }
    execute(conn, "COMMIT").map_err(|error| {
        let error = error.into();
        roll_back(conn);
        error
    })
}

pub(super) fn roll_back(conn: &Connection) {
    if !conn.is_autocommit()
        && let Err(error) = execute(conn, "ROLLBACK")
    {
        log::error!("cannot roll back: {error}");
    }
}

fn execute(conn: &Connection, statement: &str) -> Result<(), rusqlite::Error> {
    conn.prepare_cached(statement)?.execute([]).map(drop)
}
