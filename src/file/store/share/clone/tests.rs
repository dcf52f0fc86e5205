//! Tests of clone: every way, holes, attributes, cancelling.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{SeekFrom, Timespec};

use super::*;

const GIB: u64 = 1 << 30;
/// Three small extents, the last one at the very end.
const EXTENTS: [u64; 3] = [0, GIB / 2, GIB - 4096];

fn sparse(path: &Path) -> File {
    let file = File::create_new(path).unwrap();
    file.set_len(GIB).unwrap();
    for (mark, at) in (1..).zip(EXTENTS) {
        file.write_all_at(&[mark; 4096], at).unwrap();
    }
    File::open(path).unwrap()
}

fn go_on(_: CloneProgress) -> Control {
    Control::Continue
}

fn clone(source: &File, target: &File) {
    clone_file(source, target, &mut Meter::new(&mut go_on)).unwrap();
}

#[test]
fn a_sparse_file_keeps_its_holes() {
    let dir = tempfile::tempdir().unwrap();
    let source = sparse(&dir.path().join("source"));
    let target = File::create_new(dir.path().join("target")).unwrap();
    clone(&source, &target);

    assert_eq!(target.metadata().unwrap().len(), GIB);
    assert!(target.metadata().unwrap().blocks() * 512 < 1 << 20);
    let target = File::open(dir.path().join("target")).unwrap();
    for (mark, at) in (1..).zip(EXTENTS) {
        let mut bytes = [0; 4096];
        target.read_exact_at(&mut bytes, at).unwrap();
        assert_eq!(bytes, [mark; 4096], "extent at {at}");
    }
    assert_eq!(extents(&source), extents(&target));
}

/// Starts and ends of the data extents.
fn extents(file: &File) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Ok(data) = rustix::fs::seek(file, SeekFrom::Data(at)) {
        at = rustix::fs::seek(file, SeekFrom::Hole(data)).unwrap();
        found.push((data, at));
    }
    found
}

#[test]
fn every_byte_comes_across() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("source");
    // Two chunks and a piece, so that chunk borders are met.
    let bytes: Vec<u8> = (0..251).cycle().take(2 * CHUNK_BYTES + 12_345).collect();
    std::fs::write(&path, &bytes).unwrap();
    let copy = dir.path().join("copy");
    clone(&File::open(&path).unwrap(), &File::create_new(&copy).unwrap());
    assert!(std::fs::read(&copy).unwrap() == bytes);
}

#[test]
fn the_copy_by_hand_does_what_the_kernel_does() {
    let dir = tempfile::tempdir().unwrap();
    let source = sparse(&dir.path().join("source"));
    let target = File::create_new(dir.path().join("target")).unwrap();
    let mut report = go_on;
    let mut meter = Meter::new(&mut report);
    let mut pump = Pump::new(source.as_fd(), target.as_fd(), &mut meter);
    pump.in_kernel = false;
    pump.run(0..GIB).unwrap();
    assert!(!pump.buffer.is_empty(), "it went through the buffer");
    assert_eq!(meter.done().bytes_done, GIB);
    assert_eq!(extents(&source), extents(&target));
    let mut bytes = [0; 4096];
    let target = File::open(dir.path().join("target")).unwrap();
    target.read_exact_at(&mut bytes, EXTENTS[2]).unwrap();
    assert_eq!(bytes, [3; 4096]);
}

#[test]
fn an_empty_file_and_a_file_of_holes_only_are_copied() {
    let dir = tempfile::tempdir().unwrap();
    for size in [0, 1, 100_000] {
        let source = dir.path().join(size.to_string());
        File::create_new(&source).unwrap().set_len(size).unwrap();
        let target = File::create_new(source.with_extension("copy")).unwrap();
        clone(&File::open(&source).unwrap(), &target);
        assert_eq!(target.metadata().unwrap().len(), size);
    }
}

#[test]
fn attributes_go_along() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("source");
    std::fs::write(&path, "text").unwrap();
    let source = File::open(&path).unwrap();
    let set = |name, value: &[u8]| {
        rustix::fs::fsetxattr(&source, name, value, XattrFlags::empty()).unwrap();
    };
    set("user.latchfs", b"{\"v\":1}");
    set("user.empty", b"");
    set("user.long", &[7; 2000]);
    rustix::fs::fchmod(&source, Mode::from_raw_mode(0o444)).unwrap();
    let before_1970 = Timespec { tv_sec: -5, tv_nsec: 123_456_789 };
    let times = Timestamps { last_access: before_1970, last_modification: before_1970 };
    rustix::fs::futimens(&source, &times).unwrap();

    let target = File::create_new(dir.path().join("target")).unwrap();
    clone(&source, &target);
    let (from, to) = (source.metadata().unwrap(), target.metadata().unwrap());
    assert_eq!(to.mode(), from.mode());
    assert_eq!((to.uid(), to.gid()), (from.uid(), from.gid()));
    assert_eq!((to.mtime(), to.mtime_nsec()), (-5, 123_456_789));
    assert_eq!((to.atime(), to.atime_nsec()), (-5, 123_456_789));
    let mut value = [0; 4096];
    for (name, expected) in
        [("user.latchfs", &b"{\"v\":1}"[..]), ("user.empty", b""), ("user.long", &[7; 2000])]
    {
        let size = rustix::fs::fgetxattr(&target, name, &mut value[..]).unwrap();
        assert_eq!(&value[..size], expected, "{name}");
    }
}

#[test]
fn cancelling_stops_between_chunks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("source");
    std::fs::write(&path, vec![1; 3 * CHUNK_BYTES]).unwrap();
    let target = File::create_new(dir.path().join("target")).unwrap();
    let mut cancel = |done: CloneProgress| {
        if done.bytes_done >= CHUNK_BYTES as u64 { Control::Cancel } else { Control::Continue }
    };
    let source = File::open(&path).unwrap();
    let answer = clone_file(&source, &target, &mut Meter::new(&mut cancel));
    assert!(matches!(answer, Err(CloneError::Cancelled)));
    assert_eq!(target.metadata().unwrap().len(), CHUNK_BYTES as u64);
}

#[test]
fn a_range_is_copied_alone_with_its_holes() {
    let dir = tempfile::tempdir().unwrap();
    let source = sparse(&dir.path().join("source"));
    let path = dir.path().join("target");
    let target = File::create_new(&path).unwrap();
    target.set_len(GIB).unwrap();
    copy_range(&source, &target, 2048..GIB / 2 + 1024).unwrap();
    let target = File::open(&path).unwrap();
    let byte = |at| {
        let mut byte = [0xff];
        target.read_exact_at(&mut byte, at).unwrap();
        byte[0]
    };
    assert_eq!([2047, 2048, 4095, 4096].map(byte), [0, 1, 1, 0]);
    assert_eq!([GIB / 2 - 1, GIB / 2, GIB / 2 + 1023, GIB / 2 + 1024].map(byte), [0, 2, 2, 0]);
    assert!(target.metadata().unwrap().blocks() * 512 < 1 << 20, "the hole was copied");
    copy_range(&source, &target, GIB..2 * GIB).unwrap();
    assert_eq!(target.metadata().unwrap().len(), GIB, "nothing lies past the end");
}
