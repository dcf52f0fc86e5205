//! Snapshots: taken, read, leased, deleted.

use latchfs::file::rules::Denial;
use latchfs::file::service::shares::{DeleteShareSnapshots, ShareChanges};
use latchfs::file::store::share::{
    Metadata, OpenFor, Record, Records, ShareDir, SnapshotName, Stat,
};
use latchfs::rules::lease::{LeaseDenial, LeaseOn};

use super::*;

fn snapshot(engine: &FileService) -> SnapshotName {
    engine.create_snapshot(&DOCS, None, &mut go_on).unwrap().0
}

#[test]
fn a_snapshot_shows_the_share_as_it_was() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let root = setup.data().join("docs");
    fs::create_dir(root.join("dir")).unwrap();
    fs::write(root.join("dir/File"), "before").unwrap();
    let stamp = snapshot(&engine);
    assert_eq!(stamp.as_str(), "2026-01-05T10:00:00.0000000Z");
    fs::write(root.join("dir/File"), "after, and longer").unwrap();
    fs::write(root.join("dir/new"), "").unwrap();

    let view = engine.snapshot("docs", &stamp).unwrap();
    assert_eq!(view.read(&path("DIR/file"), 0, 100).unwrap(), b"before");
    assert_eq!(view.read(&path("dir/File"), 3, 2).unwrap(), b"or");
    assert_eq!(view.data_ranges(&path("dir/File"), 0..6).unwrap(), vec![0..6; 1]);
    let names: Vec<_> = view.list(&path("dir"), "", None, 10).unwrap();
    assert_eq!(names.iter().map(|entry| &*entry.name).collect::<Vec<_>>(), ["File"]);
    assert_eq!(view.file(&path("dir/file")).unwrap().path, path("dir/File"));
    let end = view.read(&path("dir/File"), 6, 1).unwrap_err();
    assert_eq!(end.denial(), Some(&Denial::EndOfFile));
    let directory = view.read(&path("dir"), 0, 1).unwrap_err();
    assert_eq!(directory.denial(), Some(&Denial::IsDirectory));
    let absent = view.lookup(&path("dir/new")).unwrap_err();
    assert_eq!(absent.denial(), Some(&Denial::NotFound));
}

#[test]
fn open_files_and_their_share_modes_do_not_matter_to_a_snapshot() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    fs::write(setup.data().join("docs/file"), "x").unwrap();
    let share = engine.share("docs").unwrap();
    let alone = OpenRequest::plain(Access::RWD, ShareMode::NONE);
    let _held = share.open(&somebody(), &path("file"), &alone).unwrap();
    let view = engine.snapshot("docs", &snapshot(&engine)).unwrap();
    assert_eq!(view.read(&path("file"), 0, 1).unwrap(), b"x");
}

#[test]
fn b098_a_lease_on_a_file_of_a_snapshot_is_refused() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    fs::write(setup.data().join("docs/file"), "x").unwrap();
    let stamp = snapshot(&engine);
    let answer = refused(engine.share_to_change(&DOCS.at(&stamp)));
    assert_eq!(answer, ShareDenial::ShareSnapshotOperationNotSupported);
    let absent = SnapshotName::parse("2020-01-01T00:00:00.0000000Z").unwrap();
    let answer = refused(engine.share_to_change(&DOCS.at(&absent)));
    assert_eq!(answer, ShareDenial::ShareSnapshotNotFound);
    assert!(engine.share_to_change(&DOCS).is_ok());
}

#[test]
fn a_snapshot_keeps_the_properties_of_its_moment_and_takes_no_new_ones() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let quota = |gib| ShareChanges { quota_gib: Some(gib), ..ShareChanges::default() };
    engine.set_properties(&DOCS, quota(10)).unwrap();
    let plain = snapshot(&engine);
    let own: Metadata = [("why", "release")].into_iter().collect();
    let named = engine.create_snapshot(&DOCS, Some(own.clone()), &mut go_on).unwrap().0;
    engine.set_properties(&DOCS, quota(20)).unwrap();

    let of = |stamp| engine.properties(&DOCS.at(stamp)).unwrap().properties;
    assert_eq!(of(&plain).quota_gib, 10);
    assert_eq!((of(&named).quota_gib, of(&named).metadata), (10, own.clone()));
    assert_eq!(engine.properties(&DOCS).unwrap().properties.quota_gib, 20);
    let answer = refused(engine.set_properties(&DOCS.at(&plain), quota(1)));
    assert_eq!(answer, ShareDenial::ShareSnapshotOperationNotSupported);
    drop(engine);
    let engine = setup.open();
    assert_eq!(engine.snapshots("docs").unwrap(), [plain, named.clone()]);
    assert_eq!(engine.properties(&DOCS.at(&named)).unwrap().properties.metadata, own);
}

#[test]
fn a_record_too_large_for_an_attribute_is_in_the_snapshot_and_goes_with_it() {
    let setup = Setup::new();
    drop(with_share(&setup));
    let (root, state) = (setup.data().join("docs"), setup.data().join(".latchfs/shares/docs"));
    fs::create_dir(root.join("dir")).unwrap();
    fs::write(root.join("dir/file"), "x").unwrap();
    // Larger than any extended attribute, so that it has a sidecar on every file system.
    let large: Metadata = [("large", "v".repeat(70_000))].into_iter().collect();
    for name in ["dir", "dir/file"] {
        let records = Records::new(&state).unwrap();
        let fd = ShareDir::open(&root, latchfs::file::service::Case::Insensitive)
            .unwrap()
            .open_file(&path(name), OpenFor::Read)
            .unwrap();
        let mut record = Record { metadata: large.clone(), ..Record::default() };
        records.save(&fd, Stat::of(&fd).unwrap().id, &mut record).unwrap();
    }
    let engine = setup.open();
    let stamp = snapshot(&engine);
    fs::remove_file(root.join("dir/file")).unwrap();
    drop(engine);

    let engine = setup.open();
    let view = engine.snapshot("docs", &stamp).unwrap();
    for name in ["dir", "dir/file"] {
        assert_eq!(view.file(&path(name)).unwrap().record.metadata, large, "{name}");
    }
    let copies = state.join("snapshots").join(stamp.as_str());
    assert!(copies.is_dir());
    engine.delete_snapshot(&DOCS.at(&stamp)).unwrap();
    assert!(!copies.exists());
}

#[test]
fn a_share_with_snapshots_is_deleted_on_request_only() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let stamp = snapshot(&engine);
    let delete = |how| engine.delete_share(&somebody(), &DOCS, how);
    assert_eq!(refused(delete(DeleteShareSnapshots::None)), ShareDenial::ShareHasSnapshots);
    engine.lease(&DOCS.at(&stamp), acquire(-1, None)).unwrap();
    let leased = refused(delete(DeleteShareSnapshots::Include));
    assert_eq!(leased, ShareDenial::DeleteShareWhenSnapshotLeased);
    let version = delete(DeleteShareSnapshots::IncludeLeased).unwrap().unwrap().version;
    engine.restore_share("docs", &version).unwrap();
    assert_eq!(engine.snapshots("docs").unwrap(), [stamp]);
}

#[test]
fn a_leased_snapshot_is_deleted_with_its_id_only() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let stamp = snapshot(&engine);
    let at = DOCS.at(&stamp);
    let ((held, _), _) = engine.lease(&at, acquire(60, None)).unwrap();
    let missing = LeaseDenial::LeaseIdMissing(LeaseOn::Share);
    assert_eq!(refused(engine.delete_snapshot(&at)), missing.into());
    engine.delete_snapshot(&with_lease(at, held.unwrap())).unwrap();
    assert_eq!(refused(engine.delete_snapshot(&at)), ShareDenial::ShareSnapshotNotFound);
    let gone = refused(engine.snapshot("docs", &stamp).map(|_| ()));
    assert_eq!(gone, ShareDenial::ShareSnapshotNotFound);
    assert_eq!(engine.snapshots("docs").unwrap(), []);
}

#[test]
fn one_snapshot_is_taken_at_a_time_and_holds_a_deletion_off() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    fs::write(setup.data().join("docs/file"), "x").unwrap();
    let mut seen = Vec::new();
    engine
        .create_snapshot(&DOCS, None, &mut |_| {
            let second = engine.create_snapshot(&DOCS, None, &mut go_on);
            seen.push(refused(second));
            let deleted = engine.delete_share(&somebody(), &DOCS, DeleteShareSnapshots::Include);
            seen.push(refused(deleted));
            Control::Continue
        })
        .unwrap();
    assert!(!seen.is_empty());
    assert!(seen.iter().all(|denial| *denial == ShareDenial::ShareSnapshotInProgress), "{seen:?}");
    snapshot(&engine);
}

#[test]
fn a_cancelled_snapshot_leaves_nothing() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    fs::write(setup.data().join("docs/file"), "x").unwrap();
    let answer = engine.create_snapshot(&DOCS, None, &mut |_| Control::Cancel);
    assert_eq!(refused(answer), ShareDenial::SnapshotCancelled);
    assert_eq!(engine.snapshots("docs").unwrap(), []);
    snapshot(&engine);
}
