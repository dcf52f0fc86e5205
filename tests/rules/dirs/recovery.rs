//! What a start finds after a crash, and after people moved and removed files by hand.

use std::fs;
use std::thread;

use latchfs::file::service::{Metadata, MoveHow, NameRules};
use rustix::mount::UnmountFlags;

use super::fixture::{Fixture, asking, lease_id, caller, path};
use crate::common::calls::acquire;
use crate::common::need;
use crate::common::names::ShareNames as _;

/// Long enough for a sidecar on most file systems.
fn long_metadata() -> Metadata {
    Metadata::from_iter([("a".to_owned(), "m".repeat(7_000))])
}

fn metadata(it: &Fixture, file: &str) -> Metadata {
    it.share().file_properties(asking(&caller("rest")), &path(file)).unwrap().record.metadata
}

fn describe(it: &Fixture, file: &str) {
    let who = caller("rest");
    it.share().set_file_metadata(asking(&who), &path(file), &long_metadata()).unwrap();
}

fn lease(it: &Fixture, file: &str) {
    let who = caller("rest");
    let id = Some(lease_id(1));
    it.share().lease_file(asking(&who), &path(file), acquire(-1, id)).unwrap();
}

#[test]
fn the_record_of_a_file_stays_while_the_file_has_another_name() {
    let mut it = Fixture::new();
    it.file("f", b"f");
    describe(&it, "f");
    it.share().link(&caller("mount"), &path("f"), &path("g")).unwrap();
    let _keeper = it.pending("f");
    it.restart();
    assert!(!it.exists("f"));
    assert_eq!(metadata(&it, "g"), long_metadata());
}

#[test]
fn the_record_of_a_pending_file_that_was_moved_by_hand_stays() {
    let mut it = Fixture::new();
    it.file("f", b"f");
    describe(&it, "f");
    let _keeper = it.pending("f");
    fs::rename(it.on_disk("f"), it.on_disk("moved")).unwrap();
    it.restart();
    assert_eq!(metadata(&it, "moved"), long_metadata());
}

#[test]
fn a_name_that_cannot_be_removed_does_not_keep_the_share_from_starting() {
    if !need::root() {
        return;
    }
    let mut it = Fixture::new();
    it.file("f", b"f");
    it.file("g", b"g");
    let _keepers = (it.pending("f"), it.pending("g"));
    let busy = it.on_disk("f");
    rustix::mount::mount_bind(&busy, &busy).unwrap();
    it.restart();
    assert!(!it.exists("g"));
    rustix::mount::unmount(&busy, UnmountFlags::DETACH).unwrap();
    it.restart();
    assert!(!it.exists("f"));
}

#[test]
fn a_lease_is_kept_while_its_file_is_in_the_share_and_no_longer() {
    let mut it = Fixture::new();
    it.folder("d");
    for file in ["stays", "moved", "removed"] {
        it.file(file, b"1");
        lease(&it, file);
    }
    fs::rename(it.on_disk("moved"), it.on_disk("d/moved")).unwrap();
    fs::remove_file(it.on_disk("removed")).unwrap();
    for _ in 0..2 {
        it.restart();
        assert_eq!(it.share().files_in_use(), 2);
        for file in ["stays", "d/moved"] {
            let who = caller("rest");
            let refused = it.share().delete_file(asking(&who), &path(file));
            assert!(refused.is_err(), "{file} is leased");
        }
    }
}

#[test]
fn a_promised_deletion_is_carried_out_though_a_directory_above_moves_meanwhile() {
    let it = Fixture::new();
    it.folder("d");
    for round in 0..200 {
        let (from, to) = if round % 2 == 0 { ("d", "e") } else { ("e", "d") };
        let file = format!("{from}/f");
        it.file(&file, b"f");
        let keeper = it.pending(&file);
        thread::scope(|scope| {
            let who = caller("mount");
            let it = &it;
            scope.spawn(move || {
                let how = (MoveHow::NoReplace, NameRules::Posix);
                it.share().move_to(&who, (&path(from), &path(to)), how).unwrap();
            });
            scope.spawn(move || it.share().close(&keeper).unwrap());
        });
        assert!(!it.exists(&format!("{to}/f")), "round {round}");
    }
}
