//! Connections for reading: the next free one, or a new one if all are lent.
//!
//! A caller never waits for a connection, so that an event loop reads as a thread of the pool does.
//! There are as many connections as threads that read at the same time; of the free ones a few are
//! kept. To open one takes system calls on the disk: the last [`RESERVED`] free ones are left to
//! event loops, and are there from the start. What a read may do is decided by
//! [`super::Database::read`].

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::DbError;
use super::connection::open_reader;
use super::place::LockedFile;
use crate::sync::front_end::is_marked;

/// Connections for event loops: of the two of a listener, and of the control API.
pub(super) const RESERVED: usize = 3;

pub(super) struct Readers {
    path: Arc<Path>,
    /// Free connections that are kept besides the reserved ones.
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

    /// Opens the connections that event loops find.
    pub(super) fn open_reserved(&self) -> Result<(), DbError> {
        for _ in 0..RESERVED {
            let opened = open_reader(&self.path)?;
            self.free().push(opened);
        }
        Ok(())
    }

    /// A free connection, if the caller may have it.
    fn take(&self) -> Option<Connection> {
        let mut free = self.free();
        if free.len() > RESERVED || is_marked() { free.pop() } else { None }
    }

    /// Runs `read` in one read transaction.
    pub(super) fn read<T, E: From<DbError>>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let conn = if let Some(conn) = self.take() {
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
            if free.len() < self.max + RESERVED {
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
