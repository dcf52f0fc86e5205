//! Delete pending and Delete File, as far as no mount is needed to see it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use latchfs::file::rules::{Denial, SharePath};
use latchfs::file::service::{Asking, Handle, NewProperties};

use crate::files::fixture::{Call, Fixture, code};

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
