//! Leases of a whole share, while it is mounted (behaviours 107-111).

use std::fs;
use std::time::Duration;

use crate::common::calls::{LEASE, OTHER, lease};
use crate::common::http::Got;
use crate::common::rest::Rest;
use crate::mixed::inside::Inside;

fn act(at: &Rest, action: &str, headers: &[(&str, &str)]) -> Got {
    let mut all = vec![("x-ms-lease-action", action)];
    all.extend_from_slice(headers);
    at.put("/share?restype=share&comp=lease", &all)
}

fn acquire(at: &Rest, seconds: &str, id: &str) -> Got {
    act(at, "acquire", &[("x-ms-lease-duration", seconds), ("x-ms-proposed-lease-id", id)])
}

fn state(at: &Rest) -> String {
    at.get("/share?restype=share").is(200).header("x-ms-lease-state").to_owned()
}

fn seconds_left(got: &Got) -> u64 {
    got.header("x-ms-lease-time").parse().unwrap()
}

#[test]
fn b107_a_share_is_leased_for_15_to_60_seconds_or_for_good() {
    let Some(at) = Inside::start() else { return };
    for seconds in ["14", "61", "0", "-2"] {
        acquire(&at, seconds, LEASE).refused(400, "InvalidHeaderValue");
    }
    for seconds in ["15", "60", "-1"] {
        acquire(&at, seconds, LEASE).is(201);
    }
}

#[test]
fn b108_a_lease_that_ran_out_is_renewed_until_another_takes_it() {
    let Some(at) = Inside::start() else { return };
    acquire(&at, "15", LEASE).is(201);
    at.clock.advance(Duration::from_millis(14_999));
    assert_eq!(state(&at), "leased");
    at.clock.advance(Duration::from_millis(2));
    assert_eq!(state(&at), "expired");
    act(&at, "renew", &[lease(LEASE)]).is(200);
    assert_eq!(state(&at), "leased");
    at.clock.advance(Duration::from_secs(16));
    acquire(&at, "15", OTHER).is(201);
    act(&at, "renew", &[lease(LEASE)]).refused(409, "LeaseIdMismatchWithLeaseOperation");
}

#[test]
fn b109_a_broken_lease_breaks_for_its_period_and_is_not_acquired_meanwhile() {
    let Some(at) = Inside::start() else { return };
    acquire(&at, "60", LEASE).is(201);
    let got = act(&at, "break", &[("x-ms-lease-break-period", "10")]).is(202);
    assert!((1..=10).contains(&seconds_left(&got)), "{got:?}");
    assert_eq!(state(&at), "breaking");
    acquire(&at, "15", LEASE).refused(409, "LeaseIsBreakingAndCannotBeAcquired");
    acquire(&at, "15", OTHER).refused(409, "LeaseAlreadyPresent");
    at.clock.advance(Duration::from_secs(11));
    assert_eq!(state(&at), "broken");
    acquire(&at, "15", OTHER).is(201);
}

#[test]
fn b110_a_break_never_lengthens_a_lease() {
    let Some(at) = Inside::start() else { return };
    acquire(&at, "20", LEASE).is(201);
    at.clock.advance(Duration::from_secs(5));
    let got = act(&at, "break", &[("x-ms-lease-break-period", "60")]).is(202);
    assert!((14..=15).contains(&seconds_left(&got)), "{got:?}");
}

// That only Delete Share is guarded is decided: the sources differ.
#[test]
fn b111_a_leased_share_is_deleted_with_its_id_only_and_its_files_are_free() {
    let Some(at) = Inside::start() else { return };
    acquire(&at, "-1", LEASE).is(201);
    at.upload("by-rest", b"1");
    fs::write(at.path("on-mount"), "2").unwrap();
    assert_eq!(fs::read(at.path("by-rest")).unwrap(), b"1");
    assert_eq!(at.get("/share/on-mount").is(200).body, b"2");
    let delete = |headers: &[(&str, &str)]| at.ask("DELETE", "/share?restype=share", headers, b"");
    delete(&[]).refused(412, "LeaseIdMissing");
    let wrong = delete(&[lease(OTHER)]);
    assert!([409, 412].contains(&wrong.status), "{wrong:?}");
    delete(&[lease(LEASE)]).is(202);
}
