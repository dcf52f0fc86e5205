//! What a process on the mount does in the soak: opens, reads, writes, maps, locks, renames, links,
//! removes and lists. Rules refuse some of it; anything else fails the process.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::some_file;
use crate::common::random::Random;

/// The mount, for a process that is to work on it.
pub const MOUNT: &str = "LATCHFS_TEST_SOAK_MOUNT";
/// What it does is drawn from this.
pub const SEED: &str = "LATCHFS_TEST_SOAK_SEED";
/// How long it works.
pub const SECONDS: &str = "LATCHFS_TEST_SOAK_SECONDS";

/// What rules, other users and forced closes make of a call.
const EXPECTED: [i32; 11] = [
    libc::EBUSY,
    libc::ENOENT,
    libc::EEXIST,
    libc::EACCES,
    libc::EAGAIN,
    libc::EIO,
    libc::EINTR,
    libc::ENOTEMPTY,
    libc::ENODATA,
    libc::EMLINK,
    libc::EISDIR,
];

#[test]
fn this_process_works_on_the_mount() {
    let Some(mount) = std::env::var_os(MOUNT).map(PathBuf::from) else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let mut random = Random::new(number(SEED));
    let end = Instant::now() + Duration::from_secs(number(SECONDS));
    while Instant::now() < end {
        if let Err((what, error)) = step(&mount, &mut random) {
            let known = error.raw_os_error().is_some_and(|code| EXPECTED.contains(&code));
            assert!(known, "{what}: {error}");
        }
    }
}

type Done = Result<(), (&'static str, io::Error)>;

fn step(mount: &Path, random: &mut Random) -> Done {
    let path = mount.join(some_file(random));
    let done = |what: &'static str, done: io::Result<()>| done.map_err(|error| (what, error));
    match random.below(16) {
        0..=2 => done("read", fs::read(&path).map(drop)),
        3 | 4 => done("write", fs::write(&path, vec![b'w'; random.below(5_000)])),
        5 => done("append", append(&path)),
        6 => done("hold", hold(&path)),
        7 => done("lock", lock(&path)),
        8 => done("rename", fs::rename(&path, mount.join(some_file(random)))),
        9 => done("link", fs::hard_link(&path, mount.join(some_file(random)))),
        10 | 11 => done("remove", fs::remove_file(&path)),
        12 => done("list", list(path.parent().unwrap())),
        13 => done("cut", OpenOptions::new().write(true).open(&path).and_then(|f| f.set_len(7))),
        14 => done("stat", fs::metadata(&path).map(drop)),
        _ => done("folder", folder(&path)),
    }
}

fn append(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().append(true).create(true).open(path)?;
    io::Write::write_all(&mut &file, b"more")?;
    file.sync_all()
}

/// Keeps a file open over some reads and writes.
fn hold(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut bytes = [0; 64];
    for offset in 0..20 {
        file.write_at(b"held", offset)?;
        file.read_at(&mut bytes, offset)?;
    }
    file.metadata().map(drop)
}

fn lock(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
    file.write_at(b"locked", 0)?;
    Ok(rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::Unlock)?)
}

fn list(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let _gone_or_not = fs::symlink_metadata(entry?.path());
    }
    Ok(())
}

fn folder(path: &Path) -> io::Result<()> {
    let folder = path.with_extension(format!("dir{}", std::process::id()));
    fs::create_dir(&folder)?;
    drop(File::create(folder.join("inside"))?);
    let moved = folder.with_extension(format!("moved{}", std::process::id()));
    let from = if fs::rename(&folder, &moved).is_ok() { &moved } else { &folder };
    // Its release may still be on its way, or somebody lists it: then it is left for the next.
    let removed = fs::remove_file(from.join("inside")).and_then(|()| fs::remove_dir(from));
    drop(removed);
    let _ = fs::remove_dir_all(from);
    Ok(())
}
