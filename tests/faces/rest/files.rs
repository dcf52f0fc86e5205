//! Files: create, read, write, properties, metadata, range lists, rename, delete.

use crate::rest::fixture::Fixture;

#[test]
fn a_file_is_made_written_and_read_back() {
    let fixture = Fixture::new();
    let headers = [
        ("x-ms-type", "file"),
        ("x-ms-content-length", "10"),
        ("x-ms-meta-Color", "blue"),
        ("x-ms-content-type", "text/plain"),
        ("content-type", "application/octet-stream"),
        ("x-ms-file-creation-time", "2020-01-02T03:04:05.1234567Z"),
    ];
    let got = fixture.put("/docs/a%20b+c", &headers).is(201);
    assert_eq!(got.header("x-ms-file-attributes"), "Archive");
    assert_eq!(got.header("x-ms-file-creation-time"), "2020-01-02T03:04:05.1234567Z");
    assert_eq!(got.header("x-ms-request-server-encrypted"), "true");
    let etag = got.header("etag").to_owned();
    let md5 = [("content-md5", "XUFAKrxLKna5cZ2REBfFkg==")];
    let got = fixture.put_range("/docs/a%20b+c", 2, b"hello", &md5).is(201);
    assert_ne!(got.header("etag"), etag);
    assert_eq!(got.header("content-md5"), "XUFAKrxLKna5cZ2REBfFkg==");
    let got = fixture.put_range("/docs/a%20b+c", 2, b"hello", &[]).is(201);
    assert_eq!(got.header("content-md5"), "", "nobody asked");
    let got = fixture.get("/docs/A%20B+C").is(200);
    assert_eq!(got.body, b"\0\0hello\0\0\0");
    assert_eq!(got.header("content-type"), "text/plain");
    assert_eq!(got.header("x-ms-meta-color"), "blue");
    assert_eq!(got.header("accept-ranges"), "bytes");
    let got = fixture.head("/docs/a%20b+c").is(200);
    assert_eq!((got.header("content-length"), got.header("x-ms-type")), ("10", "File"));
    assert_eq!(got.header("x-ms-lease-state"), "available");
}

#[test]
fn ranges_are_clamped_and_said() {
    let fixture = Fixture::new();
    fixture.upload("a", b"0123456789");
    let range = |headers: &[(&str, &str)]| fixture.ask("GET", "/docs/a", headers, b"");
    let got = range(&[("x-ms-range", "bytes=2-4"), ("range", "bytes=0-0")]).is(206);
    assert_eq!((got.text().as_str(), got.header("content-range")), ("234", "bytes 2-4/10"));
    let got = range(&[("range", "bytes=8-33554431")]).is(206);
    assert_eq!((got.text().as_str(), got.header("content-range")), ("89", "bytes 8-9/10"));
    assert_eq!(range(&[("range", "bytes=7-")]).is(206).text(), "789");
    let got = range(&[("range", "bytes=10-11")]).refused(416, "InvalidRange");
    assert_eq!(got.header("content-range"), "bytes */10");
    range(&[("x-ms-range", "lines=1-2")]).refused(400, "InvalidHeaderValue");
    let md5 = [("x-ms-range", "bytes=0-4"), ("x-ms-range-get-content-md5", "true")];
    assert_eq!(range(&md5).is(206).header("content-md5"), "QQDE1E2pF3JH5EpfwVRneA==");
    range(&md5[1..]).refused(400, "InvalidHeaderValue");
    fixture.upload("empty", b"");
    fixture.ask("GET", "/docs/empty", &[("range", "bytes=0-99")], b"").refused(416, "InvalidRange");
    assert_eq!(fixture.get("/docs/empty").is(200).body, b"");
}

#[test]
fn a_long_file_comes_whole() {
    let fixture = Fixture::new();
    let bytes: Vec<u8> =
        (0..3_000_000_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
    fixture.upload("long", &bytes);
    assert!(fixture.get("/docs/long").is(200).body == bytes);
}

#[test]
fn a_bad_checksum_changes_nothing() {
    let fixture = Fixture::new();
    fixture.upload("a", b"old");
    let wrong = [("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg==")];
    fixture.put_range("/docs/a", 0, b"new", &wrong).refused(400, "Md5Mismatch");
    fixture.put_range("/docs/a", 0, b"new", &[("content-md5", "x")]).refused(400, "InvalidMd5");
    assert_eq!(fixture.get("/docs/a").text(), "old");
    let right = [("content-md5", "Iq9kXRhZy1ym2gxITx836g==")];
    fixture.put_range("/docs/a", 0, b"new", &right).is(201);
    assert_eq!(fixture.get("/docs/a").text(), "new");
}

#[test]
fn put_range_never_extends_and_clears_without_a_body() {
    let fixture = Fixture::new();
    fixture.upload("a", b"0123456789");
    fixture.put_range("/docs/a", 8, b"xyz", &[]).refused(416, "InvalidRange");
    let target = "/docs/a?comp=range";
    let clear = [("x-ms-range", "bytes=2-4"), ("x-ms-write", "clear")];
    fixture.put(target, &clear).is(201);
    assert_eq!(fixture.get("/docs/a").body, b"01\0\0\x0056789");
    fixture.ask("PUT", target, &clear, b"x").refused(400, "InvalidHeaderValue");
    fixture.put(target, &[("x-ms-write", "clear")]).refused(400, "MissingRequiredHeader");
    fixture.put(target, &clear[..1]).refused(400, "MissingRequiredHeader");
    let short = [("x-ms-range", "bytes=0-4"), ("x-ms-write", "update")];
    fixture.ask("PUT", target, &short, b"x").refused(400, "InvalidHeaderValue");
}

#[test]
fn a_file_can_be_made_with_its_bytes() {
    let fixture = Fixture::new();
    let headers = [("x-ms-type", "file"), ("x-ms-content-length", "5")];
    let md5 = ("content-md5", "XUFAKrxLKna5cZ2REBfFkg==");
    let got = fixture.ask("PUT", "/docs/a", &[headers[0], headers[1], md5], b"hello").is(201);
    assert_eq!(got.header("content-md5"), md5.1);
    assert_eq!(fixture.get("/docs/a").text(), "hello");
    fixture.put("/docs/b", &headers[..1]).refused(400, "MissingRequiredHeader");
    fixture.put("/docs/b", &headers[1..]).refused(400, "MissingRequiredHeader");
    fixture.put("/docs/x/b", &headers).refused(404, "ParentNotFound");
    fixture.put("/nope/b", &headers).refused(404, "ShareNotFound");
    fixture.put("/docs/a%3Fb", &headers).refused(400, "InvalidResourceName");
}

#[test]
fn a_bare_resize_keeps_content_headers_and_naming_one_clears_the_others() {
    let fixture = Fixture::new();
    fixture.upload("a", b"0123456789");
    let target = "/docs/a?comp=properties";
    let both = [("x-ms-content-type", "text/css"), ("x-ms-content-language", "de")];
    fixture.put(target, &both).is(200);
    fixture.put(target, &[("x-ms-content-length", "4")]).is(200);
    let got = fixture.get("/docs/a").is(200);
    assert_eq!(got.text(), "0123");
    assert_eq!(got.header("content-language"), "de");
    fixture.put(target, &both[..1]).is(200);
    let got = fixture.head("/docs/a");
    assert_eq!((got.header("content-type"), got.header("content-language")), ("text/css", ""));
    let bad = [("x-ms-file-attributes", "Shiny")];
    fixture.put(target, &bad).refused(400, "InvalidHeaderValue");
    let bad = [("x-ms-file-last-write-time", "yesterday")];
    fixture.put(target, &bad).refused(400, "InvalidHeaderValue");
    fixture.put(target, &[("x-ms-file-attributes", "")]).is(200);
}

#[test]
fn metadata_is_replaced_as_a_whole() {
    let fixture = Fixture::new();
    fixture.upload("a", b"");
    let target = "/docs/a?comp=metadata";
    let stray = ("x-ms-meta", "{'a': 'b'}");
    fixture.put(target, &[("x-ms-meta-a", "1"), ("x-ms-meta-b", "\u{fc}"), stray]).is(200);
    let got = fixture.head("/docs/a");
    assert_eq!((got.header("x-ms-meta-a"), got.header("x-ms-meta-b")), ("1", "\u{fc}"));
    fixture.put(target, &[("x-ms-meta-c", "3")]).is(200);
    let got = fixture.head("/docs/a");
    assert!(!got.headers.contains_key("x-ms-meta-a") && got.header("x-ms-meta-c") == "3");
    fixture.put(target, &[("x-ms-meta-a-b", "1")]).refused(400, "InvalidMetadata");
    let long = "x".repeat(8 * 1024);
    fixture.put(target, &[("x-ms-meta-a", &long)]).refused(400, "MetadataTooLarge");
    fixture.put(target, &[]).is(200);
    assert!(!fixture.head("/docs/a").headers.contains_key("x-ms-meta-c"));
}

#[test]
fn written_ranges_are_listed() {
    let fixture = Fixture::new();
    fixture.put("/docs/a", &[("x-ms-type", "file"), ("x-ms-content-length", "1048576")]).is(201);
    fixture.put_range("/docs/a", 0, &vec![7; 65_536], &[]).is(201);
    let got = fixture.get("/docs/a?comp=rangelist").is(200);
    assert_eq!(got.header("x-ms-content-length"), "1048576");
    assert!(got.text().contains("<Start>0</Start><End>65535</End>"), "{}", got.text());
    fixture.put_range("/docs/a", 524_288, &vec![7; 65_536], &[]).is(201);
    let first = fixture.get("/docs/a?comp=rangelist&maxresults=1").is(200).text();
    assert!(first.contains("<NextMarker>524288</NextMarker>"), "{first}");
    let second = fixture.get("/docs/a?comp=rangelist&maxresults=1&marker=524288").is(200).text();
    assert!(second.contains("<Start>524288</Start>") && !second.contains("NextM"), "{second}");
    fixture.get("/docs/b?comp=rangelist").refused(404, "ResourceNotFound");
}

#[test]
fn a_rename_moves_within_the_share_and_replaces_only_if_asked() {
    let fixture = Fixture::new();
    fixture.upload("a%20b", b"first");
    fixture.upload("taken", b"second");
    let url = format!("http://{}/devstoreaccount1/docs/a%20b?sig=x", fixture.server.addr());
    let source = ("x-ms-file-rename-source", url.as_str());
    let got = fixture.put("/docs/taken?comp=rename", &[source]);
    got.refused(409, "ResourceAlreadyExists");
    let replace = ("x-ms-file-rename-replace-if-exists", "true");
    let kind = ("x-ms-content-type", "text/css");
    fixture.put("/docs/taken?comp=rename", &[source, replace, kind]).is(200);
    let got = fixture.get("/docs/taken").is(200);
    assert_eq!((got.text().as_str(), got.header("content-type")), ("first", "text/css"));
    fixture.get("/docs/a%20b").refused(404, "ResourceNotFound");
    fixture.put("/docs/x?comp=rename", &[source]).refused(404, "ResourceNotFound");
    fixture.put("/docs/x?comp=rename", &[]).refused(400, "MissingRequiredHeader");
    let elsewhere = [(source.0, "http://evil.example/devstoreaccount1/docs/taken")];
    fixture.put("/docs/x?comp=rename", &elsewhere).refused(400, "InvalidHeaderValue");
    let cloud = [(source.0, "https://devstoreaccount1.file.core.windows.net/docs/taken")];
    fixture.put("/docs/n/x?comp=rename", &cloud).refused(404, "ParentNotFound");
    fixture.put("/docs/x?comp=rename", &cloud).is(200);
}

#[test]
fn a_deleted_file_is_gone() {
    let fixture = Fixture::new();
    fixture.upload("a", b"a");
    fixture.delete("/docs/a").is(202);
    fixture.delete("/docs/a").refused(404, "ResourceNotFound");
}

#[test]
fn a_structured_body_is_checked_and_only_its_payload_written() {
    let fixture = Fixture::new();
    fixture.upload("a", b"---------");
    let mut body = vec![1];
    body.extend(48_u64.to_le_bytes());
    body.extend([1, 0, 1, 0, 1, 0]);
    body.extend(9_u64.to_le_bytes());
    body.extend(b"123456789");
    body.extend(0xae8b_1486_0a79_9888_u64.to_le_bytes());
    body.extend(0xae8b_1486_0a79_9888_u64.to_le_bytes());
    let headers = [
        ("x-ms-range", "bytes=0-8"),
        ("x-ms-write", "update"),
        ("x-ms-structured-body", "XSM/1.0; properties=crc64"),
        ("x-ms-structured-content-length", "9"),
    ];
    let got = fixture.ask("PUT", "/docs/a?comp=range", &headers, &body).is(201);
    assert_eq!(got.header("x-ms-structured-body"), "XSM/1.0; properties=crc64");
    assert_eq!(fixture.get("/docs/a").text(), "123456789");
    body[25] ^= 1;
    let got = fixture.ask("PUT", "/docs/a?comp=range", &headers, &body);
    got.refused(400, "Crc64Mismatch");
    assert_eq!(fixture.get("/docs/a").text(), "123456789");
}

#[test]
fn metadata_names_keep_their_case_and_are_one_in_any() {
    let fixture = Fixture::new();
    fixture.upload("a", b"");
    fixture.put("/docs/d?restype=directory", &[("x-ms-meta-OfDirectory", "1")]).is(201);
    fixture.put("/docs?restype=share&comp=metadata", &[("X-Ms-Meta-OfShare", "2")]).is(200);
    let set = [("x-ms-meta-Category", "test"), ("X-MS-META-plain", "p"), ("x-ms-meta-bIG_9", "")];
    fixture.put("/docs/a?comp=metadata", &set).is(200);
    let names = |target: &str| {
        let mut names = fixture.get(target).is(200).spelled;
        names.retain(|name| name.starts_with("x-ms-meta-"));
        names.sort();
        names
    };
    assert_eq!(names("/docs/a"), ["x-ms-meta-Category", "x-ms-meta-bIG_9", "x-ms-meta-plain"]);
    assert_eq!(names("/docs/d?restype=directory"), ["x-ms-meta-OfDirectory"]);
    assert_eq!(names("/docs?restype=share"), ["x-ms-meta-OfShare"]);
    fixture.put("/docs/a?comp=metadata", &[("x-ms-meta-CATEGORY", "more")]).is(200);
    assert_eq!(names("/docs/a"), ["x-ms-meta-CATEGORY"]);
    assert_eq!(fixture.head("/docs/a").is(200).header("x-ms-meta-category"), "more");
    let list = fixture.get("/?comp=list&include=metadata").is(200).text();
    assert!(list.contains("<OfShare>2</OfShare>"), "{list}");
}

#[test]
fn setting_properties_without_content_headers_clears_them_and_a_length_alone_keeps_them() {
    let fixture = Fixture::new();
    let create = [
        ("x-ms-type", "file"),
        ("x-ms-content-length", "10"),
        ("x-ms-content-type", "text/plain"),
        ("x-ms-content-language", "en"),
        ("x-ms-cache-control", "no-cache"),
    ];
    fixture.put("/docs/a", &create).is(201);
    let shown = || {
        let got = fixture.head("/docs/a").is(200);
        ["content-type", "content-language", "cache-control"]
            .map(|name| got.header(name).to_owned())
    };
    fixture.put("/docs/a?comp=properties", &[("x-ms-content-length", "20")]).is(200);
    assert_eq!(shown(), ["text/plain", "en", "no-cache"], "a length alone");
    let german = [("x-ms-content-language", "de"), ("x-ms-content-length", "30")];
    fixture.put("/docs/a?comp=properties", &german).is(200);
    assert_eq!(shown(), ["", "de", ""], "one sets all");
    fixture.put("/docs/a?comp=properties", &[("x-ms-content-type", "text/css")]).is(200);
    assert_eq!(shown(), ["text/css", "", ""]);
    fixture.put("/docs/a?comp=properties", &[]).is(200);
    assert_eq!(shown(), ["", "", ""], "none clears all, the type included");
    fixture.put("/docs/a?comp=properties", &[("x-ms-content-length", "5")]).is(200);
    assert_eq!(shown(), ["", "", ""]);
    fixture.upload("b", b"");
    let got = fixture.head("/docs/b").is(200);
    assert_eq!(got.header("content-type"), "application/octet-stream", "never given one");
}
