//! `--event-log`: the file that misses nothing.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::thread;

use serde_json::Value;

use crate::common::ground::Ground;
use crate::common::http::ask;
use crate::common::need;
use crate::common::served::{Served, wait_for};

/// The lines that are whole: the last one may be on its way.
fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_file_has_every_event_once_and_in_order_though_more_come_than_the_log_holds() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 5;
    if !need::fuse() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("events.jsonl");
    let served = Served::start(&["--events", "all", "--event-log", file.to_str().unwrap()]);
    // Each open is two events: granted and closed. In each round fewer come than the log holds, so
    // that a slow machine loses none.
    let opens = latchfs::journal::ring::PASSING_MAX / 4 / THREADS;
    for round in 1..=ROUNDS {
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let path = served.mount().join(thread.to_string());
                scope.spawn(move || {
                    for _ in 0..opens {
                        OpenOptions::new().create(true).append(true).open(&path).unwrap();
                    }
                });
            }
        });
        wait_for("the events of the round", || {
            let written = fs::read_to_string(&file).unwrap().lines().count();
            (written >= 2 * THREADS * opens * round).then_some(())
        });
    }
    drop(served);
    let lines = lines(&file);
    let of = |kind: &str| lines.iter().filter(|line| line["event"] == kind).count();
    let all = THREADS * opens * ROUNDS;
    assert_eq!((of("granted"), of("closed")), (all, all));
    for (index, line) in lines.iter().enumerate() {
        assert_eq!(line["seq"], index + 1);
    }
}

#[test]
fn a_restart_adds_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("events.jsonl");
    let args = ["--no-auth", "--no-mount", "--event-log", file.to_str().unwrap()];
    for _ in 0..2 {
        let served = Served::start(&args);
        ask(served.addr(), "GET", "/share/a", &[], b"").is(404);
    }
    let numbers: Vec<_> = lines(&file).iter().map(|line| line["seq"].clone()).collect();
    assert_eq!(numbers, [1, 1]);
}

#[test]
fn a_file_that_cannot_be_written_stops_nobody_and_says_afterwards_what_it_lacks() {
    if !need::root() {
        return;
    }
    let small = Ground::new("tmpfs", c"size=64k");
    let file = small.path().join("events.jsonl");
    let served = Served::start(&["--no-auth", "--no-mount", "--event-log", file.to_str().unwrap()]);
    let refused = || ask(served.addr(), "GET", "/share/a", &[], b"").is(404);
    refused();
    wait_for("the first line", || (!lines(&file).is_empty()).then_some(()));
    let filler = small.fill();
    let before = fs::metadata(&file).unwrap().len();
    // A write that fails is cut back: the file was changed, and is as long as before. The room in
    // its last page may take some lines first.
    let look = || fs::metadata(&file).map(|meta| (meta.len(), meta.modified().unwrap())).unwrap();
    let mut seen = look();
    wait_for("a write that fails", || {
        refused();
        let now = look();
        let failed = now.0 == seen.0 && now.1 != seen.1;
        seen = now;
        failed.then_some(())
    });
    fs::remove_file(&filler).unwrap();
    let told = wait_for("the lines after the gap", || {
        refused();
        let lines = lines(&file);
        lines.iter().any(|line| line.get("lost").is_some()).then_some(lines)
    });
    assert!(fs::metadata(&file).unwrap().len() > before);
    // Between two refusals the journal has the row of the request, which the file does not list.
    let (mut next, mut lost) = (1, 0);
    for line in &told {
        if let Some(count) = line["lost"].as_u64() {
            lost += count;
            next += 2 * count;
        } else {
            assert_eq!(line["seq"], next);
            next += 2;
        }
    }
    assert!(lost > 0);
}
