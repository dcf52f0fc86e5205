//! Snapshots: taken, read, listed, never written.

use crate::rest::fixture::Fixture;

#[test]
fn a_snapshot_keeps_what_was_there() {
    let fixture = Fixture::new();
    fixture.upload("a", b"old bytes");
    fixture.put("/docs/d?restype=directory", &[("x-ms-meta-k", "v")]).is(201);
    let got = fixture.put("/docs?restype=share&comp=snapshot", &[]).is(201);
    let snapshot = format!("sharesnapshot={}", got.header("x-ms-snapshot").replace(':', "%3A"));
    fixture.put_range("/docs/a", 0, b"new", &[]).is(201);
    let at = |target: &str| format!("{target}&{snapshot}");
    let file = format!("/docs/a?{snapshot}");
    assert_eq!(fixture.get(&file).is(200).text(), "old bytes");
    let got = fixture.ask("GET", &file, &[("x-ms-range", "bytes=4-99")], b"").is(206);
    assert_eq!((got.text().as_str(), got.header("content-range")), ("bytes", "bytes 4-8/9"));
    assert_eq!(fixture.head(&file).is(200).header("content-length"), "9");
    let list = fixture.get(&at("/docs?restype=directory&comp=list")).is(200).text();
    assert!(list.contains("<Name>a</Name>") && list.contains("ShareSnapshot="), "{list}");
    let got = fixture.get(&at("/docs/d?restype=directory")).is(200);
    assert_eq!(got.header("x-ms-meta-k"), "v");
    let ranges = fixture.get(&at("/docs/a?comp=rangelist")).is(200).text();
    assert!(ranges.contains("<Start>0</Start>"), "{ranges}");
    let shares = fixture.get("/?comp=list&include=snapshots").is(200).text();
    assert!(shares.contains("<Snapshot>"), "{shares}");
    fixture.put_range("/docs/a", 0, b"x", &[]).is(201);
    let delete = format!("/docs/a?{snapshot}");
    fixture.delete(&delete).refused(400, "ShareSnapshotOperationNotSupported");
    fixture.delete("/docs?restype=share").refused(409, "ShareHasSnapshots");
    fixture.get("/docs/a?sharesnapshot=yesterday").refused(400, "InvalidQueryParameterValue");
    let missing = "/docs/a?sharesnapshot=2001-01-01T00:00:00.0000000Z";
    fixture.get(missing).refused(404, "ShareSnapshotNotFound");
    fixture.delete(&at("/docs?restype=share")).is(202);
    fixture.get(&file).refused(404, "ShareSnapshotNotFound");
    fixture.delete("/docs?restype=share").is(202);
}

#[test]
fn a_directory_of_a_snapshot_is_listed_in_pages_by_prefix_in_any_case() {
    let fixture = Fixture::new();
    for name in ["aa", "Ab1", "ab2", "aB3", "b"] {
        fixture.upload(name, b"");
    }
    let got = fixture.put("/docs?restype=share&comp=snapshot", &[]).is(201);
    let snapshot = format!("sharesnapshot={}", got.header("x-ms-snapshot").replace(':', "%3A"));
    let target = format!("/docs?restype=directory&comp=list&prefix=AB&maxresults=2&{snapshot}");
    let first = fixture.get(&target).is(200).text();
    assert!(first.contains("<Name>Ab1</Name>") && first.contains("<Name>ab2</Name>"), "{first}");
    assert_eq!(first.matches("<Name>").count(), 2);
    let (_, marker) = first.split_once("<NextMarker>").unwrap();
    let (marker, _) = marker.split_once('<').unwrap();
    let last = fixture.get(&format!("{target}&marker={marker}")).is(200).text();
    assert!(last.contains("<Name>aB3</Name>"), "{last}");
    assert_eq!(last.matches("<Name>").count(), 1);
}
