//! Share modes through `open(2)`: who is let in beside whom.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};

use latchfs::file::mount::ShareRule;
use latchfs::file::rules::{Access, ShareMode};

use crate::common::served::wait_for;
use crate::mount::fixture::{Fixture, errno, open, open_errno, rounds};
use crate::mount::program::{Program, sh};

const ACCESSES: [Access; 3] = [Access::R, Access::W, Access::RW];

/// The rule written out: each must tolerate what the other does (both ways, bit by bit). An open
/// on the mount never asks for deletion, so that bit decides nothing here.
fn refused(first: (Access, ShareMode), second: (Access, ShareMode)) -> bool {
    let tolerates = |share: ShareMode, access: Access| {
        (!access.contains(Access::R) || share.contains(ShareMode::R))
            && (!access.contains(Access::W) || share.contains(ShareMode::W))
    };
    !(tolerates(first.1, second.0) && tolerates(second.1, first.0))
}

fn busy(refused: bool) -> i32 {
    if refused { libc::EBUSY } else { 0 }
}

#[test]
fn every_default_share_mode_with_every_pair_of_accesses() {
    for bits in 0..8 {
        let share = ShareMode::from_bits(bits);
        let Some(at) = Fixture::sharing(share) else { return };
        let Some(mut program) = Program::start(&at.mnt) else { return };
        let path = at.make("f", "x");
        for first in ACCESSES {
            for second in ACCESSES {
                let expected = busy(refused((first, share), (second, share)));
                let held = open(&path, first).unwrap();
                // No exemption for the opener itself, and none for another process.
                let got = open_errno(&path, second);
                assert_eq!(got, expected, "share {share:?}: {first:?} then {second:?}");
                let flags = match second {
                    Access::R => "os.O_RDONLY",
                    Access::W => "os.O_WRONLY",
                    _ => "os.O_RDWR",
                };
                let theirs = program.run(&format!("os.close(os.open('f', {flags}))"));
                assert_eq!(theirs.err().unwrap_or(0), expected, "another process");
                drop(held);
            }
        }
    }
}

#[test]
fn path_rules_give_each_file_its_own_share_mode() {
    let rules = ["*.none=none", "*.r=r", "*.w=w", "sub/*=rw", "*.none=rwd"];
    let rules: Vec<_> = rules.iter().map(|rule| ShareRule::parse(rule).unwrap()).collect();
    let Some(at) = Fixture::with(|options| options.rules = rules) else { return };
    fs::create_dir(at.path("sub")).unwrap();
    let files = [
        ("a.none", ShareMode::NONE),
        ("A2.NONE", ShareMode::NONE),
        ("a.r", ShareMode::R),
        ("a.w", ShareMode::W),
        ("sub/x", ShareMode::RW),
        ("sub/x.r", ShareMode::R),
        ("other", ShareMode::RWD),
    ];
    for (name, share) in files {
        let path = at.make(name, "x");
        for first in ACCESSES {
            for second in ACCESSES {
                let held = open(&path, first).unwrap();
                let expected = busy(refused((first, share), (second, share)));
                assert_eq!(open_errno(&path, second), expected, "{name}: {first:?}, {second:?}");
                drop(held);
            }
        }
    }
}

#[test]
fn a_share_mode_holds_in_every_spelling_and_under_every_name() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    let path = at.make("file", "");
    fs::hard_link(&path, at.path("link")).unwrap();
    std::os::unix::fs::symlink("file", at.path("soft")).unwrap();
    let held = File::open(&path).unwrap();
    for name in ["file", "FILE", "File", "link", "LINK", "soft"] {
        assert_eq!(open_errno(&at.path(name), Access::R), libc::EBUSY, "{name}");
    }
    drop(held);
}

#[test]
fn running_a_program_counts_as_reading_it() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    fs::copy("/bin/sleep", at.path("sleep")).unwrap();
    fs::set_permissions(at.path("sleep"), Permissions::from_mode(0o755)).unwrap();
    at.idle();
    let held = File::open(at.path("sleep")).unwrap();
    assert!(sh(&at.mnt, "./sleep 0").is_err());
    drop(held);
    let mut running = std::process::Command::new(at.path("sleep")).arg("60").spawn().unwrap();
    let refused = open_errno(&at.path("sleep"), Access::R);
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(refused, libc::EBUSY);
    // Its end is told by the kernel, in its own time.
    wait_for("the end of the program's open", || {
        (open_errno(&at.path("sleep"), Access::RW) == 0).then_some(())
    });
}

#[test]
fn a_program_that_ended_is_not_in_the_way() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    fs::copy("/bin/true", at.path("true")).unwrap();
    fs::set_permissions(at.path("true"), Permissions::from_mode(0o755)).unwrap();
    at.idle();
    for round in 0..rounds(100) {
        assert!(std::process::Command::new(at.path("true")).status().unwrap().success());
        assert_eq!(open_errno(&at.path("true"), Access::RW), 0, "round {round}");
    }
}

#[test]
fn looking_never_conflicts() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    let path = at.make("f", "x");
    let held = open(&path, Access::RW).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().size(), 1);
    assert_eq!(fs::metadata(at.path("F")).unwrap().size(), 1);
    assert_eq!(fs::read_dir(&at.mnt).unwrap().count(), 1);
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    rustix::fs::setxattr(&path, "user.x", b"1", rustix::fs::XattrFlags::empty()).unwrap();
    assert_eq!(rustix::fs::getxattr(&path, "user.x", &mut [0; 8][..]), Ok(1));
    rustix::fs::access(&path, rustix::fs::Access::READ_OK).unwrap();
    sh(&at.mnt, "ls -l f").unwrap();
    drop(held);
}

#[test]
fn truncating_at_the_open_asks_for_writing() {
    let Some(at) = Fixture::sharing(ShareMode::R) else { return };
    let path = at.make("f", "kept");
    let held = File::open(&path).unwrap();
    let cut = || OpenOptions::new().read(true).custom_flags(libc::O_TRUNC).open(&path);
    assert_eq!(errno(cut()), libc::EBUSY);
    assert_eq!(fs::metadata(at.root.join("f")).unwrap().size(), 4);
    drop(held);
    drop(cut().unwrap());
    assert_eq!(fs::metadata(at.root.join("f")).unwrap().size(), 0);
}

#[test]
fn truncating_by_name_asks_for_writing() {
    let Some(at) = Fixture::sharing(ShareMode::R) else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    let path = at.make("f", "kept");
    let held = File::open(&path).unwrap();
    assert_eq!(program.fails("os.truncate('f', 0)"), libc::EBUSY);
    drop(held);
    program.ok("os.truncate('f', 1)");
    assert_eq!(fs::read_to_string(at.root.join("f")).unwrap(), "k");
}

#[test]
fn directories_share_everything() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    fs::create_dir(at.path("d")).unwrap();
    let (one, other) = (fs::read_dir(at.path("d")).unwrap(), fs::read_dir(at.path("d")).unwrap());
    drop((one, other));
}
