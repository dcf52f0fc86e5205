//! Renames by REST, by the mount, and exchanges.

use std::fs::File;

use latchfs::file::rules::{Attributes, Denial};
use latchfs::file::service::{
    FileProperties, Metadata, MoveHow, NameRules, OpenFor, PropertyChanges, RestRename, Result,
    TimeChange,
};
use latchfs::rules::Timestamp;
use latchfs::rules::lease::{LeaseDenial, LeaseOn};

use crate::common::names::ShareNames as _;
use crate::dirs::fixture::{Fixture, caller, denial, lease_id, path};

const PLAIN: RestRename<'static> = RestRename {
    directory: false,
    replace: false,
    ignore_read_only: false,
    source_lease: None,
    destination_lease: None,
    properties: None,
    metadata: None,
    content_type: None,
};
const REPLACE: RestRename<'static> = RestRename { replace: true, ..PLAIN };
const DIRECTORY: RestRename<'static> = RestRename { directory: true, ..PLAIN };

fn rename(it: &Fixture, from: &str, to: &str, options: RestRename<'_>) -> Result<FileProperties> {
    it.share().rest_rename(&caller("rest"), &path(from), &path(to), &options)
}

fn is_pending(denial: &Denial) -> bool {
    matches!(denial, Denial::DeletePending(_))
}

#[test]
fn a_handle_on_the_directory_itself_must_share_delete() {
    let it = Fixture::new();
    it.folder("dir");
    let strict = it.open("dir", "r", "rw");
    let refused = rename(&it, "dir", "other", DIRECTORY);
    assert!(matches!(denial(refused), Denial::SharingViolation { .. }));
    it.share().close(&strict).unwrap();
    let _lenient = it.open("dir", "r", "rwd");
    rename(&it, "dir", "other", DIRECTORY).unwrap();
}

#[test]
fn a_read_only_source_may_be_renamed() {
    let it = Fixture::new();
    it.file("one", b"1");
    it.read_only("one");
    let renamed = rename(&it, "one", "two", PLAIN).unwrap();
    assert_eq!(renamed.smb().attributes, Attributes::READ_ONLY);
}

#[test]
fn a_target_that_is_open_is_not_replaced_whatever_it_shares() {
    let it = Fixture::new();
    it.file("one", b"1");
    it.file("two", b"2");
    let handle = it.open("two", "none", "rwd");
    assert!(matches!(denial(rename(&it, "one", "two", REPLACE)), Denial::Open(_)));
    it.share().close(&handle).unwrap();
    rename(&it, "one", "two", REPLACE).unwrap();
}

#[test]
fn b046_pending_ends_are_refused_as_pending_also_where_nothing_would_be_replaced() {
    let it = Fixture::new();
    it.folder("gone");
    it.folder("dir");
    it.file("one", b"1");
    it.file("two", b"2");
    let _keepers = [it.pending("two"), it.pending("gone")];
    assert!(is_pending(&denial(rename(&it, "two", "three", PLAIN))));
    assert!(is_pending(&denial(rename(&it, "one", "two", PLAIN))));
    assert!(is_pending(&denial(rename(&it, "one", "two", REPLACE))));
    assert!(is_pending(&denial(rename(&it, "one", "gone", REPLACE))));
    assert!(is_pending(&denial(rename(&it, "dir", "gone", DIRECTORY))));
    assert!(is_pending(&denial(rename(&it, "gone", "elsewhere", DIRECTORY))));
    let into = denial(rename(&it, "one", "gone/one", PLAIN));
    assert!(matches!(into, Denial::ParentDeletePending { renaming: true, .. }));
}

#[test]
fn a_directory_is_never_replaced_and_a_file_may_be_by_a_directory() {
    let it = Fixture::new();
    it.folder("dir/sub");
    it.folder("empty");
    it.file("file", b"1");
    assert_eq!(denial(rename(&it, "file", "empty", REPLACE)), Denial::NameTaken);
    let replace = RestRename { replace: true, ..DIRECTORY };
    assert_eq!(denial(rename(&it, "dir", "empty", replace)), Denial::NameTaken);
    assert_eq!(denial(rename(&it, "dir", "file", DIRECTORY)), Denial::NameTaken);
    let id = it.share().stat(&path("dir")).unwrap().id;
    let renamed = rename(&it, "dir", "file", replace).unwrap();
    assert_eq!((renamed.id(), renamed.path), (id, path("file")));
    assert!(it.exists("file/sub"));
    assert!(!it.exists("dir"));
}

#[test]
fn the_kind_of_the_source_must_be_the_one_asked_for() {
    let it = Fixture::new();
    it.folder("dir");
    it.file("file", b"");
    assert_eq!(denial(rename(&it, "dir", "x", PLAIN)), Denial::IsDirectory);
    assert_eq!(denial(rename(&it, "file", "x", DIRECTORY)), Denial::NotDirectory);
    assert_eq!(denial(rename(&it, "none", "x", PLAIN)), Denial::NotFound);
    assert_eq!(denial(rename(&it, "file", "no/such", PLAIN)), Denial::PathNotFound);
    assert_eq!(denial(rename(&it, "", "x", DIRECTORY)), Denial::ShareRoot);
    assert_eq!(denial(rename(&it, "file", "", PLAIN)), Denial::ShareRoot);
}

#[test]
fn a_directory_does_not_move_below_itself_in_any_spelling_or_through_a_link() {
    let it = Fixture::new();
    it.folder("dir/sub");
    std::os::unix::fs::symlink(".", it.on_disk("link")).unwrap();
    for to in ["dir/x", "DIR/x", "Dir/Sub/x"] {
        let refused = denial(rename(&it, "dir", to, DIRECTORY));
        assert!(matches!(refused, Denial::InvalidParameter(_)), "{to}: {refused}");
    }
    // No path leads through a link.
    let refused = denial(rename(&it, "dir", "link/dir/x", DIRECTORY));
    assert!(matches!(refused, Denial::PathNotFound), "{refused}");
    let by_mount = it.share().rename(&caller("mount"), &path("dir"), &path("DIR/x"), true);
    assert!(matches!(denial(by_mount), Denial::InvalidParameter(_)));
}

#[test]
fn only_the_spelling_may_change() {
    let it = Fixture::new();
    it.file("file", b"1");
    it.folder("dir");
    assert_eq!(rename(&it, "file", "FILE", PLAIN).unwrap().path, path("FILE"));
    assert_eq!(rename(&it, "dir", "Dir", DIRECTORY).unwrap().path, path("Dir"));
    assert!(it.exists("FILE") && !it.exists("file"));
}

#[test]
fn b097_leased_ends_need_their_lease_ids_and_the_source_stays_leased() {
    let mut it = Fixture::new();
    it.file("one", b"1");
    it.file("two", b"2");
    it.leased("one", lease_id(1));
    it.leased("two", lease_id(2));
    let missing = |denial| matches!(denial, Denial::Lease(LeaseDenial::LeaseIdMissing(_)));
    let wrong = Denial::Lease(LeaseDenial::LeaseIdMismatchWithOperation(LeaseOn::File));
    assert!(missing(denial(rename(&it, "one", "two", REPLACE))));
    let source_lease = Some(lease_id(1));
    let half = RestRename { source_lease, ..REPLACE };
    assert!(missing(denial(rename(&it, "one", "two", half))));
    let crossed = RestRename { source_lease: Some(lease_id(2)), ..REPLACE };
    assert_eq!(denial(rename(&it, "one", "two", crossed)), wrong);
    let both = RestRename { destination_lease: Some(lease_id(2)), ..half };
    rename(&it, "one", "two", both).unwrap();
    assert_eq!(it.bytes("two"), b"1");
    // The lease of the source followed it, also past a restart; the target's is gone.
    for _ in 0..2 {
        assert!(missing(denial(rename(&it, "two", "three", PLAIN))));
        it.restart();
    }
    let free = RestRename { source_lease, destination_lease: Some(lease_id(2)), ..PLAIN };
    let absent = Denial::Lease(LeaseDenial::LeaseNotPresentWithOperation(LeaseOn::File));
    assert_eq!(denial(rename(&it, "two", "three", free)), absent);
    rename(&it, "two", "three", RestRename { source_lease, ..PLAIN }).unwrap();
}

#[test]
fn a_directory_over_a_leased_file_needs_its_lease_id() {
    let mut it = Fixture::new();
    it.folder("dir");
    it.file("file", b"1");
    it.leased("file", lease_id(1));
    let replace = RestRename { replace: true, ..DIRECTORY };
    let refused = denial(rename(&it, "dir", "file", replace));
    assert!(matches!(refused, Denial::Lease(LeaseDenial::LeaseIdMissing(_))));
    let known = RestRename { destination_lease: Some(lease_id(1)), ..replace };
    rename(&it, "dir", "file", known).unwrap();
}

#[test]
fn a_rename_sets_what_it_names_and_keeps_the_rest() {
    let it = Fixture::new();
    it.file("one", b"1");
    let metadata: Metadata = [("a", "1")].into_iter().collect();
    let properties =
        PropertyChanges { written: TimeChange::At(Timestamp(9_000)), ..PropertyChanges::default() };
    let options = RestRename {
        properties: Some(&properties),
        metadata: Some(&metadata),
        content_type: Some("text/plain"),
        ..PLAIN
    };
    let before = rename(&it, "one", "two", PLAIN).unwrap();
    let after = rename(&it, "two", "three", options).unwrap();
    assert_eq!(after.smb().written, Timestamp(9_000));
    assert_eq!(after.smb().created, before.smb().created);
    assert_ne!(after.smb().etag, before.smb().etag);
}

#[test]
fn exchange_lets_two_files_change_places_under_their_handles() {
    let it = Fixture::new();
    it.file("one", b"1");
    it.file("two", b"2");
    let (share, who) = (it.share(), caller("mount"));
    let handle = it.open("one", "r", "rwd");
    share.exchange(&who, &path("one"), &path("two")).unwrap();
    assert_eq!((it.bytes("one"), it.bytes("two")), (b"2".to_vec(), b"1".to_vec()));
    assert_eq!(share.read(&handle, 0, 10).unwrap(), b"1");
    let page = share.list_handles(&path("two"), false, None, 10).unwrap();
    assert_eq!(page.handles[0].path, path("two"));
    share.exchange(&who, &path("one"), &path("one")).unwrap();
    assert_eq!(it.bytes("one"), b"2");
}

#[test]
fn a_handle_whose_name_was_taken_away_does_not_reach_the_next_file_of_that_name() {
    let it = Fixture::new();
    it.file("f", b"first");
    let (share, who) = (it.share(), caller("mount"));
    let handle = it.open("f", "rd", "rwd");
    share.remove(&who, &path("f"), (false, NameRules::Posix)).unwrap();
    it.file("f", b"second");
    assert_eq!(denial(share.read(&handle, 0, 10)), Denial::NotFound);
    assert_eq!(denial(share.link_handle(&handle, &path("g"), false)), Denial::NotFound);
    assert_eq!(denial(share.rename_handle(&handle, &path("g"), false)), Denial::NotFound);
    assert!(!it.exists("g"));
    assert_eq!(it.bytes("f"), b"second");
    share.close(&handle).unwrap();
    assert!(it.exists("f"));
}

/// The mount makes the descriptor of an open after the grant.
#[test]
fn the_descriptor_of_an_open_leads_to_its_file_though_the_name_was_taken_since_the_grant() {
    let it = Fixture::new();
    let (share, who) = (it.share(), caller("mount"));
    for name in ["removed", "replaced"] {
        it.file(name, b"first");
        let handle = it.open(name, "r", "rwd");
        if name == "removed" {
            share.remove(&who, &path(name), (false, NameRules::Posix)).unwrap();
        }
        it.file("new", b"second");
        let over = (&path("new"), &path(name));
        share.move_to(&who, over, (MoveHow::Replace, NameRules::Posix)).unwrap();
        for how in [OpenFor::Read, OpenFor::Path] {
            let file = File::from(share.backing_of(&handle, how).unwrap());
            assert_eq!(file.metadata().unwrap().len(), 5, "{name}");
        }
        share.close(&handle).unwrap();
        assert_eq!(it.bytes(name), b"second");
    }
}

#[test]
fn a_promised_deletion_follows_a_directory_that_moves_under_its_opens_also_beyond_a_restart() {
    let mut it = Fixture::new();
    for name in ["one", "two"] {
        it.folder(name);
        it.file(&format!("{name}/f"), b"");
    }
    let who = caller("mount");
    let keepers = ["one/f", "two/f"].map(|name| it.pending(name));
    for (from, to, how) in [("one", "moved", MoveHow::Replace), ("moved", "two", MoveHow::Exchange)]
    {
        let ends = (&path(from), &path(to));
        it.share().move_to(&who, ends, (how, NameRules::Posix)).unwrap();
    }
    it.share().close(&keepers[1]).unwrap();
    assert!(it.exists("two/f") && !it.exists("moved/f"));
    it.restart();
    assert!(!it.exists("two/f"));
    // The promise was kept, and is over.
    it.file("two/f", b"");
    it.restart();
    assert!(it.exists("two/f"));
}

#[test]
fn exchange_asks_both_ends_as_a_rename_asks_its_source() {
    let it = Fixture::new();
    it.folder("dir/sub");
    it.file("one", b"1");
    it.file("two", b"2");
    let (share, who) = (it.share(), caller("mount"));
    let exchange = |one, other| share.exchange(&who, &path(one), &path(other));
    let strict = it.open("two", "r", "rw");
    assert!(matches!(denial(exchange("one", "two")), Denial::SharingViolation { .. }));
    assert!(matches!(denial(exchange("two", "one")), Denial::SharingViolation { .. }));
    share.close(&strict).unwrap();
    let keeper = it.pending("two");
    assert!(is_pending(&denial(exchange("one", "two"))));
    share.close(&keeper).unwrap();
    assert_eq!(denial(exchange("one", "two")), Denial::NotFound);
    assert!(matches!(denial(exchange("dir", "dir/sub")), Denial::InvalidParameter(_)));
    assert_eq!(denial(exchange("dir", "")), Denial::ShareRoot);
    let below = it.open("dir/sub", "r", "rwd");
    assert!(matches!(denial(exchange("one", "dir")), Denial::OpenBelow(_)));
    share.close(&below).unwrap();
    exchange("one", "dir").unwrap();
    assert_eq!(it.bytes("dir"), b"1");
    assert!(it.exists("one/sub"));
}

/// Every way to give an entry of `dir` a new name. Each one is undone by its counterpart.
fn renames_into_dir(it: &Fixture) -> [(&'static str, Result<()>); 6] {
    let share = it.share();
    let (one, two, new) = (path("dir/one"), path("dir/two"), path("dir/new"));
    let mount = caller("mount");
    let handle = it.open("dir/one", "rd", "rwd");
    let by_handle = share.rename_handle(&handle, &new, false);
    if by_handle.is_ok() {
        share.rename_handle(&handle, &one, false).unwrap();
    }
    share.close(&handle).unwrap();
    let posix = (MoveHow::NoReplace, NameRules::Posix);
    let and_back =
        |renamed: Result<()>| renamed.map(|()| share.rename(&mount, &new, &one, false).unwrap());
    [
        ("handle", by_handle),
        ("mount", and_back(share.rename(&mount, &one, &new, false))),
        ("posix", and_back(share.move_to(&mount, (&one, &new), posix))),
        ("rest", and_back(rename(it, "dir/one", "dir/new", PLAIN).map(drop))),
        ("exchange", share.exchange(&mount, &one, &two)),
        ("into", {
            let moved = share.rename(&mount, &path("outside"), &path("dir/outside"), false);
            moved.map(|()| {
                share.rename(&mount, &path("dir/outside"), &path("outside"), false).unwrap();
            })
        }),
    ]
}

#[test]
fn an_open_of_the_directory_of_the_new_name_refuses_every_rename_unless_it_shares_w_and_has_no_d() {
    let it = Fixture::new();
    it.folder("dir");
    for name in ["dir/one", "dir/two", "outside"] {
        it.file(name, b"");
    }
    let rows = [
        ("d", "rwd", false),
        ("rwd", "rwd", false),
        ("r", "rd", false),
        ("rw", "none", false),
        ("r", "w", true),
        ("rw", "rw", true),
        ("none", "none", true),
    ];
    for (access, shares, granted) in rows {
        let holder = it.open("dir", access, shares);
        for (way, renamed) in renames_into_dir(&it) {
            match renamed {
                Ok(()) => assert!(granted, "{way} beside {access} sharing {shares}"),
                refused => {
                    let refused = denial(refused);
                    let named = refused.holder().map(|holder| holder.handle);
                    assert!(matches!(refused, Denial::ParentShared { .. }), "{way}: {refused}");
                    assert_eq!(named, Some(holder.id()), "{way}");
                    assert!(!granted, "{way} beside {access} sharing {shares}");
                }
            }
        }
        // The directory of the old name alone is no part of the rule.
        let out = it.share().rename(&caller("mount"), &path("dir/one"), &path("out"), false);
        out.unwrap();
        it.share().close(&holder).unwrap();
        it.share().rename(&caller("mount"), &path("out"), &path("dir/one"), false).unwrap();
    }
    assert!(renames_into_dir(&it).into_iter().all(|(_, renamed)| renamed.is_ok()));
}
