//! Range lists and their differences in pages of 512 bytes.

use crate::rest::fixture::Fixture;

/// The elements of a range list, as `Range 0-511`.
fn listed(fixture: &Fixture, target: &str, headers: &[(&str, &str)]) -> Vec<String> {
    let text = fixture.ask("GET", target, headers, b"").is(200).text();
    let mut found = Vec::new();
    for element in text.split('<').collect::<Vec<_>>().windows(6) {
        let name = element[0].trim_end_matches('>');
        if name == "Range" || name == "ClearRange" {
            let number = |text: &str| text.split('>').nth(1).unwrap().to_owned();
            found.push(format!("{name} {}-{}", number(element[1]), number(element[3])));
        }
    }
    found
}

fn sized(fixture: &Fixture, name: &str, size: &str) {
    let create = [("x-ms-type", "file"), ("x-ms-content-length", size)];
    fixture.put(&format!("/docs/{name}"), &create).is(201);
}

fn clear(fixture: &Fixture, name: &str, range: &str) {
    let headers = [("x-ms-range", range), ("x-ms-write", "clear")];
    fixture.put(&format!("/docs/{name}?comp=range"), &headers).is(201);
}

fn snapshot(fixture: &Fixture) -> String {
    let got = fixture.put("/docs?restype=share&comp=snapshot", &[]).is(201);
    got.header("x-ms-snapshot").replace(':', "%3A")
}

#[test]
fn ranges_are_listed_in_steps_of_512_bytes() {
    let fixture = Fixture::new();
    sized(&fixture, "a", "2048");
    let list = "/docs/a?comp=rangelist";
    assert!(listed(&fixture, list, &[]).is_empty());
    fixture.put_range("/docs/a", 0, &[1; 512], &[]).is(201);
    fixture.put_range("/docs/a", 1_024, &[0; 512], &[]).is(201);
    assert_eq!(listed(&fixture, list, &[]), ["Range 0-511", "Range 1024-1535"]);
    clear(&fixture, "a", "bytes=0-511");
    assert_eq!(listed(&fixture, list, &[]), ["Range 1024-1535"]);
    fixture.put_range("/docs/a", 100, b"x", &[]).is(201);
    assert_eq!(listed(&fixture, list, &[]), ["Range 0-511", "Range 1024-1535"]);
    let window = [("x-ms-range", "bytes=256-1100")];
    assert_eq!(listed(&fixture, list, &window), ["Range 256-511", "Range 1024-1100"]);
    // Bytes written past the server count as data, in the block that REST has split too.
    let file = std::fs::OpenOptions::new().write(true).open(fixture.on_disk("a")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"y", 1_700).unwrap();
    assert_eq!(listed(&fixture, list, &[]), ["Range 0-511", "Range 1024-2047"]);
    // What a shorter length cut off does not come back with a longer one.
    fixture.put("/docs/a?comp=properties", &[("x-ms-content-length", "600")]).is(200);
    fixture.put("/docs/a?comp=properties", &[("x-ms-content-length", "9000")]).is(200);
    assert_eq!(listed(&fixture, list, &[]), ["Range 0-511"]);
}

#[test]
fn what_was_written_and_cleared_since_a_snapshot_is_told_in_steps_of_512_bytes() {
    let fixture = Fixture::new();
    sized(&fixture, "a", "2048");
    sized(&fixture, "same", "8192");
    fixture.put_range("/docs/same", 0, &[7; 8_192], &[]).is(201);
    let first = snapshot(&fixture);
    let since = |name: &str| format!("/docs/{name}?comp=rangelist&prevsharesnapshot={first}");
    assert!(listed(&fixture, &since("a"), &[]).is_empty());
    fixture.put_range("/docs/a", 0, &[1; 1_536], &[]).is(201);
    clear(&fixture, "a", "bytes=512-1023");
    let expected = ["Range 0-511", "Range 1024-1535", "ClearRange 512-1023"];
    assert_eq!(listed(&fixture, &since("a"), &[]), expected);
    // Bytes that are written as they were are a change; others are not.
    fixture.put_range("/docs/same", 4_096, &[7; 512], &[]).is(201);
    assert_eq!(listed(&fixture, &since("same"), &[]), ["Range 4096-4607"]);
    let second = snapshot(&fixture);
    let later = format!("/docs/a?comp=rangelist&prevsharesnapshot={second}");
    assert!(listed(&fixture, &later, &[]).is_empty());
    let between =
        format!("/docs/a?comp=rangelist&sharesnapshot={second}&prevsharesnapshot={first}");
    assert_eq!(listed(&fixture, &between, &[]), expected);
    let fixture = fixture.restart();
    assert_eq!(listed(&fixture, &since("a"), &[]), expected, "the account outlives the server");
}
