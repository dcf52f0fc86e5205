//! Sources of copies within the account: the right to read them, what is told of a refusal, and
//! what is taken from them.

use latchfs::blob::service::BlobOptions;

use super::access::{sas, signed};
use super::fixture::{Blobs, Got};
use crate::service::ask_by_key;

const VERIFY: &str = "CannotVerifyCopySource";
const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

/// The text of an element of an error.
fn element(got: &Got, name: &str) -> String {
    let text = got.text();
    let after = text.split(&format!("<{name}>")).nth(1).unwrap_or_default();
    after.split("</").next().unwrap_or_default().to_owned()
}

/// The requests that read a source, by their target and headers.
fn from_urls(source: &str) -> [(&'static str, Vec<(&'static str, &str)>); 5] {
    let from = ("x-ms-copy-source", source);
    let pages = vec![from, ("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511")];
    [
        ("/con/to", vec![from, BLOCK]),
        ("/con/to", vec![from, ("x-ms-requires-sync", "true")]),
        ("/con/parts?comp=block&blockid=AAAA", vec![from]),
        ("/con/log?comp=appendblock", vec![from]),
        ("/con/page?comp=page", pages),
    ]
}

fn with_destinations(blobs: &Blobs, query: &str) {
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")];
    blobs.put(&format!("/con/log?{query}"), &[("x-ms-blob-type", "AppendBlob")]).is(201);
    blobs.put(&format!("/con/page?{query}"), &page).is(201);
}

#[test]
fn a_refused_source_is_told_by_status_code_and_message() {
    let blobs = signed(BlobOptions::default());
    let all = sas("racwdl");
    with_destinations(&blobs, &all);
    let unsigned = "Server failed to authenticate the request. Please refer to the information in \
                    the www-authenticate header.";
    let letters = "This request is not authorized to perform this operation using this permission.";
    let cases = [
        (blobs.url("b"), "401", "NoAuthenticationInformation", unsigned),
        (
            format!("{}?{}", blobs.url("b"), sas("d")),
            "403",
            "AuthorizationPermissionMismatch",
            letters,
        ),
        (
            format!("{}?{all}", blobs.url("none")),
            "404",
            "BlobNotFound",
            "The specified blob does not exist.",
        ),
    ];
    for (source, status, code, message) in &cases {
        for (target, headers) in from_urls(source) {
            let joint = if target.contains('?') { '&' } else { '?' };
            let got = blobs.put(&format!("{target}{joint}{all}"), &headers);
            let got = got.refused(status.parse().unwrap(), VERIFY);
            let told = ["CopySourceStatusCode", "CopySourceErrorCode", "CopySourceErrorMessage"];
            assert_eq!(told.map(|name| element(&got, name)), [*status, code, message], "{target}");
            assert_eq!(got.header("x-ms-copy-source-error-code"), *code);
        }
    }
    blobs.head(&format!("/con/to?{all}"), &[]).is(404);
}

/// The account's key covers a source of Copy Blob without credentials of its own. Where the URL
/// has a SAS, the SAS counts.
#[test]
fn a_source_with_a_sas_has_the_rights_of_the_sas() {
    let blobs = signed(BlobOptions::default());
    let copy = |query: &str, more: &[(&str, &str)]| {
        let source = format!("{}{query}", blobs.url("b"));
        let headers = [&[("x-ms-copy-source", &*source)], more].concat();
        ask_by_key(blobs.addr(), "PUT", "/con/to", &headers, b"")
    };
    copy("", &[]).is(202);
    ask_by_key(blobs.addr(), "DELETE", "/con/to", &[], b"").is(202);
    let got = copy(&format!("?{}", sas("wd")), &[]).refused(403, VERIFY);
    let code = got.header("x-ms-copy-source-error-code");
    assert_eq!(code, "AuthorizationPermissionMismatch");
    copy("?sig=bad&sv=2024-11-04&sr=b&se=2099-01-01T00:00:00Z&sp=r", &[]).refused(403, VERIFY);
    ask_by_key(blobs.addr(), "HEAD", "/con/to", &[], b"").is(404);
    copy(&format!("?{}", sas("r")), &[]).is(202);
    // The operations that read a URL take a right in the URL alone.
    copy("", &[BLOCK]).refused(401, VERIFY);
}

#[test]
fn put_blob_from_url_takes_what_is_not_sent_from_its_source() {
    let blobs = Blobs::new();
    let properties = [
        ("x-ms-blob-content-type", "text/plain"),
        ("x-ms-blob-content-language", "en"),
        ("x-ms-blob-cache-control", "no-cache"),
    ];
    let md5 = blobs.upload("b", "bytes", &properties).is(201).header("content-md5").to_owned();
    let url = blobs.url("b");
    let put = |more: &[(&str, &str)]| {
        let headers = [&[("x-ms-copy-source", &*url), BLOCK], more].concat();
        blobs.put("/con/to", &headers).is(201);
        let got = blobs.head("/con/to", &[]).is(200);
        ["content-type", "content-language", "cache-control", "content-disposition", "content-md5"]
            .map(|name| got.header(name).to_owned())
    };
    let kept = ["text/plain", "en", "no-cache", "", &md5];
    assert_eq!(put(&[]), kept);
    let sent = [("x-ms-blob-content-type", "a/b"), ("x-ms-blob-content-disposition", "inline")];
    assert_eq!(put(&sent), ["a/b", "en", "no-cache", "inline", &md5]);
    let drop = ("x-ms-copy-source-blob-properties", "false");
    assert_eq!(put(&[&sent[..], &[drop]].concat()), ["a/b", "", "", "inline", ""]);
    assert_eq!(put(&[drop]), ["application/octet-stream", "", "", "", ""]);
}
