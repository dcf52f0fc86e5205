//! `ETag` and times, moved from both sides (behaviours 126-129, 135).

use std::fs;
use std::io::Write as _;

use crate::common::calls::Call;
use crate::common::meeting::Meeting;

#[test]
fn b126_changes_move_the_etag_and_looks_and_leases_do_not() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b126");
    let mut before = file.etag();
    for call in [Call::Put, Call::SetHeaders, Call::SetMetadata, Call::Resize, Call::Create] {
        let got = file.call(call).is(call.done());
        let after = file.etag();
        assert_ne!(after, before, "{call:?}");
        assert_eq!(got.header("etag"), after, "{call:?} says the new one");
        before = after;
    }
    for call in [Call::Get, Call::Head, Call::Ranges, Call::Acquire, Call::Release] {
        file.answers("ok", &[call]);
        assert_eq!(file.etag(), before, "{call:?}");
    }
    at.listing("");
    fs::read(file.path()).unwrap();
    assert_eq!(file.etag(), before);
}

#[test]
fn b127_a_write_on_the_mount_moves_the_etag() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b127");
    let before = file.etag();
    let mut opened = file.descriptor("w").unwrap();
    assert_eq!(file.etag(), before, "an open changes nothing");
    opened.write_all(b"x").unwrap();
    let written = file.etag();
    assert_ne!(written, before);
    opened.set_len(3).unwrap();
    assert_ne!(file.etag(), written);
}

// A choice: no source says what the service does; the last writer wins.
#[test]
fn b128_a_condition_that_files_do_not_have_is_passed_over() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b128");
    let stale = file.etag();
    fs::write(file.path(), "newer bytes").unwrap();
    file.answers_to(Call::Put, &[("if-match", &stale)], "ok");
}

#[test]
fn b129_a_last_write_time_can_be_preserved() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b129");
    let before = file.call(Call::Head).is(200);
    let preserve = [("x-ms-file-last-write-time", "preserve")];
    file.answers_to(Call::Put, &preserve, "ok");
    let after = file.call(Call::Head).is(200);
    let time = "x-ms-file-last-write-time";
    assert_eq!(after.header(time), before.header(time));
    assert_ne!(after.header("etag"), before.header("etag"));
    file.answers("ok", &[Call::Put]);
    assert_ne!(file.shown(time), before.header(time));
}

#[test]
fn b135_rest_reads_what_a_program_has_written_and_not_closed() {
    let Some(at) = Meeting::start() else { return };
    let path = at.path("b135");
    let mut opened = fs::File::create(&path).unwrap();
    opened.write_all(b"not yet closed").unwrap();
    let file = at.named("b135");
    assert_eq!(file.bytes(), b"not yet closed");
    assert_eq!(file.shown("content-length"), "14");
    assert_eq!(file.handles().len(), 1);
}
