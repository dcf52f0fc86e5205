//! A disk without room: the service opens and deletes, whatever an earlier server left undone.

use super::*;
use crate::db::testing::Tmpfs;
use crate::rules::copy_status::CopyStatus;

#[test]
fn a_copy_fails_on_a_disk_that_is_too_full_to_store_anything() {
    let Some(tmpfs) = Tmpfs::mount("40m") else { return };
    let (cx, to) = (bench_cx(START), at("to"));
    let service = open(tmpfs.path(), BlobOptions::default(), START);
    within(service.create_container(&cx, "c", NewContainer::default())).unwrap();
    let request = CopyRequest { id: "id1".into(), source: "s".into(), ..Default::default() };
    let begun =
        service.begin_copy(&cx, &to, AccessConditions::default(), BlobType::Block, 5, request);
    within(begun).unwrap();
    tmpfs.fill_but(600 << 10);
    // What the database has reserved is used up first.
    let refused = (0..20_000).find_map(|number| {
        let metadata = vec![("k".to_owned(), "v".repeat(4_000))];
        let new = NewContainer { metadata, ..NewContainer::default() };
        within(service.create_container(&cx, &format!("c{number}"), new)).err()
    });
    assert!(refused.is_some());
    within(service.end_copy(&cx, &to, "id1".into(), Err("the disk is full".into()))).unwrap();
    let read = service.properties(
        &cx,
        BlobOperation::BlobGetProperties,
        &to,
        &AccessConditions::default(),
    );
    assert_eq!(read.unwrap().state.copy.clone().unwrap().status, CopyStatus::Failed);
}

#[test]
fn the_service_opens_on_a_nearly_full_disk_after_a_copy_and_a_filling_were_cut_off() {
    let Some(tmpfs) = Tmpfs::mount("40m") else { return };
    let (cx, to) = (bench_cx(START), at("to"));
    {
        let service = open(tmpfs.path(), BlobOptions::default(), START);
        within(service.create_container(&cx, "c", NewContainer::default())).unwrap();
        let request = CopyRequest { id: "id1".into(), source: "s".into(), ..Default::default() };
        let kind = BlobType::Block;
        let begun = service.begin_copy(&cx, &to, AccessConditions::default(), kind, 5, request);
        within(begun).unwrap();
        assert!(within(service.begin_filling(&cx, "new")).unwrap().is_some());
    }
    // As a server leaves it that found the disk full.
    std::fs::remove_file(tmpfs.path().join("blob.db-ballast")).unwrap();
    // Too little for any commit; then too little to store anything.
    for (free, status) in [(4 << 10, CopyStatus::Pending), (600 << 10, CopyStatus::Failed)] {
        tmpfs.fill_but(free);
        let service = open(tmpfs.path(), BlobOptions::default(), START);
        let operation = BlobOperation::BlobGetProperties;
        let read = service.properties(&cx, operation, &to, &AccessConditions::default());
        assert_eq!(read.unwrap().state.copy.clone().unwrap().status, status, "{free} bytes free");
    }
    let service = open(tmpfs.path(), BlobOptions::default(), START);
    let delete = DeleteBlob::default();
    within(service.delete_blob(&cx, &to, AccessConditions::default(), delete)).unwrap();
}
