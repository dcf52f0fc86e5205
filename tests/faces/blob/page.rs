//! Tries the tables of `docs/blob.md` row by row.

use latchfs::blob::service::BlobOptions;

use super::access::{open_to, signed, state_sas};
use super::fixture::{A, B, Blobs, Got, KEYS};
use super::requests::{BLOCK, blob_for, container, request};
use crate::common::pages::rows_of;

/// The rows of the table that follows a heading.
fn rows(heading: &str) -> Vec<Vec<String>> {
    rows_of("docs/blob.md", heading)
}

/// A server with the blob `source`. Each row has a blob of its own on it.
fn with_source() -> Blobs {
    let blobs = Blobs::new();
    blobs.upload("source", &"s".repeat(512), &[]).is(201);
    blobs
}

/// Brings a blob of that name into the state that a row begins with; its address.
fn stage(blobs: &Blobs, before: &str, name: &str, request: &str) -> String {
    match before {
        "nothing" => format!("/con/{name}?"),
        "uncommitted blocks" => {
            let at = format!("/con/{name}?");
            blobs.ask("PUT", &format!("{at}{BLOCK}"), &[], b"staged").is(201);
            at
        }
        state => {
            let at = blob_for(blobs, request, name);
            lease(blobs, &at, state);
            at
        }
    }
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
fn conditions(blobs: &Blobs, at: &str, cell: &str) -> Vec<(String, String)> {
    let at = at.trim_end_matches('?');
    let date = |by| {
        let exists = blobs.head(at, &[]).status == 200;
        blobs.modified(if exists { at } else { "/con/source" }, by)
    };
    let header = |part: &str| {
        let (name, value) = part.split_once(' ').unwrap();
        let value = match (name, value) {
            ("ID", "A") => A.to_owned(),
            ("ID", "B") => B.to_owned(),
            ("x-ms-if-tags", "true") => "\"t\" = '1'".to_owned(),
            ("x-ms-if-tags", "false") => "\"t\" = '2'".to_owned(),
            (_, "E") => blobs.etag(at),
            (_, "E-and-other") => format!("{}, \"0x1\"", blobs.etag(at)),
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
fn answer(blobs: &Blobs, at: &str, name: &str, with: &str) -> String {
    let conditions = conditions(blobs, at, with);
    let more: Vec<_> =
        conditions.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    told(&request(blobs, name).send(blobs, at, &more))
}

fn told(got: &Got) -> String {
    format!("{} {}", got.status, got.code()).trim().to_owned()
}

#[test]
fn conditions_and_what_azurite_answers_differently_are_as_the_page_says() {
    let blobs = with_source();
    let headings = ["Conditions of a write", "Conditions of a read", "Where Azurite differs"];
    for (n, row) in headings.into_iter().flat_map(rows).enumerate() {
        let at = stage(&blobs, &row[0], &format!("n{n}"), &row[1]);
        assert_eq!(answer(&blobs, &at, &row[1], &row[2]), row[3], "{row:?}");
        assert_ne!(Some(&row[3]), row.get(4), "{row:?}");
    }
}

#[test]
fn the_etag_moves_where_the_page_says() {
    let blobs = with_source();
    for (n, row) in rows("What moves the ETag").iter().enumerate() {
        let at = stage(&blobs, "b", &format!("n{n}"), &row[0]);
        let blob = at.trim_end_matches('?');
        let version = || (blobs.etag(blob), blobs.modified(blob, 0));
        let before = version();
        blobs.pass(10);
        let told = answer(&blobs, &at, &row[0], "nothing");
        assert!(told.starts_with('2'), "{row:?}: {told}");
        let after = version();
        let moves = row[1] == "moves";
        assert_eq!((after.0 != before.0, after.1 != before.1), (moves, moves), "{row:?}");
    }
}

const STATES: [&str; 5] = ["available", "leased", "breaking", "broken", "expired"];

#[test]
fn lease_actions_do_what_the_page_says_on_blobs_and_containers() {
    let blobs = with_source();
    for (n, row) in rows("Lease actions").iter().enumerate() {
        for (before, said) in STATES.iter().zip(&row[1..]) {
            let name = format!("{before}{n}");
            for at in [blob_for(&blobs, "Put Blob", &name), container(&blobs, &name)] {
                lease(&blobs, &at, before);
                let got = request(&blobs, &row[0]).send(&blobs, &at, &[]);
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
    let blobs = with_source();
    for (n, row) in rows("Using what is leased").iter().enumerate() {
        for (before, said) in STATES.iter().zip(&row[2..]) {
            let at = stage(&blobs, before, &format!("{before}{n}"), &row[0]);
            let with = if row[1] == "none" { "none".to_owned() } else { format!("ID {}", row[1]) };
            assert_eq!(answer(&blobs, &at, &row[0], &with), *said, "{row:?} when {before}");
        }
    }
}

#[test]
fn what_is_different_from_the_service_is_as_the_page_says() {
    for row in rows("Where latchfs differs from the service") {
        let blobs = with_source();
        stage(&blobs, "b", "b", "Put Blob");
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
            "requests of Data Lake (dfs)" => {
                for query in ["resource=file", "action=append"] {
                    assert_eq!(told(&blobs.put(&format!("/con/b?{query}"), &[])), row[1]);
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
            other => try_kept_or_refused(&blobs, other),
        }
    }
}

/// What latchfs keeps and does not enforce, or refuses.
fn try_kept_or_refused(blobs: &Blobs, what: &str) {
    match what {
        "encryption scopes" => {
            let scope = [("x-ms-encryption-scope", "any")];
            blobs.upload("scoped", "plain", &scope).is(201);
            let shown = blobs.head("/con/scoped", &scope).is(200);
            assert_eq!(shown.header("x-ms-encryption-scope"), "any");
        }
        "access tier `Smart`" => {
            let tier = blobs.put("/con/b?comp=tier", &[("x-ms-access-tier", "Smart")]);
            tier.refused(400, "InvalidHeaderValue");
        }
        "a SAS for a directory (`sr=d`)" => {
            let blobs = signed(BlobOptions::default());
            let signed = state_sas("con/b", "d", "", [""; 5]);
            blobs.get(&format!("/con/b?{signed}"), &[]).refused(403, "AuthenticationFailed");
        }
        other => panic!("nothing tries {other}"),
    }
}
