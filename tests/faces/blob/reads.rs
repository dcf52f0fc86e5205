//! Conditions of reads: B16 to B24, B32, B34.

use super::fixture::{Blobs, Got, NOT_MET};

type Headers<'a> = &'a [(&'a str, &'a str)];

/// Runs `check` for GET and for HEAD of a blob, with its `ETag`.
fn by_get(check: impl Fn(&Blobs, &str, &dyn Fn(Headers<'_>) -> Got)) {
    let blobs = Blobs::new();
    let etag = blobs.blob("one");
    check(&blobs, &etag, &|headers| blobs.get("/con/b", headers));
}

fn unchanged(got: Got) {
    let got = got.is(304);
    assert_eq!((got.code(), got.body.len()), (NOT_MET, 0));
    // What the client has is named, so that a cache can note it (RFC 9110, 15.4.5).
    assert!(got.header("etag").starts_with("\"0x"), "{got:?}");
    assert!(got.header("last-modified").ends_with(" GMT"), "{got:?}");
}

#[test]
fn b016_etags_on_get() {
    by_get(|blobs, etag, get| {
        get(&[("if-match", "\"0x1\"")]).refused(412, NOT_MET);
        get(&[("if-match", etag)]).is(200);
        let none = blobs.get("/con/none", &[("if-match", "\"0x1\"")]);
        none.refused(404, "BlobNotFound");
        unchanged(get(&[("if-none-match", etag)]));
        get(&[("if-none-match", "\"0x1\"")]).is(200);
    });
}

#[test]
fn b017_if_modified_since_on_get() {
    by_get(|blobs, _, get| {
        unchanged(get(&[("if-modified-since", &blobs.modified("/con/b", 0))]));
        get(&[("if-modified-since", &blobs.modified("/con/b", -3600))]).is(200);
    });
}

#[test]
fn b018_if_unmodified_since_on_get() {
    by_get(|blobs, _, get| {
        let past = blobs.modified("/con/b", -3600);
        get(&[("if-unmodified-since", &past)]).refused(412, NOT_MET);
        get(&[("if-unmodified-since", &blobs.modified("/con/b", 0))]).is(200);
    });
}

#[test]
fn b019_either_of_two_negative_conditions_lets_a_get_through() {
    by_get(|blobs, etag, get| {
        let (past, same) = (blobs.modified("/con/b", -3600), blobs.modified("/con/b", 0));
        get(&[("if-none-match", etag), ("if-modified-since", &past)]).is(200);
        unchanged(get(&[("if-none-match", etag), ("if-modified-since", &same)]));
    });
}

#[test]
fn b020_a_wrong_if_match_refuses_whatever_the_rest() {
    by_get(|blobs, etag, get| {
        let (past, same) = (blobs.modified("/con/b", -3600), blobs.modified("/con/b", 0));
        for none in [etag, "\"0x2\""] {
            get(&[
                ("if-match", "\"0x1\""),
                ("if-none-match", none),
                ("if-modified-since", &past),
                ("if-unmodified-since", &same),
            ])
            .refused(412, NOT_MET);
        }
    });
}

#[test]
fn b021_a_star_in_if_none_match_has_no_meaning_on_get() {
    by_get(|_, _, get| {
        get(&[("if-none-match", "*")]).refused(400, "UnsatisfiableCondition");
    });
}

#[test]
fn b022_head_answers_as_get_without_a_body() {
    let blobs = Blobs::new();
    let etag = blobs.blob("one");
    let (past, same) = (blobs.modified("/con/b", -3600), blobs.modified("/con/b", 0));
    for (headers, status) in [
        (vec![("if-match", "\"0x1\"")], 412),
        (vec![("if-match", &*etag)], 200),
        (vec![("if-none-match", &*etag)], 304),
        (vec![("if-modified-since", &*same)], 304),
        (vec![("if-modified-since", &*past)], 200),
        (vec![("if-unmodified-since", &*past)], 412),
        (vec![("if-none-match", &*etag), ("if-modified-since", &*past)], 200),
        (vec![("if-match", "\"0x1\""), ("if-none-match", &*etag)], 412),
        (vec![("if-none-match", "*")], 400),
    ] {
        let (head, get) = (blobs.head("/con/b", &headers), blobs.get("/con/b", &headers));
        assert_eq!((head.status, head.code()), (status, get.code()), "{headers:?}");
        assert_eq!((get.status, head.body.len()), (status, 0), "{headers:?}");
    }
    blobs.head("/con/none", &[("if-match", &etag)]).refused(404, "BlobNotFound");
}

#[test]
fn b023_tags_that_do_not_hold_are_412_on_reads_too() {
    let blobs = Blobs::new();
    blobs.upload("b", "x", &[("x-ms-tags", "k=v")]).is(201);
    for method in ["GET", "HEAD"] {
        let ask = |tags| blobs.ask(method, "/con/b", &[("x-ms-if-tags", tags)], b"");
        ask("\"k\" = 'w'").refused(412, NOT_MET);
        ask("\"k\" = 'v'").is(200);
        ask("nonsense").refused(400, "InvalidHeaderValue");
    }
}

#[test]
fn b024_metadata_is_read_under_the_same_conditions() {
    let blobs = Blobs::new();
    let etag = blobs.blob("x");
    let (past, same) = (blobs.modified("/con/b", -3600), blobs.modified("/con/b", 0));
    let head = |name: &str, value: &str| blobs.head("/con/b?comp=metadata", &[(name, value)]);
    head("if-match", "\"0x1\"").refused(412, NOT_MET);
    head("if-match", &etag).is(200);
    unchanged(head("if-none-match", &etag));
    unchanged(head("if-modified-since", &same));
    head("if-modified-since", &past).is(200);
    head("if-unmodified-since", &past).refused(412, NOT_MET);
    blobs.head("/con/none?comp=metadata", &[("if-match", &etag)]).refused(404, "BlobNotFound");
}

#[test]
fn b032_the_block_list_takes_tags_alone_for_a_condition() {
    let blobs = Blobs::new();
    let etag = blobs.upload("b", "x", &[("x-ms-tags", "k=v")]).is(201).header("etag").to_owned();
    let target = "/con/b?comp=blocklist&blocklisttype=all";
    let got = blobs.get(target, &[("if-match", "\"0x1\"")]).is(200);
    assert_eq!(got.header("etag"), etag);
    blobs.get(target, &[("x-ms-if-tags", "\"k\" = 'w'")]).refused(412, NOT_MET);
    blobs.get(target, &[("x-ms-if-tags", "\"k\" = 'v'")]).is(200);
}

#[test]
fn b034_page_ranges_are_read_under_conditions() {
    let blobs = Blobs::new();
    let create = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")];
    let etag = blobs.put("/con/b", &create).is(201).header("etag").to_owned();
    let (past, same) = (blobs.modified("/con/b", -3600), blobs.modified("/con/b", 0));
    let list = |name: &str, value: &str| blobs.get("/con/b?comp=pagelist", &[(name, value)]);
    list("if-match", "\"0x1\"").refused(412, NOT_MET);
    list("if-unmodified-since", &past).refused(412, NOT_MET);
    unchanged(list("if-none-match", &etag));
    unchanged(list("if-modified-since", &same));
    for (name, value) in [("if-match", &etag), ("if-modified-since", &past)] {
        assert_eq!(list(name, value).is(200).header("etag"), etag);
    }
}
