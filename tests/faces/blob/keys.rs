//! Customer-provided keys: their form, the key of a source, and the answers that repeat a key.

use super::fixture::{Blobs, KEYS};

const SHA256: &str = "x-ms-encryption-key-sha256";

/// The headers of a key as those of the source of a copy.
fn of_source(key: [(&str, &str); 3]) -> Vec<(String, String)> {
    let renamed = |name: &str| name.replace("x-ms-", "x-ms-source-");
    key.iter().map(|(name, value)| (renamed(name), (*value).to_owned())).collect()
}

#[test]
fn a_key_comes_with_its_sha256_and_fits_it() {
    let blobs = Blobs::new();
    let [[key, sha256, algorithm], [_, other_sha256, _]] = KEYS;
    for (headers, code) in [
        (vec![key], "MissingRequiredHeader"),
        (vec![sha256], "MissingRequiredHeader"),
        (vec![algorithm], "MissingRequiredHeader"),
        (vec![key, other_sha256], "InvalidHeaderValue"),
        (vec![("x-ms-encryption-key", "short"), sha256], "InvalidHeaderValue"),
        (vec![("x-ms-encryption-key", "AAAA"), sha256], "InvalidHeaderValue"),
        (vec![key, sha256, ("x-ms-encryption-algorithm", "DES")], "InvalidHeaderValue"),
    ] {
        let got = blobs.upload("k", "x", &headers);
        assert!(!got.text().contains(key.1), "the refusal repeats the key: {}", got.text());
        got.refused(400, code);
    }
    blobs.get("/con/k", &[]).is(404);
    let put = blobs.upload("k", "x", &[key, sha256]).is(201);
    assert_eq!(put.header(SHA256), sha256.1);
}

#[test]
fn put_block_repeats_the_key_and_the_scope() {
    let blobs = Blobs::new();
    let mut headers = KEYS[0].to_vec();
    headers.push(("x-ms-encryption-scope", "scope"));
    let put = blobs.ask("PUT", "/con/k?comp=block&blockid=AAAA", &headers, b"x").is(201);
    assert_eq!(put.header(SHA256), KEYS[0][1].1);
    assert_eq!(put.header("x-ms-encryption-scope"), "scope");
}

#[test]
fn the_forms_from_a_url_take_the_key_of_their_source() {
    let blobs = Blobs::new();
    let [key, other] = KEYS;
    let bytes = "x".repeat(512);
    blobs.upload("source", &bytes, &key).is(201);
    blobs.put("/con/log", &[("x-ms-blob-type", "AppendBlob")]).is(201);
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")];
    blobs.put("/con/page", &page).is(201);
    let url = blobs.url("source");
    let from = ("x-ms-copy-source", url.as_str());
    let pages = [from, ("x-ms-page-write", "update"), ("x-ms-range", "bytes=0-511")];
    for (target, headers) in [
        ("/con/to", vec![from, ("x-ms-blob-type", "BlockBlob")]),
        ("/con/blocks?comp=block&blockid=AAAA", vec![from]),
        ("/con/log?comp=appendblock", vec![from]),
        ("/con/page?comp=page", [&pages[..], &[("x-ms-source-range", "bytes=0-511")]].concat()),
    ] {
        let with = |key: Option<[(&str, &str); 3]>| {
            let key = key.map(of_source).unwrap_or_default();
            let key = key.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            blobs.put(target, &headers.iter().copied().chain(key).collect::<Vec<_>>())
        };
        let (uses, mismatch) =
            ("BlobUsesCustomerSpecifiedEncryption", "BlobCustomerSpecifiedEncryptionMismatch");
        for (key, code) in [(None, uses), (Some(other), mismatch)] {
            let got = with(key).refused(409, "CannotVerifyCopySource");
            assert_eq!(got.header("x-ms-copy-source-error-code"), code, "{target}");
        }
        with(Some(key)).is(201);
    }
    assert_eq!(blobs.text("to"), bytes);
    assert_eq!(blobs.text("log"), bytes);
    assert_eq!(blobs.text("page"), bytes);
}

#[test]
fn blocks_are_committed_with_the_key_they_were_put_with() {
    let blobs = Blobs::new();
    let [key, other] = KEYS;
    let block = |id: &str, headers: &[(&str, &str)]| {
        blobs.ask("PUT", &format!("/con/k?comp=block&blockid={id}"), headers, b"x")
    };
    let commit = |headers: &[(&str, &str)], ids: &[&str]| {
        let ids: Vec<_> = ids.iter().map(|id| format!("<Latest>{id}</Latest>")).collect();
        let list = format!("<BlockList>{}</BlockList>", ids.concat());
        blobs.ask("PUT", "/con/k?comp=blocklist", headers, list.as_bytes())
    };
    let (uses, mismatch) =
        ("BlobUsesCustomerSpecifiedEncryption", "BlobCustomerSpecifiedEncryptionMismatch");
    // Of a blob that is not there yet, and of one that is.
    for _ in 0..2 {
        block("AAAA", &key).is(201);
        block("BBBB", &[]).refused(409, uses);
        block("BBBB", &other).refused(409, mismatch);
        block("BBBB", &key).is(201);
        commit(&[], &["AAAA"]).refused(409, uses);
        commit(&other, &["AAAA"]).refused(409, mismatch);
        commit(&key, &["AAAA"]).is(201);
    }
    // Committed blocks have the key of the blob.
    commit(&other, &["AAAA"]).refused(409, mismatch);
    // New content may have another key, or none.
    block("CCCC", &[]).is(201);
    commit(&key, &["CCCC"]).refused(409, "BlobDoesNotUseCustomerSpecifiedEncryption");
    commit(&[], &["CCCC"]).is(201);
    assert_eq!(blobs.text("k"), "x");
    // The only block may be put again with another key.
    block("DDDD", &key).is(201);
    block("DDDD", &[]).is(201);
    commit(&[], &["DDDD"]).is(201);
}
