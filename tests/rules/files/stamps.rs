//! `ETag`, Last-Modified and the times: behaviours 126, 127 and 129.

use std::collections::HashSet;

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
fn b126_every_change_has_its_own_etag_and_no_look_has() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let mut seen = HashSet::from([fixture.head(&path).unwrap().etag()]);
    let writes = [
        Call::Put,
        Call::Put,
        Call::Clear,
        Call::Clear,
        Call::SetProperties,
        Call::SetProperties,
        Call::SetMetadata,
        Call::SetMetadata,
        Call::Resize,
        Call::Resize,
        Call::Create,
        Call::Create,
    ];
    for call in writes {
        fixture.call(fixture.rest(), &path, call).unwrap();
        assert!(seen.insert(fixture.head(&path).unwrap().etag()), "{call:?}");
    }
    let last = fixture.head(&path).unwrap();
    for call in Call::READS.into_iter().chain([Call::Acquire]) {
        fixture.call(fixture.rest(), &path, call).unwrap();
        let now = fixture.head(&path).unwrap();
        assert_eq!(now.etag(), last.etag(), "{call:?}");
        assert_eq!(now.last_modified(), last.last_modified(), "{call:?}");
    }
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
fn b127_a_write_by_others_changes_the_etag() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let before = fixture.head(&path).unwrap().etag();
    let handle = fixture.open(&path, "rw", "rwd");
    fixture.share.write(&handle, 0, b"mount").unwrap();
    fixture.share.close(&handle).unwrap();
    let through_mount = fixture.head(&path).unwrap().etag();
    assert_ne!(through_mount, before);
    std::fs::write(fixture.root.join(path.as_str()), b"direct8910").unwrap();
    let direct = fixture.head(&path).unwrap();
    assert_ne!(direct.etag(), through_mount);
    assert_eq!(direct.size(), 10);
}

#[test]
fn b129_a_put_range_may_keep_the_last_write_time() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let before = set(
        &fixture,
        &path,
        &times(PropertyChanges { written: TimeChange::At(OLD), ..PropertyChanges::default() }),
    );
    assert_eq!(before.smb().written, OLD);
    let put = |how| fixture.share.put_range(fixture.rest(), &path, 0, b"x", how).unwrap();
    let kept = put(TimeChange::Preserve);
    assert_eq!(kept.smb().written, OLD);
    assert_ne!(kept.etag(), before.etag());
    assert!(put(TimeChange::Now).smb().written > OLD);
    let clear = fixture.share.clear_range(fixture.rest(), &path, 0..1, TimeChange::Preserve);
    assert!(clear.unwrap().smb().written > OLD);
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
