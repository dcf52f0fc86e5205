//! Snapshots, versions, soft delete.

use super::*;
use crate::blob::rules::deletion::DeleteBlobSnapshots;

fn delete_with(
    bench: &Bench,
    at: &BlobAt,
    snapshots: Option<DeleteBlobSnapshots>,
) -> BlobResult<DeletedBlob> {
    let delete = DeleteBlob { snapshots, ..DeleteBlob::default() };
    within(bench.service.delete_blob(&bench.cx(), at, AccessConditions::default(), delete))
}

fn retain(bench: &Bench, days: Option<u16>) {
    let retention = Retention { days, permanent_delete: false };
    bench.service.set_retention(retention);
}

#[test]
fn a_snapshot_keeps_its_content_and_stands_in_the_way_of_deletion() {
    let bench = Bench::new();
    let put = bench.put("b", b"one");
    let first = bench.snapshot("b");
    let second = bench.snapshot("b");
    assert!(second > first);
    assert_eq!(bench.head("b").unwrap().state.etag, put.etag, "a snapshot moves no ETag");
    bench.put("b", b"two");
    let old = at("b").state(Selector::Snapshot(first));
    assert_eq!(bench.get_at(&old).unwrap(), b"one");
    assert_eq!(bench.head_at(&old).unwrap().state.etag, put.etag);
    assert!(!bench.head_at(&old).unwrap().is_current);
    assert_eq!(denial(bench.delete("b")), BlobDenial::SnapshotsPresent);
    assert_eq!(bench.names(everything()), ["b snapshot", "b snapshot", "b"]);
    delete_with(&bench, &old, None).unwrap();
    assert_eq!(denial(bench.get_at(&old)), BlobDenial::BlobNotFound);
    delete_with(&bench, &at("b"), Some(DeleteBlobSnapshots::Only)).unwrap();
    assert_eq!(bench.names(everything()), ["b"]);
    bench.snapshot("b");
    let deleted = delete_with(&bench, &at("b"), Some(DeleteBlobSnapshots::Include)).unwrap();
    assert!(deleted.permanent);
    assert_eq!(bench.names(everything()), Vec::<String>::new());
}

#[test]
fn versions_keep_what_is_overwritten_and_deleted() {
    let bench = Bench::with(BlobOptions { versioning: true, ..BlobOptions::default() });
    let first = bench.put("b", b"one").version.unwrap();
    let second = bench.put("b", b"two").version.unwrap();
    let old = at("b").state(Selector::Version(first));
    let current = at("b").state(Selector::Version(second));
    assert_eq!(bench.get_at(&old).unwrap(), b"one");
    assert_eq!(bench.get_at(&current).unwrap(), b"two");
    assert!(bench.head_at(&current).unwrap().is_current);
    let refused = denial(delete_with(&bench, &current, None));
    assert_eq!(refused, BlobDenial::OperationNotAllowedOnRootBlob);
    let metadata = vec![("k".to_owned(), "v".to_owned())];
    let set = within(bench.service.set_metadata(
        &bench.cx(),
        &at("b"),
        AccessConditions::default(),
        metadata,
    ));
    let third = set.unwrap().version.unwrap();
    assert!(third > second);
    assert_eq!(bench.names(everything()), ["b version", "b version", "b"]);
    bench.delete("b").unwrap();
    assert_eq!(denial(bench.get("b")), BlobDenial::BlobNotFound);
    assert_eq!(bench.names(everything()), ["b version", "b version", "b version"]);
    assert_eq!(bench.get_at(&current).unwrap(), b"two", "it is an old version now");
    delete_with(&bench, &old, None).unwrap();
    assert_eq!(denial(bench.get_at(&old)), BlobDenial::BlobNotFound);
}

#[test]
fn soft_delete_keeps_what_is_deleted_and_overwritten_for_its_days() {
    let mut bench = Bench::new();
    retain(&bench, Some(1));
    bench.put("b", b"one");
    let deleted = bench.delete("b").unwrap();
    assert!(!deleted.permanent);
    assert_eq!(denial(bench.get("b")), BlobDenial::BlobNotFound);
    assert_eq!(bench.names(ListQuery { max: 9, ..ListQuery::default() }), Vec::<String>::new());
    assert_eq!(bench.names(everything()), ["b deleted"]);
    within(bench.service.undelete_blob(&bench.cx(), &at("b"))).unwrap();
    assert_eq!(bench.get("b").unwrap(), b"one");
    within(bench.service.undelete_blob(&bench.cx(), &at("b"))).unwrap();
    bench.put("b", b"two");
    assert_eq!(bench.names(everything()), ["b snapshot deleted", "b"]);
    bench.delete("b").unwrap();
    bench.put("b", b"three");
    assert_eq!(bench.names(everything()), ["b snapshot deleted", "b snapshot deleted", "b"]);
    within(bench.service.undelete_blob(&bench.cx(), &at("b"))).unwrap();
    assert_eq!(bench.names(everything()), ["b snapshot", "b snapshot", "b"]);
    assert_eq!(bench.get("b").unwrap(), b"three");
    delete_with(&bench, &at("b"), Some(DeleteBlobSnapshots::Include)).unwrap();
    bench.pass(24 * 3_600);
    assert_eq!(bench.names(everything()), Vec::<String>::new(), "its time is over");
    within(bench.service.undelete_blob(&bench.cx(), &at("b"))).unwrap();
    assert_eq!(denial(bench.get("b")), BlobDenial::BlobNotFound);
}

#[test]
fn a_deleted_container_is_kept_like_a_blob() {
    let bench = Bench::new();
    retain(&bench, Some(7));
    bench.put("b", b"one");
    let (service, cx) = (&bench.service, bench.cx());
    within(service.delete_container(&cx, "c", AccessConditions::default())).unwrap();
    let list = |deleted| {
        let page = service.list_containers(&cx, "", None, 10, deleted).unwrap();
        page.containers
    };
    assert!(list(false).is_empty());
    let version = list(true)[0].deleted.clone().unwrap().0;
    let wrong = within(service.restore_container(&cx, "c", "nope", "c"));
    assert_eq!(denial(wrong), BlobDenial::ContainerNotFound);
    within(service.restore_container(&cx, "c", &version, "c")).unwrap();
    assert_eq!(bench.get("b").unwrap(), b"one");
}

#[test]
fn a_listing_is_in_order_and_goes_on_where_it_stopped() {
    let bench = Bench::new();
    for name in ["a/1", "a/2", "b", "B", "c/x/1", "c/y", "é"] {
        bench.put(name, b"x");
    }
    let plain = ListQuery { max: 100, ..ListQuery::default() };
    assert_eq!(bench.names(plain.clone()), ["B", "a/1", "a/2", "b", "c/x/1", "c/y", "é"]);
    let delimiter = Some("/".to_owned());
    let cut = ListQuery { delimiter, ..plain.clone() };
    assert_eq!(bench.names(cut.clone()), ["B", "a/*", "b", "c/*", "é"]);
    let below = ListQuery { prefix: "c/".into(), ..cut.clone() };
    assert_eq!(bench.names(below), ["c/x/*", "c/y"]);
    for (query, all) in [(plain, 7), (cut, 5)] {
        let mut from = None;
        let mut seen = 0;
        loop {
            let page = ListQuery { max: 1, from, ..query.clone() };
            let page = bench.service.list_blobs(&bench.cx(), "c", page).unwrap();
            seen += page.items.len();
            match page.next {
                None => break,
                next => from = next,
            }
        }
        assert_eq!(seen, all);
    }
}
