//! `kill -9` at any moment: what was acknowledged is there, and the file opens.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::Arc;

use super::{Place, keys, put};
use crate::db::testing::child;
use crate::db::{Database, SyncMode, Tuning};

const ROUNDS: u64 = 10;
const FILE: &str = "LATCHFS_TEST_DB";

#[test]
fn acknowledged_rows_survive_kill_9() {
    for sync in ["normal", "always"] {
        let place = Place::new();
        let mut acknowledged = Vec::new();
        for round in 0..ROUNDS {
            let mut process = child(child_that_writes_until_killed)
                .env(FILE, place.file())
                .env("LATCHFS_TEST_SYNC", sync)
                .env("LATCHFS_TEST_ROUND", round.to_string())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
            // The moment differs from round to round, in the number of answers.
            let enough = 20 + (round * 37) % 150;
            let mut seen = 0;
            while seen < enough {
                let line = lines.next().expect("the child writes until it is killed").unwrap();
                seen += u64::from(parse(&line, &mut acknowledged));
            }
            process.kill().unwrap();
            process.wait().unwrap();
            // Answers that were on their way when it died count too.
            for line in lines.map_while(Result::ok) {
                parse(&line, &mut acknowledged);
            }
            let db = Database::open(&place.file(), &super::SCHEMA, SyncMode::Normal).unwrap();
            let there = keys(&db);
            for key in &acknowledged {
                assert!(there.binary_search(key).is_ok(), "round {round}: {key} is lost");
            }
        }
    }
}

fn parse(line: &str, acknowledged: &mut Vec<i64>) -> bool {
    // A line cut by the kill has no dot.
    let key = line.strip_prefix("ok ").and_then(|rest| rest.strip_suffix('.'));
    acknowledged.extend(key.map(|key| key.parse::<i64>().unwrap()));
    key.is_some()
}

#[test]
#[ignore = "a child process of another test"]
fn child_that_writes_until_killed() {
    let variable = |name| std::env::var(name).expect("set by the parent");
    let sync =
        if variable("LATCHFS_TEST_SYNC") == "always" { SyncMode::Always } else { SyncMode::Normal };
    let round: i64 = variable("LATCHFS_TEST_ROUND").parse().unwrap();
    // Checkpoints all the time, so that kills meet them.
    let tuning = Tuning { checkpoint_pages: 20, hold_pages: 60, ..Tuning::default() };
    let file = variable(FILE);
    let db = Database::open_with(file.as_ref(), &super::SCHEMA, sync, tuning).unwrap();
    let db = Arc::new(db);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let db = Arc::clone(&db);
            std::thread::spawn(move || {
                for count in 0..100_000 {
                    let key = (round * 4 + thread) * 100_000 + count;
                    db.write(move |conn| put(conn, key, &[7; 500])).unwrap();
                    // In one call, so that lines of threads do not mix.
                    std::io::stdout().write_all(format!("ok {key}.\n").as_bytes()).unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
