//! Properties of the content of a blob: what sets them, clears them and shows them.

use latchfs::blob::service::BlobOptions;

use super::access::{signed, state_sas};
use super::fixture::{Blobs, Got};

const TYPE: &str = "x-ms-blob-content-type";
const MD5: &str = "x-ms-blob-content-md5";

#[test]
fn a_sas_overrides_the_content_headers_of_get_and_head() {
    let blobs = signed(BlobOptions::default());
    let overrides = ["no-store", "attachment", "br", "fr", "text/csv"];
    let target = format!("/con/b?{}", state_sas("con/b", "b", "", overrides));
    for method in ["GET", "HEAD"] {
        let got = blobs.ask(method, &target, &[], b"").is(200);
        let names = ["cache-control", "content-disposition", "content-encoding"];
        let names = [&names[..], &["content-language", "content-type"]].concat();
        for (name, value) in names.into_iter().zip(overrides) {
            assert_eq!(got.header(name), value, "{method} {name}");
        }
    }
}

fn described(got: &Got) -> [String; 6] {
    let names = ["content-type", "content-encoding", "content-language", "content-disposition"];
    let all = [names[0], names[1], names[2], names[3], "cache-control", "content-md5"];
    all.map(|name| got.header(name).to_owned())
}

const ALL: [(&str, &str); 6] = [
    (TYPE, "a/b"),
    ("x-ms-blob-content-encoding", "gzip"),
    ("x-ms-blob-content-language", "en"),
    ("x-ms-blob-content-disposition", "inline"),
    ("x-ms-blob-cache-control", "no-cache"),
    (MD5, "MDEyMzQ1Njc4OTAxMjM0NQ=="),
];

#[test]
fn set_blob_properties_without_a_property_clears_all() {
    let blobs = Blobs::new();
    blobs.upload("b", "one", &[]).is(201);
    blobs.put("/con/b?comp=properties", &ALL).is(200);
    let head = || described(&blobs.head("/con/b", &[]).is(200));
    assert_eq!(head(), ALL.map(|(_, value)| value.to_owned()));
    blobs.put("/con/b?comp=properties", &[]).is(200);
    assert_eq!(head(), [""; 6]);
    let listed = blobs.get("/con?restype=container&comp=list", &[]).is(200).text();
    assert!(listed.contains("<Content-Type></Content-Type>"), "{listed}");
    assert_eq!(blobs.text("b"), "one");
}

#[test]
fn a_resize_and_a_sequence_number_leave_the_properties() {
    let blobs = Blobs::new();
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")];
    blobs.put("/con/b", &[&page[..], &ALL].concat()).is(201);
    let before = described(&blobs.head("/con/b", &[]).is(200));
    let action = ("x-ms-sequence-number-action", "increment");
    for change in [("x-ms-blob-content-length", "1024"), action] {
        blobs.put("/con/b?comp=properties", &[change]).is(200);
        assert_eq!(described(&blobs.head("/con/b", &[]).is(200)), before, "{change:?}");
    }
}

/// Where a request has no content, its MD5 is a property like the others. With content it must be
/// one, and what is no base64 is none.
#[test]
fn an_md5_of_another_length_is_kept_where_there_is_nothing_to_compare_it_with() {
    let blobs = Blobs::new();
    let odd = (MD5, "MTIz");
    blobs.upload("b", "one", &[]).is(201);
    blobs.put("/con/b?comp=properties", &[odd]).is(200);
    blobs.put("/con/log", &[("x-ms-blob-type", "AppendBlob"), odd]).is(201);
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512"), odd];
    blobs.put("/con/page", &page).is(201);
    let list = b"<BlockList></BlockList>";
    blobs.ask("PUT", "/con/list?comp=blocklist", &[odd], list).is(201);
    for name in ["b", "log", "page", "list"] {
        let head = blobs.head(&format!("/con/{name}"), &[]).is(200);
        assert_eq!(head.header("content-md5"), "MTIz", "{name}");
    }
    let list = blobs.get("/con?restype=container&comp=list", &[]).is(200).text();
    assert_eq!(list.matches("<Content-MD5>MTIz</Content-MD5>").count(), 4, "{list}");
    blobs.upload("b", "two", &[odd]).refused(400, "InvalidMd5");
    blobs.upload("b", "two", &[("content-md5", "MTIz")]).refused(400, "InvalidMd5");
    blobs.put("/con/b?comp=properties", &[(MD5, "no base64")]).refused(400, "InvalidMd5");
    assert_eq!(blobs.text("b"), "one");
}

#[test]
fn a_crc64_of_another_length_is_a_mismatch() {
    let blobs = Blobs::new();
    blobs.upload("b", "one", &[]).is(201);
    let put = |crc: &str| blobs.upload("b", "two", &[("x-ms-content-crc64", crc)]);
    for crc in ["MTIz", "AAAAAAAAAAAAAA=="] {
        put(crc).refused(400, "Crc64Mismatch");
    }
    put("no base64").refused(400, "InvalidHeaderValue");
    assert_eq!(blobs.text("b"), "one");
}
