//! Delete pending, as on a real share: the name stays until the last handle closes.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;

use latchfs::file::rules::{Access, ShareMode};
use serde_json::json;

use crate::common::served::wait_for;
use crate::mount::fixture::{Fixture, errno, open, open_errno, rounds};
use crate::mount::program::{Program, sh};

fn names(at: &Fixture) -> Vec<String> {
    let entries = fs::read_dir(&at.mnt).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_name_of_an_open_file_stays_until_the_last_close() {
    let Some(at) = Fixture::start() else { return };
    let path = at.make("f", "hello");
    let mut one = open(&path, Access::RW).unwrap();
    let other = open(&path, Access::R).unwrap();
    fs::remove_file(&path).unwrap();

    assert_eq!(names(&at), ["f"]);
    assert_eq!(fs::metadata(&path).unwrap().size(), 5);
    assert_eq!(fs::metadata(at.path("F")).unwrap().size(), 5);
    for path in [&path, &at.path("F")] {
        assert_eq!(open_errno(path, Access::R), libc::EBUSY);
        assert_eq!(errno(File::create(path)), libc::EBUSY);
        assert_eq!(errno(OpenOptions::new().write(true).create_new(true).open(path)), libc::EEXIST);
        assert_eq!(errno(fs::remove_file(path)), libc::EBUSY);
    }
    assert_eq!(errno(fs::rename(&path, at.path("g"))), libc::EBUSY);
    assert_eq!(errno(fs::create_dir(&path)), libc::EEXIST);

    let mut text = String::new();
    one.read_to_string(&mut text).unwrap();
    one.rewind().unwrap();
    one.write_all(b"HELLO!").unwrap();
    assert_eq!(one.metadata().unwrap().size(), 6);
    one.set_len(2).unwrap();
    assert_eq!(other.metadata().unwrap().size(), 2);

    drop(one);
    assert_eq!(names(&at), ["f"]);
    drop(other);
    assert_eq!(errno(fs::metadata(&path)), libc::ENOENT);
    assert_eq!(names(&at), [""; 0]);
    assert!(!at.root.join("f").exists());
    drop(OpenOptions::new().write(true).create_new(true).open(&path).unwrap());
}

#[test]
fn right_after_the_last_close_the_name_is_gone_for_every_question() {
    let Some(at) = Fixture::start() else { return };
    let gone = |path: &str, round: usize| {
        let path = at.path(path);
        match round % 5 {
            0 => assert_eq!(errno(fs::metadata(&path)), libc::ENOENT, "stat, round {round}"),
            1 => assert_eq!(open_errno(&path, Access::R), libc::ENOENT, "open, round {round}"),
            2 => assert_eq!(names(&at), [""; 0], "readdir, round {round}"),
            3 => assert_eq!(errno(fs::remove_file(&path)), libc::ENOENT, "unlink, {round}"),
            _ => {
                let made = OpenOptions::new().write(true).create_new(true).open(&path);
                assert_eq!(errno(made), 0, "exclusive create, round {round}");
                fs::remove_file(&path).unwrap();
            }
        }
    };
    for round in 0..rounds(500) {
        let held = File::create(at.path("file")).unwrap();
        if round % 2 == 0 {
            assert!(at.path("FILE").exists());
        }
        fs::remove_file(at.path("file")).unwrap();
        if round % 3 == 0 {
            assert!(at.path("File").exists());
        }
        drop(held);
        gone(["file", "FILE", "File", "fIle"][round % 4], round);
    }
}

#[test]
fn a_program_says_what_a_shell_user_sees() {
    let Some(at) = Fixture::start() else { return };
    let path = at.make("f", "x");
    let held = File::open(&path).unwrap();
    sh(&at.mnt, "rm f").unwrap();
    assert!(sh(&at.mnt, "cat f").unwrap_err().contains("busy"));
    assert_eq!(sh(&at.mnt, "ls"), Ok("f\n".into()));
    drop(held);
    assert_eq!(sh(&at.mnt, "ls"), Ok(String::new()));
}

#[test]
fn an_open_directory_is_pending_too() {
    let Some(at) = Fixture::start() else { return };
    fs::create_dir(at.path("d")).unwrap();
    let held = File::open(at.path("d")).unwrap();
    fs::remove_dir(at.path("d")).unwrap();
    assert_eq!(errno(fs::write(at.path("d/new"), "")), libc::EBUSY);
    assert_eq!(errno(fs::create_dir(at.path("d/new"))), libc::EBUSY);
    assert_eq!(errno(fs::create_dir(at.path("d"))), libc::EEXIST);
    drop(held);
    // The kernel tells of the end of an open directory in its own time, and of no close before.
    wait_for("the end of the directory", || {
        (errno(fs::metadata(at.path("d"))) == libc::ENOENT).then_some(())
    });
    fs::create_dir(at.path("d")).unwrap();
}

#[test]
fn another_name_of_a_pending_file_stays_usable() {
    let Some(at) = Fixture::start() else { return };
    let one = at.make("one", "x");
    fs::hard_link(&one, at.path("two")).unwrap();
    let held = open(&one, Access::R).unwrap();
    fs::remove_file(&one).unwrap();
    assert_eq!(open_errno(&one, Access::R), libc::EBUSY);
    assert_eq!(fs::read_to_string(at.path("two")).unwrap(), "x");
    drop(held);
    assert_eq!(errno(fs::metadata(&one)), libc::ENOENT);
    assert_eq!(fs::read_to_string(at.path("two")).unwrap(), "x");
    assert_eq!(fs::metadata(at.path("two")).unwrap().nlink(), 1);
}

#[test]
fn a_copied_descriptor_keeps_the_pending_name() {
    let Some(at) = Fixture::start() else { return };
    let path = at.make("f", "x");
    let held = open(&path, Access::R).unwrap();
    let copy = held.try_clone().unwrap();
    fs::remove_file(&path).unwrap();
    drop(held);
    assert_eq!(fs::metadata(&path).unwrap().size(), 1);
    assert_eq!(open_errno(&path, Access::R), libc::EBUSY);
    drop(copy);
    assert_eq!(errno(fs::metadata(&path)), libc::ENOENT);
}

/// Maps a file, closes every descriptor of it and keeps the mapping.
fn map_and_close(passthrough: bool) -> Option<(Fixture, Program, std::path::PathBuf)> {
    let at = Fixture::with(|options| {
        options.default_share = ShareMode::NONE;
        options.passthrough = passthrough;
    })?;
    let mut program = Program::start(&at.mnt)?;
    let path = at.make("f", &"x".repeat(4096));
    program.ok("fd = os.open('f', os.O_RDONLY)");
    program.ok("m = mmap.mmap(fd, 4096, prot=mmap.PROT_READ)");
    // Python keeps a descriptor of its own for the mapping.
    program.ok("[os.close(n) for n in range(3, 20) if os.path.exists(f'/proc/self/fd/{n}')][:0]");
    assert_eq!(program.ok("m[0:2]"), json!("xx"));
    Some((at, program, path))
}

#[test]
fn a_mapping_outlives_its_descriptor_and_keeps_the_open() {
    let Some((_at, mut program, path)) = map_and_close(false) else { return };
    assert_eq!(open_errno(&path, Access::R), libc::EBUSY);
    program.kill();
    assert_eq!(open_errno(&path, Access::R), 0);
}

#[test]
fn under_passthrough_a_mapping_is_of_the_file_behind_and_keeps_no_open() {
    // The kernel maps the backing file itself and lets ours go: nothing tells us of the mapping.
    let Some((_at, mut program, path)) = map_and_close(true) else { return };
    assert_eq!(open_errno(&path, Access::R), 0);
    assert_eq!(program.ok("m[0:2]"), json!("xx"));
}

#[test]
fn a_pending_file_can_still_be_changed_through_its_descriptor() {
    let Some(at) = Fixture::start() else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    let path = at.make("f", "x");
    program.ok("fd = os.open('f', os.O_RDWR)");
    fs::remove_file(&path).unwrap();
    program.ok("os.fchmod(fd, 0o600)");
    program.ok("os.utime(fd, (1, 1))");
    program.ok("os.setxattr(fd, 'user.x', b'1')");
    assert_eq!(program.ok("os.getxattr(fd, 'user.x')"), json!("1"));
    program.ok("os.ftruncate(fd, 9)");
    program.ok("os.fsync(fd)");
    program.ok("lock(fd, SETLK, fcntl.F_WRLCK)");
    assert_eq!(program.ok("os.fstat(fd).st_size"), json!(9));
    assert_eq!(program.ok("os.fstat(fd).st_mode & 0o777"), json!(0o600));
    assert_eq!(program.fails("os.truncate('f', 0)"), libc::EBUSY);
    assert_eq!(program.fails("os.link('f', 'g')"), libc::EBUSY);
}
