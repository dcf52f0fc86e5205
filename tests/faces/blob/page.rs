//! Tries the tables of `docs/blob.md` row by row.

use latchfs::blob::service::BlobOptions;

use super::access::{open_to, signed};
use super::fixture::{A, B, Blobs, Got, KEYS};
use crate::common::pages::page;

/// The rows of the table that follows a heading.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let page = page("docs/blob.md");
    let section = page.split(&format!("\n## {heading}\n")).nth(1).expect(heading);
    let section = section.split("\n## ").next().unwrap();
    let lines = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let rows = lines.skip(1).map(|line| line.split(" | ").map(str::to_owned).collect());
    let rows: Vec<_> = rows.collect();
    assert!(rows.len() > 3, "{heading}");
    rows
}

const BLOCK: &str = "?comp=block&blockid=AAAA";
const LIST: &[u8] = b"<BlockList><Latest>AAAA</Latest></BlockList>";
const TAGS: &[u8] = b"<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tags>";
const PAGES: [(&str, &str); 1] = [("x-ms-range", "bytes=0-511")];

/// A request on the blob `b`: method, query, headers, body.
type Request = (&'static str, &'static str, Vec<(&'static str, String)>, &'static [u8]);

/// The type of the blob that a request is for.
fn kind(request: &str) -> &'static str {
    match request {
        "Put Page" | "Clear Page" | "Get Page Ranges" => "PageBlob",
        "Append Block" | "Seal" => "AppendBlob",
        _ => "BlockBlob",
    }
}

/// The request that the page calls so.
fn request(blobs: &Blobs, name: &str) -> Request {
    let own = |headers: &[(&'static str, &str)]| {
        headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect::<Vec<_>>()
    };
    let source = blobs.url("source");
    let source = ("x-ms-copy-source", source.as_str());
    let block = ("x-ms-blob-type", "BlockBlob");
    match name {
        "Put Blob" => ("PUT", "", own(&[block]), b"new"),
        "Put Block" => ("PUT", BLOCK, own(&[]), b"new"),
        "Put Empty Block" => ("PUT", BLOCK, own(&[]), b""),
        "Put Block List" => ("PUT", "?comp=blocklist", own(&[]), LIST),
        "Put Block From URL" => ("PUT", BLOCK, own(&[source]), b""),
        "Put Blob From URL" => ("PUT", "", own(&[source, block]), b""),
        "Copy Blob" => ("PUT", "", own(&[source]), b""),
        "Put Page" => {
            ("PUT", "?comp=page", own(&[PAGES[0], ("x-ms-page-write", "update")]), &[1; 512])
        }
        "Clear Page" => ("PUT", "?comp=page", own(&[PAGES[0], ("x-ms-page-write", "clear")]), b""),
        "Append Block" => ("PUT", "?comp=appendblock", own(&[]), b"new"),
        "Seal" => ("PUT", "?comp=seal", own(&[]), b""),
        "Set Properties" => ("PUT", "?comp=properties", own(&[]), b""),
        "Set Metadata" => ("PUT", "?comp=metadata", own(&[]), b""),
        "Set Tags" => ("PUT", "?comp=tags", own(&[]), TAGS),
        "Set Tier" => ("PUT", "?comp=tier", own(&[("x-ms-access-tier", "Cool")]), b""),
        "Legal Hold" => ("PUT", "?comp=legalhold", own(&[("x-ms-legal-hold", "false")]), b""),
        "Undelete" => ("PUT", "?comp=undelete", own(&[]), b""),
        "Snapshot" => ("PUT", "?comp=snapshot", own(&[]), b""),
        "Delete" => ("DELETE", "", own(&[]), b""),
        "Lease acquire" => (
            "PUT",
            "?comp=lease",
            own(&[("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")]),
            b"",
        ),
        "Get Blob" => ("GET", "", own(&[]), b""),
        "Get Properties" => ("HEAD", "", own(&[]), b""),
        "Get Metadata" => ("HEAD", "?comp=metadata", own(&[]), b""),
        "Get Block List" => ("GET", "?comp=blocklist", own(&[]), b""),
        "Get Page Ranges" => ("GET", "?comp=pagelist", own(&[]), b""),
        action => lease_action(action),
    }
}

/// A lease action as `change A B` or `break 10`.
fn lease_action(text: &str) -> Request {
    let id = |letter: &str| match letter {
        "A" => A.to_owned(),
        "B" => B.to_owned(),
        other => other.to_owned(),
    };
    let words: Vec<_> = text.split(' ').collect();
    let mut headers = vec![("x-ms-lease-action", words[0].to_owned())];
    match words[..] {
        ["acquire"] => headers.push(("x-ms-lease-duration", "-1".to_owned())),
        ["acquire", proposed] => {
            headers.push(("x-ms-lease-duration", "-1".to_owned()));
            headers.push(("x-ms-proposed-lease-id", id(proposed)));
        }
        ["renew" | "release", held] => headers.push(("x-ms-lease-id", id(held))),
        ["change", from, to] => {
            headers.push(("x-ms-lease-id", id(from)));
            headers.push(("x-ms-proposed-lease-id", id(to)));
        }
        ["break"] => {}
        ["break", period] => headers.push(("x-ms-lease-break-period", period.to_owned())),
        _ => panic!("the page names no request {text}"),
    }
    ("PUT", "?comp=lease", headers, b"")
}

/// A server with `b` in the state that a row begins with, and with the blob `source`.
fn stage(before: &str, kind: &str) -> Blobs {
    let blobs = Blobs::new();
    blobs.upload("source", "source", &[]).is(201);
    let stage_block = || blobs.ask("PUT", &format!("/con/b{BLOCK}"), &[], b"staged").is(201);
    match before {
        "nothing" => return blobs,
        "uncommitted blocks" => {
            stage_block();
            return blobs;
        }
        _ => {}
    }
    let mut headers = vec![("x-ms-blob-type", kind), ("x-ms-tags", "t=1")];
    if kind == "PageBlob" {
        headers.push(("x-ms-blob-content-length", "1024"));
    }
    blobs.put("/con/b", &headers).is(201);
    if kind == "BlockBlob" {
        stage_block();
    }
    lease(&blobs, "/con/b?", before);
    blobs
}

/// Brings a lease under A into a state.
fn lease(blobs: &Blobs, at: &str, state: &str) {
    match state {
        "b" | "available" => {}
        "leased" => blobs.leased(at, "-1"),
        "breaking" | "broken" => {
            blobs.leased(at, "-1");
            let period = if state == "broken" { "0" } else { "30" };
            blobs.lease(at, "break", &[("x-ms-lease-break-period", period)]).is(202);
        }
        "expired" => {
            blobs.leased(at, "15");
            blobs.pass(15);
        }
        other => panic!("the page names no state {other}"),
    }
}

/// The headers of a cell: `If-Match E, x-ms-if-tags false`, `nothing`, `ID A`.
fn conditions(blobs: &Blobs, cell: &str) -> Vec<(String, String)> {
    let etag = || blobs.etag("/con/b");
    let date = |by| {
        let exists = blobs.head("/con/b", &[]).status == 200;
        blobs.modified(if exists { "/con/b" } else { "/con/source" }, by)
    };
    let header = |part: &str| {
        let (name, value) = part.split_once(' ').unwrap();
        let value = match (name, value) {
            ("ID", "A") => A.to_owned(),
            ("ID", "B") => B.to_owned(),
            ("x-ms-if-tags", "true") => "\"t\" = '1'".to_owned(),
            ("x-ms-if-tags", "false") => "\"t\" = '2'".to_owned(),
            (_, "E") => etag(),
            (_, "E-and-other") => format!("{}, \"0x1\"", etag()),
            (_, "other") => "\"0x1\"".to_owned(),
            (_, "L") => date(0),
            (_, "past") => date(-3600),
            (_, "future") => date(3600),
            (_, literal) => literal.to_owned(),
        };
        let name = if name == "ID" { "x-ms-lease-id".to_owned() } else { name.to_lowercase() };
        (name, value)
    };
    cell.split(", ").filter(|part| !matches!(*part, "nothing" | "none")).map(header).collect()
}

/// Sends what a row asks for; `201`, or `412 Code`.
fn answer(blobs: &Blobs, name: &str, with: &str) -> String {
    let (method, query, headers, body) = request(blobs, name);
    let conditions = conditions(blobs, with);
    let own = headers.iter().map(|(name, value)| (*name, value.as_str()));
    let more = conditions.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let all: Vec<_> = own.chain(more).collect();
    told(&blobs.ask(method, &format!("/con/b{query}"), &all, body))
}

fn told(got: &Got) -> String {
    format!("{} {}", got.status, got.code()).trim().to_owned()
}

#[test]
fn conditions_do_what_the_page_says() {
    for heading in ["Conditions of a write", "Conditions of a read"] {
        for row in rows(heading) {
            let blobs = stage(&row[0], kind(&row[1]));
            assert_eq!(answer(&blobs, &row[1], &row[2]), row[3], "{row:?}");
        }
    }
}

#[test]
fn the_etag_moves_where_the_page_says() {
    for row in rows("What moves the ETag") {
        let blobs = stage("b", kind(&row[0]));
        let before = blobs.etag("/con/b");
        let told = answer(&blobs, &row[0], "nothing");
        assert!(told.starts_with('2'), "{row:?}: {told}");
        let moved = if blobs.etag("/con/b") == before { "stays" } else { "moves" };
        assert_eq!(moved, row[1], "{row:?}");
    }
}

const STATES: [&str; 5] = ["available", "leased", "breaking", "broken", "expired"];

#[test]
fn lease_actions_do_what_the_page_says_on_blobs_and_containers() {
    for row in rows("Lease actions") {
        for (before, said) in STATES.iter().zip(&row[1..]) {
            for at in ["/con/b?", "/con?restype=container&"] {
                let blobs = stage("b", "BlockBlob");
                lease(&blobs, at, before);
                let (method, _, headers, _) = lease_action(&row[0]);
                let all: Vec<_> =
                    headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let got = blobs.ask(method, &format!("{at}comp=lease"), &all, b"");
                let seen = if got.status < 300 {
                    let head = blobs.head(at.trim_end_matches(['?', '&']), &[]).is(200);
                    head.header("x-ms-lease-state").to_owned()
                } else {
                    told(&got)
                };
                assert_eq!(seen, *said, "{} when {before}, {at}", row[0]);
            }
        }
    }
}

#[test]
fn what_is_leased_is_used_as_the_page_says() {
    for row in rows("Using what is leased") {
        for (before, said) in STATES.iter().zip(&row[2..]) {
            let blobs = stage(before, kind(&row[0]));
            let with = if row[1] == "none" { "none".to_owned() } else { format!("ID {}", row[1]) };
            assert_eq!(answer(&blobs, &row[0], &with), *said, "{row:?} when {before}");
        }
    }
}

#[test]
fn the_answers_that_azurite_gives_differently_are_as_the_page_says() {
    for row in rows("Where Azurite differs") {
        let blobs = stage(&row[0], kind(&row[1]));
        assert_eq!(answer(&blobs, &row[1], &row[2]), row[3], "{row:?}");
        assert_ne!(row[3], row[4], "{row:?}");
    }
}

#[test]
fn what_is_different_from_the_service_is_as_the_page_says() {
    for row in rows("Where latchfs differs from the service") {
        let blobs = stage("b", "BlockBlob");
        let container = "/con?restype=container";
        match row[0].as_str() {
            what if what.ends_with("with If-Match") => {
                let wrong = [("if-match", "\"0x1\"")];
                for comp in ["&comp=metadata", "&comp=acl"] {
                    blobs.put(&format!("{container}{comp}"), &wrong).is(412);
                }
                let acquire = [("x-ms-lease-duration", "15"), wrong[0]];
                blobs.lease("/con?restype=container&", "acquire", &acquire).is(412);
                blobs.delete(container, &wrong).is(412);
            }
            "Delete Container" => {
                blobs.delete(container, &[]).is(202);
                blobs.put(container, &[]).is(201);
            }
            "Set Container ACL" => {
                let blobs = signed(BlobOptions::default());
                blobs.get("/con/b", &[]).is(401);
                open_to(&blobs, Some("blob"));
                blobs.get("/con/b", &[]).is(200);
                open_to(&blobs, None);
                blobs.get("/con/b", &[]).is(401);
            }
            "Set Blob Tier out of Archive" => {
                for tier in ["Archive", "Hot"] {
                    blobs.put("/con/b?comp=tier", &[("x-ms-access-tier", tier)]);
                }
                blobs.get("/con/b", &[]).is(200);
            }
            "Find Blobs by Tags" => {
                let found = blobs.get("/?comp=blobs&where=t%3D%271%27", &[]).is(200).text();
                assert!(found.contains("<Name>b</Name>"), "{found}");
            }
            what if what.starts_with("List Blobs with ") => {
                let options = BlobOptions { versioning: true, ..BlobOptions::default() };
                let blobs = Blobs::with(options);
                for body in ["one", "two"] {
                    blobs.upload("b", body, &[]).is(201);
                }
                blobs.delete("/con/b", &[]).is(202);
                let include = "&comp=list&include=versions,deletedwithversions";
                let listed = blobs.get(&format!("{container}{include}"), &[]).is(200).text();
                let of = |element: &str| listed.matches(element).count();
                assert_eq!((of("<Blob>"), of("<HasVersionsOnly>")), (2, 1), "{listed}");
            }
            "Query Blob Contents, Incremental Copy Blob, Set Blob Expiry" => {
                for (method, comp) in
                    [("POST", "query"), ("PUT", "incrementalcopy"), ("PUT", "expiry")]
                {
                    let got = blobs.ask(method, &format!("/con/b?comp={comp}"), &[], b"");
                    assert_eq!(told(&got), row[1], "{comp}");
                }
            }
            "Copy Blob From URL" => {
                let length = (257_u64 << 20).to_string();
                let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", &*length)];
                blobs.put("/con/page", &page).is(201);
                let url = blobs.url("page");
                let copy = [("x-ms-copy-source", url.as_str()), ("x-ms-requires-sync", "true")];
                let copied = blobs.put("/con/synchronous", &copy).is(202);
                assert_eq!(copied.header("x-ms-content-crc64"), "");
            }
            "a copy from another server" => {
                let elsewhere = [("x-ms-copy-source", "http://elsewhere.example/con/b")];
                assert_eq!(told(&blobs.put("/con/to", &elsewhere)), row[1]);
            }
            "Logging, metrics, static website, default version" => {
                let body = b"<StorageServiceProperties><DefaultServiceVersion>2021-12-02\
                             </DefaultServiceVersion></StorageServiceProperties>";
                let target = "/?restype=service&comp=properties";
                blobs.ask("PUT", target, &[], body).is(202);
                assert!(blobs.get(target, &[]).is(200).text().contains(">2021-12-02<"));
            }
            "immutability policies and legal holds of containers" => {
                let list = blobs.get("/?comp=list", &[]).is(200).text();
                assert!(list.contains("<HasLegalHold>false<"), "{list}");
            }
            "customer-provided keys" => {
                let [key, _] = KEYS;
                blobs.upload("k", "plain", &key).is(201);
                assert_eq!(blobs.get("/con/k", &key).is(200).text(), "plain");
                blobs.get("/con/k", &[]).refused(409, "BlobUsesCustomerSpecifiedEncryption");
            }
            other => panic!("nothing tries {other}"),
        }
    }
}
