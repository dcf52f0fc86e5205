//! Tests that need access to the inside: the count of changes where change times are coarse.

use std::sync::Arc;

use super::super::property_changes::{FileChanges, NewProperties, TimeChange};
use crate::clock::SystemClock;
use crate::file::rules::create::OpenRequest;
use crate::file::rules::{Access, ShareMode, SharePath};
use crate::file::service::share::ShareOptions;
use crate::file::service::{Asking, Share};
use crate::file::store::share::Metadata;
use crate::journal::AccountJournal;
use crate::rules::lease::LeaseAction;
use crate::rules::{Client, Context, Owner};
use crate::sync::random;

#[test]
fn where_change_times_are_coarse_each_change_is_counted_and_no_look_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("share");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("f"), b"0123456789").unwrap();
    let state = folder.path().join("state");
    let (clock, events) = (Arc::new(SystemClock), AccountJournal::default());
    let options = ShareOptions::default();
    let mut share = Share::open_directory("test", &root, &state, options, clock, events).unwrap();
    share.coarsen_times();

    let client = Arc::new(Client { session: 1, name: "test".into() });
    let who = Owner { client, pid: 0, program: None };
    let cx = Context::local(share.now(), who, "test");
    let asking = Asking { cx: &cx, lease_id: None };
    let path = SharePath::new("f").unwrap();
    let changes = || share.file_properties(asking, &path).unwrap().record.changes;

    assert_eq!(changes(), 0);
    share.put_range(asking, &path, 0, b"x", TimeChange::Now).unwrap();
    assert_eq!(changes(), 1);
    share.clear_range(asking, &path, 0..1, TimeChange::Preserve).unwrap();
    assert_eq!(changes(), 2);
    share.set_file_properties(asking, &path, &FileChanges::default()).unwrap();
    assert_eq!(changes(), 3);
    share.set_file_metadata(asking, &path, &Metadata::default()).unwrap();
    assert_eq!(changes(), 4);
    let created = share.create_file(asking, &path, 5, &NewProperties::default(), None).unwrap();
    assert_eq!((changes(), created.record.changes), (5, 5));

    let request = OpenRequest::plain(Access::RW, ShareMode::RWD);
    let handle = share.open(&cx, &path, &request).unwrap().handle;
    share.write(&handle, 0, b"mount").unwrap();
    assert_eq!(changes(), 6);
    share.set_size(&cx, &handle, 3).unwrap();
    assert_eq!(changes(), 7);
    share.close(&handle).unwrap();

    let fresh = random::lease_id();
    let acquire = LeaseAction::Acquire { duration: Some(-1), proposed: None, fresh };
    share.lease_file(asking, &path, acquire).unwrap();
    share.lease_file(asking, &path, LeaseAction::Break(None)).unwrap();
    share.range_list(asking, &path, None).unwrap();
    assert_eq!(changes(), 7);
}

#[test]
fn changes_of_names_in_two_shares_in_one_place_are_never_taken_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (root, state) = (folder.path().join("share"), folder.path().join("state"));
    std::fs::create_dir(&root).unwrap();
    let changes = || {
        let (clock, events) = (Arc::new(SystemClock), AccountJournal::default());
        let options = ShareOptions::default();
        let share = Share::open_directory("test", &root, &state, options, clock, events).unwrap();
        share.name_changes()
    };
    assert_ne!(changes(), changes());
}
