//! The flags of `open(2)`.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::time::Instant;

use latchfs::file::rules::ShareMode;

use crate::mount::fixture::{Fixture, errno};
use crate::mount::program::sh;

#[test]
fn a_refused_open_does_not_truncate() {
    let Some(at) = Fixture::sharing(ShareMode::R) else { return };
    let path = at.make("f", "precious");
    let held = File::open(&path).unwrap();
    let refused = OpenOptions::new().write(true).truncate(true).open(&path);
    assert_eq!(errno(refused), libc::EBUSY);
    assert_eq!(errno(File::create(&path)), libc::EBUSY);
    drop(held);
    assert_eq!(fs::read_to_string(at.root.join("f")).unwrap(), "precious");
}

#[test]
fn appending_writes_at_the_end_wherever_others_moved_it() {
    let Some(at) = Fixture::start() else { return };
    let path = at.make("f", "a");
    let mut one = OpenOptions::new().append(true).open(&path).unwrap();
    let mut other = OpenOptions::new().append(true).open(&path).unwrap();
    one.write_all(b"b").unwrap();
    other.write_all(b"c").unwrap();
    one.seek(SeekFrom::Start(0)).unwrap();
    one.write_all(b"d").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "abcd");
}

#[test]
fn the_mode_of_a_new_file_loses_the_bits_of_the_umask() {
    let Some(at) = Fixture::start() else { return };
    for (umask, file, dir) in [("022", 0o644, 0o755), ("077", 0o600, 0o700), ("000", 0o666, 0o777)]
    {
        sh(&at.mnt, &format!("umask {umask}; : > f{umask}; mkdir d{umask}")).unwrap();
        let mode = |name: &str| fs::metadata(at.root.join(name)).unwrap().mode() & 0o7777;
        assert_eq!(mode(&format!("f{umask}")), file);
        assert_eq!(mode(&format!("d{umask}")), dir);
    }
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let path = at.path("mode");
    drop(OpenOptions::new().write(true).create(true).truncate(false).mode(0o400).open(&path));
    assert_eq!(mode(&path), 0o400);
}

#[test]
fn direct_io_reads_and_writes_aligned_blocks() {
    let Some(at) = Fixture::start() else { return };
    let done = sh(
        &at.mnt,
        "head -c 8192 /dev/zero | tr '\\0' x > from && \
         dd if=from of=to bs=4096 iflag=direct oflag=direct status=none && cmp from to",
    );
    assert_eq!(done, Ok(String::new()));
}

#[test]
fn a_link_is_not_followed_where_it_must_not_be() {
    let Some(at) = Fixture::start() else { return };
    at.make("f", "x");
    std::os::unix::fs::symlink("f", at.path("link")).unwrap();
    assert_eq!(fs::read_to_string(at.path("link")).unwrap(), "x");
    let refused =
        OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(at.path("link"));
    assert_eq!(errno(refused), libc::ELOOP);
}

#[test]
fn a_descriptor_for_the_path_alone_takes_part_in_nothing() {
    let Some(at) = Fixture::sharing(ShareMode::NONE) else { return };
    let path = at.make("f", "x");
    let by_path = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path).unwrap();
    assert_eq!(at.share.files_in_use(), 0);
    let held = File::open(&path).unwrap();
    drop(OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path).unwrap());
    assert_eq!(by_path.metadata().unwrap().size(), 1);
    drop(held);
}

#[test]
fn a_program_on_the_mount_runs() {
    let Some(at) = Fixture::start() else { return };
    fs::copy("/bin/echo", at.path("echo")).unwrap();
    fs::set_permissions(at.path("echo"), fs::Permissions::from_mode(0o755)).unwrap();
    at.idle();
    assert_eq!(sh(&at.mnt, "./echo from the mount"), Ok("from the mount\n".into()));
    fs::write(at.path("script"), "#!/bin/sh\necho script\n").unwrap();
    fs::set_permissions(at.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
    at.idle();
    assert_eq!(sh(&at.mnt, "./script"), Ok("script\n".into()));
}

#[test]
fn a_file_that_the_kernel_cannot_pass_through_changes_no_other() {
    let Some(at) = Fixture::start() else { return };
    let name = at.make("f", "text");
    let first = File::open(&name).unwrap();
    // A mount with passthrough below the share: the kernel does not stack a second one on it.
    let inner = at.below("inner");
    fs::write(at.root.join("inner/g"), "below").unwrap();
    assert_eq!(fs::read(at.path("inner/g")).unwrap(), b"below");
    let again = OpenOptions::new().read(true).write(true).open(&name).unwrap();
    again.write_all_at(b"T", 0).unwrap();
    let mut bytes = [0; 4];
    first.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"Text");
    // Where nothing else has it open either, and beside a file that is written as it is read.
    let deep = OpenOptions::new().read(true).write(true).open(at.path("inner/g")).unwrap();
    deep.write_all_at(b"B", 0).unwrap();
    assert_eq!(fs::read(at.path("inner/g")).unwrap(), b"Below");
    drop((first, again, deep));
    at.idle();
    drop(inner);
}

#[test]
fn an_open_costs_the_same_with_one_handle_on_its_file_and_with_thousands() {
    const MOST: u64 = 12_000;
    let Some(at) = Fixture::start() else { return };
    let path = at.make("f", "");
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = limit.maximum.unwrap_or(MOST).saturating_sub(1_000).min(MOST);
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    // The shortest of many is the work itself, without what else the machine does.
    let open = || {
        let opened = (0..200).map(|_| {
            let start = Instant::now();
            let file = File::open(&path).unwrap();
            let took = start.elapsed();
            drop(file);
            took
        });
        opened.min().unwrap()
    };
    let alone = open();
    let held: Vec<_> = (0..most).map(|_| File::open(&path).unwrap()).collect();
    let beside = open();
    assert!(beside < alone * 5, "{alone:?} alone, {beside:?} beside {most} handles");
    drop(held);
}
