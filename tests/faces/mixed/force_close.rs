//! Force Close Handles against programs that go on: what they can still do, and who else is hit.

use std::fs;
use std::os::unix::fs::FileExt as _;

use crate::common::calls::{Call, LEASE, lease};
use crate::common::meeting::{BYTES, Meeting, Subject, errno};
use crate::common::program::Program;

/// Closes all handles of a file or directory, or one; how many were.
fn close(subject: &Subject<'_>, which: &str, recursive: bool) -> u32 {
    let mut headers = vec![("x-ms-handle-id", which)];
    if recursive {
        headers.push(("x-ms-recursive", "true"));
    }
    let target = format!("{}?comp=forceclosehandles", subject.target());
    let got = subject.at.put(&target, &headers).is(200);
    assert_eq!(got.header("x-ms-number-of-handles-failed"), "0");
    got.header("x-ms-number-of-handles-closed").parse().unwrap()
}

#[test]
fn a_writer_that_never_stops_changes_nothing_after_it_is_closed() {
    let Some(at) = Meeting::start() else { return };
    let Some(mut program) = Program::start(&at.served().mount()) else { return };
    for round in 0..5 {
        let file = at.file("force-writer");
        program.ok("fd = os.open('force-writer', os.O_RDWR)");
        program.begin("exec('while True: os.pwrite(fd, b\"noise\", 0)')");
        while file.bytes()[..5] != *b"noise" {}
        assert_eq!(close(&file, "*", false), 1);
        at.put_range(&file.target(), 0, b"quiet", &[]).is(201);
        let etag = file.etag();
        assert_eq!(program.answer(), Some(Err(libc::EIO)), "round {round}");
        assert_eq!(file.bytes(), b"quiet56789");
        assert_eq!(file.etag(), etag);
        assert_eq!(program.fails("os.fsync(fd) or os.ftruncate(fd, 0)"), libc::EIO);
        assert_eq!(fs::read(file.path()).unwrap(), b"quiet56789");
        // The descriptor goes, though the kernel says EIO to this as well.
        assert_eq!(program.fails("os.close(fd)"), libc::EIO);
    }
}

// The kernel cannot be told which descriptor to drop: all of the file go, and are counted.
#[test]
fn with_one_writer_all_descriptors_of_its_file_end_and_are_counted() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("force-all");
    let (reader, writer) = (file.open("r", "rwd"), file.open("rw", "rwd"));
    assert_eq!(close(&file, &writer.id().to_string(), false), 2);
    assert!(file.handles().is_empty());
    let mut bytes = [0];
    assert_eq!(errno(writer.file().write_at(b"x", 0)), libc::EIO);
    assert_eq!(errno(reader.file().read_at(&mut bytes, 0)), libc::EIO);
    let again = file.descriptor("rw").unwrap();
    again.write_at(b"x", 0).unwrap();
    assert_eq!(file.bytes()[0], b'x');
}

#[test]
fn a_reader_is_closed_alone() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("force-reader");
    let (reader, writer) = (file.open("r", "rw"), file.open("rw", "rwd"));
    file.answers("SharingViolation", &[Call::Create]);
    assert_eq!(close(&file, &reader.id().to_string(), false), 1);
    let left: Vec<_> = file.handles().into_iter().map(|handle| handle.id).collect();
    assert_eq!(left, [writer.id()]);
    writer.file().write_at(b"x", 0).unwrap();
    file.answers("ok", &[Call::Create]);
}

#[test]
fn a_directory_is_closed_with_all_below_it_and_nothing_beside() {
    let Some(at) = Meeting::start() else { return };
    for name in ["force-tree", "force-tree/a", "force-tree/a/b", "force-tree2"] {
        at.directory(name);
    }
    let names = ["force-tree/f", "force-tree/a/f", "force-tree/a/b/f"];
    let below = names.map(|name| at.file(name).open("rw", "rwd"));
    let beside = at.file("force-tree2/f").open("rw", "rwd");
    let directory = fs::File::open(at.path("force-tree/a")).unwrap();
    let tree = at.named("force-tree");
    assert_eq!(at.handles("force-tree", true).len(), 4);
    assert_eq!(close(&tree, "*", false), 0, "nobody has the directory itself open");
    assert_eq!(close(&tree, "*", true), 4);
    assert!(at.handles("force-tree", true).is_empty());
    for holder in &below {
        assert_eq!(errno(holder.file().write_at(b"x", 0)), libc::EIO);
    }
    beside.file().write_at(b"x", 0).unwrap();
    drop(directory);
}

#[test]
fn of_a_pending_file_one_handle_is_closed_and_then_the_last() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("force-pending");
    let keepers = [file.open("r", "rwd"), file.open("r", "rwd")];
    fs::remove_file(file.path()).unwrap();
    for keeper in &keepers {
        file.call(Call::Head).refused(409, "SMBDeletePending");
        assert_eq!(close(&file, &keeper.id().to_string(), false), 1);
    }
    file.call(Call::Head).refused(404, "ResourceNotFound");
    assert!(!at.served().data().join("force-pending").exists());
    // Whose handle is gone cannot take the mark back.
    assert_eq!(errno(latchfs::client::set_delete(keepers[1].file(), false)), libc::EIO);
    file.call(Call::Head).refused(404, "ResourceNotFound");
}

#[test]
fn a_lease_is_no_handle_and_outlives_a_forced_close() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("force-lease");
    let reader = file.open("r", "rwd");
    file.call(Call::Acquire).is(201);
    assert_eq!(file.handles().len(), 1, "the reader's");
    assert_eq!(close(&file, "*", false), 1);
    assert_eq!(file.shown("x-ms-lease-state"), "leased");
    file.answers("LeaseIdMissing", &[Call::Put]);
    file.answers_to(Call::Put, &[lease(LEASE)], "ok");
    drop(reader);
}

#[test]
fn the_file_of_a_closed_writer_is_whole_and_can_be_deleted() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("force-delete");
    let _writer = file.open("rw", "none");
    file.answers("SharingViolation", &[Call::Delete, Call::Get]);
    assert_eq!(close(&file, "*", false), 1);
    assert_eq!(file.bytes(), BYTES);
    file.answers("ok", &[Call::Delete]);
}

#[test]
fn a_writer_whose_file_was_renamed_by_rest_is_cut_off() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("force-renamed");
    let writer = file.open("rw", "rwd");
    file.call(Call::RenameFrom).is(200);
    let renamed = file.beside(".target");
    assert_eq!(close(&renamed, "*", false), 1);
    assert_eq!(errno(writer.file().write_at(b"x", 0)), libc::EIO);
    assert_eq!(renamed.bytes(), BYTES);
}
