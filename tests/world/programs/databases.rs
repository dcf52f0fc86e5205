//! `sqlite3`: `fcntl` locks between processes, journals that come and go, shared memory.

use crate::programs::desk::{Desk, ready};

const ROWS: usize = 60;

/// Two processes insert at once, each row in a transaction of its own.
fn two_processes_insert(desk: &Desk, journal: &str) {
    let mode = desk.sh(&format!(
        "sqlite3 db.sqlite 'PRAGMA journal_mode={journal}; CREATE TABLE t (who TEXT, n INTEGER);'"
    ));
    assert_eq!(mode.trim(), journal);
    let script = format!(
        "insert() {{
    {{ echo 'PRAGMA busy_timeout=60000;'
      for n in $(seq {ROWS}); do echo \"INSERT INTO t VALUES ('$1', $n);\"; done
    }} | sqlite3 -bail db.sqlite > /dev/null
}}
insert one & first=$!
insert two & second=$!
wait $first && wait $second"
    );
    desk.sh(&script);
    let count = "SELECT who, count(*), count(DISTINCT n), sum(n) FROM t GROUP BY who ORDER BY who;";
    let sum = ROWS * (ROWS + 1) / 2;
    let expected = format!("one|{ROWS}|{ROWS}|{sum}\ntwo|{ROWS}|{ROWS}|{sum}\n");
    assert_eq!(desk.run("sqlite3", &["db.sqlite", count]), expected);
    assert_eq!(desk.run("sqlite3", &["db.sqlite", "PRAGMA integrity_check;"]), "ok\n");
    let behind = desk.behind("db.sqlite");
    let behind = behind.to_str().unwrap();
    assert_eq!(
        desk.run("sqlite3", &["-readonly", behind, "SELECT count(*) FROM t;"]),
        format!("{}\n", 2 * ROWS)
    );
}

#[test]
fn sqlite_with_a_rollback_journal_takes_rows_of_two_processes() {
    if !ready(&["sqlite3"]) {
        return;
    }
    let desk = Desk::new();
    two_processes_insert(&desk, "delete");
    assert!(!desk.on("db.sqlite-journal").exists());
    desk.finish();
}

#[test]
fn sqlite_with_a_write_ahead_log_takes_rows_of_two_processes() {
    if !ready(&["sqlite3"]) {
        return;
    }
    let desk = Desk::new();
    two_processes_insert(&desk, "wal");
    desk.run("sqlite3", &["db.sqlite", "PRAGMA wal_checkpoint(TRUNCATE); VACUUM;"]);
    assert_eq!(desk.run("sqlite3", &["db.sqlite", "PRAGMA integrity_check;"]), "ok\n");
    desk.finish();
}

#[test]
fn sqlite_rolls_back_what_was_not_committed() {
    if !ready(&["sqlite3"]) {
        return;
    }
    let desk = Desk::new();
    desk.sh("sqlite3 db.sqlite 'CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1);
BEGIN; INSERT INTO t SELECT 2 FROM t; ROLLBACK; BEGIN; INSERT INTO t VALUES (3); COMMIT;'");
    assert_eq!(desk.run("sqlite3", &["db.sqlite", "SELECT n FROM t ORDER BY n;"]), "1\n3\n");
    desk.finish();
}
