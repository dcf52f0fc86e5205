//! What the article says of files (S103-S117).

use std::fs;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use latchfs::client;
use latchfs::file::rules::ShareMode;

use crate::common::calls::Call;
use crate::common::meeting::{BYTES, Meeting, errno};

const SV: &str = "SharingViolation";
const DP: &str = "SMBDeletePending";
const GONE: &str = "ResourceNotFound";

#[test]
fn s103_the_mount_and_rest_are_two_ways_to_the_same_data() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("s103");
    assert_eq!(fs::read(file.path()).unwrap(), BYTES);
    fs::write(at.path("s103-b"), "from the mount").unwrap();
    assert_eq!(at.named("s103-b").bytes(), b"from the mount");
}

#[test]
fn s104_rest_has_no_locks_of_its_own_and_the_last_writer_wins() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("s104");
    let first = file.etag();
    at.put_range(&file.target(), 0, b"one", &[]).is(201);
    // A condition is passed over: the service has none for files.
    at.put_range(&file.target(), 0, b"two", &[("if-match", &first)]).is(201);
    assert_eq!(file.bytes()[..3], *b"two");
}

#[test]
fn s105_a_program_on_the_mount_locks_pessimistically() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("s105");
    let locked = file.descriptor("rw").unwrap();
    client::set_share(&locked, ShareMode::NONE).unwrap();
    assert_eq!(errno(file.descriptor("r")), libc::EBUSY);
    drop(locked);
    assert_eq!(errno(file.descriptor("r")), 0);
}

#[test]
fn s106_an_open_names_its_access_and_its_share_mode() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("s106");
    for (access, share, bits) in [("r", "r", (1, 1)), ("w", "rd", (2, 5)), ("rw", "none", (3, 0))] {
        let holder = file.open(access, share);
        let seen = client::handle(holder.file()).unwrap();
        assert_eq!((seen.access, seen.share), bits);
        holder.close();
    }
}

#[test]
fn s107_write_access_with_share_none_locks_the_file_until_it_is_closed() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("s107");
    for access in ["w", "rw"] {
        let locked = file.open(access, "none");
        for other in ["r", "w", "rw", "d"] {
            assert_eq!(file.open_errno(other, "rwd"), libc::EBUSY, "{access}, then {other}");
        }
        locked.close();
        assert_eq!(file.open_errno("rw", "none"), 0);
    }
}

#[test]
fn s108_rest_operations_on_a_file_so_locked_are_sharing_violations() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("s108");
    let _locked = file.open("rw", "none");
    for calls in [&Call::READS[..], &Call::PUTS, &Call::SETS, &Call::WHOLE] {
        for call in calls {
            file.call(*call).refused(409, SV);
        }
    }
}

#[test]
fn s109_after_the_close_rest_operations_succeed_again() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("s109");
    let locked = file.open("rw", "none");
    file.answers(SV, &[Call::Get, Call::Put, Call::Delete]);
    locked.close();
    file.answers("ok", &[Call::Get, Call::Put, Call::Delete]);
}

// Of the two steps that the article tells as one, the second marks: unlink does both.
#[test]
fn s110_a_deleted_file_is_pending_until_all_other_handles_are_closed() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("s110");
    let keepers = [file.open("r", "rwd"), file.open("rw", "rwd")];
    fs::remove_file(file.path()).unwrap();
    for keeper in keepers {
        file.answers(DP, &[Call::Head]);
        assert!(client::handle(keeper.file()).unwrap().delete_pending);
        keeper.close();
    }
    file.answers(GONE, &[Call::Head]);
    assert!(!file.path().exists());
}

#[test]
fn s111_while_pending_any_rest_operation_is_refused() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("s111");
    let _keeper = file.pending();
    for call in Call::ASKING {
        file.call(call).refused(409, DP);
    }
}

#[test]
fn s112_a_pending_file_is_not_said_to_be_missing() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("s112");
    let keeper = file.pending();
    for _ in 0..20 {
        assert_eq!(file.call(Call::Head).status, 409);
    }
    let mut text = String::new();
    keeper.file().read_to_string(&mut text).unwrap();
    assert_eq!(text.as_bytes(), BYTES, "nor is it for those who have it open");
}

#[test]
fn s113_a_mark_that_is_removed_before_the_close_leaves_an_ordinary_file() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("s113");
    let keeper = file.pending();
    client::set_delete(keeper.file(), false).unwrap();
    file.answers("ok", &[Call::Head, Call::Get, Call::Put]);
    keeper.close();
    file.answers("ok", &[Call::Get, Call::Delete]);
}

#[test]
fn s114_not_found_comes_only_after_the_file_is_removed() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("s114");
    let data = at.served().data().join("s114");
    let keeper = file.pending();
    file.answers(DP, &[Call::Get]);
    assert!(data.exists());
    keeper.close();
    file.answers(GONE, &[Call::Get, Call::Head, Call::Delete]);
    assert!(!data.exists());
}

#[test]
fn s115_a_pending_file_is_left_out_of_the_listing() {
    let Some(at) = Meeting::start() else { return };
    at.directory("s115");
    at.file("s115/stays");
    let file = at.file("s115/goes");
    assert_eq!(at.listing("s115"), ["goes", "stays"]);
    let keeper = file.pending();
    assert_eq!(at.listing("s115"), ["stays"]);
    client::set_delete(keeper.file(), false).unwrap();
    assert_eq!(at.listing("s115"), ["goes", "stays"]);
}

/// Makes and deletes while others look, through both faces: it is there or not, and nothing else.
fn never_pending(name: &str, make: impl Fn(&Meeting), delete: impl Fn(&Meeting), query: &str) {
    let Some(at) = Meeting::start() else { return };
    let (target, path) = (format!("/share/{name}{query}"), at.path(name));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let seen = at.head(&target);
                assert!([200, 404].contains(&seen.status), "{seen:?}");
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let seen = errno(fs::metadata(&path));
                assert!([0, libc::ENOENT].contains(&seen), "errno {seen}");
            }
        });
        for _ in 0..50 {
            make(&at);
            delete(&at);
            assert_eq!(at.head(&target).status, 404);
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn s116_delete_file_is_done_at_once_and_never_leaves_a_pending_file() {
    let delete = |at: &Meeting| drop(at.delete("/share/s116").is(202));
    never_pending("s116", |at| drop(at.file("s116")), delete, "");
    let Some(at) = Meeting::start() else { return };
    let file = at.file("s116-open");
    let keeper = file.open("rw", "rwd");
    file.answers(SV, &[Call::Delete]);
    file.answers("ok", &[Call::Get]);
    keeper.file().write_all(b"x").unwrap();
}

#[test]
fn s117_delete_directory_likewise() {
    let delete = |at: &Meeting| drop(at.delete("/share/s117?restype=directory").is(202));
    let make = |at: &Meeting| drop(at.directory("s117"));
    never_pending("s117", make, delete, "?restype=directory");
    let Some(at) = Meeting::start() else { return };
    let directory = at.directory("s117-open");
    let opened = fs::File::open(directory.path()).unwrap();
    let target = format!("{}?restype=directory", directory.target());
    at.delete(&target).refused(409, SV);
    at.get(&target).is(200);
    drop(opened);
}
