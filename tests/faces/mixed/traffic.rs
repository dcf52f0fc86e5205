//! Random traffic from both sides at once, and a checker that knows what each reader may see.
//!
//! A file is four regions, each with one writer: two write through REST, one through a descriptor
//! that stays open, one through a new open each time. A write fills its region with its number.
//! A reader notes the last number acknowledged before it reads and the last begun when it is
//! done: every word it sees lies between the two. Through REST it sees what one request wrote as
//! a whole (S3); the kernel promises that of no `read(2)`. Beside them names are made and removed,
//! and a log is appended to. `LATCHFS_TEST_SEED` runs another seed, `LATCHFS_FULL` ten times as
//! long.

use std::fs;
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::calls::Call;
use crate::common::meeting::{Meeting, Subject, errno};
use crate::mixed::random::{Random, seeds, steps};

const FILES: usize = 3;
const REGIONS: usize = 4;
/// Whole pages, so that a region is never written in part because of its neighbour.
const REGION_BYTES: usize = 16 << 10;
/// One line of the log.
const LINE_BYTES: usize = 16;
/// The regions that are written through REST.
const BY_REST: [usize; 2] = [0, 1];
const SECONDS: usize = 3;

/// What one writer has begun and what was acknowledged.
#[derive(Default)]
struct Register {
    begun: AtomicU64,
    acknowledged: AtomicU64,
}

impl Register {
    /// Writes the next number.
    fn write(&self, write: impl FnOnce(u64)) {
        let number = self.begun.load(Ordering::SeqCst) + 1;
        self.begun.store(number, Ordering::SeqCst);
        write(number);
        self.acknowledged.store(number, Ordering::SeqCst);
    }

    /// What `read` gives, and which numbers it may have seen.
    fn read<T>(&self, read: impl FnOnce() -> T) -> (T, RangeInclusive<u64>) {
        let least = self.acknowledged.load(Ordering::SeqCst);
        let seen = read();
        (seen, least..=self.begun.load(Ordering::SeqCst))
    }
}

/// A file, a descriptor of it that stays open, and its regions.
struct Target<'a> {
    file: Subject<'a>,
    open: fs::File,
    registers: [Register; REGIONS],
}

/// All that the threads share.
struct Traffic<'a> {
    at: &'a Meeting,
    targets: Vec<Target<'a>>,
    log: (Subject<'a>, Register),
    until: Instant,
    done: AtomicUsize,
}

impl Traffic<'_> {
    /// Goes on until time is up; counts the steps.
    fn go_on(&self, seed: u64, mut step: impl FnMut(&mut Random)) {
        let mut random = Random::new(seed);
        let mut count = 0;
        while Instant::now() < self.until {
            step(&mut random);
            count += 1;
        }
        assert!(count > 0, "a thread never had its turn");
        self.done.fetch_add(count, Ordering::Relaxed);
    }

    fn write(&self, random: &mut Random, region: usize, write: impl FnOnce(&Target<'_>, &[u8])) {
        let target = &self.targets[random.below(FILES)];
        target.registers[region].write(|number| {
            write(target, &number.to_le_bytes().repeat(REGION_BYTES / 8));
        });
    }

    /// Reads a region and checks it; what REST wrote is whole to a reader `through_rest`.
    fn read(
        &self,
        random: &mut Random,
        through_rest: bool,
        read: impl FnOnce(&Target<'_>, u64) -> Vec<u8>,
    ) {
        let target = &self.targets[random.below(FILES)];
        let region = random.below(REGIONS);
        let (bytes, may) = target.registers[region].read(|| read(target, start_of(region)));
        assert_eq!(bytes.len(), REGION_BYTES);
        let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        let least_and_most = |(least, most): (u64, u64), word| (least.min(word), most.max(word));
        let (least, most) = words.fold((u64::MAX, 0), least_and_most);
        let seen = format!("{} {region}: {least} to {most}, may be {may:?}", target.file.name);
        assert!(may.contains(&least) && may.contains(&most), "{seen}");
        assert!(!through_rest || !BY_REST.contains(&region) || least == most, "{seen}");
    }
}

fn start_of(region: usize) -> u64 {
    (region * REGION_BYTES) as u64
}

fn rest_writer(traffic: &Traffic<'_>, random: &mut Random, region: usize) {
    traffic.write(random, region, |target, bytes| {
        let start = usize::try_from(start_of(region)).unwrap();
        traffic.at.put_range(&target.file.target(), start, bytes, &[]).is(201);
    });
}

fn descriptor_writer(traffic: &Traffic<'_>, random: &mut Random) {
    traffic.write(random, 2, |target, bytes| {
        target.open.write_all_at(bytes, start_of(2)).unwrap();
    });
}

fn opening_writer(traffic: &Traffic<'_>, random: &mut Random) {
    traffic.write(random, 3, |target, bytes| {
        target.file.descriptor("w").unwrap().write_all_at(bytes, start_of(3)).unwrap();
    });
}

fn rest_reader(traffic: &Traffic<'_>, random: &mut Random) {
    traffic.read(random, true, |target, start| {
        let range = format!("bytes={start}-{}", start + REGION_BYTES as u64 - 1);
        target.file.call_with(Call::Get, &[("x-ms-range", &range)]).is(206).body
    });
}

fn descriptor_reader(traffic: &Traffic<'_>, random: &mut Random) {
    traffic.read(random, false, |target, start| read_region(&target.open, start));
}

fn opening_reader(traffic: &Traffic<'_>, random: &mut Random) {
    traffic.read(random, false, |target, start| {
        read_region(&target.file.descriptor("r").unwrap(), start)
    });
}

fn read_region(file: &fs::File, start: u64) -> Vec<u8> {
    let mut bytes = vec![0; REGION_BYTES];
    file.read_exact_at(&mut bytes, start).unwrap();
    bytes
}

/// A name of the thread's own, made, moved and removed by one face and looked for by the other.
fn names(traffic: &Traffic<'_>, random: &mut Random, thread: usize) {
    let at = traffic.at;
    let file = at.named(&format!("traffic/name-{thread}"));
    if random.once_in(2) {
        at.upload(&file.name, b"by rest");
        assert_eq!(fs::read(file.path()).unwrap(), b"by rest");
    } else {
        fs::write(file.path(), "on mount").unwrap();
        assert_eq!(file.bytes(), b"on mount");
    }
    assert!(at.listing("traffic").contains(&format!("name-{thread}")));
    at.wait_idle(&file.name);
    if random.once_in(2) {
        file.answers("ok", &[Call::Delete]);
        assert_eq!(errno(fs::metadata(file.path())), libc::ENOENT);
    } else {
        fs::remove_file(file.path()).unwrap();
        file.answers("ResourceNotFound", &[Call::Head]);
    }
}

/// Two reads of a file that came with one `ETag`: what REST wrote of it is the same in both. What
/// the mount writes between the stamp and the bytes shows under the older stamp.
fn same_stamp_same_bytes(traffic: &Traffic<'_>, random: &mut Random) {
    let file = &traffic.targets[random.below(FILES)].file;
    let reads = [(); 2].map(|()| file.call(Call::Get).is(200));
    if reads[0].header("etag") == reads[1].header("etag") {
        let by_rest = reads.map(|read| read.body[..2 * REGION_BYTES].to_vec());
        assert!(by_rest[0] == by_rest[1], "{} changed under its ETag", file.name);
    }
}

/// Appends a line, and looks whether REST shows the new length.
fn log_writer(traffic: &Traffic<'_>, log: &mut fs::File) {
    let (file, register) = &traffic.log;
    let mut length = 0;
    register.write(|number| {
        length = number * LINE_BYTES as u64;
        log.write_all(format!("{number:015}\n").as_bytes()).unwrap();
    });
    assert_eq!(file.shown("content-length"), length.to_string());
}

/// The log as REST reads it: all lines acknowledged, none that was not begun, none in part.
fn log_reader(traffic: &Traffic<'_>) {
    let (log, register) = &traffic.log;
    let (bytes, may) = register.read(|| log.bytes());
    assert_eq!(bytes.len() % LINE_BYTES, 0, "a line in part");
    let lines = bytes.chunks_exact(LINE_BYTES).enumerate();
    for (place, line) in lines {
        assert_eq!(line, format!("{:015}\n", place + 1).as_bytes());
    }
    let count = (bytes.len() / LINE_BYTES) as u64;
    assert!(may.contains(&count), "{count} lines, may be {may:?}");
}

fn prepare(at: &Meeting) -> Traffic<'_> {
    at.directory("traffic");
    let empty = vec![0; REGIONS * REGION_BYTES];
    let target = |number| {
        let file = at.file_of(&format!("traffic/{number}"), &empty);
        let open = file.descriptor("rw").unwrap();
        Target { file, open, registers: Default::default() }
    };
    Traffic {
        at,
        targets: (0..FILES).map(target).collect(),
        log: (at.file_of("traffic/log", b""), Register::default()),
        until: Instant::now() + Duration::from_secs(steps(SECONDS) as u64),
        done: AtomicUsize::new(0),
    }
}

type Step<'a> = Box<dyn FnMut(&mut Random) + Send + 'a>;

#[test]
fn readers_on_both_sides_see_what_they_may_while_everybody_writes() {
    let Some(at) = Meeting::start() else { return };
    let traffic = &prepare(&at);
    let mut log = fs::File::options().append(true).open(traffic.log.0.path()).unwrap();
    let threads: [Step<'_>; 13] = [
        Box::new(|random| rest_writer(traffic, random, BY_REST[0])),
        Box::new(|random| rest_writer(traffic, random, BY_REST[1])),
        Box::new(|random| descriptor_writer(traffic, random)),
        Box::new(|random| opening_writer(traffic, random)),
        Box::new(|random| rest_reader(traffic, random)),
        Box::new(|random| rest_reader(traffic, random)),
        Box::new(|random| descriptor_reader(traffic, random)),
        Box::new(|random| opening_reader(traffic, random)),
        Box::new(|random| same_stamp_same_bytes(traffic, random)),
        Box::new(|random| names(traffic, random, 0)),
        Box::new(|random| names(traffic, random, 1)),
        Box::new(move |_| log_writer(traffic, &mut log)),
        Box::new(|_| log_reader(traffic)),
    ];
    let seed = seeds(1)[0] * 1_000;
    thread::scope(|scope| {
        for (number, step) in (seed..).zip(threads) {
            scope.spawn(move || traffic.go_on(number, step));
        }
    });
    let done = traffic.done.load(Ordering::Relaxed);
    assert!(done > 100, "hardly any traffic: {done} steps");
}
