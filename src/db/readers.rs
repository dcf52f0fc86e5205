//! Connections for reading: the next free one, or a new one if all are lent.
//!
//! A caller never waits for a connection, so that an event loop reads as a thread of the pool does.
//! There are as many connections as threads that read at the same time; of the free ones a few are
//! kept. What a read may do is decided by [`super::Database::read`].

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::DbError;
use super::connection::open_reader;
use super::place::LockedFile;

pub(super) struct Readers {
    path: Arc<Path>,
    /// Free connections that are kept.
    max: usize,
    /// The connection used last is on top: its cache is the warmest.
    free: Mutex<Vec<Connection>>,
    /// Last, so that it is closed after all connections.
    files: Arc<LockedFile>,
}

impl Readers {
    pub(super) fn new(path: Arc<Path>, files: Arc<LockedFile>, max: usize) -> Self {
        Self { path, files, max, free: Mutex::default() }
    }

    /// Runs `read` in one read transaction.
    pub(super) fn read<T, E: From<DbError>>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let free = self.free().pop();
        let conn = if let Some(conn) = free {
            conn
        } else {
            // Another database may have the name by now.
            self.files.check_place(&self.path)?;
            open_reader(&self.path)?
        };
        // If `read` panics, the connection is closed: a statement may be half read.
        execute(&conn, "BEGIN").map_err(DbError::from)?;
        let answer = read(&conn);
        if conn.is_autocommit() || execute(&conn, "COMMIT").is_ok() {
            let mut free = self.free();
            if free.len() < self.max {
                free.push(conn);
            }
        }
        answer
    }

    pub(super) fn free(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn execute(conn: &Connection, statement: &str) -> Result<(), rusqlite::Error> {
    conn.prepare_cached(statement)?.execute([]).map(drop)
}
