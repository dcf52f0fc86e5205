//! Snapshots: taken, read, leased, deleted.
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
