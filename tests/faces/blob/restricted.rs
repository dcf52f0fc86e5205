//! Terms of a grant beside the letters of its operation: public containers, tags, immutability,
//! encryption scopes, protocols.

use latchfs::blob::service::BlobOptions;

use super::access::{container_sas, open_to, sas, scoped_sas, signed};
use super::fixture::{ACCOUNT, Blobs, Got};

const MISMATCH: &str = "AuthorizationPermissionMismatch";
const ANONYMOUS: &str = "NoAuthenticationInformation";
const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");

/// A server whose public container `con` has a blob with tags and an uncommitted block.
fn public() -> Blobs {
    let blobs = signed(BlobOptions::default());
    let all = sas("racwdltf");
    let tags = [BLOCK, ("x-ms-tags", "k=secret")];
    blobs.ask("PUT", &format!("/con/b?{all}"), &tags, b"public").is(201);
    let block = format!("/con/b?comp=block&blockid=AAAA&{all}");
    blobs.ask("PUT", &block, &[], b"uncommitted").is(201);
    open_to(&blobs, Some("container"));
    blobs
}

#[test]
fn a_public_container_shows_what_is_committed_and_no_tags() {
    let blobs = public();
    let blocks = "/con/b?comp=blocklist";
    blobs.get(blocks, &[]).is(200);
    blobs.get(&format!("{blocks}&blocklisttype=committed"), &[]).is(200);
    for kind in ["all", "uncommitted"] {
        blobs.get(&format!("{blocks}&blocklisttype={kind}"), &[]).refused(401, ANONYMOUS);
        let signed = format!("{blocks}&blocklisttype={kind}&{}", container_sas("r"));
        blobs.get(&signed, &[]).is(200);
    }
    let list = "/con?restype=container&comp=list&include=";
    for include in ["", "metadata", "snapshots", "versions", "copy"] {
        blobs.get(&format!("{list}{include}"), &[]).is(200);
    }
    for include in ["tags", "deleted", "uncommittedblobs", "metadata,deletedwithversions"] {
        let got = blobs.get(&format!("{list}{include}"), &[]).refused(401, ANONYMOUS);
        assert!(!got.header("www-authenticate").is_empty(), "{include}");
        blobs.get(&format!("{list}{include}&{}", container_sas("lt")), &[]).is(200);
    }
    for value in ["secret", "guess"] {
        let condition = format!("\"k\" = '{value}'");
        blobs.get("/con/b", &[("x-ms-if-tags", &condition)]).refused(401, ANONYMOUS);
    }
    blobs.get("/con/b", &[]).is(200);
}

#[test]
fn tags_in_a_list_take_their_letter() {
    let blobs = public();
    let list = |letters: &str| {
        let sas = container_sas(letters);
        blobs.get(&format!("/con?restype=container&comp=list&include=tags&{sas}"), &[])
    };
    list("l").refused(403, MISMATCH);
    assert!(list("lt").is(200).text().contains("secret"));
}

#[test]
fn a_write_that_makes_a_blob_immutable_takes_the_letter_of_immutability() {
    let blobs = signed(BlobOptions::default());
    let until = ("x-ms-immutability-policy-until-date", "Thu, 01 Jan 2099 00:00:00 GMT");
    let source = format!("{}?{}", blobs.url("b"), sas("r"));
    let from = ("x-ms-copy-source", source.as_str());
    for more in [until, ("x-ms-legal-hold", "true"), ("x-ms-legal-hold", "false")] {
        let list = b"<BlockList></BlockList>";
        let writes = [
            ("/con/put?", vec![BLOCK, more], &b"x"[..]),
            ("/con/log?", vec![("x-ms-blob-type", "AppendBlob"), more], b""),
            ("/con/list?comp=blocklist&", vec![more], list),
            ("/con/copy?", vec![from, more], b""),
        ];
        for (target, headers, body) in writes {
            let put = |letters: &str| {
                blobs.ask("PUT", &format!("{target}{}", container_sas(letters)), &headers, body)
            };
            put("cw").refused(403, MISMATCH);
        }
    }
    let target = format!("/con/held?{}", container_sas("cwi"));
    blobs.ask("PUT", &target, &[BLOCK, ("x-ms-legal-hold", "true")], b"x").is(201);
}

#[test]
fn a_copy_that_uses_tags_takes_their_letter_on_both_sides() {
    let blobs = public();
    let copy = |letters: &str, source: &str, more: (&str, &str)| {
        let source = format!("{}{source}", blobs.url("b"));
        let sync = ("x-ms-requires-sync", "true");
        let headers = [("x-ms-copy-source", &*source), sync, more];
        blobs.put(&format!("/con/to?{}", container_sas(letters)), &headers)
    };
    let with = |letters: &str| format!("?{}", container_sas(letters));
    let verify = "CannotVerifyCopySource";
    let option = ("x-ms-copy-source-tag-option", "COPY");
    copy("cw", &with("rt"), option).refused(403, MISMATCH);
    copy("cwt", &with("r"), option).refused(403, verify);
    copy("cwt", "", option).refused(401, verify);
    copy("cwt", &with("rt"), option).is(202);
    let tags = blobs.get(&format!("/con/to?comp=tags&{}", sas("t")), &[]).is(200).text();
    assert!(tags.contains("secret"), "{tags}");
    for value in ["secret", "guess"] {
        let condition = format!("\"k\" = '{value}'");
        let condition = ("x-ms-source-if-tags", condition.as_str());
        copy("cw", &with("r"), condition).refused(403, verify);
        copy("cw", "", condition).refused(401, verify);
    }
    copy("cw", &with("rt"), ("x-ms-source-if-tags", "\"k\" = 'secret'")).is(202);
    copy("cw", &with("r"), ("x-ms-copy-source-tag-option", "REPLACE")).is(202);
}

#[test]
fn a_source_for_https_alone_is_not_read_over_http_whatever_its_url_says() {
    let blobs = signed(BlobOptions::default());
    let secure = scoped_sas("r", "https", "");
    blobs.get(&format!("/con/b?{secure}"), &[]).refused(403, "AuthorizationProtocolMismatch");
    for scheme in ["http", "https"] {
        let url = blobs.url("b").replace("http", scheme);
        let source = format!("{url}?{secure}");
        let headers = [("x-ms-copy-source", &*source), ("x-ms-requires-sync", "true")];
        let got = blobs.put(&format!("/con/to?{}", sas("cw")), &headers);
        let got = got.refused(403, "CannotVerifyCopySource");
        let code = got.header("x-ms-copy-source-error-code");
        assert_eq!(code, "AuthorizationProtocolMismatch", "{scheme}");
    }
}

/// The encryption scope of a blob.
fn scope(blobs: &Blobs, target: &str) -> String {
    let got = blobs.head(&format!("{target}?{}", sas("r")), &[]).is(200);
    got.header("x-ms-encryption-scope").to_owned()
}

#[test]
fn a_sas_for_an_encryption_scope_writes_with_no_other() {
    let blobs = signed(BlobOptions::default());
    let scoped = scoped_sas("racw", "", "one");
    let put = |name: &str, more: &[(&str, &str)]| {
        let headers = [&[BLOCK], more].concat();
        blobs.ask("PUT", &format!("/con/{name}?{scoped}"), &headers, b"x")
    };
    let other = ("x-ms-encryption-scope", "two");
    put("a", &[other]).refused(403, "AuthorizationFailure");
    blobs.head(&format!("/con/a?{}", sas("r")), &[]).is(404);
    put("a", &[]).is(201);
    put("b", &[("x-ms-encryption-scope", "one")]).is(201);
    assert_eq!((scope(&blobs, "/con/a"), scope(&blobs, "/con/b")), ("one".into(), "one".into()));
    let block = format!("/con/a?comp=block&blockid=AAAA&{scoped}");
    blobs.ask("PUT", &block, &[other], b"x").refused(403, "AuthorizationFailure");
    let list = blobs.get(&format!("/con/a?comp=blocklist&blocklisttype=all&{scoped}"), &[]);
    assert!(!list.is(200).text().contains("AAAA"), "a refusal comes before the block is kept");
    let key = format!("/con/c?{}", sas("cw"));
    blobs.ask("PUT", &key, &[BLOCK, other], b"x").is(201);
    assert_eq!(scope(&blobs, "/con/c"), "two");
}

#[test]
fn the_default_encryption_scope_of_a_container_is_inherited_and_may_be_the_only_one() {
    let blobs = Blobs::new();
    let default = ("x-ms-default-encryption-scope", "usual");
    for (name, only) in [("open", "false"), ("strict", "true")] {
        let headers = [default, ("x-ms-deny-encryption-scope-override", only)];
        blobs.put(&format!("/{name}?restype=container"), &headers).is(201);
    }
    let scope =
        |target: &str| blobs.head(target, &[]).is(200).header("x-ms-encryption-scope").to_owned();
    let put = |target: &str, more: &[(&str, &str)]| -> Got {
        blobs.ask("PUT", target, &[&[BLOCK], more].concat(), b"x")
    };
    let (usual, other) = (("x-ms-encryption-scope", "usual"), ("x-ms-encryption-scope", "other"));
    for name in ["open", "strict"] {
        assert_eq!(put(&format!("/{name}/a"), &[]).is(201).header(usual.0), "usual");
        put(&format!("/{name}/b"), &[usual]).is(201);
        assert_eq!((scope(&format!("/{name}/a")), scope(&format!("/{name}/b"))), {
            ("usual".to_owned(), "usual".to_owned())
        });
    }
    put("/open/c", &[other]).is(201);
    assert_eq!(scope("/open/c"), "other");
    let forbidden = "RequestForbiddenByContainerEncryptionPolicy";
    put("/strict/c", &[other]).refused(403, forbidden);
    let source = format!("http://{}/{ACCOUNT}/open/a", blobs.addr());
    let copy = [("x-ms-copy-source", &*source), other];
    blobs.put("/strict/d", &copy).refused(403, forbidden);
    let list = b"<BlockList></BlockList>";
    blobs.ask("PUT", "/strict/e?comp=blocklist", &[other], list).refused(403, forbidden);
    for name in ["c", "d", "e"] {
        blobs.head(&format!("/strict/{name}"), &[]).is(404);
    }
    put("/con/plain", &[]).is(201);
    assert_eq!(scope("/con/plain"), "");
}
