//! Create, look at, change and delete directories.

use latchfs::file::rules::{Attributes, Denial};
use latchfs::file::service::{Metadata, PropertyChanges, TimeChange};
use latchfs::rules::Timestamp;

use crate::common::names::ShareNames as _;
use crate::dirs::fixture::{Fixture, caller, denial, path};

#[test]
fn a_directory_keeps_what_it_was_made_with_and_shows_it_in_any_spelling() {
    let it = Fixture::new();
    let who = caller("rest");
    it.folder("Top");
    let properties = PropertyChanges {
        attributes: Some(Attributes::HIDDEN),
        created: TimeChange::At(Timestamp(1_000)),
        written: TimeChange::At(Timestamp(2_000)),
        changed: TimeChange::At(Timestamp(3_000)),
        permission_key: Some("1*2".into()),
    };
    let metadata: Metadata = [("Cat", "tabby")].into_iter().collect();
    let made = it.share().create_directory(&who, &path("top/sub"), &properties, &metadata).unwrap();
    assert_eq!(made.path, path("Top/sub"));
    assert_eq!(made.parent, it.share().stat(&path("Top")).unwrap().id);
    assert_eq!(made.smb().attributes, Attributes::HIDDEN | Attributes::DIRECTORY);
    assert_eq!(made.smb().created, Timestamp(1_000));
    assert_eq!(made.smb().written, Timestamp(2_000));
    assert_eq!(made.smb().changed, Timestamp(3_000));
    assert_eq!(*made.metadata(), metadata);
    assert_eq!(it.share().directory_properties(&who, &path("TOP/SUB")).unwrap(), made);
}

#[test]
fn the_root_has_properties_and_no_parent_and_cannot_be_deleted() {
    let it = Fixture::new();
    let who = caller("rest");
    let root = it.share().directory_properties(&who, &path("")).unwrap();
    assert_eq!(root.parent.ino, 0);
    assert_eq!(root.smb().attributes, Attributes::DIRECTORY);
    assert_eq!(denial(it.share().delete_directory(&who, &path(""))), Denial::ShareRoot);
    assert_eq!(denial(it.create_directory("")), Denial::NameTaken);
}

#[test]
fn setting_properties_keeps_what_is_not_named_and_moves_the_etag() {
    let it = Fixture::new();
    let (share, who, dir) = (it.share(), caller("rest"), path("dir"));
    it.create_directory("dir").unwrap();
    let metadata: Metadata = [("a", "1")].into_iter().collect();
    let first = share.set_directory_metadata(&who, &dir, metadata.clone()).unwrap();
    let changes =
        PropertyChanges { created: TimeChange::At(Timestamp(5)), ..PropertyChanges::default() };
    let second = share.set_directory_properties(&who, &dir, &changes).unwrap();
    assert_eq!(*second.metadata(), metadata);
    assert_eq!(second.smb().created, Timestamp(5));
    assert_eq!(second.smb().written, first.smb().written);
    assert_ne!(second.smb().etag, first.smb().etag);
    let third = share.set_directory_metadata(&who, &dir, Metadata::default()).unwrap();
    assert!(third.metadata().is_empty(), "metadata is replaced as a whole");
    assert_eq!(third.smb().created, Timestamp(5));
    assert_ne!(third.smb().etag, second.smb().etag);
}

#[test]
fn a_handle_that_denies_writing_keeps_properties_from_being_set_but_not_from_being_read() {
    let it = Fixture::new();
    let (share, who, dir) = (it.share(), caller("rest"), path("dir"));
    it.folder("dir");
    let handle = it.open("dir", "r", "r");
    share.directory_properties(&who, &dir).unwrap();
    let set = share.set_directory_metadata(&who, &dir, Metadata::default());
    assert!(matches!(denial(set), Denial::SharingViolation { .. }));
    share.close(&handle).unwrap();
    share.set_directory_metadata(&who, &dir, Metadata::default()).unwrap();
}

#[test]
fn a_pending_directory_refuses_every_operation_but_listing() {
    let it = Fixture::new();
    let (share, who, dir) = (it.share(), caller("rest"), path("dir"));
    it.folder("dir");
    let _keeper = it.pending("dir");
    let pending = |denial| matches!(denial, Denial::DeletePending(_));
    assert!(pending(denial(share.directory_properties(&who, &dir))));
    assert!(pending(denial(share.set_directory_metadata(&who, &dir, Metadata::default()))));
    assert!(pending(denial(share.delete_directory(&who, &dir))));
}

#[test]
fn a_read_only_directory_is_not_deleted_until_the_attribute_is_cleared() {
    let it = Fixture::new();
    let (share, who, dir) = (it.share(), caller("rest"), path("dir"));
    it.create_directory("dir").unwrap();
    let set = |attributes| {
        let attributes = Some(attributes);
        let changes = PropertyChanges { attributes, ..PropertyChanges::default() };
        share.set_directory_properties(&who, &dir, &changes).unwrap();
    };
    set(Attributes::READ_ONLY);
    assert_eq!(denial(share.delete_directory(&who, &dir)), Denial::ReadOnly);
    set(Attributes::NONE);
    share.delete_directory(&who, &dir).unwrap();
}

#[test]
fn a_large_record_goes_with_its_directory() {
    let it = Fixture::new();
    let (share, who, dir) = (it.share(), caller("rest"), path("dir"));
    let large: Metadata = [("large", "x".repeat(70_000))].into_iter().collect();
    let sidecars = || std::fs::read_dir(it.on_disk("../state/records")).map_or(0, Iterator::count);
    share.create_directory(&who, &dir, &PropertyChanges::default(), &large).unwrap();
    assert_eq!(sidecars(), 1);
    share.delete_directory(&who, &dir).unwrap();
    assert_eq!(sidecars(), 0);
    share.create_directory(&who, &dir, &PropertyChanges::default(), &large).unwrap();
    share.rmdir(&who, &dir).unwrap();
    assert_eq!(sidecars(), 0);
}
