//! Load: 64 REST clients and 16 processes on the mount, all on the same thousand files, with share
//! modes, locks, leases, deletions, renames and forced closes. Nothing may hang, break or be left
//! behind, and the log of events must show that no two opens were granted that exclude each other.
//!
//! ```text
//!   worker   what a process on the mount does
//!   client   what a REST client does
//!   replay   the log of events, gone through by rules written out here
//! ```
mod client;
use crate::common::random;
mod replay;
mod worker;

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::http::ask;
use crate::common::need;
use crate::common::served::{Served, wait_for};
use random::{Random, seeds};

const CLIENTS: u64 = 64;
const WORKERS: u64 = 16;
const FOLDERS: usize = 10;
const FILES: usize = 1_000;
const HOT: usize = 50;

/// How much longer than the load itself its end may take before it counts as a deadlock.
const END_WAIT: Duration = Duration::from_mins(1);

/// How much the server may have grown: the log of events, threads, buffers; nothing that piles up.
const GROWTH_KIB_MAX: u64 = 96 << 10;

/// How often each thing came about, and what became of it.
type Counts = BTreeMap<String, u64>;

/// What opens of a file tolerate by its name; the rest shares all.
const RULES: [&str; 4] = ["--share-rule", "*.r=r", "--share-rule", "*.x=none"];

/// One of the files, as a path within the share.
fn file(number: usize) -> String {
    format!("d{}/f{number}{}", number % FOLDERS, ["", ".r", ".x"][number % 3])
}

/// Any of them, and every other time one of a few, so that many meet.
fn some_file(random: &mut Random) -> String {
    let among = if random.once_in(2) { HOT } else { FILES };
    file(random.below(among))
}

fn time() -> Duration {
    let seconds = if std::env::var_os("LATCHFS_FULL").is_some() { 60 } else { 10 };
    Duration::from_secs(seconds)
}

/// The processes on the mount. Killed if the test has not waited for them.
struct Workers(Vec<Child>);

impl Workers {
    fn start(served: &Served, seed: u64) -> Self {
        let worker = |number: u64| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "load::worker::this_process_works_on_the_mount", "--nocapture"])
                .env(worker::MOUNT, served.mount())
                .env(worker::SEED, (seed * 1_000 + number).to_string())
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        Self((0..WORKERS).map(worker).collect())
    }

    /// Waits for their end, and adds up what they counted.
    fn end(mut self, until: Instant) -> Counts {
        let mut counts = Counts::new();
        for child in &mut self.0 {
            while child.try_wait().unwrap().is_none() {
                assert!(Instant::now() < until, "a process on the mount hangs");
                thread::sleep(Duration::from_millis(5));
            }
        }
        for child in self.0.drain(..) {
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{text}");
            for (what, count) in text.lines().filter_map(worker::read_count) {
                *counts.entry(what.to_owned()).or_default() += count;
            }
        }
        counts
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn resident_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn handles(served: &Served) -> String {
    let recursive = [("x-ms-recursive", "true")];
    ask(served.addr(), "GET", "/share?comp=listhandles", &recursive, b"").is(200).text()
}

#[test]
fn clients_and_processes_on_the_same_files_meet_every_rule_and_leave_nothing_behind() {
    if !need::fuse() {
        return;
    }
    let _alone = crate::alone();
    let seed = seeds(1)[0];
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("events.jsonl");
    let mut args = vec!["--no-auth", "--events", "all", "--event-log", log.to_str().unwrap()];
    args.extend(RULES);
    let served = Served::start(&args);
    for number in 0..FOLDERS {
        fs::create_dir(served.data().join(format!("d{number}"))).unwrap();
    }
    for number in 0..FILES {
        fs::write(served.data().join(file(number)), "0123456789").unwrap();
    }
    let before = resident_kib(served.pid());

    let end = Instant::now() + time();
    let workers = Workers::start(&served, seed);
    let addr = served.addr();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| thread::spawn(move || client::work(addr, Random::new(seed + number), end)))
        .collect();
    let mut counts = workers.end(end + END_WAIT);
    for client in clients {
        wait_for("a client's end", || client.is_finished().then_some(()));
        for (what, count) in client.join().expect("a client failed") {
            *counts.entry(what).or_default() += count;
        }
    }
    wait_for("all handles to be gone", || (!handles(&served).contains("<Handle>")).then_some(()));
    let after = resident_kib(served.pid());
    drop(served);

    let replayed = replay::replay(&log);
    println!("seed {seed}: {before} KiB before, {after} KiB after; {replayed:?}");
    for (what, count) in &counts {
        println!("  {count:8} {what}");
    }
    let unexpected = counts.keys().filter(|what| what.starts_with(worker::UNEXPECTED));
    assert_eq!(unexpected.collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(replayed.conflicts, Vec::<String>::new());
    let cut_off = |what: &&String| {
        (what.starts_with("open: ") || what.starts_with("create: "))
            && what.contains("Input/output")
    };
    let cut_off: u64 = counts.keys().filter(cut_off).map(|what| counts[what]).sum();
    assert!(cut_off <= replayed.forced / 10 + 1, "{cut_off} new opens met a forced close");
    assert!(replayed.beside > 100 && replayed.refused > 100, "the load tested little");
    assert!(after < before + GROWTH_KIB_MAX, "{before} KiB before, {after} KiB after");
}
