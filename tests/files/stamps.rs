//! `ETag`, Last-Modified and the times: LOCKING section 7, behaviours 126, 127 and 129.

use std::collections::HashSet;

use latchfs::core::Timestamp;
use latchfs::engine::{FileChanges, FileProperties, LastWrite, TimeChange};

use crate::fixture::{Call, Fixture, START, code};

const OLD: Timestamp = Timestamp(1_000_000_000_000_000_000);

fn set(
    fixture: &Fixture,
    path: &latchfs::core::SharePath,
    changes: &FileChanges,
) -> FileProperties {
    fixture.share.set_file_properties(fixture.rest(), path, changes).unwrap()
}

fn times() -> FileChanges {
    FileChanges::default()
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
    let set = set(&fixture, &path, &FileChanges { size: Some(7), ..times() });
    assert_eq!(fixture.head(&path).unwrap(), set);
    let created = fixture.create(&path, 5).unwrap();
    assert_eq!(fixture.head(&path).unwrap(), created);
    let other = fixture.create(&crate::fixture::path("other"), 5).unwrap();
    assert_eq!(fixture.head(&crate::fixture::path("other")).unwrap(), other);
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
    let before = set(&fixture, &path, &FileChanges { written: TimeChange::At(OLD), ..times() });
    assert_eq!(before.written(), OLD);
    let put = |how| fixture.share.put_range(fixture.rest(), &path, 0, b"x", how).unwrap();
    let kept = put(LastWrite::Preserve);
    assert_eq!(kept.written(), OLD);
    assert_ne!(kept.etag(), before.etag());
    assert!(put(LastWrite::Now).written() > OLD);
    let clear = fixture.share.clear_range(fixture.rest(), &path, 0..1, LastWrite::Preserve);
    assert!(clear.unwrap().written() > OLD);
}

#[test]
fn setting_properties_keeps_the_last_write_time_unless_it_resizes() {
    let fixture = Fixture::new();
    let path = fixture.file();
    set(&fixture, &path, &FileChanges { written: TimeChange::At(OLD), ..times() });
    assert_eq!(set(&fixture, &path, &times()).written(), OLD);
    let resized = FileChanges { size: Some(4), written: TimeChange::Preserve, ..times() };
    assert!(set(&fixture, &path, &resized).written() > OLD);
    let given = FileChanges { written: TimeChange::At(OLD), ..resized };
    assert_eq!(set(&fixture, &path, &given).written(), OLD);
    let now = FileChanges { written: TimeChange::Now, ..times() };
    assert_eq!(set(&fixture, &path, &now).written(), START);
}

#[test]
fn the_creation_time_stays_until_it_is_set() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let born = fixture.head(&path).unwrap().created();
    assert_eq!(set(&fixture, &path, &times()).created(), born);
    let old = FileChanges { created: TimeChange::At(OLD), ..times() };
    assert_eq!(set(&fixture, &path, &old).created(), OLD);
    assert_eq!(fixture.put(&path, 0, b"x").unwrap().created(), OLD);
    let now = FileChanges { created: TimeChange::Now, ..times() };
    assert_eq!(set(&fixture, &path, &now).created(), START);
}

#[test]
fn a_change_time_that_was_set_lasts_until_the_next_change() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let given = set(&fixture, &path, &FileChanges { changed: TimeChange::At(OLD), ..times() });
    assert_eq!(given.changed(), OLD);
    assert!(given.last_modified() > OLD, "Last-Modified cannot be set");
    let kept = FileChanges { changed: TimeChange::Preserve, ..times() };
    assert_eq!(set(&fixture, &path, &kept).changed(), OLD);
    for call in [Call::Put, Call::SetMetadata, Call::SetProperties, Call::Create] {
        set(&fixture, &path, &FileChanges { changed: TimeChange::At(OLD), ..times() });
        fixture.call(fixture.rest(), &path, call).unwrap();
        let now = fixture.head(&path).unwrap();
        assert_eq!(now.changed(), now.last_modified(), "{call:?}");
    }
}

#[test]
fn a_preserved_change_time_is_the_one_that_was_shown() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let before = fixture.head(&path).unwrap();
    let kept = FileChanges { changed: TimeChange::Preserve, ..times() };
    let after = set(&fixture, &path, &kept);
    assert_eq!(after.changed(), before.changed());
    assert_ne!(after.etag(), before.etag());
    assert_eq!(code(&fixture.head(&path)), "ok");
}
