//! Settings that move the `ETag` or not.

use super::*;
use crate::blob::rules::ContentProperties;
use crate::blob::rules::tags::Tags;
use crate::blob::rules::tier::Tier;

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
