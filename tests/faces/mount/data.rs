//! Bytes: reading, writing, holes, mappings. Each test runs with kernel passthrough and without.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use latchfs::file::mount::MountOptions;
use latchfs::file::service::{Asking, ShareOptions};
use serde_json::json;

use crate::common::ground::Ground;
use crate::mount::fixture::{Fixture, errno, share_path, somebody, soon};
use crate::mount::program::Program;

/// A mount whose bytes go the way that `passthrough` says, and a program on it.
fn start(passthrough: bool) -> Option<(Fixture, Program)> {
    let at = Fixture::with(|options| options.passthrough = passthrough)?;
    let program = Program::start(&at.mnt)?;
    Some((at, program))
}

/// Runs a test both ways.
fn both(test: impl Fn(Fixture, Program)) {
    for passthrough in [true, false] {
        let Some((at, program)) = start(passthrough) else { return };
        test(at, program);
    }
}

#[test]
fn a_file_behind_that_changes_is_seen_by_an_open_descriptor() {
    both(|at, _| {
        let path = at.make("f", "before");
        let file = File::open(&path).unwrap();
        let mut got = [0; 6];
        file.read_exact_at(&mut got, 0).unwrap();
        let behind = OpenOptions::new().write(true).open(at.root.join("f")).unwrap();
        behind.write_all_at(b"after!", 0).unwrap();
        file.read_exact_at(&mut got, 0).unwrap();
        assert_eq!(&got, b"after!");
    });
}

#[test]
fn appends_of_two_spellings_and_of_the_other_side_never_overwrite() {
    both(|at, _| {
        at.make("f", "");
        let append = |path| OpenOptions::new().append(true).open(path).unwrap();
        let (mut lower, mut upper) = (append(at.path("f")), append(at.path("F")));
        let mut behind = append(at.root.join("f"));
        for _ in 0..20 {
            lower.write_all(b"l").unwrap();
            upper.write_all(b"u").unwrap();
            behind.write_all(b"b").unwrap();
        }
        assert_eq!(fs::read_to_string(at.root.join("f")).unwrap(), "lub".repeat(20));
    });
}

#[test]
fn a_sparse_file_past_four_gibibytes_keeps_its_holes() {
    both(|at, mut program| {
        const FAR: u64 = (5 << 30) + 7;
        let file = File::create(at.path("big")).unwrap();
        file.write_all_at(b"end", FAR).unwrap();
        drop(file);
        let seen = fs::metadata(at.path("big")).unwrap();
        assert_eq!(seen.size(), FAR + 3);
        assert!(seen.blocks() < 1024, "{} blocks", seen.blocks());
        let file = File::open(at.path("big")).unwrap();
        let mut got = [9; 4];
        file.read_exact_at(&mut got, FAR - 1).unwrap();
        assert_eq!(&got, b"\0end");
        program.ok("fd = os.open('big', os.O_RDWR)");
        let data = program.ok("os.lseek(fd, 0, os.SEEK_DATA)").as_u64().unwrap();
        assert!(data > 4 << 30 && data <= FAR, "{data}");
        assert_eq!(program.ok("os.lseek(fd, 0, os.SEEK_HOLE)"), json!(0));
        assert_eq!(program.ok(&format!("os.lseek(fd, {FAR}, os.SEEK_HOLE)")), json!(FAR + 3));
        assert_eq!(program.fails(&format!("os.lseek(fd, {}, os.SEEK_DATA)", FAR + 3)), libc::ENXIO);
    });
}

#[test]
fn space_is_reserved_zeroed_and_given_back() {
    both(|at, mut program| {
        at.make("f", &"x".repeat(65_536));
        let define = "fd = os.open('f', os.O_RDWR)\n\
             libc = ctypes.CDLL(None, use_errno=True)\n\
             off = ctypes.c_int64\n\
             def fallocate(mode, start, length):\n\
             \x20   if libc.fallocate(fd, mode, off(start), off(length)):\n\
             \x20       raise OSError(ctypes.get_errno(), 'fallocate')\n";
        program.ok(define);
        program.ok("fallocate(1, 65536, 65536)"); // keep size
        let file = File::open(at.path("f")).unwrap();
        assert_eq!(file.metadata().unwrap().size(), 65_536);
        program.ok("fallocate(0, 65536, 4096)");
        assert_eq!(program.ok("os.fstat(fd).st_size"), json!(69_632));
        program.ok("fallocate(3, 4096, 8192)"); // punch a hole
        program.ok("fallocate(16, 16384, 4096)"); // zero
        let bytes = fs::read(at.path("f")).unwrap();
        assert!(bytes[..4096].iter().all(|byte| *byte == b'x'));
        assert!(bytes[4096..12_288].iter().all(|byte| *byte == 0));
        assert_eq!((bytes[12_288], bytes[16_384], bytes[20_480]), (b'x', 0, b'x'));
        assert_eq!(program.ok("os.lseek(fd, 0, os.SEEK_HOLE)"), json!(4096));
    });
}

#[test]
fn a_shared_mapping_and_the_file_behind_are_one() {
    both(|at, mut program| {
        at.make("f", &"a".repeat(8192));
        program.ok("fd = os.open('f', os.O_RDWR)");
        program.ok("m = mmap.mmap(fd, 8192)");
        program.ok("m[0:4] = b'MMAP'");
        program.ok("m.flush()");
        let mut got = [0; 4];
        let behind = OpenOptions::new().read(true).write(true).open(at.root.join("f")).unwrap();
        behind.read_exact_at(&mut got, 0).unwrap();
        assert_eq!(&got, b"MMAP");
        let file = OpenOptions::new().read(true).write(true).open(at.path("f")).unwrap();
        file.read_exact_at(&mut got, 0).unwrap();
        assert_eq!(&got, b"MMAP");
        file.write_all_at(b"file", 4096).unwrap();
        assert_eq!(program.ok("m[4096:4100]"), json!("file"));
    });
}

#[test]
fn a_private_mapping_keeps_its_changes_to_itself() {
    both(|at, mut program| {
        at.make("f", &"a".repeat(4096));
        program.ok("fd = os.open('f', os.O_RDONLY)");
        program.ok("m = mmap.mmap(fd, 4096, flags=mmap.MAP_PRIVATE, prot=3)");
        program.ok("m[0:3] = b'own'");
        assert_eq!(program.ok("m[0:4]"), json!("owna"));
        assert!(fs::read_to_string(at.path("f")).unwrap().starts_with("aaaa"));
    });
}

#[test]
fn what_is_flushed_is_flushed_without_error() {
    both(|at, _| {
        let mut file = File::create(at.path("f")).unwrap();
        file.write_all(b"x").unwrap();
        file.sync_all().unwrap();
        file.sync_data().unwrap();
        File::open(at.path("F")).unwrap().sync_all().unwrap();
        File::open(&at.mnt).unwrap().sync_all().unwrap();
    });
}

#[test]
fn an_open_file_follows_its_name_and_keeps_its_bytes() {
    both(|at, _| {
        fs::create_dir(at.path("d")).unwrap();
        at.make("f", "here");
        let mut file = OpenOptions::new().read(true).write(true).open(at.path("F")).unwrap();
        fs::rename(at.path("f"), at.path("d/g")).unwrap();
        file.write_all(b"THERE").unwrap();
        file.set_len(4).unwrap();
        file.sync_all().unwrap();
        assert_eq!(file.metadata().unwrap().size(), 4);
        assert_eq!(fs::read_to_string(at.path("d/g")).unwrap(), "THER");
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        // The kernel is told of other spellings after the answer: its lock on the directory is
        // held until then.
        let gone = || errno(fs::metadata(at.path("F"))) == libc::ENOENT;
        soon("the other spelling is gone too", gone);
    });
}

#[test]
fn space_is_not_reserved_in_another_file_that_took_the_name_beside_us() {
    let Some((at, _)) = start(true) else { return };
    let path = at.make("f", "first");
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    fs::write(at.root.join("other"), "second").unwrap();
    fs::rename(at.root.join("other"), at.root.join("f")).unwrap();
    let flags = rustix::fs::FallocateFlags::empty();
    let reserved = rustix::fs::fallocate(&file, flags, 0, 4096);
    assert_eq!(reserved, Err(rustix::io::Errno::NOENT));
    assert_eq!(fs::read(at.root.join("f")).unwrap(), b"second");
}

#[test]
fn every_write_moves_the_etag_where_times_are_coarse() {
    if !crate::common::need::fuse() {
        return;
    }
    let Some(ground) = Ground::image("ext2") else { return };
    for passthrough in [true, false] {
        let share = ShareOptions::default();
        let change = |options: &mut MountOptions| options.passthrough = passthrough;
        let Some(at) = Fixture::in_dir(ground.path(), share, change) else { return };
        let path = at.make("f", "0000");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let tag = || {
            let asking = Asking { cx: &somebody(), lease_id: None };
            at.share.file_properties(asking, &share_path("f")).unwrap().etag()
        };
        let mut seen = vec![tag()];
        for round in 0..50 {
            file.write_all_at(format!("{round:04}").as_bytes(), 0).unwrap();
            let now = tag();
            assert!(!seen.contains(&now), "round {round}, passthrough {passthrough}");
            seen.push(now);
        }
    }
}
