//! `ETag`, Last-Modified and the times.

use latchfs::file::service::{FileChanges, FileProperties, PropertyChanges, TimeChange};
use latchfs::rules::Timestamp;

use crate::files::fixture::{Call, Fixture, START, code};

const OLD: Timestamp = Timestamp(1_000_000_000_000_000_000);

fn set(
    fixture: &Fixture,
    path: &latchfs::file::rules::SharePath,
    changes: &FileChanges,
) -> FileProperties {
    fixture.share.set_file_properties(fixture.rest(), path, changes).unwrap()
}

fn times(smb: PropertyChanges) -> FileChanges {
    FileChanges { smb, ..FileChanges::default() }
}

#[test]
fn an_answer_shows_the_etag_that_the_next_look_shows() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let put = fixture.put(&path, 0, b"x").unwrap();
    assert_eq!(fixture.head(&path).unwrap(), put);
    let set = set(&fixture, &path, &FileChanges { size: Some(7), ..FileChanges::default() });
    assert_eq!(fixture.head(&path).unwrap(), set);
    let created = fixture.create(&path, 5).unwrap();
    assert_eq!(fixture.head(&path).unwrap(), created);
    let other = fixture.create(&crate::files::fixture::path("other"), 5).unwrap();
    assert_eq!(fixture.head(&crate::files::fixture::path("other")).unwrap(), other);
}

#[test]
fn setting_properties_keeps_the_last_write_time_unless_it_resizes() {
    let fixture = Fixture::new();
    let path = fixture.file();
    set(
        &fixture,
        &path,
        &times(PropertyChanges { written: TimeChange::At(OLD), ..PropertyChanges::default() }),
    );
    assert_eq!(set(&fixture, &path, &FileChanges::default()).smb().written, OLD);
    let preserve = PropertyChanges { written: TimeChange::Preserve, ..PropertyChanges::default() };
    let resized = FileChanges { size: Some(4), ..times(preserve) };
    assert!(set(&fixture, &path, &resized).smb().written > OLD);
    let old = PropertyChanges { written: TimeChange::At(OLD), ..PropertyChanges::default() };
    let given = FileChanges { smb: old, ..resized };
    assert_eq!(set(&fixture, &path, &given).smb().written, OLD);
    let now = times(PropertyChanges { written: TimeChange::Now, ..PropertyChanges::default() });
    assert_eq!(set(&fixture, &path, &now).smb().written, START);
}

#[test]
fn the_creation_time_stays_until_it_is_set() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let born = fixture.head(&path).unwrap().smb().created;
    assert_eq!(set(&fixture, &path, &FileChanges::default()).smb().created, born);
    let old = times(PropertyChanges { created: TimeChange::At(OLD), ..PropertyChanges::default() });
    assert_eq!(set(&fixture, &path, &old).smb().created, OLD);
    assert_eq!(fixture.put(&path, 0, b"x").unwrap().smb().created, OLD);
    let now = times(PropertyChanges { created: TimeChange::Now, ..PropertyChanges::default() });
    assert_eq!(set(&fixture, &path, &now).smb().created, START);
}

#[test]
fn a_change_time_that_was_set_lasts_until_the_next_change() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let given = set(
        &fixture,
        &path,
        &times(PropertyChanges { changed: TimeChange::At(OLD), ..PropertyChanges::default() }),
    );
    assert_eq!(given.smb().changed, OLD);
    assert!(given.last_modified() > OLD, "Last-Modified cannot be set");
    let kept =
        times(PropertyChanges { changed: TimeChange::Preserve, ..PropertyChanges::default() });
    assert_eq!(set(&fixture, &path, &kept).smb().changed, OLD);
    for call in [Call::Put, Call::SetMetadata, Call::SetProperties, Call::Create] {
        set(
            &fixture,
            &path,
            &times(PropertyChanges { changed: TimeChange::At(OLD), ..PropertyChanges::default() }),
        );
        fixture.call(fixture.rest(), &path, call).unwrap();
        let now = fixture.head(&path).unwrap();
        assert_eq!(now.smb().changed, now.last_modified(), "{call:?}");
    }
}

#[test]
fn a_preserved_change_time_is_the_one_that_was_shown() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let before = fixture.head(&path).unwrap();
    let kept =
        times(PropertyChanges { changed: TimeChange::Preserve, ..PropertyChanges::default() });
    let after = set(&fixture, &path, &kept);
    assert_eq!(after.smb().changed, before.smb().changed);
    assert_ne!(after.etag(), before.etag());
    assert_eq!(code(&fixture.head(&path)), "ok");
}
