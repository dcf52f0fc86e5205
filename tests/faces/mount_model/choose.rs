//! Which call comes next. Names and descriptors are few, so that calls meet.

use rustix::fs::{FallocateFlags, OFlags, RenameFlags, SeekFrom, XattrFlags};

use super::calls::{Call, Place, SLOTS, Which};
use super::random::Random;

/// Mostly files have these names, and mostly directories those: calls that meet something say more
/// than those that find nothing. Two differ by case alone.
const FILES: [&str; 3] = ["a", "A", "c.txt"];
const DIRECTORIES: [&str; 2] = ["d", "D"];

const MODES: [u32; 6] = [0o644, 0o600, 0o755, 0o444, 0o4755, 0o2770];
const XATTRS: [&str; 2] = ["user.one", "user.two"];

/// No file grows past it.
const SIZE_MAX: usize = 20_000;

pub fn call(random: &mut Random) -> Call {
    match random.below(100) {
        0..17 => open(random),
        17..20 => open_directory(random),
        20..24 => Call::Close { slot: slot(random) },
        24..26 => Call::Duplicate { slot: slot(random), to: slot(random) },
        26..50 => bytes(random),
        50..80 => names(random),
        _ => attributes(random),
    }
}

fn slot(random: &mut Random) -> usize {
    random.below(SLOTS)
}

fn file_name(random: &mut Random) -> &'static str {
    if random.once_in(5) { random.pick(&DIRECTORIES) } else { random.pick(&FILES) }
}

fn directory_name(random: &mut Random) -> &'static str {
    if random.once_in(12) { random.pick(&FILES) } else { random.pick(&DIRECTORIES) }
}

/// Mostly short: calls on deep paths mostly say that something is not there.
fn path(random: &mut Random) -> String {
    let depth = random.pick(&[0, 0, 0, 1, 1, 2]);
    let mut names: Vec<_> = (0..depth).map(|_| directory_name(random)).collect();
    names.push(if random.once_in(3) { directory_name(random) } else { file_name(random) });
    names.join("/")
}

fn directory_place(random: &mut Random) -> Place {
    let from = random.once_in(6).then(|| slot(random));
    let depth = random.pick(&[1, 1, 2]);
    let names: Vec<_> = (0..depth).map(|_| directory_name(random)).collect();
    Place { from, path: names.join("/") }
}

fn place(random: &mut Random) -> Place {
    let from = random.once_in(8).then(|| slot(random));
    Place { from, path: path(random) }
}

fn which(random: &mut Random) -> Which {
    match random.below(5) {
        0 | 1 => Which::Open(slot(random)),
        2 => Which::Link(path(random)),
        _ => Which::Name(path(random)),
    }
}

fn open_directory(random: &mut Random) -> Call {
    let (slot, at) = (slot(random), directory_place(random));
    Call::Open { slot, at, flags: OFlags::RDONLY, mode: 0 }
}

fn open(random: &mut Random) -> Call {
    let mut flags = random.pick(&[OFlags::RDONLY, OFlags::WRONLY, OFlags::RDWR, OFlags::RDWR]);
    let extra = [
        (OFlags::CREATE, 2),
        (OFlags::EXCL, 8),
        (OFlags::TRUNC, 5),
        (OFlags::APPEND, 5),
        (OFlags::DIRECTORY, 20),
        (OFlags::NOFOLLOW, 8),
    ];
    for (flag, times) in extra {
        if random.once_in(times) {
            flags |= flag;
        }
    }
    // Without O_CREAT its meaning is not defined; with O_DIRECTORY they are refused together.
    if !flags.contains(OFlags::CREATE) {
        flags -= OFlags::EXCL;
    }
    Call::Open { slot: slot(random), at: place(random), flags, mode: random.pick(&MODES) }
}

fn offset(random: &mut Random) -> u64 {
    u64::try_from(random.below(SIZE_MAX)).unwrap()
}

fn length(random: &mut Random) -> usize {
    let most = random.pick(&[4, 500, 6000]);
    1 + random.below(most)
}

fn bytes(random: &mut Random) -> Call {
    let slot = slot(random);
    let byte = random.pick(b"abcdefgh");
    match random.below(24) {
        0..4 => Call::Read { slot, length: length(random) },
        4..7 => Call::ReadAt { slot, length: length(random), offset: offset(random) },
        7..12 => Call::Write { slot, byte, length: length(random) },
        12..15 => Call::WriteAt { slot, byte, length: length(random), offset: offset(random) },
        15 => Call::Seek { slot, to: seek(random) },
        16 => Call::SeekHole { slot, to: seek_hole(random) },
        17..19 => Call::Resize { slot, size: offset(random) },
        19 => {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let flags = [FallocateFlags::empty(), FallocateFlags::KEEP_SIZE, hole];
            let (offset, length) = (offset(random), offset(random));
            Call::Allocate { slot, flags: random.pick(&flags), offset, length }
        }
        20 => {
            let (to, offset, length) = (self::slot(random), offset(random), length(random));
            Call::Copy { slot, to, offset, length }
        }
        21 => Call::Sync { slot },
        _ => Call::List { slot },
    }
}

fn seek(random: &mut Random) -> SeekFrom {
    let by = i64::try_from(random.below(1000)).unwrap() - 500;
    match random.below(3) {
        0 => SeekFrom::Start(offset(random)),
        1 => SeekFrom::Current(by),
        _ => SeekFrom::End(by),
    }
}

fn seek_hole(random: &mut Random) -> SeekFrom {
    let offset = offset(random);
    if random.once_in(2) { SeekFrom::Data(offset) } else { SeekFrom::Hole(offset) }
}

fn names(random: &mut Random) -> Call {
    let at = place(random);
    match random.below(30) {
        0..4 => Call::Unlink { at },
        4..6 => Call::RemoveDir { at },
        6..11 => Call::MakeDir { at: directory_place(random), mode: random.pick(&MODES) },
        11 => Call::MakeFile { at, mode: random.pick(&MODES) },
        12..20 => {
            let none = RenameFlags::empty();
            let all = [none, none, none, RenameFlags::NOREPLACE, RenameFlags::EXCHANGE];
            Call::Rename { from: at, to: place(random), flags: random.pick(&all) }
        }
        20..23 => Call::Link { from: at, to: place(random), follow: random.once_in(2) },
        23 => Call::LinkOpen { slot: slot(random), to: at },
        24..26 => Call::Symlink { target: path(random), at },
        26 => Call::ReadLink { at },
        27 => Call::ListAt { at: directory_place(random) },
        _ => Call::Stat { at, follow: random.once_in(2) },
    }
}

fn attributes(random: &mut Random) -> Call {
    let (file, name) = (which(random), random.pick(&XATTRS));
    match random.below(20) {
        0..4 => Call::StatOpen { slot: slot(random) },
        4..9 => Call::Stat { at: place(random), follow: random.once_in(2) },
        9..11 => Call::SetMode { file, mode: random.pick(&MODES) },
        11..13 => Call::SetTime { file, seconds: 1_000_000 + i64::from(random.pick(&MODES)) },
        13..16 => {
            let all = [XattrFlags::empty(), XattrFlags::CREATE, XattrFlags::REPLACE];
            let value = vec![random.pick(b"xyz"); random.below(70)];
            Call::SetXattr { file, name, value, flags: random.pick(&all) }
        }
        16 => Call::GetXattr { file, name },
        17 => Call::RemoveXattr { file, name },
        _ => Call::ListXattr { file },
    }
}
