//! `ETag` and times, moved from both sides (behaviours 128, 129, 135).

use std::fs;
use std::io::Write as _;

use crate::common::calls::Call;
use crate::common::meeting::Meeting;

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
