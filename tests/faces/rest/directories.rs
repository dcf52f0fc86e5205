//! Directories: create, properties, listing page by page, rename, delete.

use crate::rest::fixture::Fixture;

#[test]
fn a_directory_is_made_shown_and_deleted() {
    let fixture = Fixture::new();
    let target = "/docs/d?restype=directory";
    let got = fixture.put(target, &[("x-ms-meta-a", "1")]).is(201);
    assert_eq!(got.header("x-ms-file-attributes"), "Directory");
    fixture.put(target, &[]).refused(409, "ResourceAlreadyExists");
    fixture.put("/docs/x/d?restype=directory", &[]).refused(404, "ParentNotFound");
    assert_eq!(fixture.get(target).is(200).header("x-ms-meta-a"), "1");
    fixture.head(target).is(200);
    fixture.get("/docs?restype=directory").is(200);
    let set = [("x-ms-file-attributes", "Hidden|Directory")];
    let got = fixture.put("/docs/d?restype=directory&comp=properties", &set).is(200);
    assert_eq!(got.header("x-ms-file-attributes"), "Hidden | Directory");
    fixture.put("/docs/d?restype=directory&comp=metadata", &[("x-ms-meta-b", "2")]).is(200);
    assert_eq!(fixture.get(target).header("x-ms-meta-b"), "2");
    fixture.upload("d%2Ff", b"f");
    fixture.delete(target).refused(409, "DirectoryNotEmpty");
    fixture.delete("/docs/d/f").is(202);
    fixture.delete(target).is(202);
    fixture.get(target).refused(404, "ResourceNotFound");
    fixture.delete("/docs?restype=directory").refused(409, "CannotDeleteFileOrDirectory");
}

#[test]
fn the_wrong_kind_is_not_found_when_looked_at_and_a_mismatch_when_changed() {
    let fixture = Fixture::new();
    fixture.upload("f", b"f");
    fixture.put("/docs/d?restype=directory", &[]).is(201);
    fixture.get("/docs/f?restype=directory").refused(404, "ResourceNotFound");
    fixture.get("/docs/d").refused(404, "ResourceNotFound");
    fixture.head("/docs/d").refused(404, "ResourceNotFound");
    let create = [("x-ms-type", "file"), ("x-ms-content-length", "0")];
    fixture.put("/docs/d", &create).refused(409, "ResourceTypeMismatch");
    fixture.delete("/docs/d").refused(409, "ResourceTypeMismatch");
}

#[test]
fn a_directory_is_listed_in_pages() {
    let fixture = Fixture::new();
    fixture.put("/docs/Dir?restype=directory", &[]).is(201);
    fixture.upload("b&b", b"12");
    fixture.upload("c", b"");
    let list = |more: &str| {
        fixture.get(&format!("/docs/?restype=directory&comp=list{more}")).is(200).text()
    };
    let all = list("");
    assert!(all.contains("ShareName=\"docs\" DirectoryPath=\"\""), "{all}");
    assert!(all.contains("<File><Name>b&amp;b</Name>"), "{all}");
    assert!(all.contains("<Content-Length>2</Content-Length></Properties>"), "{all}");
    assert!(all.contains("<Directory><Name>Dir</Name>"), "{all}");
    assert!(all.contains("<NextMarker></NextMarker>"), "{all}");
    let first = list("&maxresults=2");
    let marker = first.split("<NextMarker>").nth(1).unwrap().split('<').next().unwrap();
    let second = list(&format!("&maxresults=2&marker={marker}"));
    assert!(first.contains("b&amp;b") && first.contains("<Name>c</Name>"), "{first}");
    assert!(second.contains("<Name>Dir</Name>") && !second.contains("<Name>c<"), "{second}");
    let told = list("&include=timestamps,Etag,attributes&prefix=C");
    assert!(told.contains("<LastWriteTime>") && told.contains("<Attributes>Archive<"), "{told}");
    assert!(told.contains("<Etag>") && !told.contains("b&amp;b"), "{told}");
    let target = "/docs?restype=directory&comp=list";
    fixture.get(&format!("{target}&maxresults=0")).refused(400, "OutOfRangeQueryParameterValue");
    fixture.get(&format!("{target}&marker=%21")).refused(400, "InvalidContinuationToken");
    fixture.get("/docs/x?restype=directory&comp=list").refused(404, "ResourceNotFound");
}

#[test]
fn a_directory_is_renamed_with_what_is_in_it() {
    let fixture = Fixture::new();
    fixture.put("/docs/d?restype=directory", &[]).is(201);
    fixture.upload("d/f", b"f");
    let url = format!("http://{}/devstoreaccount1/docs/d", fixture.server.addr());
    let source = [("x-ms-file-rename-source", url.as_str())];
    fixture.put("/docs/e?restype=directory&comp=rename", &source).is(200);
    assert_eq!(fixture.get("/docs/e/f").is(200).text(), "f");
    let again = fixture.put("/docs/g?restype=directory&comp=rename", &source);
    again.refused(404, "ResourceNotFound");
}
