//! Checkpoints: hooks in order, errors of hooks, a reader in the way, a log that never rests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Place, SCHEMA, get, keys, put, quiet, wait_until};
use crate::db::{CheckpointHooks, Database, DbError, SyncMode, Tuning};

#[derive(Default)]
struct Recorder {
    events: Mutex<Vec<String>>,
    fail: AtomicBool,
}

impl Recorder {
    fn events(&self) -> String {
        self.events.lock().unwrap().join(", ")
    }
}

struct Hooks(Arc<Recorder>, std::path::PathBuf);

impl Hooks {
    /// Keys in the main file alone, as after a power loss that spared nothing of the log.
    fn durable(&self) -> Vec<i64> {
        let copy = tempfile::tempdir().unwrap();
        let file = copy.path().join("copy.db");
        std::fs::copy(&self.1, &file).unwrap();
        keys(&Database::open(&file, &SCHEMA, SyncMode::Normal).unwrap())
    }

    fn record(&self, what: &str) {
        let event = format!("{what} {:?}", self.durable());
        self.0.events.lock().unwrap().push(event);
    }
}

impl CheckpointHooks for Hooks {
    fn before_checkpoint(&self, _: &rusqlite::Connection) -> Result<(), DbError> {
        self.record("before");
        if self.0.fail.load(Ordering::Relaxed) {
            Err(DbError::Io("content cannot be synced".to_owned()))
        } else {
            Ok(())
        }
    }

    fn log_synced(&self) -> Result<(), DbError> {
        Ok(())
    }

    fn checkpoint_ended(&self) {
        self.record("after");
    }
}

/// Keeps checkpoints waiting until it is opened.
#[derive(Default)]
struct Barrier(Mutex<bool>, std::sync::Condvar);

impl CheckpointHooks for Barrier {
    fn before_checkpoint(&self, _: &rusqlite::Connection) -> Result<(), DbError> {
        drop(self.1.wait_while(self.0.lock().unwrap(), |open| !*open));
        Ok(())
    }

    fn log_synced(&self) -> Result<(), DbError> {
        Ok(())
    }

    fn checkpoint_ended(&self) {}
}

fn with_hooks(place: &Place, tuning: Tuning) -> (Arc<Database>, Arc<Recorder>) {
    // Moves the tables into the main file, so that a copy of it can be opened.
    drop(place.open_with(SyncMode::Normal, tuning));
    let recorder = Arc::new(Recorder::default());
    let hooks: Arc<dyn CheckpointHooks> = Arc::new(Hooks(Arc::clone(&recorder), place.file()));
    let begin = |_: &rusqlite::Connection| Ok((Some(hooks), ()));
    let db = Database::open_hooked(&place.file(), &SCHEMA, SyncMode::Normal, tuning, begin);
    (Arc::new(db.unwrap().0), recorder)
}

#[test]
fn hooks_run_before_rows_become_durable_and_after() {
    let place = Place::new();
    let (db, recorder) = with_hooks(&place, quiet());
    db.write(|conn| put(conn, 1, b"x")).unwrap();
    db.checkpoint().unwrap();
    db.write(|conn| put(conn, 2, b"x")).unwrap();
    db.checkpoint().unwrap();
    assert_eq!(recorder.events(), "before [], after [1], before [1], after [1, 2]");
}

#[test]
fn an_error_before_skips_the_checkpoint_until_it_is_tried_again() {
    let place = Place::new();
    let (db, recorder) = with_hooks(&place, quiet());
    db.write(|conn| put(conn, 1, b"x")).unwrap();
    recorder.fail.store(true, Ordering::Relaxed);
    assert_eq!(db.checkpoint(), Err(DbError::Io("content cannot be synced".to_owned())));
    recorder.fail.store(false, Ordering::Relaxed);
    db.checkpoint().unwrap();
    assert_eq!(recorder.events(), "before [], after [], before [], after [1]");
}

#[test]
fn closing_runs_the_hooks_too() {
    let place = Place::new();
    let (db, recorder) = with_hooks(&place, quiet());
    db.write(|conn| put(conn, 1, b"x")).unwrap();
    drop(db);
    assert_eq!(recorder.events(), "before [], after [1]");
}

#[test]
fn what_could_not_be_prepared_at_the_close_or_the_opening_stays_in_the_log() {
    let place = Place::new();
    let log = place.file().with_file_name("test.db-wal");
    let (db, recorder) = with_hooks(&place, quiet());
    db.write(|conn| put(conn, 1, b"x")).unwrap();
    recorder.fail.store(true, Ordering::Relaxed);
    drop(db);
    assert_eq!(recorder.events(), "before [], after []");
    assert!(log.metadata().unwrap().len() > 0);
    let refused = |_: &rusqlite::Connection| Err::<(_, ()), _>(DbError::Closed);
    let opened = Database::open_hooked(&place.file(), &SCHEMA, SyncMode::Normal, quiet(), refused);
    assert_eq!(opened.err(), Some(DbError::Closed));
    assert!(log.metadata().unwrap().len() > 0);
    let (db, recorder) = with_hooks(&place, quiet());
    drop(db);
    assert_eq!(recorder.events(), "before [1], after [1]");
    assert!(!log.exists());
}

#[test]
fn a_checkpoint_follows_a_commit_without_being_asked() {
    let place = Place::new();
    let tuning = Tuning { checkpoint_interval: Duration::from_millis(1), ..quiet() };
    let (db, recorder) = with_hooks(&place, tuning);
    db.write(|conn| put(conn, 1, b"x")).unwrap();
    wait_until("a checkpoint", || recorder.events().ends_with("after [1]"));
}

#[test]
fn a_long_log_is_moved_without_waiting_for_the_interval() {
    let place = Place::new();
    let (db, recorder) = with_hooks(&place, Tuning { checkpoint_pages: 50, ..quiet() });
    db.write(|conn| put(conn, 1, &vec![1; 10_000])).unwrap();
    // A few pages are not long yet: only the write that follows asks for a checkpoint.
    assert_eq!(recorder.events(), "");
    db.write(|conn| put(conn, 2, &vec![1; 400_000])).unwrap();
    wait_until("a checkpoint", || recorder.events().ends_with("after [1, 2]"));
}

#[test]
fn a_reader_in_the_way_delays_the_log_but_neither_writes_nor_hooks() {
    let place = Place::new();
    let (db, recorder) = with_hooks(&place, quiet());
    db.write(|conn| put(conn, 1, b"old")).unwrap();
    db.read(|conn| {
        let old = get(conn, 1)?;
        let other = Arc::clone(&db);
        let beside = std::thread::spawn(move || {
            other.write(|conn| put(conn, 1, b"new"))?;
            other.checkpoint()
        });
        beside.join().unwrap()?;
        assert_eq!(get(conn, 1)?, old);
        Ok::<_, DbError>(())
    })
    .unwrap();
    // The page stays in the log, for the reader; the log itself was synced.
    assert_eq!(recorder.events(), "before [], after []");
    assert_eq!(db.read(|conn| get(conn, 1)).unwrap().as_deref(), Some(&b"new"[..]));
}

#[test]
fn a_log_that_never_rests_begins_again_above_the_limit() {
    let place = Place::new();
    let tuning = Tuning { checkpoint_pages: 100, hold_pages: 400, ..quiet() };
    let db = place.open_with(SyncMode::Normal, tuning);
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..2)
        .map(|writer| {
            let (db, stop) = (Arc::clone(&db), Arc::clone(&stop));
            std::thread::spawn(move || {
                for count in 0_u64.. {
                    if stop.load(Ordering::Relaxed) {
                        return count;
                    }
                    let value = count.to_le_bytes().repeat(1000);
                    db.write(move |conn| put(conn, writer, &value)).unwrap();
                }
                0
            })
        })
        .collect();
    wait_until("the writer to be held", || db.stats().holds >= 3);
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        assert!(writer.join().unwrap() > 0);
    }
    db.checkpoint().unwrap();
    db.write(|conn| put(conn, 7, b"x")).unwrap();
    assert!(db.stats().log_pages < 400, "{:?}", db.stats());
}

#[test]
fn a_database_that_is_not_written_gives_back_the_space_of_log_and_ballast() {
    let place = Place::new();
    let tuning = Tuning { checkpoint_interval: Duration::from_millis(10), ..quiet() };
    let db = place.open_with(SyncMode::Normal, tuning);
    let length = |name| place.dir.path().join(name).metadata().unwrap().len();
    for _ in 0..2 {
        db.write(|conn| put(conn, 1, &vec![1; 24 << 20])).unwrap();
        db.write(|conn| put(conn, 2, b"the ballast covers what was written before")).unwrap();
        wait_until("a cut log", || length("test.db-wal") == 0);
        wait_until("a small ballast", || length("test.db-ballast") <= 1 << 20);
        assert_eq!(db.read(|conn| get(conn, 1)).unwrap().map(|value| value.len()), Some(24 << 20));
    }
}

#[test]
fn a_reader_delays_the_cut_of_the_log_and_loses_nothing() {
    let place = Place::new();
    let tuning = Tuning { checkpoint_interval: Duration::from_millis(10), ..quiet() };
    let db = place.open_with(SyncMode::Normal, tuning);
    let log = || place.dir.path().join("test.db-wal").metadata().unwrap().len();
    db.write(|conn| put(conn, 1, &vec![1; 4 << 20])).unwrap();
    db.read(|conn| {
        let old = get(conn, 1)?;
        let other = Arc::clone(&db);
        let write = move || other.write(|conn| put(conn, 1, &vec![2; 4 << 20]));
        std::thread::spawn(write).join().unwrap()?;
        let rounds = db.stats().checkpoints;
        wait_until("further rounds", || db.stats().checkpoints > rounds + 3);
        assert!(log() > 0 && get(conn, 1)? == old);
        Ok::<_, DbError>(())
    })
    .unwrap();
    wait_until("a cut log", || log() == 0);
    assert!(db.read(|conn| get(conn, 1)).unwrap() == Some(vec![2; 4 << 20]));
}

#[test]
fn writes_wait_for_a_checkpoint_that_the_log_outgrows() {
    let place = Place::new();
    let tuning = Tuning { checkpoint_pages: 100, hold_pages: 200, wait_pages: 400, ..quiet() };
    let barrier = Arc::<Barrier>::default();
    let hooks: Arc<dyn CheckpointHooks> = barrier.clone();
    let begin = |_: &rusqlite::Connection| Ok((Some(hooks), ()));
    let opened = Database::open_hooked(&place.file(), &SCHEMA, SyncMode::Normal, tuning, begin);
    let db = Arc::new(opened.unwrap().0);
    let writer = std::thread::spawn({
        let db = Arc::clone(&db);
        move || {
            for key in 0..40 {
                db.write(move |conn| put(conn, key, &vec![1; 100_000])).unwrap();
            }
        }
    });
    wait_until("a write that waits, or the last one", || {
        db.stats().waits > 0 || writer.is_finished()
    });
    assert!(!writer.is_finished() && db.stats().log_pages < 450, "{:?}", db.stats());
    *barrier.0.lock().unwrap() = true;
    barrier.1.notify_all();
    writer.join().unwrap();
    assert_eq!(keys(&db).len(), 40);
}
