//! Shares and files through the tables of leases.

use std::time::Duration;

use crate::leases::{A, Headers, Leased, Use};
use crate::rest::fixture::Fixture;

/// Runs `check` with a server and the driver of the tables.
fn with_tables(noun: &str, check: impl FnOnce(&Fixture, &Leased<'_>)) {
    let (fixture, clock) = Fixture::with_clock();
    let ask = |method: &str, target: &str, headers: Headers<'_>, body: &[u8]| {
        fixture.ask(method, target, headers, body)
    };
    let pass = |time: Duration| clock.advance(time);
    check(&fixture, &Leased::new((noun, false), &ask, &pass));
}

/// The share `leased` without a lease. One share serves all rows: making a share takes long.
fn share(fixture: &Fixture, leased: &Leased<'_>) -> String {
    let at = "/leased?restype=share&";
    fixture.put(at.trim_end_matches('&'), &[]);
    if leased.act(at, "release A").code() == "LeaseIdMismatchWithLeaseOperation" {
        leased.act(at, "break 0").is(202);
        leased.act(at, "acquire -1 A").is(201);
        leased.act(at, "release A").is(200);
    }
    at.to_owned()
}

fn file(fixture: &Fixture, name: &str) -> String {
    fixture.upload(name, b"0123456789");
    format!("/docs/{name}?")
}

/// Class, method, parameters, headers, body and status of an operation.
type Operation = (&'static str, &'static str, &'static str, Headers<'static>, &'static [u8], u16);

/// Tries the operations, each on objects of its own.
fn try_uses(
    leased: &Leased<'_>,
    fixture: &Fixture,
    heading: &str,
    make: impl Fn(&str) -> String + Copy,
    operations: &[Operation],
) {
    for (class, method, parameters, headers, body, ok) in operations {
        let send = |at: &str, more: Headers<'_>| {
            let target = format!("{at}{parameters}");
            let target = target.trim_end_matches(['?', '&']);
            fixture.ask(method, target, &[headers, more].concat(), body)
        };
        let name = &format!("{method} {parameters}");
        let one = Use { class, name, ok: *ok, make: Box::new(make), send: Box::new(send) };
        leased.try_uses(heading, &[one], true);
    }
}

#[test]
fn shares_are_leased_and_used_as_the_tables_say() {
    with_tables("Container", |fixture, leased| {
        let make = |_: &str| share(fixture, leased);
        leased.try_actions("actions on a share lease", make);
        leased.try_walks(make);
        let operations: [Operation; 9] = [
            ("delete", "DELETE", "", &[], b"", 202),
            ("delete", "PUT", "comp=properties", &[("x-ms-share-quota", "7")], b"", 200),
            ("delete", "PUT", "comp=properties", &[("x-ms-access-tier", "Hot")], b"", 200),
            ("delete", "PUT", "comp=metadata", &[("x-ms-meta-a", "1")], b"", 200),
            ("delete", "PUT", "comp=acl", &[], b"", 200),
            ("other", "GET", "", &[], b"", 200),
            ("other", "GET", "comp=metadata", &[], b"", 200),
            ("other", "GET", "comp=acl", &[], b"", 200),
            ("other", "GET", "comp=stats", &[], b"", 200),
        ];
        try_uses(leased, fixture, "uses of a share", make, &operations);
        let release = [("x-ms-lease-action", "release")];
        let got = fixture.put(&format!("{}comp=lease", make("a")), &release);
        got.refused(400, "MissingRequiredHeader");
    });
}

#[test]
fn files_are_leased_and_used_as_the_tables_say() {
    with_tables("File", |fixture, leased| {
        let make = |name: &str| file(fixture, name);
        leased.try_actions("actions on a file lease", make);
        let create: Headers<'_> = &[("x-ms-type", "file"), ("x-ms-content-length", "3")];
        let update: Headers<'_> = &[("x-ms-range", "bytes=0-2"), ("x-ms-write", "update")];
        let clear: Headers<'_> = &[("x-ms-range", "bytes=0-2"), ("x-ms-write", "clear")];
        let operations: [Operation; 10] = [
            ("write", "PUT", "", create, b"", 201),
            ("write", "PUT", "comp=range", update, b"new", 201),
            ("write", "PUT", "comp=range", clear, b"", 201),
            ("write", "PUT", "comp=properties", &[], b"", 200),
            ("write", "PUT", "comp=properties", &[("x-ms-content-length", "5")], b"", 200),
            ("write", "PUT", "comp=metadata", &[("x-ms-meta-name", "value")], b"", 200),
            ("write", "DELETE", "", &[], b"", 202),
            ("read", "GET", "", &[], b"", 200),
            ("read", "HEAD", "", &[], b"", 200),
            ("read", "GET", "comp=rangelist", &[], b"", 200),
        ];
        try_uses(leased, fixture, "uses of a file", make, &operations);
        let at = make("a");
        for (seconds, code) in [
            ("15", "InvalidHeaderValue"),
            ("0", "InvalidHeaderValue"),
            ("-", "MissingRequiredHeader"),
        ] {
            leased.act(&at, &format!("acquire {seconds} A")).refused(400, code);
        }
        let duration = || {
            let head = fixture.head("/docs/a").is(200);
            head.header("x-ms-lease-duration").to_owned()
        };
        assert_eq!(duration(), "");
        assert_eq!(leased.act(&at, "acquire -1 A").is(201).header("x-ms-lease-id"), A);
        assert_eq!(duration(), "infinite");
    });
}
