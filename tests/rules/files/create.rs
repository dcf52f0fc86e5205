//! Create File: what becomes of a name that is free or taken.

use std::fs;

use latchfs::file::rules::Attributes;
use latchfs::file::service::{
    FILE_SIZE_MAX, HttpHeaders, IO_MAX, Metadata, NewProperties, PropertyChanges, Semantics,
    TimeChange,
};
use latchfs::rules::Timestamp;

use crate::common::names::ShareNames as _;
use crate::files::fixture::{Fixture, START, code, path};

const OLD: Timestamp = Timestamp(1_000_000_000_000_000_000);

fn dressed() -> NewProperties {
    NewProperties {
        smb: PropertyChanges {
            attributes: Some(Attributes::HIDDEN),
            created: TimeChange::At(OLD),
            written: TimeChange::At(OLD),
            changed: TimeChange::At(OLD),
            permission_key: Some("1*2".into()),
        },
        headers: HttpHeaders { content_type: Some("text/plain".into()), ..HttpHeaders::default() },
        metadata: [("Cat", "tabby")].into_iter().collect(),
        ..NewProperties::default()
    }
}

#[test]
fn a_new_file_shows_what_it_was_given() {
    let fixture = Fixture::new();
    let file = path("new");
    let made = fixture.share.create_file(fixture.rest(), &file, 8, &dressed(), Some(b"abc"));
    let made = made.unwrap();
    assert_eq!(made.smb().attributes, Attributes::HIDDEN | Attributes::ARCHIVE);
    assert_eq!((made.smb().created, made.smb().written, made.smb().changed), (OLD, OLD, OLD));
    assert_eq!(made.smb().permission_key.as_deref(), Some("1*2"));
    assert_eq!(made.headers().content_type.as_deref(), Some("text/plain"));
    assert_eq!(made.metadata().get("cat"), Some("tabby"));
    let fixture = fixture.restarted();
    assert_eq!(fixture.head(&file).unwrap(), made);
    assert_eq!(fixture.get(&file, None).unwrap(), b"abc\0\0\0\0\0");
}

#[test]
fn a_restored_file_has_the_attributes_it_is_given_and_no_others() {
    let fixture = Fixture::new();
    let properties = NewProperties { semantics: Semantics::Restore, ..dressed() };
    let made = fixture.share.create_file(fixture.rest(), &path("new"), 0, &properties, None);
    assert_eq!(made.unwrap().smb().attributes, Attributes::HIDDEN);
}

#[test]
fn creating_over_a_file_empties_it_and_replaces_its_properties() {
    let fixture = Fixture::new();
    let file = path("file");
    let full = vec![9; 6];
    let before = fixture.share.create_file(fixture.rest(), &file, 6, &dressed(), Some(&full));
    let before = before.unwrap();
    let after = fixture.create(&file, 4).unwrap();
    assert_eq!(fixture.get(&file, None).unwrap(), [0; 4]);
    assert_eq!(after.id(), before.id());
    assert_ne!(after.etag(), before.etag());
    assert!(after.metadata().is_empty() && after.headers().is_empty());
    assert_eq!(
        (after.smb().attributes, after.smb().permission_key.as_deref()),
        (Attributes::ARCHIVE, None)
    );
    assert_eq!(after.smb().created, START, "a file made over another is as new");
    assert!(after.smb().written > OLD && after.smb().changed > OLD);
}

#[test]
fn creating_over_a_file_may_preserve_its_times() {
    let fixture = Fixture::new();
    let file = path("file");
    fixture.share.create_file(fixture.rest(), &file, 6, &dressed(), None).unwrap();
    let smb = PropertyChanges {
        created: TimeChange::Preserve,
        written: TimeChange::Preserve,
        changed: TimeChange::Preserve,
        ..PropertyChanges::default()
    };
    let kept = NewProperties { smb, ..NewProperties::default() };
    let over = fixture.share.create_file(fixture.rest(), &file, 6, &kept, None).unwrap();
    assert_eq!((over.smb().created, over.smb().written, over.smb().changed), (OLD, OLD, OLD));
}

#[test]
fn a_directory_or_link_is_not_overwritten() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.root.join("dir")).unwrap();
    std::os::unix::fs::symlink("nowhere", fixture.root.join("link")).unwrap();
    assert_eq!(code(&fixture.create(&path("dir"), 1)), "ResourceTypeMismatch");
    assert_eq!(code(&fixture.create(&path(""), 1)), "ResourceTypeMismatch");
    assert_eq!(code(&fixture.create(&path("link"), 1)), "ResourceAlreadyExists");
    assert!(!fixture.root.join("nowhere").exists());
}

#[test]
fn a_pending_directory_takes_no_new_file() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.root.join("dir")).unwrap();
    let kept = fixture.open(&path("dir"), "r", "rwd");
    fixture.share.rmdir(fixture.mount(), &path("dir")).unwrap();
    assert_eq!(code(&fixture.create(&path("dir/file"), 1)), "DeletePending");
    fixture.share.close(&kept).unwrap();
    assert_eq!(code(&fixture.create(&path("dir/file"), 1)), "ParentNotFound");
}

#[test]
fn what_no_file_can_have_is_refused_and_nothing_made() {
    let fixture = Fixture::new();
    let file = path("new");
    let create = |size, properties: &NewProperties, bytes: Option<&[u8]>| {
        code(&fixture.share.create_file(fixture.rest(), &file, size, properties, bytes))
    };
    let plain = NewProperties::default();
    assert_eq!(create(FILE_SIZE_MAX + 1, &plain, None), "OutOfRangeInput");
    assert_eq!(create(2, &plain, Some(b"abc")), "InvalidRange");
    let long = vec![0; IO_MAX + 1];
    assert_eq!(create(FILE_SIZE_MAX, &plain, Some(&long)), "RequestBodyTooLarge");
    let attributes = Some(Attributes::DIRECTORY);
    let smb = PropertyChanges { attributes, ..PropertyChanges::default() };
    let directory = NewProperties { smb, ..NewProperties::default() };
    assert_eq!(create(1, &directory, None), "InvalidHeaderValue");
    let metadata: Metadata = [("a-b", "x")].into_iter().collect();
    let named = NewProperties { metadata, ..NewProperties::default() };
    assert_eq!(create(1, &named, None), "InvalidMetadata");
    assert_eq!(fs::read_dir(&fixture.root).unwrap().count(), 0);
    assert_eq!(fixture.events.file_events().len(), 5, "each refusal is noted");
}

#[test]
fn a_sparse_file_of_the_largest_size_can_be_made() {
    let fixture = Fixture::new();
    let made = fixture.create(&path("huge"), FILE_SIZE_MAX).unwrap();
    assert_eq!(made.size(), FILE_SIZE_MAX);
    assert_eq!(code(&fixture.put(&path("huge"), FILE_SIZE_MAX - 1, b"x")), "ok");
}
