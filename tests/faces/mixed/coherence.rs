//! The two faces show one file: bytes, lengths, times, names and stamps, each change seen on the
//! other side by the very next look.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::common::calls::Call;
use crate::common::meeting::{BYTES, Meeting, elements, errno};
use crate::common::program::Program;

#[test]
fn an_open_descriptor_and_rest_read_what_the_other_wrote() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("coherent-fd");
    let opened = file.descriptor("rw").unwrap();
    let mut seen = [0; 4];
    for round in 0..100 {
        let (rest, mount) = (format!("r{round:03}"), format!("m{round:03}"));
        at.put_range(&file.target(), 2, rest.as_bytes(), &[]).is(201);
        opened.read_exact_at(&mut seen, 2).unwrap();
        assert_eq!(seen, rest.as_bytes());
        opened.write_all_at(mount.as_bytes(), 4).unwrap();
        assert_eq!(file.bytes()[4..8], *mount.as_bytes());
    }
}

#[test]
fn a_mapping_and_rest_read_what_the_other_wrote() {
    let Some(at) = Meeting::start() else { return };
    let Some(mut program) = Program::start(&at.served().mount()) else { return };
    let file = at.file_of("coherent-map", &[b'.'; 8_192]);
    program.ok("fd = os.open('coherent-map', os.O_RDWR)");
    program.ok("m = mmap.mmap(fd, 8192)");
    for round in 0..20 {
        let rest = format!("rest {round:03}");
        at.put_range(&file.target(), 4_090, rest.as_bytes(), &[]).is(201);
        assert_eq!(program.ok("m[4090:4098]"), json!(rest));
        program.ok(&format!("m[0:8] = b'maps {round:03}'"));
        assert_eq!(file.bytes()[..8], *format!("maps {round:03}").as_bytes());
    }
}

#[test]
fn a_new_length_is_seen_on_either_side() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("coherent-length");
    let opened = file.descriptor("rw").unwrap();
    let resize = |length: &str| {
        let target = format!("{}?comp=properties", file.target());
        at.put(&target, &[("x-ms-content-length", length)]).is(200);
    };
    resize("4");
    assert_eq!(opened.metadata().unwrap().len(), 4);
    assert_eq!(fs::metadata(file.path()).unwrap().len(), 4);
    assert_eq!(opened.read_at(&mut [0; 9], 0).unwrap(), 4);
    resize("100000");
    assert_eq!(fs::read(file.path()).unwrap().len(), 100_000);
    opened.set_len(7).unwrap();
    assert_eq!(file.shown("content-length"), "7");
    assert_eq!(file.bytes(), b"0123\0\0\0");
    file.answers("ok", &[Call::Create]);
    assert_eq!(opened.metadata().unwrap().len(), 10);
    assert_eq!(fs::read(file.path()).unwrap(), [0; 10]);
}

#[test]
fn what_is_appended_goes_to_the_end_that_rest_has_set() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("coherent-append");
    let mut opened = fs::File::options().append(true).open(file.path()).unwrap();
    opened.write_all(b"ab").unwrap();
    assert_eq!(file.bytes(), b"0123456789ab");
    file.answers("ok", &[Call::Resize]);
    opened.write_all(b"cd").unwrap();
    assert_eq!(file.bytes(), b"012345678cd");
    at.put_range(&file.target(), 9, b"CD", &[]).is(201);
    opened.write_all(b"ef").unwrap();
    assert_eq!(file.bytes(), b"012345678CDef");
}

#[test]
fn holes_are_holes_on_both_sides() {
    const BLOCK: u64 = 64 << 10;
    let Some(at) = Meeting::start() else { return };
    let Some(mut program) = Program::start(&at.served().mount()) else { return };
    let file = at.named("coherent-holes");
    let opened = fs::File::create(file.path()).unwrap();
    let block = |byte: u8| vec![byte; usize::try_from(BLOCK).unwrap()];
    opened.write_all_at(&block(7), 3 * BLOCK).unwrap();
    opened.set_len(10 * BLOCK).unwrap();
    let ranges = || {
        let text = file.call(Call::Ranges).is(200).text();
        let numbers = |name: &str| {
            let texts = elements(&text, name).into_iter();
            texts.map(|number| number.parse::<u64>().unwrap()).collect::<Vec<_>>()
        };
        numbers("Start").into_iter().zip(numbers("End")).collect::<Vec<_>>()
    };
    assert_eq!(ranges(), [(3 * BLOCK, 4 * BLOCK - 1)]);
    let zeros = file.call_with(Call::Get, &[("x-ms-range", "bytes=0-65535")]).is(206);
    assert!(zeros.body.iter().all(|byte| *byte == 0));
    let at_six = usize::try_from(6 * BLOCK).unwrap();
    at.put_range(&file.target(), at_six, &block(8), &[]).is(201);
    program.ok("fd = os.open('coherent-holes', os.O_RDONLY)");
    let seek = format!("os.lseek(fd, {}, os.SEEK_DATA)", 4 * BLOCK);
    assert_eq!(program.ok(&seek), json!(6 * BLOCK));
    let clear = [("x-ms-range", "bytes=196608-262143"), ("x-ms-write", "clear")];
    at.put(&format!("{}?comp=range", file.target()), &clear).is(201);
    assert_eq!(ranges(), [(6 * BLOCK, 7 * BLOCK - 1)]);
    assert_eq!(program.ok("os.lseek(fd, 0, os.SEEK_DATA)"), json!(6 * BLOCK));
    assert_eq!(program.ok("os.pread(fd, 1, 196608)"), json!("\0"));
}

#[test]
fn length_identity_and_times_are_the_same_in_stat_properties_and_listing() {
    let Some(at) = Meeting::start() else { return };
    at.directory("coherent-stat");
    let file = at.file("coherent-stat/file");
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    file.descriptor("w").unwrap().set_modified(time).unwrap();
    let head = file.call(Call::Head).is(200);
    assert_eq!(head.header("x-ms-file-last-write-time"), "2020-09-13T12:26:40.0000000Z");
    let target = format!("{}?comp=properties", file.target());
    at.put(&target, &[("x-ms-file-last-write-time", "2021-01-01T00:00:00.0000000Z")]).is(200);
    let stat = fs::metadata(file.path()).unwrap();
    assert_eq!(stat.mtime(), 1_609_459_200);
    let list = "/share/coherent-stat?restype=directory&comp=list&include=timestamps,Etag";
    let text = at.get(list).is(200).text();
    let one = |name: &str| elements(&text, name).remove(0);
    assert_eq!(one("Content-Length"), stat.len().to_string());
    assert_eq!(one("FileId"), file.shown("x-ms-file-id"));
    assert_eq!(one("LastWriteTime"), "2021-01-01T00:00:00.0000000Z");
    assert_eq!(one("Etag").replace("&quot;", "\""), file.etag());
}

#[test]
fn a_name_made_moved_or_removed_by_one_is_there_or_not_for_the_other() {
    let Some(at) = Meeting::start() else { return };
    let directory = at.directory("coherent-names");
    let names = || {
        let entries = fs::read_dir(directory.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    for round in 0..30 {
        let (one, two) = (at.named("coherent-names/one"), at.named("coherent-names/two"));
        assert_eq!(errno(fs::metadata(one.path())), libc::ENOENT, "round {round}");
        at.upload(&one.name, BYTES);
        assert_eq!((fs::metadata(one.path()).unwrap().len(), names()), (10, vec!["one".into()]));
        fs::rename(one.path(), two.path()).unwrap();
        one.answers("ResourceNotFound", &[Call::Head]);
        assert_eq!(at.listing("coherent-names"), ["two"]);
        let url = at.url(&two.name);
        let source = [("x-ms-file-rename-source", url.as_str())];
        at.put(&format!("{}?comp=rename", one.target()), &source).is(200);
        assert_eq!(errno(fs::metadata(two.path())), libc::ENOENT);
        assert_eq!(fs::read(one.path()).unwrap(), BYTES);
        at.wait_idle(&one.name);
        if round % 2 == 0 {
            one.answers("ok", &[Call::Delete]);
            assert_eq!(errno(fs::metadata(one.path())), libc::ENOENT);
        } else {
            fs::remove_file(one.path()).unwrap();
            one.answers("ResourceNotFound", &[Call::Head]);
        }
        assert!(names().is_empty() && at.listing("coherent-names").is_empty());
    }
}

/// A node that is open answers for its file, whatever name it is asked by: only the kernel's own
/// forgetting makes the old name go.
#[test]
fn the_old_name_of_an_open_file_that_rest_renamed_is_gone_when_that_is_answered() {
    const ROUNDS: usize = 200;
    let Some(at) = Meeting::start() else { return };
    at.directory("coherent-moved");
    let names = ["a", "b"].map(|name| at.named(&format!("coherent-moved/{name}")));
    at.upload(&names[0].name, BYTES);
    let opened = names[0].descriptor("r").unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // The kernel forgets a name under the lock of its directory, which these keep busy.
        for neighbour in ["c", "d", "e"] {
            let path = at.path(&format!("coherent-moved/{neighbour}"));
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    fs::write(&path, "").unwrap();
                    fs::remove_file(&path).unwrap();
                }
            });
        }
        let mut seen = 0;
        for round in 0..ROUNDS {
            let (from, to) = (&names[round % 2], &names[(round + 1) % 2]);
            fs::metadata(from.path()).unwrap();
            let url = at.url(&from.name);
            let source = [("x-ms-file-rename-source", url.as_str())];
            at.put(&format!("{}?comp=rename", to.target()), &source).is(200);
            seen += usize::from(errno(fs::metadata(from.path())) != libc::ENOENT);
            // Its descriptor is as good as before.
            assert_eq!(
                (fs::metadata(to.path()).unwrap().len(), opened.metadata().unwrap().len()),
                (10, 10)
            );
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(seen, 0, "so often was the old name still there, of {ROUNDS} times");
    });
}

#[test]
fn every_change_moves_the_etag_from_whichever_side() {
    let Some(at) = Meeting::start() else { return };
    let Some(mut program) = Program::start(&at.served().mount()) else { return };
    let file = at.file("etag-moves");
    program.ok("fd = os.open('etag-moves', os.O_RDWR)");
    let mut before = file.etag();
    let mut moved = |what: &str| {
        let after = file.etag();
        assert_ne!(after, before, "{what}");
        before = after;
    };
    for line in [
        "os.pwrite(fd, b'x', 0)",
        "os.pwrite(fd, b'x', 0)",
        "os.ftruncate(fd, 5)",
        "os.truncate('etag-moves', 9)",
        // The old time put back hides nothing.
        "s = os.stat(fd); os.pwrite(fd, b'y', 0); os.utime(fd, ns=(s.st_atime_ns, s.st_mtime_ns))",
        "os.utime('etag-moves', (1, 1))",
        "os.close(os.open('etag-moves', os.O_WRONLY | os.O_TRUNC))",
        "os.posix_fallocate(fd, 0, 100)",
    ] {
        program.ok(line);
        moved(line);
    }
    fs::OpenOptions::new()
        .write(true)
        .open(at.served().data().join("etag-moves"))
        .unwrap()
        .write_all(b"beside")
        .unwrap();
    moved("a write in the data directory itself");
    for call in [Call::Put, Call::Put, Call::Clear, Call::SetAttributes, Call::SetMetadata] {
        file.answers("ok", &[call]);
        moved(&format!("{call:?}"));
    }
}

#[test]
fn no_look_no_lease_and_no_refusal_moves_the_etag() {
    let Some(at) = Meeting::start() else { return };
    let Some(mut program) = Program::start(&at.served().mount()) else { return };
    let file = at.file("etag-stays");
    program.ok("import fcntl as f");
    let before = file.etag();
    let stays = |what: &str| assert_eq!(file.etag(), before, "{what}");
    for line in [
        "fd = os.open('etag-stays', os.O_RDWR)",
        "os.pread(fd, 100, 0)",
        "os.stat('etag-stays'), os.listdir('.')[:0]",
        "lock(fd, SETLK, f.F_WRLCK, 0, 10)",
        "lock(fd, SETLK, f.F_UNLCK, 0, 10)",
        "f.ioctl(fd, 0x40044C01, struct.pack('<I', 1))",
    ] {
        program.ok(line);
        stays(line);
    }
    for call in [Call::Put, Call::SetMetadata, Call::Create, Call::Delete, Call::Acquire] {
        file.answers("SharingViolation", &[call]);
        stays(&format!("{call:?}, refused"));
    }
    program.ok("os.close(fd)");
    at.wait_idle("etag-stays");
    let pending = file.pending();
    latchfs::client::set_delete(pending.file(), false).unwrap();
    pending.close();
    stays("a mark, undone");
    let harmless = [Call::Get, Call::Head, Call::Metadata, Call::Ranges, Call::ListHandles];
    for call in harmless.into_iter().chain([Call::Acquire, Call::Change, Call::Break]) {
        file.answers("ok", &[call]);
        stays(&format!("{call:?}"));
    }
    at.listing("");
    stays("a listing");
}
