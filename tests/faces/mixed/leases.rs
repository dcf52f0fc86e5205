//! File leases, on files that the mount shows too (behaviours 79-98), beside the tables of leases.

use crate::common::calls::{Call, LEASE, lease};
use crate::common::meeting::{Meeting, Subject};

const MISSING: &str = "LeaseIdMissing";
const NOT_PRESENT: &str = "LeaseNotPresentWithFileOperation";

fn leased<'a>(at: &'a Meeting, name: &str) -> Subject<'a> {
    let file = at.file(name);
    file.call(Call::Acquire).is(201);
    file
}

/// A lease action with the headers given.
fn act(file: &Subject<'_>, action: &str, headers: &[(&str, &str)]) -> crate::common::http::Got {
    let mut all = vec![("x-ms-lease-action", action)];
    all.extend_from_slice(headers);
    file.at.put(&format!("{}?comp=lease", file.target()), &all)
}

fn proposed(id: &str) -> (&str, &str) {
    ("x-ms-proposed-lease-id", id)
}

const INFINITE: (&str, &str) = ("x-ms-lease-duration", "-1");

#[test]
fn b079_a_lease_gets_a_guid_and_leaves_the_file_alone() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b079");
    let before = file.call(Call::Head).is(200);
    let got = act(&file, "acquire", &[INFINITE]).is(201);
    let id = got.header("x-ms-lease-id").to_owned();
    let groups: Vec<_> = id.split('-').map(str::len).collect();
    assert_eq!(groups, [8, 4, 4, 4, 12], "{id}");
    let during = file.call(Call::Head).is(200);
    let released = act(&file, "release", &[lease(&id)]).is(200);
    for seen in [got, during, released] {
        assert_eq!(seen.header("etag"), before.header("etag"));
        assert_eq!(seen.header("last-modified"), before.header("last-modified"));
    }
}

#[test]
fn b087_create_over_a_leased_file_keeps_lease_and_identity() {
    let Some(at) = Meeting::start() else { return };
    let file = leased(&at, "b087");
    let before = file.call(Call::Head).is(200);
    file.answers_to(Call::Create, &[lease(LEASE)], "ok");
    let after = file.call(Call::Head).is(200);
    assert_eq!(after.header("x-ms-lease-state"), "leased");
    assert_eq!(after.header("x-ms-file-id"), before.header("x-ms-file-id"));
    assert_ne!(after.header("etag"), before.header("etag"));
}

#[test]
fn b088_an_id_for_a_name_that_is_free_is_refused() {
    let Some(at) = Meeting::start() else { return };
    let file = at.named("b088");
    file.call_with(Call::Create, &[lease(LEASE)]).refused(412, NOT_PRESENT);
    assert!(!file.path().exists());
}

#[test]
fn b093_an_id_is_a_guid_in_any_spelling() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b093");
    act(&file, "acquire", &[INFINITE, proposed("no guid")]).is(400);
    let id = "abcdefab-2222-3333-4444-555555555555";
    act(&file, "acquire", &[INFINITE, proposed(id)]).is(201);
    let spelled = format!("{{{}}}", id.to_uppercase());
    file.answers_to(Call::Put, &[lease(&spelled)], "ok");
    act(&file, "acquire", &[INFINITE, proposed(&spelled)]).is(201);
}

#[test]
fn b094_the_state_of_a_lease_is_shown_and_its_duration_only_while_it_lasts() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b094");
    let seen = || {
        let got = file.call(Call::Head).is(200);
        ["status", "state", "duration"]
            .map(|what| got.header(&format!("x-ms-lease-{what}")).to_owned())
    };
    assert_eq!(seen(), ["unlocked", "available", ""]);
    file.call(Call::Acquire).is(201);
    assert_eq!(seen(), ["locked", "leased", "infinite"]);
    act(&file, "break", &[]).is(202);
    assert_eq!(seen(), ["unlocked", "broken", ""]);
}

#[test]
fn b095_delete_share_asks_no_file_for_its_lease() {
    let Some(at) = Meeting::start() else { return };
    at.put("/b095?restype=share", &[]).is(201);
    at.put("/b095/file", &[("x-ms-type", "file"), ("x-ms-content-length", "0")]).is(201);
    let acquire = [("x-ms-lease-action", "acquire"), INFINITE];
    at.put("/b095/file?comp=lease", &acquire).is(201);
    at.delete("/b095?restype=share").is(202);
}

#[test]
fn b096_a_leased_destination_of_a_copy_needs_its_id_and_a_leased_source_none() {
    let Some(at) = Meeting::start() else { return };
    let file = leased(&at, "b096");
    file.call(Call::CopyOnto).refused(412, MISSING);
    file.answers_to(Call::CopyOnto, &[lease(LEASE)], "ok");
    file.answers("ok", &[Call::CopyFrom]);
}

#[test]
fn b097_a_rename_needs_the_ids_of_both_ends() {
    let Some(at) = Meeting::start() else { return };
    let file = leased(&at, "b097");
    file.call(Call::RenameFrom).refused(412, MISSING);
    file.call(Call::RenameOnto).refused(412, MISSING);
    file.answers_to(Call::RenameOnto, &[("x-ms-destination-lease-id", LEASE)], "ok");
    let file = leased(&at, "b097-source");
    file.answers_to(Call::RenameFrom, &[("x-ms-source-lease-id", LEASE)], "ok");
}

#[test]
fn b098_a_file_of_a_snapshot_is_not_leased() {
    let Some(at) = Meeting::start() else { return };
    at.put("/b098?restype=share", &[]).is(201);
    at.put("/b098/file", &[("x-ms-type", "file"), ("x-ms-content-length", "0")]).is(201);
    let got = at.put("/b098?restype=share&comp=snapshot", &[]).is(201);
    let snapshot = got.header("x-ms-snapshot").replace(':', "%3A");
    let acquire = [("x-ms-lease-action", "acquire"), INFINITE];
    at.put(&format!("/b098/file?comp=lease&sharesnapshot={snapshot}"), &acquire).is(400);
}
