//! Append and page blobs: B132, B134 to B140.

use super::fixture::{Blobs, Got};

fn append(blobs: &Blobs, headers: &[(&str, &str)], body: &str) -> Got {
    blobs.ask("PUT", "/con/b?comp=appendblock", headers, body.as_bytes())
}

fn append_blob() -> Blobs {
    let blobs = Blobs::new();
    blobs.put("/con/b", &[("x-ms-blob-type", "AppendBlob")]).is(201);
    blobs
}

#[test]
fn b132_an_append_may_want_its_position_and_a_greatest_size() {
    let blobs = append_blob();
    let first = append(&blobs, &[], "one,").is(201);
    assert_eq!(first.header("x-ms-blob-append-offset"), "0");
    let position = [("x-ms-blob-condition-appendpos", "4")];
    let second = append(&blobs, &position, "two,").is(201);
    assert_eq!(second.header("x-ms-blob-append-offset"), "4");
    assert_eq!(second.header("x-ms-blob-committed-block-count"), "2");
    append(&blobs, &position, "x").refused(412, "AppendPositionConditionNotMet");
    let size = [("x-ms-blob-condition-maxsize", "8")];
    append(&blobs, &size, "x").refused(412, "MaxBlobSizeConditionNotMet");
    append(&blobs, &[("x-ms-blob-condition-maxsize", "9")], "x").is(201);
    assert_eq!(blobs.text("b"), "one,two,x");
}

#[test]
fn b134_a_sealed_blob_takes_no_more() {
    let blobs = append_blob();
    append(&blobs, &[], "one").is(201);
    assert_eq!(blobs.put("/con/b?comp=seal", &[]).is(200).header("x-ms-blob-sealed"), "true");
    append(&blobs, &[], "x").refused(409, "BlobIsSealed");
    assert_eq!(blobs.text("b"), "one");
}

#[test]
fn b135_only_an_append_blob_is_appended_to() {
    let blobs = Blobs::new();
    append(&blobs, &[], "x").refused(404, "BlobNotFound");
    blobs.blob("block");
    append(&blobs, &[], "x").refused(409, "InvalidBlobType");
}

fn page(blobs: &Blobs, range: &str, body: &[u8], headers: &[(&str, &str)]) -> Got {
    let write = if body.is_empty() { "clear" } else { "update" };
    let mut all = vec![("x-ms-page-write", write), ("x-ms-range", range)];
    all.extend(headers);
    blobs.ask("PUT", "/con/b?comp=page", &all, body)
}

fn page_blob(length: &str) -> Blobs {
    let blobs = Blobs::new();
    let headers = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", length)];
    blobs.put("/con/b", &headers).is(201);
    blobs
}

#[test]
fn b136_pages_are_aligned() {
    let blobs = page_blob("1024");
    let headers = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1000")];
    blobs.put("/con/other", &headers).refused(400, "InvalidHeaderValue");
    for (range, length) in [("bytes=1-512", 512), ("bytes=0-511", 1024), ("bytes=1024-1535", 512)] {
        page(&blobs, range, &vec![1; length], &[]).refused(416, "InvalidPageRange");
    }
    assert_eq!(blobs.get("/con/b", &[]).is(200).body, [0; 1024]);
}

/// Sets the sequence number; the number of the answer.
fn set_number(blobs: &Blobs, action: &str, number: &str) -> Got {
    let mut headers = vec![("x-ms-sequence-number-action", action)];
    if !number.is_empty() {
        headers.push(("x-ms-blob-sequence-number", number));
    }
    blobs.put("/con/b?comp=properties", &headers)
}

fn number(got: Got) -> String {
    got.is(200).header("x-ms-blob-sequence-number").to_owned()
}

#[test]
fn b137_sequence_numbers_guard_against_requests_that_come_late() {
    let blobs = page_blob("512");
    set_number(&blobs, "update", "5").is(200);
    let write = |name: &str, value: &str, byte: u8| {
        page(&blobs, "bytes=0-511", &[byte; 512], &[(name, value)])
    };
    for (name, good, bad) in [
        ("x-ms-if-sequence-number-le", "5", "4"),
        ("x-ms-if-sequence-number-lt", "6", "5"),
        ("x-ms-if-sequence-number-eq", "5", "6"),
    ] {
        let clear = |value: &str| page(&blobs, "bytes=0-511", b"", &[(name, value)]);
        assert_eq!(write(name, good, 1).is(201).header("x-ms-blob-sequence-number"), "5");
        write(name, bad, 9).refused(412, "SequenceNumberConditionNotMet");
        assert_eq!(blobs.get("/con/b", &[]).is(200).body, [1; 512]);
        clear(bad).refused(412, "SequenceNumberConditionNotMet");
        assert_eq!(blobs.get("/con/b", &[]).is(200).body, [1; 512]);
        clear(good).is(201);
        assert_eq!(blobs.get("/con/b", &[]).is(200).body, [0; 512]);
    }
    // The story that the documentation of Put Page tells.
    // 1. The blob has a sequence number. 2. A client writes under it; the request is held up on its
    // way, and the client gets no answer.
    let under = "x-ms-if-sequence-number-le";
    let held_up = || write(under, "5", 2);
    // 3. It raises the number. 4. It writes again, under the new number. 5. That is done.
    assert_eq!(number(set_number(&blobs, "increment", "")), "6");
    assert_eq!(write(under, "6", 2).is(201).header("x-ms-blob-sequence-number"), "6");
    // 6. The client goes on and writes other bytes.
    write(under, "6", 3).is(201);
    let etag = blobs.etag("/con/b");
    // 7. The request that was held up arrives at last, and is refused: it would undo step 6.
    held_up().refused(412, "SequenceNumberConditionNotMet");
    assert_eq!(blobs.get("/con/b", &[]).is(200).body, [3; 512]);
    assert_eq!(blobs.etag("/con/b"), etag);
}

#[test]
fn b138_three_ways_to_set_a_sequence_number() {
    let blobs = page_blob("512");
    assert_eq!(number(set_number(&blobs, "increment", "")), "1");
    assert_eq!(number(set_number(&blobs, "update", "5")), "5");
    assert_eq!(number(set_number(&blobs, "max", "3")), "5");
    assert_eq!(number(set_number(&blobs, "max", "7")), "7");
    set_number(&blobs, "increment", "1").is(400);
    set_number(&blobs, "max", "").is(400);
}

#[test]
fn a_sequence_number_is_at_most_a_signed_64_bit_number() {
    let blobs = page_blob("512");
    let (most, over) = ("9223372036854775807", "9223372036854775808");
    for action in ["update", "max"] {
        set_number(&blobs, action, over).refused(400, "InvalidHeaderValue");
    }
    assert_eq!(number(set_number(&blobs, "update", most)), most);
    set_number(&blobs, "increment", "").refused(409, "SequenceNumberIncrementTooLarge");
    let create = |number: &str| {
        let headers = [
            ("x-ms-blob-type", "PageBlob"),
            ("x-ms-blob-content-length", "512"),
            ("x-ms-blob-sequence-number", number),
        ];
        blobs.put("/con/new", &headers)
    };
    create(over).refused(400, "InvalidHeaderValue");
    create("-1").refused(400, "InvalidHeaderValue");
    blobs.get("/con/new", &[]).is(404);
    create(most).is(201);
}

#[test]
fn b139_what_a_resize_cut_off_comes_back_as_zeros() {
    let blobs = page_blob("2048");
    page(&blobs, "bytes=0-1023", &[1; 1024], &[]).is(201);
    for length in ["512", "2048"] {
        blobs.put("/con/b?comp=properties", &[("x-ms-blob-content-length", length)]).is(200);
    }
    let bytes = blobs.get("/con/b", &[]).is(200).body;
    assert_eq!((bytes.len(), &bytes[..512]), (2048, &[1; 512][..]));
    assert!(bytes[512..].iter().all(|byte| *byte == 0));
}

/// The ranges of a page list in order: `P` written, `C` cleared.
fn ranges(blobs: &Blobs, query: &str) -> String {
    let text = blobs.get(&format!("/con/b?comp=pagelist{query}"), &[]).is(200).text();
    let text = text.split("<PageList>").nth(1).unwrap().split("</PageList>").next().unwrap();
    let text = text.replace("<PageRange><Start>", " P").replace("<ClearRange><Start>", " C");
    let text = text.replace("</Start><End>", "-").replace("</End></PageRange>", "");
    text.replace("</End></ClearRange>", "").replace("<NextMarker></NextMarker>", "")
}

#[test]
fn b140_page_lists_and_their_differences_from_a_snapshot() {
    let blobs = page_blob("4096");
    assert_eq!(ranges(&blobs, "").trim(), "");
    page(&blobs, "bytes=0-1023", &[1; 1024], &[]).is(201);
    page(&blobs, "bytes=512-1023", b"", &[]).is(201);
    page(&blobs, "bytes=2048-2559", &[1; 512], &[]).is(201);
    assert_eq!(ranges(&blobs, "").trim(), "P0-511 P2048-2559");
    let taken = blobs.put("/con/b?comp=snapshot", &[]).is(201);
    let since = format!("&prevsnapshot={}", taken.header("x-ms-snapshot"));
    page(&blobs, "bytes=0-511", b"", &[]).is(201);
    page(&blobs, "bytes=1024-1535", &[2; 512], &[]).is(201);
    page(&blobs, "bytes=2048-2559", b"", &[]).is(201);
    assert_eq!(ranges(&blobs, "").trim(), "P1024-1535");
    assert_eq!(ranges(&blobs, &since).trim(), "C0-511 P1024-1535 C2048-2559");
}

#[test]
fn a_page_that_was_written_and_cleared_since_a_snapshot_is_a_cleared_one() {
    let blobs = page_blob("4096");
    let taken = |blobs: &Blobs| {
        blobs.put("/con/b?comp=snapshot", &[]).is(201).header("x-ms-snapshot").to_owned()
    };
    let first = taken(&blobs);
    page(&blobs, "bytes=0-1535", &[1; 1536], &[]).is(201);
    let second = taken(&blobs);
    page(&blobs, "bytes=512-1023", b"", &[]).is(201);
    assert_eq!(ranges(&blobs, "").trim(), "P0-511 P1024-1535");
    let since = |snapshot: &str| ranges(&blobs, &format!("&prevsnapshot={snapshot}"));
    assert_eq!(since(&first).trim(), "P0-511 C512-1023 P1024-1535");
    assert_eq!(since(&second).trim(), "C512-1023");
    let by_url = ("x-ms-previous-snapshot-url", format!("{}?snapshot={first}", blobs.url("b")));
    let shown = blobs.get("/con/b?comp=pagelist", &[(by_url.0, &by_url.1)]).is(200).text();
    assert!(shown.contains("<ClearRange><Start>512</Start><End>1023</End>"), "{shown}");
    // What was cleared before a snapshot is no difference from it.
    let third = taken(&blobs);
    assert_eq!(since(&third).trim(), "");
    page(&blobs, "bytes=512-1023", &[2; 512], &[]).is(201);
    assert_eq!(since(&third).trim(), "P512-1023");
    assert_eq!(blobs.get("/con/b", &[("range", "bytes=512-513")]).is(206).body, [2, 2]);
}

#[test]
fn ranges_of_pages_begin_within_the_blob() {
    let blobs = page_blob("1024");
    page(&blobs, "bytes=512-1023", &[1; 512], &[]).is(201);
    let taken = blobs.put("/con/b?comp=snapshot", &[]).is(201);
    let since = format!("&prevsnapshot={}", taken.header("x-ms-snapshot"));
    for query in ["", &since] {
        let list = |range: &str| {
            blobs.get(&format!("/con/b?comp=pagelist{query}"), &[("x-ms-range", range)])
        };
        list("bytes=512-4095").is(200);
        for range in ["bytes=1024-1535", "bytes=4096-"] {
            let got = list(range).refused(416, "InvalidRange");
            assert_eq!(got.header("content-range"), "bytes */1024");
        }
    }
}

#[test]
fn pages_from_a_url_are_at_most_4_mib() {
    let blobs = Blobs::new();
    let length = (5 << 20).to_string();
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", &*length)];
    for name in ["/con/from", "/con/to"] {
        blobs.put(name, &page).is(201);
    }
    let url = blobs.url("from");
    let put = |length: u64| {
        let range = format!("bytes=0-{}", length - 1);
        let headers = [
            ("x-ms-copy-source", &*url),
            ("x-ms-page-write", "update"),
            ("x-ms-range", &range),
            ("x-ms-source-range", &range),
        ];
        blobs.put("/con/to?comp=page", &headers)
    };
    put(4 << 20).is(201);
    put((4 << 20) + 512).refused(413, "RequestBodyTooLarge");
}

#[test]
fn the_last_page_of_ranges_has_an_empty_marker() {
    let blobs = Blobs::new();
    blobs.put("/con/p", &[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "512")]);
    let list = blobs.get("/con/p?comp=pagelist", &[]).is(200).text();
    assert!(list.ends_with("<NextMarker></NextMarker></PageList>"), "{list}");
}
