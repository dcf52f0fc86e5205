//! Containers that are deleted and kept.

use super::*;

#[test]
fn a_deleted_container_is_kept_like_a_blob() {
    let bench = Bench::new();
    bench.service.set_retention(Retention { days: Some(7), permanent_delete: false });
    bench.put("b", b"one");
    let (service, cx) = (&bench.service, bench.cx());
    within(service.delete_container(&cx, "c", AccessConditions::default())).unwrap();
    let list = |deleted| {
        let page = service.list_containers(&cx, "", None, 10, deleted).unwrap();
        page.containers
    };
    assert!(list(false).is_empty());
    let version = list(true)[0].retained.clone().unwrap().0;
    let wrong = within(service.restore_container(&cx, "c", "nope", "c"));
    assert_eq!(denial(wrong), BlobDenial::ContainerNotFound);
    within(service.restore_container(&cx, "c", &version, "c")).unwrap();
    assert_eq!(bench.get("b").unwrap(), b"one");
}
