//! REST operations against one handle of the mount (behaviours 15-43), beside the table of
//! `matrix`.

use std::thread;

use crate::common::calls::Call;
use crate::common::meeting::{BYTES, Meeting, Subject};

const SV: &str = "SharingViolation";

#[test]
fn b019_share_none_hides_neither_properties_nor_the_name() {
    let Some(at) = Meeting::start() else { return };
    at.directory("b019");
    let file = at.file("b019/held");
    let _holder = file.open("r", "none");
    file.answers("ok", &Call::LOOKS);
    assert_eq!(at.listing("b019"), ["held"]);
}

#[test]
fn b033_after_the_close_delete_file_succeeds_and_the_file_is_gone() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b033");
    let holder = file.open("r", "rwd");
    file.answers(SV, &[Call::Delete]);
    holder.close();
    file.answers("ok", &[Call::Delete]);
    file.answers("ResourceNotFound", &[Call::Delete, Call::Head, Call::Get]);
    assert!(!file.path().exists());
}

#[test]
fn b034_of_two_rest_writers_the_last_one_wins() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b034");
    thread::scope(|scope| {
        for letter in [b"a", b"b"] {
            let (at, target) = (&at, file.target());
            scope.spawn(move || at.put_range(&target, 0, &letter.repeat(10), &[]).is(201));
        }
    });
    let won = file.bytes();
    assert!(won == b"aaaaaaaaaa" || won == b"bbbbbbbbbb", "{won:?}");
    at.put_range(&file.target(), 0, b"first", &[]).is(201);
    at.put_range(&file.target(), 3, b"last", &[]).is(201);
    assert_eq!(file.bytes()[..7], *b"firlast");
    assert_eq!(std::fs::read(file.path()).unwrap()[..7], *b"firlast");
}

#[test]
fn b039_a_new_name_in_a_directory_that_the_mount_has_open_can_be_made() {
    let Some(at) = Meeting::start() else { return };
    let directory = at.directory("b039");
    let holder = directory.open("rw", "none");
    at.file("b039/new");
    holder.close();
    let _listing = std::fs::read_dir(directory.path()).unwrap();
    at.file("b039/newer");
    assert!(at.path("b039/new").exists() && at.path("b039/newer").exists());
}

#[test]
fn b040_a_violation_says_so_in_status_header_and_body_and_names_the_holder() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b040");
    let holder = file.open("rw", "none");
    let got = file.call(Call::Get).refused(409, SV);
    assert_eq!(got.header("content-type"), "application/xml");
    let text = got.text();
    let prolog = "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>SharingViolation</Code>";
    assert!(text.trim_start_matches('\u{feff}').starts_with(prolog), "{text}");
    assert!(text.contains("\nRequestId:") && text.contains("\nTime:"), "{text}");
    assert!(text.contains(&format!("handle {}", holder.id())), "{text}");
    let pid = format!("(pid {})", std::process::id());
    assert!(text.contains(&pid), "the process and not its thread: {text}");
}

#[test]
fn b041_a_refused_head_has_a_code_and_neither_body_nor_type() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b041");
    let _keeper = file.pending();
    let got = file.call(Call::Head).refused(409, "SMBDeletePending");
    assert!(got.body.is_empty() && !got.headers.contains_key("content-type"), "{got:?}");
    let got = at.named("b041-none").call(Call::Head).refused(404, "ResourceNotFound");
    assert!(got.body.is_empty() && !got.headers.contains_key("content-type"), "{got:?}");
}

#[test]
fn b042_share_none_on_a_file_stops_nothing_of_the_share() {
    let Some(at) = Meeting::alone(&[]) else { return };
    let _holder = at.file("held").open("rw", "none");
    assert_eq!(at.listing(""), ["held"]);
    for look in ["", "&comp=metadata", "&comp=acl", "&comp=stats"] {
        at.get(&format!("/share?restype=share{look}")).is(200);
    }
    at.get("/?comp=list").is(200);
    at.put("/share?restype=share&comp=metadata", &[("x-ms-meta-a", "1")]).is(200);
    at.put("/share?restype=share&comp=properties", &[("x-ms-share-quota", "7")]).is(200);
    at.put("/share?restype=share&comp=acl", &[]).is(200);
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    at.put("/share?restype=share&comp=lease", &acquire).is(201);
    at.put("/share?restype=share&comp=snapshot", &[]).is(201);
}

#[test]
fn b043_a_snapshot_is_read_while_the_live_file_is_locked() {
    let Some(at) = Meeting::alone(&[]) else { return };
    let file = at.file("held");
    let got = at.put("/share?restype=share&comp=snapshot", &[]).is(201);
    let snapshot = got.header("x-ms-snapshot").replace(':', "%3A");
    let _holder = file.open("rw", "none");
    file.answers(SV, &[Call::Get]);
    assert_eq!(read(&file, &snapshot), BYTES);
}

fn read(file: &Subject<'_>, snapshot: &str) -> Vec<u8> {
    file.at.get(&format!("{}?sharesnapshot={snapshot}", file.target())).is(200).body
}
