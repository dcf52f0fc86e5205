//! Tests of data: bytes in and out, holes, allocation, times.

use super::*;
use crate::disk::testing::{Ramfs, places};
use std::fs::{File, OpenOptions};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};

const MIB: u64 = 1 << 20;

fn file_in(dir: &Path) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    options.open(dir.join("f")).unwrap()
}

fn contents(file: &File) -> Vec<u8> {
    let mut bytes = vec![0xEE; usize::try_from(Stat::of(file).unwrap().size).unwrap() + 1];
    let count = read_at(file, &mut bytes, 0).unwrap();
    bytes.truncate(count);
    bytes
}

/// Every file system at hand, with what it is good for.
fn on_each(check: impl Fn(&File)) {
    for place in places() {
        check(&file_in(place.path()));
    }
    if let Some(ramfs) = Ramfs::mount() {
        check(&file_in(ramfs.path()));
    }
}

#[test]
fn what_was_just_written_can_be_read_at_once_or_the_file_system_cannot_tell() {
    on_each(|file| {
        write_at(file, b"0123456789", 0).unwrap();
        let mut buffer = [0xEE; 8];
        let Some(count) = read_now(file, &mut buffer, 7).unwrap() else { return };
        assert_eq!((count, &buffer[..3]), (3, &b"789"[..]));
        assert_eq!(read_now(file, &mut buffer, 10).unwrap(), Some(0));
        assert_eq!(read_now(file, &mut [], 0).unwrap(), Some(0));
    });
}

#[test]
fn a_cleared_range_reads_as_zeros_and_keeps_the_length() {
    on_each(|file| {
        let len = 3 * 64 * 1024 + 5;
        write_at(file, &vec![b'x'; len], 0).unwrap();
        clear_range(file, 3..(len as u64 - 2)).unwrap();
        let bytes = contents(file);
        assert_eq!(bytes.len(), len);
        assert_eq!((&bytes[..3], &bytes[len - 2..]), (&b"xxx"[..], &b"xx"[..]));
        assert!(bytes[3..len - 2].iter().all(|byte| *byte == 0));
    });
}

#[test]
fn clearing_stays_within_the_file() {
    on_each(|file| {
        write_at(file, b"abcd", 0).unwrap();
        clear_range(file, 2..u64::MAX).unwrap();
        assert_eq!(contents(file), b"ab\0\0");
        clear_range(file, 4..9).unwrap();
        clear_range(file, 1..1).unwrap();
        assert_eq!(contents(file), b"ab\0\0");
    });
}

#[test]
fn written_ranges_are_clipped_to_the_window_and_the_file() {
    for place in places() {
        let file = file_in(place.path());
        set_len(&file, 8 * MIB).unwrap();
        write_at(&file, &[1; 4096], MIB).unwrap();
        write_at(&file, &[1; 4096], 5 * MIB).unwrap();
        let (first, second) = (MIB..MIB + 4096, 5 * MIB..5 * MIB + 4096);

        let all = data_ranges(&file, 0..u64::MAX).unwrap();
        assert_eq!(all, [first.clone(), second.clone()]);
        let some = data_ranges(&file, MIB + 10..5 * MIB + 10).unwrap();
        assert_eq!(some, [MIB + 10..first.end, second.start..5 * MIB + 10]);
        assert!(data_ranges(&file, 2 * MIB..3 * MIB).unwrap().is_empty());
        assert!(data_ranges(&file, 6 * MIB..u64::MAX).unwrap().is_empty());
        assert!(data_ranges(&file, 9 * MIB..10 * MIB).unwrap().is_empty());

        clear_range(&file, first).unwrap();
        assert_eq!(data_ranges(&file, 0..8 * MIB).unwrap(), [second]);
    }
}

#[test]
fn a_file_system_without_holes_gives_one_range() {
    let Some(ramfs) = Ramfs::mount() else { return };
    let file = file_in(ramfs.path());
    set_len(&file, 2 * MIB).unwrap();
    let found = |window| data_ranges(&file, window).unwrap();
    assert_eq!(found(5..MIB), std::slice::from_ref(&(5..MIB)));
    assert_eq!(found(5..9 * MIB), std::slice::from_ref(&(5..2 * MIB)));
}

#[test]
fn a_reservation_takes_room_and_leaves_the_length() {
    for place in places() {
        let file = file_in(place.path());
        assert_eq!(reserve(&file, 0..MIB).unwrap(), Reserved::Yes);
        let stat = Stat::of(&file).unwrap();
        assert_eq!(stat.size, 0);
        assert!(stat.allocated >= MIB, "{}", stat.allocated);
        assert_eq!(reserve(&file, 7..7).unwrap(), Reserved::Yes);
    }
}

#[test]
fn a_file_system_that_cannot_reserve_says_so() {
    let Some(ramfs) = Ramfs::mount() else { return };
    assert_eq!(reserve(file_in(ramfs.path()), 0..10).unwrap(), Reserved::No);
}

#[test]
fn replacing_keeps_no_old_byte_and_no_old_length() {
    on_each(|file| {
        for (old, size) in [(3 * MIB, MIB), (10, 2 * MIB), (0, 0), (MIB, MIB)] {
            write_at(file, &vec![b'o'; usize::try_from(old).unwrap()], 0).unwrap();
            let at = size / 2;
            let pieces: &[(u64, &[u8])] =
                if size == 0 { &[] } else { &[(0, b"first"), (at, b"second")] };
            replace(file, pieces, size, Reserved::Yes).unwrap();
            let mut expected = vec![0; usize::try_from(size).unwrap()];
            for (at, bytes) in pieces {
                let at = usize::try_from(*at).unwrap();
                expected[at..at + bytes.len()].copy_from_slice(bytes);
            }
            let got = read_bytes(file, 0, usize::try_from(size + 1).unwrap()).unwrap();
            assert!(got == expected, "{old} bytes replaced by {size}");
            set_len(file, 0).unwrap();
        }
    });
}

#[test]
fn times_are_set_one_by_one_also_before_1970() {
    on_each(|file| {
        let (read, written) = (Timestamp(-1_500_000_000), Timestamp(1_234_567_890_123_456_700));
        set_times(file, Some(read), Some(written)).unwrap();
        set_times(file, None, None).unwrap();
        let stat = Stat::of(file).unwrap();
        assert_eq!((stat.accessed, stat.written), (read, written));
        set_times(file, Some(written), None).unwrap();
        let stat = Stat::of(file).unwrap();
        assert_eq!((stat.accessed, stat.written), (written, written));
    });
}

#[test]
fn a_symbolic_link_has_times_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("link");
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let link = rustix::fs::openat(CWD, &path, flags, Mode::empty()).unwrap();
    set_times(&link, None, Some(Timestamp(5_000_000_000))).unwrap();
    assert_eq!(Stat::of(&link).unwrap().written, Timestamp(5_000_000_000));
}

#[test]
fn offsets_past_the_largest_file_are_errors() {
    let place = tempfile::tempdir().unwrap();
    let file = file_in(place.path());
    for offset in [u64::MAX, u64::MAX / 2 + 1] {
        assert!(read_at(&file, &mut [0; 4], offset).is_err(), "{offset}");
        assert!(write_at(&file, b"x", offset).is_err(), "{offset}");
        assert!(set_len(&file, offset).is_err(), "{offset}");
        assert!(reserve(&file, 0..offset).is_err(), "{offset}");
        assert!(data_ranges(&file, offset..u64::MAX).unwrap().is_empty());
    }
}

#[test]
fn a_failed_flush_is_reported() {
    let (reader, _writer) = std::io::pipe().unwrap();
    assert!(sync(&reader).is_err());
}
