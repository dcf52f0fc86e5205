//! Delete pending and Delete File: behaviours 44-58.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use latchfs::file::rules::create::{Disposition, OpenRequest};
use latchfs::file::rules::{Access, Denial, ShareMode, SharePath};
use latchfs::file::service::{Asking, Handle, NewProperties};

use crate::files::fixture::{BYTES, Call, Fixture, code};

const DP: &str = "DeletePending";

/// A pending file and the handle that keeps it.
fn pending(fixture: &Fixture) -> (SharePath, Handle) {
    let path = fixture.file();
    let kept = fixture.open(&path, "rw", "rwd");
    let deleter = fixture.open(&path, "d", "rwd");
    fixture.share.set_disposition(&deleter, true).unwrap();
    fixture.share.close(&deleter).unwrap();
    (path, kept)
}

#[test]
fn b044_opening_for_delete_marks_nothing() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let _handle = fixture.open(&path, "d", "rwd");
    assert_eq!(fixture.get(&path, None).unwrap(), BYTES);
}

#[test]
fn b045_a_pending_file_is_refused_and_not_missing() {
    let fixture = Fixture::new();
    let (path, _kept) = pending(&fixture);
    assert_eq!(code(&fixture.head(&path)), DP);
}

#[test]
fn b046_a_pending_file_refuses_every_operation() {
    let fixture = Fixture::new();
    let (path, kept) = pending(&fixture);
    for call in Call::ALL {
        let answer = fixture.call(fixture.rest(), &path, call);
        assert_eq!(code(&answer), DP, "{call:?}");
        let denial = answer.unwrap_err();
        let holder = denial.denial().and_then(Denial::holder).expect("somebody keeps it");
        assert_eq!(holder.handle, kept.id());
    }
}

#[test]
fn b049_a_pending_file_is_refused_to_new_opens_and_serves_old_ones() {
    let fixture = Fixture::new();
    let (path, kept) = pending(&fixture);
    assert_eq!(code(&fixture.try_open(&path, "r", "rwd")), DP);
    fixture.share.write(&kept, 0, b"still").unwrap();
    assert_eq!(fixture.share.read(&kept, 0, 10).unwrap(), b"still56789");
}

#[test]
fn b050_a_pending_name_is_taken_on_both_sides() {
    let fixture = Fixture::new();
    let (path, _kept) = pending(&fixture);
    assert_eq!(code(&fixture.create(&path, 1)), DP);
    let exclusive = OpenRequest {
        disposition: Disposition::Create,
        ..OpenRequest::plain(Access::RW, ShareMode::RWD)
    };
    let answer = fixture.share.open(fixture.mount(), &path, &exclusive);
    assert_eq!(code(&answer), "ResourceAlreadyExists");
}

#[test]
fn b051_a_mark_that_is_taken_back_leaves_an_ordinary_file() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let handle = fixture.open(&path, "d", "rwd");
    fixture.share.set_disposition(&handle, true).unwrap();
    assert_eq!(code(&fixture.head(&path)), DP);
    fixture.share.set_disposition(&handle, false).unwrap();
    assert_eq!(code(&fixture.head(&path)), "ok");
    fixture.share.close(&handle).unwrap();
    assert_eq!(fixture.get(&path, None).unwrap(), BYTES);
}

#[test]
fn b052_with_the_last_handle_the_file_is_gone_and_its_name_free() {
    let fixture = Fixture::new();
    let (path, kept) = pending(&fixture);
    fixture.share.close(&kept).unwrap();
    assert_eq!(code(&fixture.head(&path)), "ResourceNotFound");
    assert_eq!(fixture.create(&path, 4).unwrap().size(), 4);
}

#[test]
fn b053_force_closing_the_last_handle_removes_the_file() {
    let fixture = Fixture::new();
    let (path, kept) = pending(&fixture);
    assert_eq!(fixture.share.force_close(fixture.mount(), kept.id()).unwrap(), 1);
    assert_eq!(code(&fixture.head(&path)), "ResourceNotFound");
}

#[test]
fn b057_a_refused_delete_file_leaves_no_mark() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let handle = fixture.open(&path, "r", "rwd");
    assert_eq!(code(&fixture.call(fixture.rest(), &path, Call::Delete)), "SharingViolation");
    assert!(!fixture.share.standard(&handle).unwrap().delete_pending);
    fixture.share.close(&handle).unwrap();
    assert_eq!(code(&fixture.head(&path)), "ok");
}

#[test]
fn b058_delete_file_is_never_seen_half_done() {
    const ROUNDS: u32 = 200;
    let fixture = Fixture::new();
    let path = fixture.file();
    let (share, cx) = (&fixture.share, fixture.rest().cx);
    let asking = Asking { cx, lease_id: None };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let pollers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let (mut found, mut missing) = (0_u32, 0_u32);
                    while !done.load(Ordering::Relaxed) {
                        match code(&share.file_properties(asking, &path)) {
                            "ok" => found += 1,
                            "ResourceNotFound" => missing += 1,
                            other => panic!("seen half done: {other}"),
                        }
                    }
                    (found, missing)
                })
            })
            .collect();
        for _ in 0..ROUNDS {
            share.delete_file(asking, &path).unwrap();
            thread::yield_now();
            share.create_file(asking, &path, 5, &NewProperties::default(), None).unwrap();
            thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
        let seen = pollers.into_iter().map(|poller| poller.join().unwrap());
        let (found, missing) = seen.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        assert!(found > 0 && missing > 0, "{found} times found, {missing} times missing");
    });
}

#[test]
fn deleting_one_of_two_names_keeps_the_other_and_the_lease() {
    let fixture = Fixture::new();
    let (path, id) = fixture.leased_file();
    let other = crate::files::fixture::path("other");
    std::fs::hard_link(fixture.root.join(path.as_str()), fixture.root.join("other")).unwrap();
    fixture.share.delete_file(fixture.rest_with(id), &path).unwrap();
    assert_eq!(code(&fixture.head(&path)), "ResourceNotFound");
    assert_eq!(code(&fixture.put(&other, 0, b"x")), "LeaseIdMissing");
    fixture.share.delete_file(fixture.rest_with(id), &other).unwrap();
    assert_eq!(fixture.share.files_in_use(), 0);
}

#[test]
fn a_directory_is_not_deleted_as_a_file() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.root.join("dir")).unwrap();
    let dir = crate::files::fixture::path("dir");
    assert_eq!(code(&fixture.call(fixture.rest(), &dir, Call::Delete)), "ResourceTypeMismatch");
    assert!(fixture.root.join("dir").is_dir());
}
