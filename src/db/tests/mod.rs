//! Tests of the database, and what they share: a table, places to open it, a blocked writer.

mod checkpoint;
mod close;
mod format;
mod full_disk;
mod group;
mod kill;
mod log;
mod place;
mod read;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension};
use tempfile::TempDir;

use super::{Database, DbError, Schema, SyncMode, Tuning};

pub(super) const SCHEMA: Schema = Schema {
    version: 3,
    statements: "CREATE TABLE item (key INTEGER PRIMARY KEY, value BLOB NOT NULL);",
};

/// Long enough for a loaded machine; reached only when something is wrong.
pub(super) const DEADLINE: Duration = Duration::from_mins(1);

/// Nothing happens by itself: no checkpoint, no end of a group by time.
pub(super) fn quiet() -> Tuning {
    Tuning {
        checkpoint_interval: Duration::from_hours(1),
        checkpoint_pages: u32::MAX,
        group_time: Duration::from_hours(1),
        ..Tuning::default()
    }
}

pub(super) struct Place {
    pub(super) dir: TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(super) fn file(&self) -> PathBuf {
        self.dir.path().join("test.db")
    }

    pub(super) fn open(&self, sync: SyncMode) -> Arc<Database> {
        self.open_with(sync, quiet())
    }

    pub(super) fn open_with(&self, sync: SyncMode, tuning: Tuning) -> Arc<Database> {
        Arc::new(Database::open_with(&self.file(), &SCHEMA, sync, tuning).unwrap())
    }
}

pub(super) fn put(conn: &Connection, key: i64, value: &[u8]) -> Result<(), DbError> {
    let sql = "INSERT INTO item (key, value) VALUES (?1, ?2)
               ON CONFLICT (key) DO UPDATE SET value = ?2";
    conn.prepare_cached(sql)?.execute((key, value))?;
    Ok(())
}

pub(super) fn get(conn: &Connection, key: i64) -> Result<Option<Vec<u8>>, DbError> {
    let mut select = conn.prepare_cached("SELECT value FROM item WHERE key = ?1")?;
    Ok(select.query_row([key], |row| row.get(0)).optional()?)
}

pub(super) fn keys(db: &Database) -> Vec<i64> {
    db.read(|conn| {
        let mut select = conn.prepare_cached("SELECT key FROM item ORDER BY key")?;
        let keys = select.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok::<_, DbError>(keys)
    })
    .unwrap()
}

/// A write that has begun and waits until it is let go.
pub(super) struct Blocked {
    go: Sender<()>,
    thread: JoinHandle<Result<(), DbError>>,
}

impl Blocked {
    pub(super) fn start(db: &Arc<Database>) -> Self {
        let (go, wait) = channel::<()>();
        let (entered, has_entered) = channel();
        let db = Arc::clone(db);
        let thread = std::thread::spawn(move || {
            db.write(move |_| {
                entered.send(()).unwrap();
                receive(&wait);
                Ok(())
            })
        });
        receive(&has_entered);
        Self { go, thread }
    }

    pub(super) fn end(self) {
        self.go.send(()).unwrap();
        self.thread.join().unwrap().unwrap();
    }
}

pub(super) fn receive<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(DEADLINE).expect("the other side answers in time")
}

/// Waits for a condition.
pub(super) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}
