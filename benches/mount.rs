//! What the mount costs: the same calls on the directory itself, on this mount, and on two other
//! file systems that pass everything through.
//!
//! Each driver is a process of its own. A figure is the median of one call's time, the best of
//! three rounds; a round goes over all candidates, so that a busy machine is busy for all of them.
//!
//! `LATCHFS_BENCH_DIR` names the disk to measure on (a temporary directory if unset); tmpfs comes
//! with it where `/dev/shm` is one. `bindfs` takes part if it is installed, and libfuse's example
//! `passthrough_ll` if its source and `gcc` are, or if `LATCHFS_BENCH_LL` names the program. With
//! words (`cargo bench --bench mount -- tmpfs`) only the places so named are measured.
//! `LATCHFS_BENCH_PROGRAM` names another latchfs than this build's, `LATCHFS_BENCH_OTHER` one that
//! is measured beside it.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::mount::UnmountFlags;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const ROUNDS: usize = 3;
const FILES: usize = 500;
const BIG: usize = 64 << 20;
const BLOCK: usize = 4096;
const RANDOM_CALLS: usize = 4000;
const READY: Duration = Duration::from_secs(10);

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let scratch = tempfile::tempdir().expect("a temporary directory can be made");
    let passthrough_ll = find_passthrough_ll(scratch.path());
    let disk = env::var_os("LATCHFS_BENCH_DIR").map_or_else(env::temp_dir, PathBuf::from);
    let words: Vec<_> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    for (what, place) in [("disk", disk.as_path()), ("tmpfs", Path::new("/dev/shm"))] {
        if !words.is_empty() && !words.iter().any(|word| *word == what) {
            continue;
        }
        match tempfile::tempdir_in(place) {
            Ok(dir) => measure_place(what, dir.path(), passthrough_ll.as_deref()),
            Err(error) => println!("{}: left out ({error})", place.display()),
        }
    }
}

/// One way to the same kind of directory.
struct Candidate {
    name: &'static str,
    dir: PathBuf,
    driver: Option<Child>,
}

impl Drop for Candidate {
    fn drop(&mut self) {
        let Some(driver) = &mut self.driver else { return };
        drop(driver.stdin.take());
        let _ = rustix::mount::unmount(&self.dir, UnmountFlags::DETACH);
        let _ = driver.wait();
    }
}

/// A directory for a candidate's files and one to mount on.
fn places(place: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (root, mount) = (place.join(name).join("root"), place.join(name).join("mnt"));
    fs::create_dir_all(&root).expect("directories can be made");
    fs::create_dir_all(&mount).expect("directories can be made");
    (root, mount)
}

fn candidates(place: &Path, passthrough_ll: Option<&Path>) -> Vec<Candidate> {
    let (native, _) = places(place, "native");
    let mut all = vec![Candidate { name: "native", dir: native, driver: None }];
    let program = env::var_os("LATCHFS_BENCH_PROGRAM");
    let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_latchfs").into());
    let other = env::var_os("LATCHFS_BENCH_OTHER").map(|other| ("other latchfs", other));
    for (name, program) in [("latchfs", program)].into_iter().chain(other) {
        let (root, mount) = places(place, name);
        let mut command = Command::new(program);
        command.args(["mount", "--no-rest", "--until-stdin-closes", "--state"]);
        command.arg(place.join(name).join("state")).arg(root).arg(&mount);
        all.extend(start(name, command, mount));
    }
    if let Some(program) = passthrough_ll {
        let (root, mount) = places(place, "ll");
        let mut command = Command::new(program);
        command.arg("-f").arg("-o").arg(format!("source={}", root.display())).arg(&mount);
        all.extend(start("passthrough_ll", command, mount));
    }
    let (root, mount) = places(place, "bindfs");
    let mut command = Command::new("bindfs");
    command.args(["-f", "--multithreaded"]).arg(root).arg(&mount);
    all.extend(start("bindfs", command, mount));
    all
}

/// Starts a driver and waits until something is mounted; none if it is not to be had.
fn start(name: &'static str, mut command: Command, mount: PathBuf) -> Option<Candidate> {
    let device = |path: &Path| fs::metadata(path).map(|meta| meta.dev()).ok();
    let before = device(&mount);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut driver) = command.spawn() else {
        println!("{name}: left out, it could not be started");
        return None;
    };
    let until = Instant::now() + READY;
    while device(&mount) == before {
        if Instant::now() > until || driver.try_wait().is_ok_and(|ended| ended.is_some()) {
            println!("{name}: left out, it does not mount");
            let _ = driver.kill();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(Candidate { name, dir: mount, driver: Some(driver) })
}

/// Builds libfuse's example, or takes the one that is named.
fn find_passthrough_ll(scratch: &Path) -> Option<PathBuf> {
    if let Some(program) = env::var_os("LATCHFS_BENCH_LL") {
        return Some(program.into());
    }
    let source = Path::new("/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c");
    let flags = Command::new("pkg-config").args(["--cflags", "--libs", "fuse3"]).output().ok()?;
    if !source.exists() || !flags.status.success() {
        println!("passthrough_ll: left out (install libfuse3-dev, gcc and pkg-config)");
        return None;
    }
    let program = scratch.join("passthrough_ll");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-D_FILE_OFFSET_BITS=64"]).arg(source).arg("-o").arg(&program);
    gcc.args(String::from_utf8_lossy(&flags.stdout).split_whitespace());
    gcc.status().ok()?.success().then_some(program)
}

/// Makes some calls on a candidate's directory and says how long each took.
type Measure = fn(&Path) -> Vec<Duration>;

const MEASURES: [(&str, Measure); 9] = [
    ("write 1 MiB", write_sequential),
    ("read 1 MiB", read_sequential),
    ("random write 4 KiB", write_random),
    ("random read 4 KiB", read_random),
    ("create+close", create),
    ("open+close", open_close),
    ("stat", stat),
    ("readdir, per entry", list),
    ("unlink", unlink),
];

fn measure_place(what: &str, place: &Path, passthrough_ll: Option<&Path>) {
    let all = candidates(place, passthrough_ll);
    let mut best = vec![vec![f64::MAX; all.len()]; MEASURES.len()];
    for _ in 0..ROUNDS {
        for (column, candidate) in all.iter().enumerate() {
            prepare(&candidate.dir);
            for (row, (_, measure)) in MEASURES.iter().enumerate() {
                best[row][column] = best[row][column].min(median(measure(&candidate.dir)));
            }
        }
    }
    let names: Vec<&str> = all.iter().map(|candidate| candidate.name).collect();
    drop(all);
    println!("\n### On {what}, p50 in us\n");
    head(&names);
    for ((name, _), row) in MEASURES.iter().zip(&best) {
        print_row(name, row);
    }
    ratios(&names, &best);
    pinned(place, passthrough_ll);
}

fn head(names: &[&str]) {
    println!("| | {} |", names.join(" | "));
    println!("|---|{}", "---:|".repeat(names.len()));
}

fn print_row(name: &str, row: &[f64]) {
    let cells: Vec<String> = row.iter().map(|value| format!("{value:.2}")).collect();
    println!("| {name} | {} |", cells.join(" | "));
}

/// How many times as fast latchfs is as others: above 1 it is faster.
fn ratios(names: &[&str], best: &[Vec<f64>]) {
    let column = |wanted: &str| names.iter().position(|name| *name == wanted);
    let Some(own) = column("latchfs") else { return };
    let others: Vec<usize> = ["native", "other latchfs", "passthrough_ll", "bindfs"]
        .into_iter()
        .filter_map(column)
        .collect();
    println!("\nSpeed of latchfs as a multiple of:\n");
    head(&others.iter().map(|other| names[*other]).collect::<Vec<_>>());
    for ((name, _), row) in MEASURES.iter().zip(best) {
        print_row(name, &others.iter().map(|other| row[*other] / row[own]).collect::<Vec<_>>());
    }
}

const PINNED: [(&str, Measure); 4] = [
    ("create+close", create),
    ("open+close", open_close),
    ("readdir, per entry", list),
    ("unlink", unlink),
];

/// Calls that go to the driver, with the client and every driver on one core: no core has to be
/// woken up.
fn pinned(place: &Path, passthrough_ll: Option<&Path>) {
    let free = sched_getaffinity(None).expect("a process knows its cores");
    let mut one = CpuSet::new();
    let first = (0..CpuSet::MAX_CPU).find(|core| free.is_set(*core)).expect("it runs somewhere");
    one.set(first);
    sched_setaffinity(None, &one).expect("fewer cores may always be asked for");
    let place = place.join("pinned");
    let all = candidates(&place, passthrough_ll); // They inherit the core.
    let mut best = vec![vec![f64::MAX; all.len()]; PINNED.len()];
    for _ in 0..ROUNDS {
        for (column, candidate) in all.iter().enumerate() {
            prepare(&candidate.dir);
            for (row, (_, measure)) in PINNED.iter().enumerate() {
                best[row][column] = best[row][column].min(median(measure(&candidate.dir)));
            }
        }
    }
    println!("\nClient and driver on one core:\n");
    head(&all.iter().map(|candidate| candidate.name).collect::<Vec<_>>());
    for ((name, _), row) in PINNED.iter().zip(&best) {
        print_row(name, row);
    }
    drop(all);
    sched_setaffinity(None, &free).expect("they were ours before");
}

fn prepare(dir: &Path) {
    fs::write(dir.join("big"), vec![7; BIG]).expect("there is room");
    fs::create_dir_all(dir.join("many")).expect("a directory can be made");
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

fn timed(count: usize, mut call: impl FnMut(usize)) -> Vec<Duration> {
    (0..count)
        .map(|number| {
            let start = Instant::now();
            call(number);
            start.elapsed()
        })
        .collect()
}

fn big(dir: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(dir.join("big")).expect("it was prepared")
}

const MIB: usize = 1 << 20;

fn offset(block: usize, size: usize) -> u64 {
    u64::try_from(block * size).expect("a file is not that long")
}

fn write_sequential(dir: &Path) -> Vec<Duration> {
    let (file, bytes) = (big(dir), vec![1; MIB]);
    timed(BIG / MIB, |n| file.write_all_at(&bytes, offset(n, MIB)).expect("a write works"))
}

fn read_sequential(dir: &Path) -> Vec<Duration> {
    let (file, mut bytes) = (big(dir), vec![0; MIB]);
    timed(BIG / MIB, |n| file.read_exact_at(&mut bytes, offset(n, MIB)).expect("a read works"))
}

/// The same blocks for everybody, in an order that is no order.
fn scattered(number: usize) -> u64 {
    offset(number.wrapping_mul(7919) % (BIG / BLOCK), BLOCK)
}

fn write_random(dir: &Path) -> Vec<Duration> {
    let (file, bytes) = (big(dir), [2; BLOCK]);
    timed(RANDOM_CALLS, |n| file.write_all_at(&bytes, scattered(n)).expect("a write works"))
}

fn read_random(dir: &Path) -> Vec<Duration> {
    let (file, mut bytes) = (big(dir), [0; BLOCK]);
    timed(RANDOM_CALLS, |n| file.read_exact_at(&mut bytes, scattered(n)).expect("a read works"))
}

fn names(dir: &Path) -> Vec<PathBuf> {
    (0..FILES).map(|number| dir.join("many").join(format!("file{number}"))).collect()
}

fn create(dir: &Path) -> Vec<Duration> {
    let names = names(dir);
    timed(FILES, |n| drop(File::create_new(&names[n]).expect("a file can be made")))
}

fn open_close(dir: &Path) -> Vec<Duration> {
    let names = names(dir);
    timed(FILES * 6, |n| drop(File::open(&names[n % FILES]).expect("a file opens")))
}

fn stat(dir: &Path) -> Vec<Duration> {
    let names = names(dir);
    timed(FILES * 6, |n| {
        black_box(fs::metadata(&names[n % FILES]).expect("it is there"));
    })
}

fn list(dir: &Path) -> Vec<Duration> {
    let dir = dir.join("many");
    let count = u32::try_from(FILES).expect("few");
    timed(40, |_| assert_eq!(fs::read_dir(&dir).expect("it is there").count(), FILES))
        .into_iter()
        .map(|time| time / count)
        .collect()
}

fn unlink(dir: &Path) -> Vec<Duration> {
    let names = names(dir);
    timed(FILES, |n| fs::remove_file(&names[n]).expect("a file can be removed"))
}
