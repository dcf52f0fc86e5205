//! stat, chmod, chown, times, truncation, access, the size of the file system.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::{Duration, SystemTime};

use rustix::fs::{Access as Mask, AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use crate::mount::fixture::Fixture;
use crate::mount::program::Program;

#[test]
fn stat_shows_what_the_file_behind_shows() {
    let Some(at) = Fixture::start() else { return };
    let path = at.make("f", "hello");
    fs::create_dir(at.path("d")).unwrap();
    let (seen, behind) = (fs::metadata(&path).unwrap(), fs::metadata(at.root.join("f")).unwrap());
    assert_eq!(
        (seen.size(), seen.mode(), seen.nlink(), seen.uid(), seen.gid(), seen.blocks()),
        (5, behind.mode(), 1, behind.uid(), behind.gid(), behind.blocks())
    );
    assert_eq!(seen.modified().unwrap(), behind.modified().unwrap());
    assert!(fs::metadata(at.path("d")).unwrap().is_dir());
    assert!(fs::metadata(&at.mnt).unwrap().is_dir());
}

#[test]
fn the_owner_can_be_changed_and_either_half_left_alone() {
    let Some(at) = Fixture::start() else { return };
    if !crate::common::need::root() {
        return;
    }
    let path = at.make("f", "");
    std::os::unix::fs::chown(&path, Some(1234), None).unwrap();
    std::os::unix::fs::chown(&path, None, Some(4321)).unwrap();
    let seen = fs::metadata(at.root.join("f")).unwrap();
    assert_eq!((seen.uid(), seen.gid()), (1234, 4321));
    std::os::unix::fs::symlink("nowhere", at.path("link")).unwrap();
    std::os::unix::fs::lchown(at.path("link"), Some(77), Some(78)).unwrap();
    let seen = fs::symlink_metadata(at.root.join("link")).unwrap();
    assert_eq!((seen.uid(), seen.gid()), (77, 78));
}

#[test]
fn times_are_set_to_now_to_a_given_moment_or_left_alone() {
    let Some(at) = Fixture::start() else { return };
    let path = at.make("f", "");
    let moment = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_times(FileTimes::new().set_accessed(moment).set_modified(moment)).unwrap();
    drop(file);
    let seen = fs::metadata(&path).unwrap();
    assert_eq!((seen.accessed().unwrap(), seen.modified().unwrap()), (moment, moment));
    let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: omit, last_modification: now };
    rustix::fs::utimensat(CWD, &path, &times, AtFlags::empty()).unwrap();
    let seen = fs::metadata(&path).unwrap();
    assert_eq!(seen.accessed().unwrap(), moment);
    assert!(seen.modified().unwrap() > moment + Duration::from_hours(1));
    let before = Timespec { tv_sec: -1, tv_nsec: 500_000_000 };
    let times = Timestamps { last_access: omit, last_modification: before };
    rustix::fs::utimensat(CWD, &path, &times, AtFlags::empty()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mtime(), -1);
    assert_eq!(fs::metadata(at.root.join("f")).unwrap().mtime(), -1);
}

#[test]
fn access_says_what_may_be_done() {
    let Some(at) = Fixture::start() else { return };
    let path = at.make("f", "");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    rustix::fs::access(&path, Mask::READ_OK | Mask::WRITE_OK).unwrap();
    assert_eq!(rustix::fs::access(&path, Mask::EXEC_OK), Err(rustix::io::Errno::ACCESS));
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    rustix::fs::access(&path, Mask::EXEC_OK).unwrap();
    rustix::fs::access(&at.mnt, Mask::EXEC_OK).unwrap();
}

#[test]
fn the_file_system_tells_its_size() {
    let Some(at) = Fixture::start() else { return };
    let (seen, behind) =
        (rustix::fs::statvfs(&at.mnt).unwrap(), rustix::fs::statvfs(&at.root).unwrap());
    assert_eq!(seen.f_namemax, 255);
    assert!(seen.f_blocks > 0 && seen.f_bavail <= seen.f_blocks);
    let bytes = |stat: &rustix::fs::StatVfs| stat.f_blocks * stat.f_frsize;
    assert_eq!(bytes(&seen) >> 20, bytes(&behind) >> 20);
}

#[test]
fn a_write_through_a_descriptor_that_cannot_read_shows_in_the_times_at_once() {
    let Some(at) = Fixture::start() else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    at.make("f", "x");
    for (append, write) in [
        ("0", "os.write(fd, b'y')"),
        ("0", "os.pwrite(fd, b'z', 100)"),
        ("0", "os.ftruncate(fd, 7)"),
        ("os.O_APPEND", "os.write(fd, b'y')"),
    ] {
        program.ok("os.utime('f', (1, 1))");
        program.ok(&format!("fd = os.open('f', os.O_WRONLY | {append}); os.stat('f')"));
        program.ok(write);
        assert_eq!(program.ok("os.stat('f').st_mtime > 1"), serde_json::json!(true), "{write}");
        program.ok("os.close(fd)");
        assert_eq!(program.ok("os.stat('f').st_mtime > 1"), serde_json::json!(true), "{write}");
        let length = std::fs::metadata(at.root.join("f")).unwrap().len();
        assert_eq!(program.ok("os.stat('f').st_size"), serde_json::json!(length), "{write}");
    }
}

#[test]
fn a_store_through_a_mapping_shows_in_the_times_at_the_close() {
    let Some(at) = Fixture::start() else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    at.make("f", &"x".repeat(4096));
    program.ok("os.utime('f', (1, 1)); before = os.stat('f')");
    assert_eq!(program.ok("before.st_mtime"), serde_json::json!(1.0));
    program.ok("fd = os.open('f', os.O_RDWR); m = mmap.mmap(fd, 4096)");
    program.ok("os.stat('f'); m[0] = 65; m.flush(); os.close(fd)");
    program.ok("m[1] = 66; m.flush(); m.close(); fd = os.open('f', os.O_RDWR); os.close(fd)");
    assert_eq!(program.ok("os.stat('f').st_mtime > 1"), serde_json::json!(true));
    assert_eq!(program.ok("os.stat('f').st_ctime > before.st_ctime"), serde_json::json!(true));
}
