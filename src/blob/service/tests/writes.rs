//! Put Blob and its conditions, settings that move the `ETag` or not, and who wrote last.

use super::*;
use crate::blob::rules::tags::Tags;
use crate::blob::rules::tags::query::{TagLanguage, TagQuery};
use crate::blob::rules::tier::Tier;
use crate::blob::rules::{ContentProperties, PublicAccess};
use crate::rules::conditions::{Condition, ConditionFailure};

const NOT_MET: BlobDenial = BlobDenial::Condition(ConditionFailure::NotMet(Condition::Match));

#[test]
fn what_is_put_is_read_and_the_last_write_wins() {
    let bench = Bench::new();
    let first = bench.put("b", b"one");
    assert_eq!(bench.get("b").unwrap(), b"one");
    let second = bench.put("b", b"other");
    assert!(second.etag > first.etag);
    assert_eq!(bench.get("b").unwrap(), b"other");
    assert_eq!(bench.head("b").unwrap().state.etag, second.etag);
    let large = vec![7; 3_000_000];
    bench.put("large", &large);
    assert_eq!(bench.get("large").unwrap(), large);
    bench.put("empty", b"");
    assert_eq!(bench.get("empty").unwrap(), b"");
}

#[test]
fn a_condition_that_fails_changes_nothing_and_names_the_last_writer() {
    let bench = Bench::new();
    let first = bench.put("b", b"one");
    let body = bench.body_whole(b"by another");
    let cx = bench.cx_of("5f");
    let put = within(bench.service.put_blob(
        &cx,
        &at("b"),
        AccessConditions::default(),
        BlobType::Block,
        NewBlob::default(),
        body,
    ));
    put.unwrap();
    match bench.put_asked("b", b"late", if_match(first.etag)) {
        Err(BlobError::Denied { denial, writer, .. }) => {
            assert_eq!(denial, NOT_MET);
            let writer = writer.unwrap();
            assert_eq!(writer.operation, "Put Blob");
            assert_eq!(writer.client_request.as_deref(), Some("5f"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.get("b").unwrap(), b"by another");
    let standing = bench.service.why(bench.cx().now, &at("b")).unwrap();
    let requests: Vec<_> =
        standing.changes.iter().map(|change| change.by.client_request.clone().unwrap()).collect();
    assert_eq!(requests, ["5f", "tester"]);
}

#[test]
fn properties_and_metadata_move_the_etag_and_tags_and_tier_do_not() {
    let mut bench = Bench::new();
    let first = bench.put("b", b"one");
    bench.pass(10);
    let (service, cx, b) = (&bench.service, bench.cx(), at("b"));
    let content_type = Some("text/plain".to_owned());
    let content = ContentProperties { content_type, ..ContentProperties::default() };
    let set =
        within(service.set_properties(&cx, &b, AccessConditions::default(), content)).unwrap();
    assert!(set.etag > first.etag && set.modified > first.modified);
    let metadata = vec![("k".to_owned(), "v".to_owned())];
    let meta =
        within(service.set_metadata(&cx, &b, AccessConditions::default(), metadata)).unwrap();
    assert!(meta.etag > set.etag);
    let tags = Tags::new([("t".to_owned(), "1".to_owned())]).unwrap();
    within(service.set_tags(&cx, &b, AccessConditions::default(), tags)).unwrap();
    within(service.set_tier(&cx, &b, AccessConditions::default(), Tier::Cool)).unwrap();
    let blob = bench.head("b").unwrap().state;
    assert_eq!((blob.etag, blob.tags.len()), (meta.etag, 1));
    assert_eq!(blob.tier.tier(bench.now), Tier::Cool);
    assert_eq!(blob.content.shown_type(), "text/plain");
    assert_eq!(blob.created, START);
    let again = bench.put("b", b"two");
    assert_eq!(again.state.created, START, "the creation time survives overwriting");
    assert!(again.state.tags.is_empty() && again.state.metadata.is_empty());
    assert_eq!(again.state.tier.tier(bench.now), Tier::Cool, "the tier is inherited");
}

#[test]
fn blobs_are_found_by_their_tags_at_once_and_no_longer_once_they_are_gone() {
    let bench = Bench::new();
    let tagged = |name: &str, value: &str| {
        let tags = Tags::new([("t".to_owned(), value.to_owned())]).unwrap();
        let new = NewBlob { tags, ..NewBlob::default() };
        let body = bench.body_whole(b"x");
        let put = within(bench.service.put_blob(
            &bench.cx(),
            &at(name),
            AccessConditions::default(),
            BlobType::Block,
            new,
            body,
        ));
        put.unwrap();
    };
    let found = |text: &str, max| {
        let query = TagQuery::parse(text, TagLanguage::Find).unwrap();
        let (found, next) = bench.service.find_blobs(&bench.cx(), None, &query, None, max).unwrap();
        (found.into_iter().map(|one| one.name).collect::<Vec<_>>(), next)
    };
    for (name, value) in [("a", "1"), ("b", "2"), ("d", "3")] {
        tagged(name, value);
    }
    assert_eq!(found("t = '2'", 10).0, ["b"]);
    assert_eq!(found("t >= '2' AND @container = 'c'", 10).0, ["b", "d"]);
    assert_eq!(found("t >= '1' AND t < '3'", 10).0, ["a", "b"]);
    assert_eq!(found("@container = 'other' AND t = '2'", 10).0, Vec::<String>::new());
    let (first, next) = found("t >= '1'", 2);
    assert_eq!((first, next), (vec!["a".into(), "b".into()], Some(("c".into(), "d".into()))));
    bench.delete("b").unwrap();
    bench.put("d", b"without tags");
    assert_eq!(found("t >= '1'", 10).0, ["a"]);
}

#[test]
fn writers_that_race_with_one_etag_have_one_winner() {
    let bench = Bench::new();
    let first = bench.put("b", b"start");
    let bodies: Vec<_> = (0..100).map(|_| bench.body_whole(b"mine")).collect();
    let service = Arc::new(bench.service);
    let client = Arc::new(Client { session: 1, name: "test".into() });
    let owner = Arc::new(Owner { client, pid: 0, program: None });
    let cx = Context::new(START, Caller::local(owner, "test"));
    let threads: Vec<_> = bodies
        .into_iter()
        .map(|body| {
            let (service, cx) = (Arc::clone(&service), cx.clone());
            std::thread::spawn(move || {
                let (asked, new) = (if_match(first.etag), NewBlob::default());
                within(service.put_blob(&cx, &at("b"), asked, BlobType::Block, new, body)).is_ok()
            })
        })
        .collect();
    let won = threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won).count();
    assert_eq!(won, 1);
}

#[test]
fn a_container_has_an_etag_of_its_own_that_blobs_do_not_move() {
    let bench = Bench::new();
    let (service, cx) = (&bench.service, bench.cx());
    let state = || {
        let operation = BlobOperation::ContainerGetProperties;
        service.container(&cx, operation, "c", &AccessConditions::default()).unwrap()
    };
    let before = state();
    bench.put("b", b"one");
    bench.delete("b").unwrap();
    assert_eq!(state().etag, before.etag);
    let again = within(service.create_container(&cx, "c", NewContainer::default()));
    assert_eq!(denial(again), BlobDenial::ContainerAlreadyExists);
    let metadata = vec![("k".to_owned(), "v".to_owned())];
    let set =
        within(service.set_container_metadata(&cx, "c", AccessConditions::default(), metadata))
            .unwrap();
    assert!(set.etag > before.etag);
    let late = within(service.set_container_access(
        &cx,
        "c",
        if_match(before.etag),
        PublicAccess::Blob,
        Vec::new(),
    ));
    assert_eq!(denial(late), NOT_MET);
    bench.put("b", b"one");
    within(service.delete_container(&cx, "c", AccessConditions::default())).unwrap();
    assert_eq!(denial(bench.get("b")), BlobDenial::ContainerNotFound);
    within(service.create_container(&cx, "c", NewContainer::default())).unwrap();
    assert_eq!(denial(bench.get("b")), BlobDenial::BlobNotFound);
}
