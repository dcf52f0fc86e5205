//! Tests of the file layer: which writes are gathered, and random transactions on a disk that is
//! full from time to time, whose log is read back as after a crash.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::gathered::{FRAME_HEADER, Gathered};
use super::*;

thread_local! {
    /// Bytes that this thread may still write to logs, and the error of what is beyond.
    static ROOM: Cell<Option<(c_int, Code)>> = const { Cell::new(None) };
}

/// How much of a write there is room for, and the error if that is less than all.
pub(super) fn room(length: c_int) -> (c_int, Option<Code>) {
    let Some((room, code)) = ROOM.get() else { return (length, None) };
    let written = length.min(room);
    ROOM.set(Some((room - written, code)));
    (written, (written < length).then_some(code))
}

const PAGE: usize = 4096;
const FRAME: u64 = 4096 + 24;
const FULL: Code = ffi::SQLITE_FULL;

/// A file in memory that counts its writes.
#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    writes: usize,
    full: bool,
}

impl Written {
    fn write(&mut self, bytes: &[u8], at: u64) -> Result<(), Code> {
        if self.full {
            return Err(FULL);
        }
        let at = usize::try_from(at).unwrap();
        self.bytes.resize(self.bytes.len().max(at + bytes.len()), 0);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.writes += 1;
        Ok(())
    }
}

/// A log with its header written, in a file of which that write is forgotten.
fn begun() -> (Gathered, Written) {
    let (mut gathered, mut file) = (Gathered::default(), Written::default());
    put(&mut gathered, &mut file, &[9; 32], 0).unwrap();
    file.writes = 0;
    (gathered, file)
}

fn put(gathered: &mut Gathered, file: &mut Written, bytes: &[u8], at: u64) -> Result<(), Code> {
    gathered.write(bytes, at, &mut |bytes, at| file.write(bytes, at))
}

fn offset(number: u64) -> u64 {
    32 + number * FRAME
}

fn header(last: bool) -> [u8; FRAME_HEADER] {
    let mut header = [1; FRAME_HEADER];
    header[4..8].copy_from_slice(&u32::from(last).to_be_bytes());
    header
}

/// Appends the frame of that number, with a page of `fill`.
fn frame(
    gathered: &mut Gathered,
    file: &mut Written,
    number: u64,
    fill: u8,
    last: bool,
) -> Result<(), Code> {
    put(gathered, file, &header(last), offset(number))?;
    put(gathered, file, &[fill; PAGE], offset(number) + 24)
}

/// The first byte of the page of a frame in the file.
fn page(file: &Written, number: u64) -> Option<u8> {
    file.bytes.get(usize::try_from(offset(number)).unwrap() + 24).copied()
}

#[test]
fn the_frames_of_a_commit_are_written_with_one_call() {
    let (mut gathered, mut file) = begun();
    frame(&mut gathered, &mut file, 0, 1, false).unwrap();
    frame(&mut gathered, &mut file, 1, 2, false).unwrap();
    assert_eq!(file.writes, 0);
    frame(&mut gathered, &mut file, 2, 3, true).unwrap();
    assert_eq!((file.writes, page(&file, 0), page(&file, 2)), (1, Some(1), Some(3)));
    frame(&mut gathered, &mut file, 3, 4, true).unwrap();
    assert_eq!((file.writes, page(&file, 3)), (2, Some(4)));
}

#[test]
fn where_the_log_ends_is_learned_from_the_first_frame() {
    let (mut gathered, mut file) = (Gathered::default(), Written::default());
    frame(&mut gathered, &mut file, 9, 1, false).unwrap();
    assert_eq!(file.writes, 2);
    frame(&mut gathered, &mut file, 10, 2, true).unwrap();
    assert_eq!((file.writes, page(&file, 10)), (3, Some(2)));
}

#[test]
fn frames_that_were_rolled_back_are_not_written() {
    let (mut gathered, mut file) = begun();
    frame(&mut gathered, &mut file, 0, 1, true).unwrap();
    frame(&mut gathered, &mut file, 1, 2, false).unwrap();
    frame(&mut gathered, &mut file, 2, 3, false).unwrap();
    // Back to a savepoint after frame 1, then all of it.
    frame(&mut gathered, &mut file, 2, 4, false).unwrap();
    frame(&mut gathered, &mut file, 1, 5, true).unwrap();
    assert_eq!((file.writes, page(&file, 1), page(&file, 2)), (2, Some(5), None));
}

#[test]
fn a_page_that_is_changed_again_is_changed_where_it_is() {
    let (mut gathered, mut file) = begun();
    frame(&mut gathered, &mut file, 0, 1, false).unwrap();
    put(&mut gathered, &mut file, &[7; PAGE], offset(0) + 24).unwrap();
    assert_eq!(file.writes, 0);
    frame(&mut gathered, &mut file, 1, 2, true).unwrap();
    assert_eq!((file.writes, page(&file, 0)), (1, Some(7)));
    // Its checksum is corrected afterwards, in the file.
    put(&mut gathered, &mut file, &header(false), offset(0)).unwrap();
    put(&mut gathered, &mut file, &header(true), offset(1)).unwrap();
    assert_eq!(file.writes, 3);
    frame(&mut gathered, &mut file, 2, 3, true).unwrap();
    assert_eq!((file.writes, page(&file, 2)), (4, Some(3)));
}

#[test]
fn a_long_transaction_is_written_in_pieces() {
    let (mut gathered, mut file) = begun();
    for number in 0..100 {
        frame(&mut gathered, &mut file, number, 1, false).unwrap();
    }
    assert_eq!(file.writes, 6);
}

#[test]
fn what_a_read_could_not_write_out_is_written_with_the_commit() {
    let (mut gathered, mut file) = begun();
    frame(&mut gathered, &mut file, 0, 1, false).unwrap();
    file.full = true;
    assert!(gathered.reaches(offset(0) + 24));
    assert_eq!(gathered.flush(&mut |bytes, at| file.write(bytes, at)), Err(FULL));
    assert_eq!(frame(&mut gathered, &mut file, 1, 2, false), Ok(()));
    file.full = false;
    frame(&mut gathered, &mut file, 2, 3, true).unwrap();
    let pages = [0, 1, 2].map(|number| page(&file, number));
    assert_eq!(pages, [Some(1), Some(2), Some(3)]);
}

#[test]
fn a_commit_that_was_refused_is_never_written() {
    let (mut gathered, mut file) = begun();
    frame(&mut gathered, &mut file, 0, 1, false).unwrap();
    file.full = true;
    assert_eq!(frame(&mut gathered, &mut file, 1, 2, true), Err(FULL));
    file.full = false;
    gathered.flush(&mut |bytes, at| file.write(bytes, at)).unwrap();
    assert_eq!((file.writes, file.bytes.len()), (0, 32));
    frame(&mut gathered, &mut file, 0, 3, true).unwrap();
    assert_eq!(page(&file, 0), Some(3));
}

/// Numbers that look random, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % bound
    }

    fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).unwrap()
    }
}

/// For connections whose syncs a test would only wait for.
const NO_SYNC: &str = "PRAGMA synchronous = OFF";

/// A statement that may fail at one of its rows can be undone alone.
const TABLE: &str = "CREATE TABLE t (
    id INTEGER PRIMARY KEY, value BLOB NOT NULL CHECK (length(value) < 10000)
)";

type Rows = BTreeMap<i64, Vec<u8>>;

/// A connection with a cache of a few pages, so that most transactions write pages before their
/// end and read them back.
fn connect(path: &Path) -> Connection {
    let conn =
        Connection::open_with_flags_and_vfs(path, OpenFlags::default(), name().unwrap()).unwrap();
    let settings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
                    PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = 5; PRAGMA cache_spill = 2;";
    conn.execute_batch(settings).unwrap();
    conn
}

fn rows(conn: &Connection) -> rusqlite::Result<Rows> {
    let mut select = conn.prepare_cached("SELECT id, value FROM t")?;
    select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// The rows that another process would find if this one ended now.
fn rows_after_a_crash(from: &Path, to: &Path) -> Rows {
    for name in ["db", "db-wal"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
    let _ = std::fs::remove_file(to.join("db-shm"));
    let conn = Connection::open(to.join("db")).unwrap();
    conn.execute_batch(NO_SYNC).unwrap();
    let check: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    rows(&conn).unwrap()
}

/// One statement; its effect on `model` if it succeeded.
fn statement(conn: &Connection, random: &mut Random, model: &mut Rows) -> rusqlite::Result<()> {
    let id = i64::try_from(random.below(60)).unwrap();
    match random.below(8) {
        0 => {
            conn.prepare_cached("DELETE FROM t WHERE id = ?1")?.execute([id])?;
            model.remove(&id);
        }
        1 => assert!(rows(conn)? == *model, "a transaction sees other rows than it wrote"),
        // A statement that changes many rows. If it finds the disk full, its own changes alone are
        // undone, and the transaction can go on.
        2 | 3 => {
            let (part, fill) = (id % 5, u8::try_from(random.below(256)).unwrap());
            let value = vec![fill; usize::try_from(random.below(5000)).unwrap()];
            conn.prepare_cached("UPDATE t SET value = ?2 WHERE id % 5 = ?1")?
                .execute((part, &value))?;
            for (_, changed) in model.iter_mut().filter(|(id, _)| **id % 5 == part) {
                changed.clone_from(&value);
            }
        }
        _ => {
            let fill = u8::try_from(random.below(256)).unwrap();
            let value = vec![fill; usize::try_from(random.below(9000)).unwrap()];
            conn.prepare_cached("INSERT OR REPLACE INTO t VALUES (?1, ?2)")?
                .execute((id, &value))?;
            model.insert(id, value);
        }
    }
    Ok(())
}

/// Statements, some of them in savepoints that are rolled back; errors end a savepoint, and the
/// transaction goes on, as that of a group of requests does.
fn transaction(conn: &Connection, random: &mut Random, model: &mut Rows) -> rusqlite::Result<()> {
    conn.execute_batch("BEGIN IMMEDIATE")?;
    for _ in 0..random.below(30) {
        let before = model.clone();
        conn.execute_batch("SAVEPOINT request")?;
        let kept = (0..=random.below(2)).try_for_each(|_| {
            if random.below(8) == 0 {
                let codes = [ffi::SQLITE_FULL, ffi::SQLITE_FULL, ffi::SQLITE_IOERR_WRITE];
                let room = c_int::try_from(random.below(20_000)).unwrap();
                ROOM.set(Some((room, codes[random.index(codes.len())])));
            }
            statement(conn, random, model)
        });
        if kept.is_err() || random.below(4) == 0 {
            ROOM.set(None);
        }
        // Without room it fails, and the transaction goes on.
        if random.below(10) == 0 && !conn.is_autocommit() {
            let _ = conn.cache_flush().map_err(DbError::from).and_then(|()| flush(conn));
        }
        if conn.is_autocommit() {
            return Err(rusqlite::Error::QueryReturnedNoRows);
        }
        if kept.is_err() || random.below(5) == 0 {
            conn.execute_batch("ROLLBACK TO request")?;
            *model = before;
        }
        conn.execute_batch("RELEASE request")?;
    }
    conn.execute_batch(if random.below(8) == 0 { "ROLLBACK; SELECT nothing" } else { "COMMIT" })
}

/// Checkpoints, by the writer or another connection.
const CHECKPOINTS: [&str; 3] = [
    "PRAGMA wal_checkpoint(PASSIVE)",
    "PRAGMA wal_checkpoint(RESTART)",
    "PRAGMA wal_checkpoint(TRUNCATE)",
];

/// Transactions of one seed; how many were committed, and how many refused.
fn transactions(seed: u64) -> (u32, u32) {
    let (home, crashed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut random = Random(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
    let file = home.path().join("db");
    let mut conn = connect(&file);
    let other = connect(&file);
    other.execute_batch(NO_SYNC).unwrap();
    conn.execute_batch(TABLE).unwrap();
    if seed.is_multiple_of(4) {
        conn.execute_batch("PRAGMA synchronous = FULL").unwrap();
    }
    let (mut model, mut committed, mut refused) = (Rows::new(), 0, 0);
    for _ in 0..40 {
        let mut after = model.clone();
        let done = transaction(&conn, &mut random, &mut after);
        match done {
            Ok(()) => {
                model = after;
                committed += 1;
            }
            Err(_) => refused += 1,
        }
        if !conn.is_autocommit() {
            conn.execute_batch("ROLLBACK").unwrap();
        }
        if done.is_err() || random.below(4) == 0 {
            let found = rows_after_a_crash(home.path(), crashed.path());
            assert!(found == model, "seed {seed}: the log has other rows than were committed");
        }
        ROOM.set(None);
        match random.index(30) {
            which @ 0..3 => other.execute_batch(CHECKPOINTS[which]).unwrap(),
            which @ 3..6 => conn.execute_batch(CHECKPOINTS[which - 3]).unwrap(),
            6 => conn = connect(&file),
            _ => {}
        }
        for reader in [&conn, &other] {
            assert!(rows(reader).unwrap() == model, "seed {seed}: other rows than were committed");
        }
    }
    (committed, refused)
}

#[test]
fn what_is_committed_is_in_the_log_and_nothing_else_whenever_the_disk_is_full() {
    let (mut committed, mut refused) = (0, 0);
    for seed in 1..=16 {
        let (ok, not) = transactions(seed);
        (committed, refused) = (committed + ok, refused + not);
    }
    // Both ways are taken often.
    assert!(committed > 100 && refused > 100, "{committed} committed, {refused} refused");
}

#[test]
fn what_a_transaction_has_gathered_can_be_written_before_its_commit() {
    let home = tempfile::tempdir().unwrap();
    let conn = connect(&home.path().join("db"));
    conn.execute_batch(TABLE).unwrap();
    conn.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (1, 'x')").unwrap();
    ROOM.set(Some((0, ffi::SQLITE_FULL)));
    conn.cache_flush().unwrap();
    assert!(matches!(flush(&conn), Err(DbError::Full { .. })));
    ROOM.set(None);
    flush(&conn).unwrap();
    ROOM.set(Some((0, ffi::SQLITE_FULL)));
    // The commit adds no page but the one that ends it.
    assert!(conn.execute_batch("COMMIT").is_err());
    ROOM.set(None);
}
