//! A soak: for minutes, processes on the mount and REST clients use the same files, handles are
//! closed by force, snapshots made, and a second share is deleted and made again under its users.
//! Nothing may hang or answer 5xx, and afterwards everything is as it was: no handles, as many
//! descriptors and about as much memory as before, and the mount shows what the directory has.
//!
//! Thirty seconds as a rule; ten minutes with `LATCHFS_FULL`, or what
//! `LATCHFS_TEST_SOAK_SECONDS` says.

mod client;
mod worker;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::http::ask;
use crate::common::need;
use crate::common::random::{Random, seeds};
use crate::common::served::{Served, wait_for};

const WORKERS: u64 = 4;
const CLIENTS: u64 = 5;
const FILES: usize = 40;

/// How much longer than the soak itself its end may take before it counts as a hang.
const END_WAIT: Duration = Duration::from_mins(1);

/// How much the server may have grown: threads, buffers, the log of events.
const GROWTH_KIB_MAX: u64 = 96 << 10;

/// How many more descriptors may be open afterwards: of connections that have just ended, and of
/// databases that were not there before.
const DESCRIPTORS_MORE: usize = 16;

fn time() -> Duration {
    let asked = std::env::var(worker::SECONDS).ok().and_then(|text| text.parse().ok());
    let usual = if std::env::var_os("LATCHFS_FULL").is_some() { 600 } else { 30 };
    Duration::from_secs(asked.unwrap_or(usual))
}

/// One of the files, within a share.
fn some_file(random: &mut Random) -> String {
    let number = random.below(FILES);
    format!("d{}/f{number}", number % 4)
}

fn descriptors(served: &Served) -> usize {
    fs::read_dir(format!("/proc/{}/fd", served.pid())).unwrap().count()
}

fn resident_kib(served: &Served) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", served.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn handles(served: &Served) -> String {
    let recursive = [("x-ms-recursive", "true")];
    ask(served.addr(), "GET", "/share?comp=listhandles", &recursive, b"").is(200).text()
}

/// Names below a directory, with the bytes of files.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let kind = fs::symlink_metadata(&path).unwrap();
            let bytes = if kind.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            if kind.is_dir() {
                folders.push(path);
            }
            found.insert(name, bytes);
        }
    }
    found
}

/// The processes on the mount. Killed if the test has not waited for them.
struct Workers(Vec<Child>);

impl Workers {
    fn start(served: &Served, seed: u64, seconds: u64) -> Self {
        let worker = |number: u64| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "soak::worker::this_process_works_on_the_mount", "--nocapture"])
                .env(worker::MOUNT, served.mount())
                .env(worker::SEED, (seed * 1_000 + number).to_string())
                .env(worker::SECONDS, seconds.to_string())
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        };
        Self((0..WORKERS).map(worker).collect())
    }

    fn end(mut self, until: Instant) {
        for child in &mut self.0 {
            while child.try_wait().unwrap().is_none() {
                assert!(Instant::now() < until, "a process on the mount hangs");
                thread::sleep(Duration::from_millis(5));
            }
        }
        for child in self.0.drain(..) {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
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

#[test]
fn hours_of_use_by_all_at_once_leave_nothing_behind() {
    if !need::fuse() {
        return;
    }
    let _alone = crate::alone();
    let (seed, time) = (seeds(1)[0], time());
    println!("seed {seed}, {time:?}");
    let served = Served::start(&["--no-auth"]);
    for number in 0..4 {
        fs::create_dir(served.mount().join(format!("d{number}"))).unwrap();
    }
    // Each part of the server has been used once before anything is counted.
    let begun = Instant::now();
    client::work(served.addr(), Random::new(seed), begun + Duration::from_secs(1));
    let (descriptors_before, memory_before) = (descriptors(&served), resident_kib(&served));

    let end = Instant::now() + time;
    let workers = Workers::start(&served, seed, time.as_secs());
    let addr = served.addr();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| thread::spawn(move || client::work(addr, Random::new(seed + number), end)))
        .collect();
    workers.end(end + END_WAIT);
    for client in clients {
        let until = end + END_WAIT;
        while !client.is_finished() {
            assert!(Instant::now() < until, "a client hangs");
            thread::sleep(Duration::from_millis(5));
        }
        client.join().expect("a client failed");
    }

    wait_for("all handles to be gone", || (!handles(&served).contains("<Handle>")).then_some(()));
    wait_for("descriptors to be closed", || {
        (descriptors(&served) <= descriptors_before + DESCRIPTORS_MORE).then_some(())
    });
    let memory = resident_kib(&served);
    assert!(memory < memory_before + GROWTH_KIB_MAX, "{memory_before} KiB, then {memory} KiB");
    wait_for("the mount to show what the directory has", || {
        (tree(&served.mount()) == tree(&served.data())).then_some(())
    });
}
