//! A bounded pool of connections for reading, opened when they are first needed.
//! What a read may do is decided by [`super::Database::read`].

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::DbError;
use super::connection::open_reader;
use super::place::LockedFile;

pub(super) struct Readers {
    path: Arc<Path>,
    max: usize,
    pool: Mutex<Pool>,
    freed: Condvar,
    /// Last, so that it is closed after all connections.
    files: Arc<LockedFile>,
}

#[derive(Default)]
struct Pool {
    /// The connection used last is on top: its cache is the warmest.
    idle: Vec<Connection>,
    /// All connections, idle and lent.
    open: usize,
    /// Threads that wait for one. A wake-up costs a system call, also if nobody waits.
    waiting: usize,
}

impl Readers {
    pub(super) fn new(path: Arc<Path>, files: Arc<LockedFile>, max: usize) -> Self {
        Self { path, files, max: max.max(1), pool: Mutex::default(), freed: Condvar::new() }
    }

    /// A connection, waiting for one if all are lent. Opens one if there are too few.
    pub(super) fn take(&self) -> Result<Lent<'_>, DbError> {
        let mut pool = self.lock();
        loop {
            if let Some(lent) = self.take_now(pool)? {
                return Ok(lent);
            }
            pool = self.lock();
            if pool.idle.is_empty() && pool.open >= self.max {
                pool.waiting += 1;
                pool = self.freed.wait(pool).unwrap_or_else(PoisonError::into_inner);
                pool.waiting -= 1;
            }
        }
    }

    /// A connection that is open and not lent, for callers that must not open one either.
    pub(super) fn try_take(&self) -> Option<Lent<'_>> {
        let conn = self.lock().idle.pop()?;
        Some(Lent { readers: self, conn: Some(conn) })
    }

    fn take_now(&self, mut pool: MutexGuard<'_, Pool>) -> Result<Option<Lent<'_>>, DbError> {
        if let Some(conn) = pool.idle.pop() {
            return Ok(Some(Lent { readers: self, conn: Some(conn) }));
        }
        if pool.open >= self.max {
            return Ok(None);
        }
        pool.open += 1;
        drop(pool);
        // If opening fails, dropping the empty loan gives the place back.
        let mut lent = Lent { readers: self, conn: None };
        // Another database may have the name by now.
        self.files.check_place(&self.path)?;
        lent.conn = Some(open_reader(&self.path)?);
        Ok(Some(lent))
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection out of the pool, with a read transaction while [`Lent::begin`]'s borrow lasts.
pub(super) struct Lent<'a> {
    readers: &'a Readers,
    conn: Option<Connection>,
}

impl Lent<'_> {
    /// Begins the read transaction. It ends when the loan is dropped.
    pub(super) fn begin(&self) -> Result<&Connection, DbError> {
        let conn = self.conn.as_ref().expect("only a failed open leaves a loan empty");
        conn.prepare_cached("BEGIN")?.execute([])?;
        Ok(conn)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // A panic of the closure may leave a statement half read; such a connection is closed.
        let conn = self.conn.take().filter(|_| !std::thread::panicking()).filter(end);
        let mut pool = self.readers.lock();
        match conn {
            Some(conn) => pool.idle.push(conn),
            None => pool.open -= 1,
        }
        let waited_for = pool.waiting > 0;
        drop(pool);
        if waited_for {
            self.readers.freed.notify_one();
        }
    }
}

/// Ends the read transaction, if there is one; false if the connection cannot be used again.
fn end(conn: &Connection) -> bool {
    conn.is_autocommit()
        || conn.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])).is_ok()
}
