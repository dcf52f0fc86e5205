//! How long the rules and the engine take, by the number of handles or locks there are already.
//!
//! `cargo bench --bench engine`. A table at the end puts each case beside its smallest; what it
//! means is in `docs/benchmarks.md`.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion};
use latchfs::clock::SystemClock;
use latchfs::file::rules::create::{CreateAction, ExistingFile, OpenRequest};
use latchfs::file::rules::file::{Ending, FileState, OpenGrant};
use latchfs::file::rules::ranges::{ByteRange, LockKind, RangeLock, RangeLocks};
use latchfs::file::rules::share::ShareCounts;
use latchfs::file::rules::{Access, Attributes, ShareMode, SharePath};
use latchfs::file::service::{Handle, Share, ShareOptions};
use latchfs::journal::AccountJournal;
use latchfs::rules::{Client, Context, HandleId, Owner, Timestamp};

/// Handles there are already.
const HANDLES: [u64; 3] = [1, 100, 100_000];
/// Locks there are already.
const LOCKS: [u64; 3] = [10, 1_000, 10_000];

/// Everybody reads, shares everything but deletion, and so stays out of each other's way.
const BESIDE: (Access, ShareMode) = (Access::R, ShareMode::RW);
/// What all of them refuse.
const REFUSED: (Access, ShareMode) = (Access::D, ShareMode::RWD);

fn owner() -> Owner {
    let client = Arc::new(Client { session: 1, name: "bench".into() });
    Owner { client, pid: 1, program: None }
}

fn request((access, share): (Access, ShareMode)) -> OpenRequest {
    OpenRequest::plain(access, share)
}

fn share_check(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("share check");
    for handles in HANDLES {
        let mut counts = ShareCounts::default();
        for _ in 0..handles {
            counts.add(BESIDE.0, BESIDE.1);
        }
        group.bench_with_input(BenchmarkId::new("granted", handles), &handles, |bencher, _| {
            bencher.iter(|| black_box(&counts).check(black_box(Access::RW), ShareMode::RWD));
        });
        group.bench_with_input(BenchmarkId::new("refused", handles), &handles, |bencher, _| {
            bencher.iter(|| black_box(&counts).check(black_box(REFUSED.0), REFUSED.1));
        });
    }
}

/// The state of a file with so many opens.
struct OneFile {
    state: FileState,
    path: SharePath,
    target: ExistingFile,
    owner: Owner,
    next: u64,
}

impl OneFile {
    fn new(handles: u64) -> Self {
        let mut file = Self {
            state: FileState::default(),
            path: SharePath::new("folder/file.txt").expect("a path"),
            target: ExistingFile { directory: false, attributes: Attributes::default() },
            owner: owner(),
            next: 0,
        };
        for _ in 0..handles {
            file.open(BESIDE).expect("all share");
        }
        file
    }

    fn open(
        &mut self,
        wanted: (Access, ShareMode),
    ) -> Result<(latchfs::file::rules::opens::OpenSlot, HandleId), latchfs::file::rules::Denial>
    {
        self.next += 1;
        let id = HandleId(self.next);
        let grant = OpenGrant { id, owner: self.owner.clone(), now: Timestamp(0) };
        let Self { state, target, path, .. } = self;
        let slot = state.open(&request(wanted), CreateAction::Opened, target, path, grant)?;
        Ok((slot, id))
    }
}

fn file_state(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rules of a file");
    for handles in HANDLES {
        let mut file = OneFile::new(handles);
        group.bench_with_input(BenchmarkId::new("open+close", handles), &handles, |bencher, _| {
            bencher.iter(|| {
                let (slot, id) = file.open(BESIDE).expect("all share");
                file.state.close(slot, id, Ending::Closed { not_empty: false })
            });
        });
        group.bench_with_input(BenchmarkId::new("refused", handles), &handles, |bencher, _| {
            bencher.iter(|| file.open(REFUSED).expect_err("none shares deletion"));
        });
        // Two handles, opened last, refuse one thing each: nobody else is in the way.
        let mut file = OneFile::new(0);
        for _ in 0..handles {
            file.open((Access::R, ShareMode::RWD)).expect("all share");
        }
        file.open((Access::R, ShareMode::RW)).expect("nobody deletes");
        file.open((Access::R, ShareMode::R | ShareMode::D)).expect("nobody writes");
        group.bench_with_input(BenchmarkId::new("refused in turn", handles), &handles, |b, _| {
            b.iter(|| {
                file.open((Access::W, ShareMode::RWD)).expect_err("not shared for writing");
                file.open(REFUSED).expect_err("nor for deletion");
            });
        });
    }
}

/// A share with one file, open so many times.
struct OneShare {
    share: Share,
    handles: Vec<Handle>,
    cx: Context,
    path: SharePath,
    _folder: tempfile::TempDir,
}

impl OneShare {
    fn new(handles: u64) -> Self {
        let folder = tempfile::tempdir_in(memory()).expect("a temporary folder");
        let root = folder.path().join("share");
        fs::create_dir(&root).expect("a folder for the share");
        fs::write(root.join("file.txt"), "bytes").expect("a file");
        let share = Share::open_directory(
            "bench",
            &root,
            &folder.path().join("state"),
            ShareOptions::default(),
            Arc::new(SystemClock),
            AccountJournal::default(),
        )
        .expect("a share");
        let path = SharePath::new("file.txt").expect("a path");
        let cx = Context::local(share.now(), owner(), "bench");
        let mut one = Self { share, handles: Vec::new(), cx, path, _folder: folder };
        one.handles = (0..handles).map(|_| one.open()).collect();
        one
    }

    fn open(&self) -> Handle {
        let opened = self.share.open(&self.cx, &self.path, &request(BESIDE));
        opened.expect("all share").handle
    }
}

fn engine(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("share");
    for handles in HANDLES {
        let one = OneShare::new(handles);
        group.bench_with_input(BenchmarkId::new("open+close", handles), &handles, |bencher, _| {
            bencher.iter(|| one.share.close(&one.open()).expect("closed"));
        });
        group.bench_with_input(BenchmarkId::new("refused", handles), &handles, |bencher, _| {
            bencher.iter(|| {
                let answer = one.share.open(&one.cx, &one.path, &request(REFUSED));
                answer.expect_err("none shares deletion")
            });
        });
    }
}

fn byte_ranges(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("byte ranges");
    for count in LOCKS {
        let mut locks = RangeLocks::default();
        for number in 0..count {
            let range = ByteRange::new(number * 100, 50).expect("a range");
            let lock = RangeLock::smb(HandleId(number), LockKind::Exclusive, range, 0);
            locks.lock(lock).expect("apart from each other");
        }
        let middle = count / 2 * 100;
        let hit = ByteRange::new(middle + 10, 10).expect("a range");
        let miss = ByteRange::new(middle + 60, 10).expect("a range");
        group.bench_with_input(BenchmarkId::new("locked", count), &count, |bencher, _| {
            bencher.iter(|| black_box(&locks).check_write(None, black_box(hit)));
        });
        group.bench_with_input(BenchmarkId::new("free", count), &count, |bencher, _| {
            bencher.iter(|| black_box(&locks).check_write(None, black_box(miss)));
        });
    }
}

/// Memory where there is some: the disk is not what is measured.
fn memory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// The median of a case in nanoseconds, if it was measured in this run.
fn median(results: &Path, group: &str, case: &str, size: u64) -> Option<f64> {
    let name = format!("{group}/{case}/{size}/new/estimates.json");
    let text = fs::read(results.join(name)).ok()?;
    let json: serde_json::Value = serde_json::from_slice(&text).ok()?;
    json["median"]["point_estimate"].as_f64()
}

fn table(results: &Path) {
    let cases = [
        ("share check", "granted", HANDLES),
        ("share check", "refused", HANDLES),
        ("rules of a file", "open+close", HANDLES),
        ("rules of a file", "refused", HANDLES),
        ("rules of a file", "refused in turn", HANDLES),
        ("share", "open+close", HANDLES),
        ("share", "refused", HANDLES),
        ("byte ranges", "locked", LOCKS),
        ("byte ranges", "free", LOCKS),
    ];
    println!("\n{:<34} {:>10} {:>13} {:>8}", "case", "there are", "median", "ratio");
    for (group, case, sizes) in cases {
        let first = median(results, group, case, sizes[0]);
        for size in sizes {
            let (Some(time), Some(first)) = (median(results, group, case, size), first) else {
                continue;
            };
            let name = format!("{group}, {case}");
            println!("{name:<34} {size:>10} {time:>10.1} ns {:>8.2}", time / first);
        }
    }
}

fn main() {
    let results = tempfile::tempdir().expect("a temporary folder");
    let mut criterion = Criterion::default().output_directory(results.path()).configure_from_args();
    share_check(&mut criterion);
    file_state(&mut criterion);
    engine(&mut criterion);
    byte_ranges(&mut criterion);
    criterion.final_summary();
    table(results.path());
}
