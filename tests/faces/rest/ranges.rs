//! Which parts of a file were written, and what changed since a snapshot.

use std::time::{Duration, Instant};

use crate::rest::fixture::Fixture;

const MIB: usize = 1 << 20;

/// Takes a snapshot of `docs`; its stamp as a query has it.
fn snapshot(fixture: &Fixture) -> String {
    let got = fixture.put("/docs?restype=share&comp=snapshot", &[]).is(201);
    got.header("x-ms-snapshot").replace(':', "%3A")
}

fn clear(fixture: &Fixture, target: &str, range: &str) {
    let headers = [("x-ms-range", range), ("x-ms-write", "clear")];
    fixture.put(&format!("{target}?comp=range"), &headers).is(201);
}

/// The elements of a range list, as `Name FIRST-LAST`.
fn listed(text: &str) -> Vec<String> {
    let value = |part: &str, name: &str| {
        let text = part.split(&format!("<{name}>")).nth(1).unwrap();
        text.split('<').next().unwrap().to_owned()
    };
    let mut found = Vec::new();
    for name in ["Range", "ClearRange"] {
        for part in text.split(&format!("<{name}>")).skip(1) {
            found.push(format!("{name} {}-{}", value(part, "Start"), value(part, "End")));
        }
    }
    found
}

#[test]
fn a_difference_to_a_snapshot_has_what_was_written_and_what_was_cleared() {
    let fixture = Fixture::new();
    fixture.upload("a", &vec![7; 3 * MIB]);
    let first = snapshot(&fixture);
    let diff = format!("/docs/a?comp=rangelist&prevsharesnapshot={first}");
    let got = fixture.get(&diff).is(200);
    assert_eq!(listed(&got.text()), [""; 0]);
    assert_eq!(got.header("x-ms-content-length"), (3 * MIB).to_string());

    fixture.put_range("/docs/a", 1_024, b"changed", &[]).is(201);
    clear(&fixture, "/docs/a", "bytes=1048576-2097151");
    let all = ["Range 1024-1535", "ClearRange 1048576-2097151"];
    assert_eq!(listed(&fixture.get(&diff).is(200).text()), all);
    let window = [("x-ms-range", "bytes=2000-1050000")];
    let got = fixture.ask("GET", &diff, &window, b"").is(200).text();
    assert_eq!(listed(&got), ["ClearRange 1048576-1050000"]);

    // Page by page: both kinds count.
    let page = fixture.get(&format!("{diff}&maxresults=1")).is(200).text();
    assert_eq!(listed(&page), all[..1]);
    assert!(page.contains("<NextMarker>1048576</NextMarker>"), "{page}");
    let page = fixture.get(&format!("{diff}&maxresults=1&marker=1048576")).is(200).text();
    assert_eq!(listed(&page), all[1..]);
    assert!(!page.contains("NextMarker"), "{page}");

    // Between two snapshots, in that order only.
    let second = snapshot(&fixture);
    fixture.put_range("/docs/a", 0, b"later", &[]).is(201);
    let between = format!("{diff}&sharesnapshot={second}");
    assert_eq!(listed(&fixture.get(&between).is(200).text()), all);
    let backwards =
        format!("/docs/a?comp=rangelist&sharesnapshot={first}&prevsharesnapshot={second}");
    fixture.get(&backwards).refused(400, "InvalidQueryParameterValue");
    let missing = "/docs/a?comp=rangelist&prevsharesnapshot=2001-01-01T00:00:00.0000000Z";
    fixture.get(missing).refused(409, "PreviousSnapshotNotFound");
    fixture
        .get("/docs/a?comp=rangelist&prevsharesnapshot=x")
        .refused(400, "InvalidQueryParameterValue");
}

/// Returns when a new file is younger than all that are there: births are as coarse as the
/// kernel's clock.
fn next_moment() {
    let born = || tempfile::tempfile().unwrap().metadata().unwrap().created().unwrap();
    let (now, end) = (born(), Instant::now() + Duration::from_secs(10));
    while born() <= now {
        assert!(Instant::now() < end, "the clock stands still");
    }
}

#[test]
fn a_difference_is_told_only_of_the_file_that_the_snapshot_has() {
    let fixture = Fixture::new();
    fixture.upload("again", b"first");
    fixture.upload("moves", b"bytes");
    fixture.upload("kept", b"other bytes");
    next_moment();
    let stamp = snapshot(&fixture);
    let diff = |name: &str| format!("/docs/{name}?comp=rangelist&prevsharesnapshot={stamp}");
    next_moment();
    fixture.upload("new", b"bytes");
    assert_eq!(listed(&fixture.get(&diff("new")).is(200).text()), ["Range 0-4"]);

    fixture.delete("/docs/again").is(202);
    fixture.upload("again", b"second");
    fixture.get(&diff("again")).refused(409, "FileGenerationMismatch");

    let source = format!("http://{}/devstoreaccount1/docs/moves", fixture.server.addr());
    let rename = [("x-ms-file-rename-source", source.as_str())];
    fixture.put("/docs/moved?comp=rename", &rename).is(200);
    fixture.get(&diff("moved")).refused(409, "FileGenerationMismatch");
    let moved = [("x-ms-file-support-rename", "true")];
    // Compared with its copy under the former name: nothing was written since.
    let got = fixture.ask("GET", &diff("moved"), &moved, b"").is(200).text();
    assert_eq!(listed(&got), [""; 0]);
    fixture.put_range("/docs/moved", 0, b"B", &[]).is(201);
    let got = fixture.ask("GET", &diff("moved"), &moved, b"").is(200).text();
    assert_eq!(listed(&got), ["Range 0-4"]);

    // Onto the name of another file that the snapshot has.
    let source = format!("http://{}/devstoreaccount1/docs/moved", fixture.server.addr());
    let replace = [
        ("x-ms-file-rename-source", source.as_str()),
        ("x-ms-file-rename-replace-if-exists", "true"),
    ];
    fixture.put("/docs/kept?comp=rename", &replace).is(200);
    fixture.get(&diff("kept")).refused(409, "FileGenerationMismatch");
    let got = fixture.ask("GET", &diff("kept"), &moved, b"").is(200).text();
    assert_eq!(listed(&got), ["Range 0-4"]);
    fixture
        .put(
            "/docs/moved?comp=rename",
            &[(
                "x-ms-file-rename-source",
                &*format!("http://{}/devstoreaccount1/docs/kept", fixture.server.addr()),
            )],
        )
        .is(200);
    let plain = "/docs/moved?comp=rangelist";
    fixture.ask("GET", plain, &moved, b"").refused(400, "InvalidHeaderValue");
}
