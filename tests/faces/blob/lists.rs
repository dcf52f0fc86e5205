//! Listings, ranges, batches, tags and names: B153 to B157, B161 to B164, B168.

use std::fmt::Write as _;

use latchfs::blob::rules::BlobType;
use latchfs::blob::service::{AccessConditions, BlobAt, BlobOptions, Content, NewBlob};

use super::access::{sas, signed};
use super::fixture::{ACCOUNT, Blobs, Got};

fn names(blobs: &Blobs, query: &str) -> Vec<String> {
    let target = format!("/con?restype=container&comp=list{query}");
    let text = blobs.get(&target, &[]).is(200).text();
    text.split("<Name>").skip(1).map(|rest| rest.split('<').next().unwrap().to_owned()).collect()
}

fn marker(blobs: &Blobs, query: &str) -> String {
    let target = format!("/con?restype=container&comp=list{query}");
    let text = blobs.get(&target, &[]).is(200).text();
    let rest = text.split("<NextMarker>").nth(1).unwrap_or_default();
    rest.split('<').next().unwrap_or_default().to_owned()
}

#[test]
fn b153_a_list_goes_through_all_pages_in_order() {
    let blobs = Blobs::new();
    for name in ["a/1", "a/2", "b", "B", "d/x/1"] {
        blobs.upload(name, "x", &[]).is(201);
    }
    assert_eq!(names(&blobs, ""), ["B", "a/1", "a/2", "b", "d/x/1"]);
    assert_eq!(names(&blobs, "&prefix=a/"), ["a/1", "a/2"]);
    assert_eq!(names(&blobs, "&delimiter=/"), ["B", "a/", "b", "d/"]);
    assert_eq!(names(&blobs, "&delimiter=/&prefix=d/"), ["d/x/"]);
    for (more, wanted) in
        [("", &["B", "a/1", "a/2", "b", "d/x/1"][..]), ("&delimiter=/", &["B", "a/", "b", "d/"])]
    {
        let query = format!("&maxresults=1{more}");
        let (mut seen, mut next) = (names(&blobs, &query), marker(&blobs, &query));
        blobs.upload("A", "before the next page", &[]).is(201);
        while !next.is_empty() {
            let query = format!("{query}&marker={next}");
            seen.extend(names(&blobs, &query));
            next = marker(&blobs, &query);
        }
        assert_eq!(seen, wanted);
        blobs.delete("/con/A", &[]).is(202);
    }
}

#[test]
fn a_list_may_begin_at_a_name_and_end_before_one() {
    let blobs = Blobs::new();
    for name in ["a", "b", "b/1", "b/2", "c"] {
        blobs.upload(name, "x", &[]).is(201);
    }
    let names = |query: &str| {
        let target = format!("/con?restype=container&comp=list{query}");
        let text = blobs.get(&target, &[]).is(200).text();
        let names = text.split("<Name>").skip(1).map(|rest| rest.split('<').next().unwrap());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names("&startFrom=b&endBefore=b/2"), ["b", "b/1"]);
    assert_eq!(names("&endBefore=b&maxresults=5"), ["a"]);
    assert_eq!(names("&endBefore=b/1&delimiter=/"), ["a", "b"]);
    assert_eq!(names("&endBefore=c&delimiter=/"), ["a", "b", "b/"]);
    assert_eq!(names("&prefix=b&endBefore=zz"), ["b", "b/1", "b/2"]);
    assert_eq!(names("&prefix=b&endBefore=a"), [""; 0]);
}

#[test]
fn b154_etags_in_lists_of_blobs_have_no_quotes() {
    let blobs = Blobs::new();
    let etag = blobs.blob("x");
    let list = blobs.get("/con?restype=container&comp=list", &[]).is(200).text();
    assert!(list.contains(&format!("<Etag>{}</Etag>", etag.trim_matches('"'))), "{list}");
    let etag = blobs.etag("/con?restype=container");
    let list = blobs.get("/?comp=list", &[]).is(200).text().replace("&quot;", "\"");
    assert!(list.contains(&format!("<Etag>{etag}</Etag>")), "{list}");
}

#[test]
fn an_uncommitted_blob_is_listed_without_an_md5() {
    let blobs = Blobs::new();
    blobs.upload("b", "x", &[]).is(201);
    blobs.ask("PUT", "/con/staged?comp=block&blockid=AAAA", &[], b"x").is(201);
    let target = "/con?restype=container&comp=list&include=uncommittedblobs";
    let list = blobs.get(target, &[]).is(200).text();
    let (committed, staged) = list.split_once("<Name>staged</Name>").unwrap();
    assert!(committed.contains("<Content-MD5>") && !staged.contains("Content-MD5"), "{list}");
}

#[test]
fn b155_a_page_has_5000_blobs_at_most() {
    let mut blobs = Blobs::new();
    blobs.aside(async |service, cx| {
        for number in 0..5_001 {
            let at = BlobAt::new("con", format!("{number:04}"));
            let (asked, new) = (AccessConditions::default(), NewBlob::default());
            let none = Content::default();
            service.put_blob(cx, &at, asked, BlobType::Block, new, none).await.unwrap();
        }
    });
    let target = "/con?restype=container&comp=list";
    let page = |more: &str| blobs.get(&format!("{target}{more}"), &[]);
    let count = |text: &str| text.matches("<Blob>").count();
    for max in ["0", "-1"] {
        page(&format!("&maxresults={max}")).refused(400, "OutOfRangeQueryParameterValue");
    }
    let first = page("&maxresults=5001").is(200).text();
    assert!(first.contains("<MaxResults>5000</MaxResults>"), "{}", &first[..500]);
    assert_eq!(count(&first), 5_000);
    let marker = first.split("<NextMarker>").nth(1).unwrap().split('<').next().unwrap();
    let last = page(&format!("&marker={marker}")).is(200).text();
    assert_eq!((count(&last), last.contains("<Name>5000</Name>")), (1, true), "{last}");
    assert_eq!(count(&page("").is(200).text()), 5_000, "without a wish");
    assert_eq!(count(&page("&maxresults=5000").is(200).text()), 5_000);
    assert_eq!(count(&page("&maxresults=1").is(200).text()), 1);
}

/// Get Blob of `0123456789` with a range; `x-ms-range` counts before `Range`.
fn range(blobs: &Blobs, range: &str) -> Got {
    blobs.get("/con/b", &[("x-ms-range", range), ("range", "bytes=0-0")])
}

#[test]
fn b156_ranges_are_clipped_and_begin_within_the_blob() {
    let blobs = Blobs::new();
    blobs.blob("0123456789");
    assert_eq!(range(&blobs, "bytes=2-4").is(206).text(), "234");
    assert_eq!(range(&blobs, "bytes=5-").is(206).text(), "56789");
    let clipped = range(&blobs, "bytes=8-100").is(206);
    assert_eq!((clipped.text().as_str(), clipped.header("content-range")), ("89", "bytes 8-9/10"));
    let past = range(&blobs, "bytes=10-").refused(416, "InvalidRange");
    assert_eq!(past.header("content-range"), "bytes */10");
    blobs.upload("empty", "", &[]).is(201);
    let past = blobs.get("/con/empty", &[("range", "bytes=0-")]).refused(416, "InvalidRange");
    assert_eq!(past.header("content-range"), "bytes */0");
}

#[test]
fn b157_the_checksum_of_a_range_is_one_and_of_at_most_4_mib() {
    let blobs = Blobs::new();
    blobs.blob(&"x".repeat((4 << 20) + 1));
    let (md5, crc) = ("x-ms-range-get-content-md5", "x-ms-range-get-content-crc64");
    let get = |range: &str, more: &[(&str, &str)]| {
        let mut all = vec![("range", range)];
        all.extend(more);
        blobs.get("/con/b", &all)
    };
    let got = get("bytes=0-4194303", &[(md5, "true")]).is(206);
    assert_eq!(got.header("content-md5").len(), 24);
    assert_ne!(get("bytes=0-9", &[(crc, "true")]).is(206).header("x-ms-content-crc64"), "");
    let code = "BothCrc64AndMd5RangeHeaderPresent";
    get("bytes=0-9", &[(md5, "true"), (crc, "true")]).refused(400, code);
    get("bytes=0-4194304", &[(md5, "true")]).refused(400, "InvalidHeaderValue");
    blobs.get("/con/b", &[(md5, "true")]).refused(400, "InvalidHeaderValue");
}

fn batch(blobs: &Blobs, parts: &[(&str, &str)]) -> Got {
    batch_to(blobs, "/?comp=batch", parts)
}

fn batch_to(blobs: &Blobs, to: &str, parts: &[(&str, &str)]) -> Got {
    let parts: Vec<_> = parts
        .iter()
        .map(|(method, target)| format!("{method} /{ACCOUNT}{target}? HTTP/1.1\r\n"))
        .collect();
    blobs.ask("POST", to, &[BATCH], &batch_of(&parts))
}

/// The type of [`batch_of`].
pub const BATCH: (&str, &str) = ("content-type", "multipart/mixed; boundary=batch_x");

/// The body of a batch of these parts, each the first lines of a request.
pub fn batch_of(parts: &[String]) -> Vec<u8> {
    let mut body = String::new();
    for (id, part) in parts.iter().enumerate() {
        body += "--batch_x\r\nContent-Type: application/http\r\n";
        write!(body, "Content-Transfer-Encoding: binary\r\nContent-ID: {id}\r\n\r\n").unwrap();
        write!(body, "{part}Content-Length: 0\r\n\r\n").unwrap();
    }
    body += "--batch_x--\r\n";
    body.into_bytes()
}

#[test]
fn b161_the_parts_of_a_batch_are_answered_one_by_one() {
    let blobs = Blobs::new();
    for name in ["1", "3"] {
        blobs.upload(name, "x", &[]).is(201);
    }
    let got =
        batch(&blobs, &[("DELETE", "/con/1"), ("DELETE", "/con/2"), ("DELETE", "/con/3")]).is(202);
    let text = got.text();
    let statuses: Vec<_> = text.lines().filter(|line| line.starts_with("HTTP/1.1")).collect();
    assert_eq!(
        statuses,
        ["HTTP/1.1 202 Accepted", "HTTP/1.1 404 Not Found", "HTTP/1.1 202 Accepted"]
    );
    // Each answer has the ID of its part, and what a Delete Blob would have answered alone.
    let parts: Vec<_> = text.split("Content-Type: application/http\r\n").skip(1).collect();
    for (id, (part, status)) in parts.iter().zip(["202", "404", "202"]).enumerate() {
        let begin = format!("Content-ID: {id}\r\n\r\nHTTP/1.1 {status} ");
        assert!(part.starts_with(&begin), "{part}");
        assert_eq!(part.contains("BlobNotFound"), status == "404", "{part}");
        assert_eq!(part.contains("x-ms-delete-type-permanent: true"), status == "202", "{part}");
    }
    for name in ["1", "3"] {
        blobs.head(&format!("/con/{name}"), &[]).is(404);
    }
    let most = batch(&blobs, &[("DELETE", "/con/1"); 256]).is(202).text();
    assert_eq!(most.matches("HTTP/1.1 404").count(), 256);
    batch(&blobs, &[]).refused(400, "InvalidInput");
    batch(&blobs, &[("DELETE", "/con/1"); 257]).refused(400, "InvalidInput");
    batch(&blobs, &[("DELETE", "/con/1"), ("PUT", "/con/1")]).refused(400, "InvalidInput");
}

/// A batch that breaks off may have lost parts: nothing of it is done.
#[test]
fn a_batch_that_breaks_off_is_refused_as_a_whole() {
    let blobs = Blobs::new();
    blobs.upload("1", "x", &[]).is(201);
    let part = format!(
        "--batch_x\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n\
         DELETE /{ACCOUNT}/con/1 HTTP/1.1\r\nContent-Length: 0\r\n\r\n\r\n"
    );
    let kind = [("content-type", "multipart/mixed; boundary=batch_x")];
    let whole = format!("{part}--batch_x--\r\n");
    let cut = [
        part.clone(),
        format!("{part}--batch_x\r\nContent-Type: appl"),
        format!("{part}--batch_"),
        part.replace("DELETE", "nothing"),
        whole.replace("HTTP/1.1", ""),
    ];
    for body in cut {
        blobs.ask("POST", "/?comp=batch", &kind, body.as_bytes()).refused(400, "InvalidInput");
        blobs.head("/con/1", &[]).is(200);
    }
    let other = [("content-type", "text/plain; boundary=batch_x")];
    blobs.ask("POST", "/?comp=batch", &other, whole.as_bytes()).refused(400, "InvalidInput");
    blobs.ask("POST", "/?comp=batch", &kind, whole.as_bytes()).is(202);
    blobs.head("/con/1", &[]).is(404);
}

#[test]
fn a_sas_of_a_batch_must_permit_each_part() {
    let blobs = signed(BlobOptions::default());
    let under = |letters: &str| {
        let to = format!("/?comp=batch&{}", sas(letters));
        batch_to(&blobs, &to, &[("DELETE", "/con/b")]).is(202).text()
    };
    let refused = under("rw");
    assert!(refused.contains("HTTP/1.1 403"), "{refused}");
    assert!(refused.contains("AuthorizationPermissionMismatch"), "{refused}");
    blobs.get(&format!("/con/b?{}", sas("r")), &[]).is(200);
    assert!(under("d").contains("HTTP/1.1 202"));
}

#[test]
fn a_search_in_one_container_finds_nothing_of_another() {
    let blobs = Blobs::new();
    blobs.put("/other?restype=container", &[]).is(201);
    let tags = [("x-ms-blob-type", "BlockBlob"), ("x-ms-tags", "a=1")];
    blobs.ask("PUT", "/other/secret", &tags, b"x").is(201);
    let query = "restype=container&comp=blobs&where=%40container%3D'other'%20AND%20%22a%22%3D'1'";
    let found = blobs.get(&format!("/con?{query}"), &[]).is(200).text();
    assert!(!found.contains("secret"), "{found}");
}

#[test]
fn b162_predicates_over_tags() {
    let blobs = Blobs::new();
    blobs.upload("b", "x", &[("x-ms-tags", "a=1&b=two%20words")]).is(201);
    let get = |query: &str| blobs.get("/con/b", &[("x-ms-if-tags", query)]);
    for (holds, fails) in [
        ("\"a\" = '1'", "\"a\" = '2'"),
        ("\"a\" <> '2'", "\"a\" <> '1'"),
        ("\"a\" > '0'", "\"a\" > '1'"),
        ("\"a\" >= '1'", "\"a\" >= '2'"),
        ("\"a\" < '2'", "\"a\" < '1'"),
        ("\"a\" <= '1'", "\"a\" <= '0'"),
        ("\"a\" = '1' AND \"b\" = 'two words'", "\"a\" = '1' AND \"b\" = 'x'"),
        ("\"a\" = '9' OR \"a\" = '1'", "\"a\" = '9' OR \"a\" = '8'"),
        ("a = '1'", "none = '1'"),
    ] {
        get(holds).is(200);
        get(fails).refused(412, "ConditionNotMet");
    }
    get("\"a\" = ").refused(400, "InvalidHeaderValue");
    let many: Vec<_> = (0..11).map(|n| format!("k{n}=v")).collect();
    blobs.upload("b", "x", &[("x-ms-tags", &many.join("&"))]).refused(400, "TagsTooLarge");
}

#[test]
fn b163_blobs_are_found_by_tags_in_all_containers_or_in_one() {
    let blobs = Blobs::new();
    blobs.put("/other?restype=container", &[]).is(201);
    for (container, value) in [("con", "a=1&z=9"), ("other", "a=2&z=9")] {
        let headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-tags", value)];
        blobs.put(&format!("/{container}/b"), &headers).is(201);
    }
    let find = |at: &str, query: &str| {
        let query = query.replace(' ', "%20").replace('"', "%22").replace('>', "%3E");
        blobs.get(&format!("{at}comp=blobs&where={query}"), &[])
    };
    assert_eq!(find("/?", "\"a\" >= '1'").is(200).text().matches("<Blob>").count(), 2);
    for (at, query) in [
        ("/?", "@container = 'other' AND \"a\" >= '1'"),
        ("/other?restype=container&", "\"a\" >= '1'"),
    ] {
        let one = find(at, query).is(200).text();
        assert!(one.contains("<ContainerName>other<"), "{one}");
        assert_eq!(one.matches("<Blob>").count(), 1, "{one}");
        assert!(one.contains("<Key>a<") && !one.contains("<Key>z<"), "{one}");
    }
    let ten = ["\"a\" >= '1'"; 10].join(" AND ");
    find("/?", &format!("@container = 'other' AND {ten}")).is(200);
    find("/?", &format!("\"a\" >= '0' AND {ten}")).refused(400, "InvalidQueryParameterValue");
    find("/?", "\"a!\" >= '1'").refused(400, "InvalidQueryParameterValue");
    find("/?", "\"a\" = '1' OR \"a\" = '2'").refused(400, "InvalidQueryParameterValue");
    // A tag must be compared, whether the container is there or not.
    for container in ["con", "none"] {
        let query = format!("@container = '{container}'");
        find("/?", &query).refused(400, "InvalidQueryParameterValue");
    }
    find("/?marker=junk&", "\"a\" >= '1'").refused(400, "InvalidQueryParameterValue");
}

#[test]
fn b164_a_name_is_taken_as_it_is() {
    let blobs = Blobs::new();
    let long = "n".repeat(1024);
    let names =
        ["a", "a/b", "a//b", "A", "%252F", "%C3%A9", "+", "a%20b", "dot.", "/lead", "tail/", &long];
    for (n, name) in names.iter().enumerate() {
        blobs.upload(name, &n.to_string(), &[]).is(201);
    }
    for (n, name) in names.iter().enumerate() {
        assert_eq!(blobs.text(name), n.to_string(), "{name}");
    }
    assert_eq!(blobs.text("a%2Fb"), "1", "an encoded slash is a slash");
    blobs.upload(&"n".repeat(1025), "x", &[]).is(400);
    for (container, code) in [("a_b", "InvalidResourceName"), ("ab", "OutOfRangeInput")] {
        blobs.put(&format!("/{container}?restype=container"), &[]).refused(400, code);
    }
    for (target, hint) in [
        ("/c1?restype=container", "'c1' has 2 letters, 3 to 63 are allowed".to_owned()),
        (
            "/Con?restype=container",
            "'Con' has 'C', only lower-case letters, digits and hyphens are allowed".to_owned(),
        ),
        (
            &format!("/con/{}", "n".repeat(1025)),
            format!("'{}...' has 1025 letters, 1 to 1024 are allowed", "n".repeat(80)),
        ),
    ] {
        let got = blobs.put(target, &[("x-ms-blob-type", "BlockBlob")]).is(400).text();
        assert!(got.contains(&format!(" [latchfs: {hint}]")), "{got}");
    }
}

#[test]
fn b168_errors_of_head_have_no_body() {
    let blobs = Blobs::new();
    let got = blobs.head("/con/none", &[]).is(404);
    assert_eq!((got.code(), got.body.len()), ("BlobNotFound", 0));
    blobs.head("/none?restype=container", &[]).refused(404, "ContainerNotFound");
}

#[test]
fn what_is_not_there_yet_says_so() {
    let blobs = Blobs::new();
    blobs.blob("x");
    blobs.put("/con/b?comp=expiry", &[]).refused(501, "NotImplemented");
    blobs.put("/con/b?comp=nonsense", &[]).refused(400, "InvalidQueryParameterValue");
    blobs.ask("POST", "/con/b?comp=tags", &[], b"").refused(405, "UnsupportedHttpVerb");
}

/// Clients of Data Lake that ask the Blob port must not take a container for missing.
#[test]
fn requests_of_data_lake_say_that_it_is_not_served() {
    let blobs = Blobs::new();
    blobs.blob("x");
    for (method, target) in [
        ("GET", "/con?resource=filesystem&recursive=true"),
        ("GET", "/?resource=account"),
        ("PUT", "/new?resource=filesystem"),
        ("HEAD", "/con?resource=filesystem"),
        ("PUT", "/con/f?resource=file"),
        ("PUT", "/con/d?resource=directory"),
        ("PATCH", "/con/b?action=append&position=0"),
        ("HEAD", "/con/b?action=getStatus"),
        ("POST", "/con/b?action=lease"),
    ] {
        let got = blobs.ask(method, target, &[], b"").refused(501, "NotImplemented");
        let told = "[latchfs: Data Lake (dfs) is not served]";
        assert!(method == "HEAD" || got.text().contains(told), "{target}: {}", got.text());
    }
    let rename = [("x-ms-rename-source", "/con/b")];
    blobs.put("/con/c?mode=legacy", &rename).refused(501, "NotImplemented");
    assert_eq!(blobs.text("b"), "x");
    // The parameters of Data Lake mean nothing beside those of Blob.
    blobs.get("/con?restype=container&comp=list&resource=x", &[]).is(200);
}

#[test]
fn include_may_be_given_several_times() {
    let blobs = Blobs::new();
    blobs.upload("b", "x", &[("x-ms-meta-k", "v"), ("x-ms-tags", "t=1")]).is(201);
    let list = "/con?restype=container&comp=list&include=metadata&include=tags";
    let text = blobs.get(list, &[]).is(200).text();
    assert!(text.contains("<k>v</k>") && text.contains("<Key>t</Key>"), "{text}");
    let refused = blobs.get(&format!("{list}&include=none"), &[]);
    let text = refused.refused(400, "InvalidQueryParameterValue").text();
    assert!(text.contains("<Reason>it is not known</Reason>"), "{text}");
}

#[test]
fn the_header_of_tags_has_2_kib() {
    let blobs = Blobs::new();
    // Ten tags, of which the last is as long as the header may still be.
    let tags = |length: usize| {
        let tags: Vec<_> = (0..9).map(|n| format!("{n}={}", "v".repeat(200))).collect();
        let tags = tags.join("&");
        let rest = length - tags.len() - "&last=".len();
        format!("{tags}&last={}", "v".repeat(rest))
    };
    let put = |length| blobs.upload("b", "x", &[("x-ms-tags", &tags(length))]);
    put(2048).is(201);
    put(2049).refused(400, "TagsTooLarge");
}
