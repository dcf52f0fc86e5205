//! The ioctls: ours, and everybody else's.

use std::fs::{self, File};

use latchfs::client;
use latchfs::file::rules::{Access, ShareMode};
use serde_json::json;

use crate::mount::fixture::{Fixture, errno, open, open_errno};
use crate::mount::program::{Program, sh};

#[test]
fn an_unknown_request_is_refused_so_that_nobody_takes_a_file_for_a_terminal() {
    let Some(at) = Fixture::start() else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    at.make("f", "one\n");
    program.ok("fd = os.open('f', os.O_RDWR)");
    assert_eq!(program.ok("os.isatty(fd)"), json!(false));
    assert_eq!(program.fails("fcntl.ioctl(fd, 0x40044c7f, b'1234')"), libc::ENOTTY);
    assert_eq!(program.fails("fcntl.ioctl(os.open('.', 0), 0x40044c01, b'1234')"), libc::ENOTTY);
    program.ok("os.close(fd)");
    sh(&at.mnt, "sed -i s/one/two/ f").unwrap();
    assert_eq!(fs::read_to_string(at.path("f")).unwrap(), "two\n");
}

#[test]
fn a_program_names_its_share_mode_at_once_or_not_at_all() {
    let Some(at) = Fixture::start() else { return };
    let path = at.make("f", "");
    let file = File::open(&path).unwrap();
    client::set_share(&file, ShareMode::NONE).unwrap();
    assert_eq!(open_errno(&path, Access::R), libc::EBUSY);
    client::set_share(&file, ShareMode::R).unwrap();
    let reader = open(&path, Access::R).unwrap();
    assert_eq!(open_errno(&path, Access::W), libc::EBUSY);
    assert_eq!(errno(client::set_share(&file, ShareMode::NONE)), libc::EBUSY);
    assert_eq!(client::handle(&file).unwrap().share, u32::from(ShareMode::R.bits()));
    drop(reader);
    drop(file);
    assert_eq!(open_errno(&path, Access::RW), 0);
}

#[test]
fn a_share_mode_is_granted_right_after_the_other_closed() {
    let Some(at) = Fixture::start() else { return };
    let path = at.make("f", "");
    for round in 0..500 {
        let file = File::open(&path).unwrap();
        drop(File::open(&path).unwrap());
        assert_eq!(errno(client::set_share(&file, ShareMode::NONE)), 0, "round {round}");
    }
}

#[test]
fn a_program_learns_its_handle() {
    let Some(at) = Fixture::sharing(ShareMode::R) else { return };
    let path = at.make("f", "");
    let (one, other) = (File::open(&path).unwrap(), File::open(&path).unwrap());
    let (seen, second) = (client::handle(&one).unwrap(), client::handle(&other).unwrap());
    assert_ne!(seen.handle, second.handle);
    assert_eq!((seen.access, seen.share, seen.delete_pending), (1, 1, false));
}
