//! One write transaction, with one request in it or several in savepoints.
//! Who may write at this moment is decided in [`super::writer`].

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::DbError;
use super::error::{forget_last_serious, last_was_full, take_last_serious};
use super::job::Job;

/// First and longest pause between attempts to get a lock from another connection.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// Begins a transaction, waiting up to `patience` for another connection to end its own.
pub(super) fn begin(conn: &Connection, patience: Duration) -> Result<(), DbError> {
    forget_last_serious();
    let start = Instant::now();
    let mut pause = PAUSES.0;
    loop {
        match execute(conn, "BEGIN IMMEDIATE") {
            Ok(()) => return Ok(()),
            Err(error) if !DbError::is_lock(&error) => return Err(error.into()),
            Err(_) if start.elapsed() < patience => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(PAUSES.1);
            }
            Err(_) => {
                let file = conn.path().unwrap_or("the database");
                return Err(DbError::Busy(format!("another connection writes to {file}")));
            }
        }
    }
}

/// Runs requests from the front of `jobs` in the transaction that has begun, and ends it. Returns
/// how many ran (all of them, unless `limit` was up or the transaction is lost), and the error that
/// undid all that ran.
pub(super) fn run_group(
    conn: &Connection,
    jobs: &mut [Box<dyn Job>],
    limit: Duration,
) -> (usize, Option<DbError>) {
    let start = Instant::now();
    for (index, job) in jobs.iter_mut().enumerate() {
        let kept = run_in_savepoint(conn, job.as_mut());
        // Some errors, a full disk among them, undo the whole transaction: then requests that
        // succeeded before are lost too.
        if kept.is_err() || conn.is_autocommit() || (kept == Ok(false) && last_was_full()) {
            let error = kept.err().unwrap_or_else(take_last_serious);
            roll_back(conn);
            return (index + 1, Some(error));
        }
        if start.elapsed() > limit {
            return (index + 1, commit(conn).err());
        }
    }
    (jobs.len(), commit(conn).err())
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
