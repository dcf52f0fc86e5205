//! Snapshots, versions, soft delete, copies, tiers and keys: B141 to B149, B151, B152, B158,
//! B160, B169, B170.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use latchfs::blob::service::BlobOptions;
use md5::{Digest as _, Md5};

use super::fixture::{A, Blobs, Got, KEYS};

fn with_blob() -> Blobs {
    let blobs = Blobs::new();
    blobs.blob("one");
    blobs
}

fn snapshot(blobs: &Blobs) -> String {
    blobs.put("/con/b?comp=snapshot", &[]).is(201).header("x-ms-snapshot").to_owned()
}

#[test]
fn b141_a_blob_with_snapshots_is_deleted_by_choice() {
    let blobs = with_blob();
    let taken = snapshot(&blobs);
    let older = format!("/con/b?snapshot={taken}");
    let delete =
        |target: &str, word: &str| blobs.delete(target, &[("x-ms-delete-snapshots", word)]);
    blobs.delete("/con/b", &[]).refused(409, "SnapshotsPresent");
    delete(&older, "only").refused(400, "InvalidQueryParameterValue");
    delete("/con/b", "some").refused(400, "InvalidHeaderValue");
    delete("/con/b", "only").is(202);
    blobs.get(&older, &[]).refused(404, "BlobNotFound");
    blobs.get("/con/b", &[]).is(200);
    let older = format!("/con/b?snapshot={}", snapshot(&blobs));
    delete("/con/b", "include").is(202);
    blobs.get("/con/b", &[]).refused(404, "BlobNotFound");
    blobs.get(&older, &[]).refused(404, "BlobNotFound");
}

#[test]
fn b142_a_snapshot_is_never_written() {
    let blobs = with_blob();
    let etag = blobs.etag("/con/b");
    let older = format!("snapshot={}", snapshot(&blobs));
    let code = "InvalidQueryParameterValue";
    let block = [("x-ms-blob-type", "BlockBlob")];
    blobs.ask("PUT", &format!("/con/b?{older}"), &block, b"x").refused(400, code);
    for comp in ["metadata", "properties", "snapshot", "blocklist", "block&blockid=AAAA"] {
        blobs.put(&format!("/con/b?{older}&comp={comp}"), &[]).refused(400, code);
    }
    assert_eq!((blobs.text("b"), blobs.etag("/con/b")), ("one".to_owned(), etag));
}

#[test]
fn b143_a_snapshot_is_copied_over_its_blob_and_stays() {
    let blobs = with_blob();
    let taken = snapshot(&blobs);
    blobs.upload("b", "two", &[]).is(201);
    let url = format!("{}?snapshot={taken}", blobs.url("b"));
    blobs.put("/con/b", &[("x-ms-copy-source", &url)]).is(202);
    assert_eq!(blobs.text("b"), "one");
    assert_eq!(blobs.get(&format!("/con/b?snapshot={taken}"), &[]).is(200).text(), "one");
}

#[test]
fn b144_a_snapshot_and_a_version_exclude_each_other() {
    let blobs = with_blob();
    let taken = snapshot(&blobs);
    blobs
        .get(&format!("/con/b?snapshot={taken}&versionid={taken}"), &[])
        .refused(400, "MutuallyExclusiveQueryParameters");
    blobs.get("/con/b?snapshot=yesterday", &[]).refused(400, "InvalidQueryParameterValue");
}

#[test]
fn b145_every_write_leaves_a_version() {
    let blobs = Blobs::with(BlobOptions { versioning: true, ..BlobOptions::default() });
    let id = |body: &str| blobs.upload("b", body, &[]).is(201).header("x-ms-version-id").to_owned();
    let (first, second) = (id("one"), id("two"));
    assert_ne!(first, second);
    assert_eq!(blobs.get(&format!("/con/b?versionid={first}"), &[]).is(200).text(), "one");
    let current = format!("/con/b?versionid={second}");
    let head = blobs.head(&current, &[]).is(200);
    assert_eq!(head.header("x-ms-is-current-version"), "true");
    blobs.delete(&current, &[]).refused(403, "OperationNotAllowedOnRootBlob");
    blobs.delete(&format!("/con/b?versionid={first}"), &[]).is(202);
    blobs.delete("/con/b", &[]).is(202);
    blobs.get("/con/b", &[]).refused(404, "BlobNotFound");
    blobs.get(&current, &[]).is(200);
}

#[test]
fn a_deleted_blob_with_versions_is_listed_once_as_having_only_versions() {
    let blobs = Blobs::with(BlobOptions { versioning: true, ..BlobOptions::default() });
    for (name, body) in [("a", "one"), ("a", "two"), ("b", "one"), ("b", "two")] {
        blobs.upload(name, body, &[]).is(201);
    }
    blobs.delete("/con/a", &[]).is(202);
    let list = |include: &str| {
        let path = format!("/con?restype=container&comp=list&include={include}");
        let text = blobs.get(&path, &[]).is(200).text();
        let entries = text.split("<Blob>").skip(1);
        let entry = |text: &str| {
            let name = text.split(['<', '>']).nth(2).unwrap().to_owned();
            (name, text.contains("<HasVersionsOnly>true</HasVersionsOnly>"))
        };
        entries.map(entry).collect::<Vec<_>>()
    };
    let (a, b) = (|only| ("a".to_owned(), only), || ("b".to_owned(), false));
    assert_eq!(list("deletedwithversions"), [a(true), b()]);
    assert_eq!(list("versions"), [a(false), a(false), b(), b()]);
    assert_eq!(list("versions,deletedwithversions"), [a(false), a(true), b(), b()]);
    assert_eq!(list("metadata"), [b()]);
}

#[test]
fn b146_a_deleted_blob_is_kept_and_comes_back() {
    let blobs = with_blob();
    let properties = b"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled>\
                       <Days>7</Days></DeleteRetentionPolicy></StorageServiceProperties>";
    blobs.ask("PUT", "/?restype=service&comp=properties", &[], properties).is(202);
    let shown = blobs.get("/?restype=service&comp=properties", &[]).is(200).text();
    assert!(shown.contains("<Days>7</Days>"), "{shown}");
    let deleted = blobs.delete("/con/b", &[]).is(202);
    assert_eq!(deleted.header("x-ms-delete-type-permanent"), "false");
    blobs.get("/con/b", &[]).refused(404, "BlobNotFound");
    let list = "/con?restype=container&comp=list&include=deleted";
    let listed = blobs.get(list, &[]).is(200).text();
    assert!(listed.contains("<Deleted>true</Deleted>"), "{listed}");
    assert!(listed.contains("<RemainingRetentionDays>7<"), "{listed}");
    blobs.put("/con/b?comp=undelete", &[]).is(200);
    assert_eq!(blobs.text("b"), "one");
    let days = b"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled>\
                 <Days>366</Days></DeleteRetentionPolicy></StorageServiceProperties>";
    let refused = blobs.ask("PUT", "/?restype=service&comp=properties", &[], days);
    refused.refused(400, "InvalidXmlDocument");
}

#[test]
fn service_properties_keep_what_is_known_and_have_each_part_once() {
    let blobs = Blobs::new();
    let target = "/?restype=service&comp=properties";
    let set = |parts: &str| {
        let root = "StorageServiceProperties";
        blobs.ask("PUT", target, &[], format!("<{root}>{parts}</{root}>").as_bytes())
    };
    let known = "<StaticWebsite><Enabled>true</Enabled>";
    set(&format!("{known}<Unknown>x</Unknown></StaticWebsite>")).is(202);
    let shown = blobs.get(target, &[]).is(200).text();
    assert!(shown.contains(known) && !shown.contains("Unknown"), "{shown}");
    // The first was looked at and the last was kept.
    let rules = "<CorsRule></CorsRule>".repeat(9);
    set(&format!("<Cors>{rules}</Cors>")).refused(400, "InvalidXmlDocument");
    set(&format!("<Cors/><Cors>{rules}</Cors>")).refused(400, "InvalidXmlDocument");
    let off = "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>";
    set(&format!("{off}{off}")).refused(400, "InvalidXmlDocument");
}

#[test]
fn b147_a_legal_hold_keeps_a_blob() {
    let blobs = with_blob();
    blobs.put("/con/b?comp=legalhold", &[("x-ms-legal-hold", "true")]).is(200);
    blobs.delete("/con/b", &[]).refused(409, "BlobImmutableDueToLegalHold");
    blobs.put("/con/b?comp=legalhold", &[("x-ms-legal-hold", "false")]).is(200);
    blobs.delete("/con/b", &[]).is(202);
}

fn copy(blobs: &Blobs, to: &str, headers: &[(&str, &str)]) -> Got {
    let url = blobs.url("b");
    let mut all = vec![("x-ms-copy-source", url.as_str())];
    all.extend(headers);
    blobs.put(&format!("/con/{to}"), &all)
}

#[test]
fn b148_a_copy_within_the_account_is_done_at_once() {
    let blobs = with_blob();
    let done = copy(&blobs, "to", &[]).is(202);
    assert_eq!(done.header("x-ms-copy-status"), "success");
    let head = blobs.head("/con/to", &[]).is(200);
    assert_eq!(head.header("x-ms-copy-id"), done.header("x-ms-copy-id"));
    assert_eq!(head.header("x-ms-copy-status"), "success");
    assert_eq!(head.header("x-ms-copy-progress"), "3/3");
    assert!(head.header("x-ms-copy-source").ends_with("/con/b"));
    assert_ne!(head.header("x-ms-copy-completion-time"), "");
    blobs.put("/con/to?comp=metadata", &[]).is(200);
    let head = blobs.head("/con/to", &[]).is(200);
    assert!(!head.headers.keys().any(|name| name.starts_with("x-ms-copy")), "{head:?}");
}

#[test]
fn b149_a_copy_that_is_held_back_can_be_aborted() {
    let copy_delay = std::time::Duration::from_mins(1);
    let blobs = Blobs::with(BlobOptions { copy_delay, ..BlobOptions::default() });
    blobs.blob("one");
    let begun = copy(&blobs, "to", &[]).is(202);
    assert_eq!(begun.header("x-ms-copy-status"), "pending");
    assert_eq!(blobs.head("/con/to", &[]).is(200).header("x-ms-copy-status"), "pending");
    blobs.upload("to", "x", &[]).refused(409, "PendingCopyOperation");
    let abort = |id: &str| {
        let headers = [("x-ms-copy-action", "abort")];
        blobs.put(&format!("/con/to?comp=copy&copyid={id}"), &headers)
    };
    abort(A).refused(409, "CopyIdMismatch");
    abort(begun.header("x-ms-copy-id")).is(204);
    let head = blobs.head("/con/to", &[]).is(200);
    assert_eq!(head.header("x-ms-copy-status"), "aborted");
    assert_eq!(head.header("content-length"), "0");
    abort(begun.header("x-ms-copy-id")).refused(409, "NoPendingCopyOperation");
    copy(&blobs, "done", &[]).is(202);
    blobs.pass(60);
    assert_eq!(blobs.head("/con/done", &[]).is(200).header("x-ms-copy-status"), "success");
    assert_eq!(blobs.text("done"), "one");
}

const VERIFY: &str = "CannotVerifyCopySource";

#[test]
fn b151_a_block_from_a_url_has_conditions_on_its_source() {
    let blobs = with_blob();
    let etag = blobs.etag("/con/b");
    let block = |headers: &[(&str, &str)]| {
        let mut all = vec![("x-ms-source-range", "bytes=1-2")];
        all.extend(headers);
        copy(&blobs, "parts?comp=block&blockid=AAAA", &all)
    };
    let unchanged = block(&[("x-ms-source-if-none-match", &etag)]).is(304);
    assert_eq!((unchanged.code(), unchanged.body.len()), (VERIFY, 0));
    block(&[("x-ms-source-if-match", "\"0x1\"")]).refused(412, VERIFY);
    block(&[]).is(201);
    let list = b"<BlockList><Latest>AAAA</Latest></BlockList>";
    blobs.ask("PUT", "/con/parts?comp=blocklist", &[], list).is(201);
    assert_eq!(blobs.text("parts"), "ne");
}

#[test]
fn b152_tags_are_copied_only_if_sent() {
    let blobs = Blobs::new();
    blobs.upload("b", "one", &[("x-ms-tags", "k=v")]).is(201);
    let tags = |name: &str| blobs.get(&format!("/con/{name}?comp=tags"), &[]).is(200).text();
    copy(&blobs, "without", &[]).is(202);
    assert!(!tags("without").contains("<Tag>"), "{}", tags("without"));
    copy(&blobs, "sent", &[("x-ms-tags", "a=b")]).is(202);
    assert!(tags("sent").contains("<Key>a</Key><Value>b</Value>"), "{}", tags("sent"));
    copy(&blobs, "kept", &[("x-ms-copy-source-tag-option", "COPY")]).is(202);
    assert!(tags("kept").contains("<Key>k</Key><Value>v</Value>"), "{}", tags("kept"));
}

#[test]
fn b158_where_the_md5_of_a_blob_is_shown() {
    let blobs = Blobs::new();
    let put = blobs.upload("b", "hello 2", &[]).is(201);
    assert_eq!(put.header("x-ms-content-crc64"), "e6fRwiqBVMY=");
    let md5 = put.header("content-md5").to_owned();
    assert_eq!(md5.len(), 24);
    assert_eq!(blobs.head("/con/b", &[]).is(200).header("content-md5"), md5);
    assert_eq!(blobs.get("/con/b", &[]).is(200).header("content-md5"), md5);
    let part = blobs.get("/con/b", &[("range", "bytes=0-2")]).is(206);
    assert_eq!((part.header("x-ms-blob-content-md5"), part.header("content-md5")), (&*md5, ""));
    blobs.ask("PUT", "/con/l?comp=block&blockid=AAAA", &[], b"x").is(201);
    let list = b"<BlockList><Latest>AAAA</Latest></BlockList>";
    blobs.ask("PUT", "/con/l?comp=blocklist", &[], list).is(201);
    assert_eq!(blobs.head("/con/l", &[]).is(200).header("content-md5"), "");
}

#[test]
fn b160_one_property_clears_the_others_and_none_clears_all() {
    let blobs = with_blob();
    let set = |headers: &[(&str, &str)]| blobs.put("/con/b?comp=properties", headers).is(200);
    set(&[
        ("x-ms-blob-content-type", "a/b"),
        ("x-ms-blob-cache-control", "no-cache"),
        ("x-ms-blob-content-disposition", "inline"),
    ]);
    set(&[("x-ms-blob-content-language", "en")]);
    let head = blobs.head("/con/b", &[]).is(200);
    assert_eq!(head.header("content-type"), "");
    assert_eq!((head.header("cache-control"), head.header("content-language")), ("", "en"));
    assert_eq!(head.header("content-disposition"), "");
    set(&[]);
    let head = blobs.head("/con/b", &[]).is(200);
    assert_eq!((head.header("content-language"), head.header("content-md5")), ("", ""));
}

#[test]
fn b169_what_is_archived_is_not_read() {
    let blobs = with_blob();
    let tier = |word: &str| blobs.put("/con/b?comp=tier", &[("x-ms-access-tier", word)]);
    tier("Archive").is(200);
    blobs.get("/con/b", &[]).refused(409, "BlobArchived");
    assert_eq!(blobs.head("/con/b", &[]).is(200).header("x-ms-access-tier"), "Archive");
    tier("Hot").is(202);
    tier("Warm").refused(400, "InvalidHeaderValue");
    blobs.get("/con/b", &[]).is(200);
}

#[test]
fn an_archived_source_is_copied_by_copy_blob_to_an_online_tier_alone() {
    let blobs = with_blob();
    let archive = [("x-ms-access-tier", "Archive")];
    blobs.put("/con/b?comp=tier", &archive).is(200);
    let url = blobs.url("b");
    let from = ("x-ms-copy-source", url.as_str());
    for headers in [
        vec![from],
        vec![from, archive[0]],
        vec![from, ("x-ms-requires-sync", "true"), ("x-ms-access-tier", "Cool")],
        vec![from, ("x-ms-blob-type", "BlockBlob"), ("x-ms-access-tier", "Cool")],
    ] {
        blobs.put("/con/to", &headers).refused(409, "BlobArchived");
    }
    blobs.put("/con/to?comp=block&blockid=AAAA", &[from]).refused(409, "BlobArchived");
    blobs.get("/con/to", &[]).is(404);
    blobs.put("/con/to", &[from, ("x-ms-access-tier", "Cool")]).is(202);
    assert_eq!(blobs.text("to"), "one");
    assert_eq!(blobs.head("/con/to", &[]).is(200).header("x-ms-access-tier"), "Cool");
}

#[test]
fn a_deletion_takes_conditions_on_the_time_of_the_tier() {
    let blobs = with_blob();
    let created = blobs.modified("/con/b", 0);
    blobs.pass(100);
    blobs.put("/con/b?comp=tier", &[("x-ms-access-tier", "Cool")]).is(200);
    let (before, changed) = (blobs.modified("/con/b", 99), blobs.modified("/con/b", 100));
    let delete = |word: &str, date: &str| {
        let name = format!("x-ms-access-tier-if-{word}-since");
        blobs.delete("/con/b", &[(&name, date)])
    };
    delete("modified", &changed).refused(412, "ConditionNotMet");
    delete("unmodified", &before).refused(412, "ConditionNotMet");
    delete("unmodified", "yesterday").refused(400, "InvalidHeaderValue");
    assert_eq!(blobs.text("b"), "one");
    delete("modified", &before).is(202);
    // A tier that was never set is as old as its blob.
    blobs.upload("b", "two", &[]).is(201);
    delete("unmodified", &created).refused(412, "ConditionNotMet");
    delete("modified", &created).is(202);
}

#[test]
fn b170_a_blob_under_a_customers_key_wants_that_key() {
    let blobs = with_blob();
    let [key, other] = KEYS;
    blobs.upload("k", "x", &key).is(201);
    for method in ["GET", "HEAD"] {
        let ask = |target: &str, headers: &[(&str, &str)]| blobs.ask(method, target, headers, b"");
        ask("/con/k", &[]).refused(409, "BlobUsesCustomerSpecifiedEncryption");
        ask("/con/k", &key).is(200);
        ask("/con/k", &other).refused(409, "BlobCustomerSpecifiedEncryptionMismatch");
        ask("/con/b", &key).refused(409, "BlobDoesNotUseCustomerSpecifiedEncryption");
    }
}

#[test]
fn put_blob_from_url_makes_a_block_blob_of_any_source() {
    let blobs = Blobs::new();
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")];
    blobs.put("/con/page", &page).is(201);
    let write = [("x-ms-page-write", "update"), ("x-ms-range", "bytes=512-1023")];
    blobs.ask("PUT", "/con/page?comp=page", &write, &[7; 512]).is(201);
    blobs.put("/con/log", &[("x-ms-blob-type", "AppendBlob")]).is(201);
    blobs.ask("PUT", "/con/log?comp=appendblock", &[], b"line").is(201);
    // By reference, and by its bytes.
    for (source, bytes) in [("page", [[0; 512], [7; 512]].concat()), ("log", b"line".to_vec())] {
        let url = blobs.url(source);
        let md5 = STANDARD.encode(Md5::digest(&bytes));
        let put = [("x-ms-copy-source", url.as_str()), ("x-ms-blob-type", "BlockBlob")];
        for headers in [put.to_vec(), [&put[..], &[("x-ms-source-content-md5", &*md5)]].concat()] {
            blobs.put("/con/to", &headers).is(201);
            let got = blobs.get("/con/to", &[]).is(200);
            assert_eq!(got.header("x-ms-blob-type"), "BlockBlob", "{source}");
            assert_eq!(got.header("x-ms-blob-sequence-number"), "");
            assert_eq!(got.header("x-ms-blob-committed-block-count"), "");
            assert!(got.body == bytes, "{source}");
            blobs.ask("PUT", "/con/to?comp=block&blockid=AAAA", &[], b"block").is(201);
        }
    }
}

#[test]
fn what_is_kept_after_a_deletion_goes_for_good_only_where_that_is_allowed() {
    let blobs = Blobs::new();
    let retain = |more: &str| {
        let text = format!(
            "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>\
             {more}</DeleteRetentionPolicy></StorageServiceProperties>"
        );
        let target = "/?restype=service&comp=properties";
        blobs.ask("PUT", target, &[], text.as_bytes()).is(202);
    };
    let kept = || {
        let list = "/con?restype=container&comp=list&include=deleted,snapshots";
        blobs.get(list, &[]).is(200).text().matches("<Deleted>true</Deleted>").count()
    };
    blobs.blob("x");
    retain("");
    let taken = blobs.put("/con/b?comp=snapshot", &[]).is(201);
    let snapshot = format!("/con/b?snapshot={}", taken.header("x-ms-snapshot"));
    let gone = format!("{snapshot}&deletetype=permanent");
    blobs.delete(&snapshot, &[]).is(202);
    assert_eq!(kept(), 1);
    blobs.delete(&gone, &[]).is(404);
    assert_eq!(kept(), 1);
    retain("<AllowPermanentDelete>true</AllowPermanentDelete>");
    let got = blobs.delete(&gone, &[]).is(202);
    assert_eq!(got.header("x-ms-delete-type-permanent"), "true");
    assert_eq!(kept(), 0);
    blobs.delete(&gone, &[]).is(404);
    assert_eq!(blobs.text("b"), "x");
}

#[test]
fn a_deleted_blob_comes_back_although_a_block_was_put_since() {
    let blobs = Blobs::new();
    let retain = b"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled>\
                   <Days>7</Days></DeleteRetentionPolicy></StorageServiceProperties>";
    blobs.ask("PUT", "/?restype=service&comp=properties", &[], retain).is(202);
    blobs.blob("first");
    blobs.delete("/con/b", &[]).is(202);
    blobs.ask("PUT", "/con/b?comp=block&blockid=AAAA", &[], b"second").is(201);
    blobs.get("/con/b", &[]).refused(404, "BlobNotFound");
    blobs.put("/con/b?comp=undelete", &[]).is(200);
    assert_eq!(blobs.text("b"), "first");
    // The block is one of the blob now, and the name is not uncommitted any more.
    let listed = "/con?restype=container&comp=list&include=uncommittedblobs";
    assert_eq!(blobs.get(listed, &[]).is(200).text().matches("<Blob>").count(), 1);
    let list = b"<BlockList><Uncommitted>AAAA</Uncommitted></BlockList>";
    blobs.ask("PUT", "/con/b?comp=blocklist", &[], list).is(201);
    assert_eq!(blobs.text("b"), "second");
    // A list that is committed takes the place of the deleted blob for good.
    blobs.delete("/con/b?deletetype=permanent", &[]).is(202);
    blobs.blob("third");
    blobs.delete("/con/b", &[("x-ms-delete-snapshots", "include")]).is(202);
    blobs.ask("PUT", "/con/b?comp=block&blockid=AAAA", &[], b"fourth").is(201);
    blobs.ask("PUT", "/con/b?comp=blocklist", &[], list).is(201);
    blobs.put("/con/b?comp=undelete", &[]).is(200);
    assert_eq!(blobs.text("b"), "fourth");
}
