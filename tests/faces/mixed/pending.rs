//! Delete pending, entered and left on the mount side and seen through REST (behaviours 44-57, 64,
//! 66, 67), beside the ways of [`super::life_of_a_mark`].

use std::fs;
use std::io::{Read, Seek, Write};

use latchfs::client;

use crate::common::calls::Call;
use crate::common::meeting::{BYTES, Meeting, errno};

const DP: &str = "SMBDeletePending";
const SV: &str = "SharingViolation";
const GONE: &str = "ResourceNotFound";

#[test]
fn b044_an_open_for_deleting_marks_nothing() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b044");
    let deleter = file.open("d", "rwd");
    file.answers("ok", &[Call::Get, Call::Head]);
    deleter.close();
    file.answers("ok", &[Call::Get]);
}

#[test]
fn b045_deleted_by_one_of_two_handles_the_file_is_pending_and_not_missing() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b045");
    let keeper = file.open("r", "rwd");
    let deleter = file.open("rw", "rwd");
    client::set_delete(deleter.file(), true).unwrap();
    deleter.close();
    file.call(Call::Head).refused(409, DP);
    keeper.close();
    file.call(Call::Head).refused(404, GONE);
}

#[test]
fn b049_a_pending_file_refuses_new_opens_and_serves_those_it_has() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b049");
    let keeper = file.pending();
    for access in ["none", "r", "rw", "d"] {
        assert_eq!(file.open_errno(access, "rwd"), libc::EBUSY, "{access}");
    }
    keeper.file().write_all(b"AB").unwrap();
    keeper.file().rewind().unwrap();
    let mut text = String::new();
    keeper.file().read_to_string(&mut text).unwrap();
    assert_eq!(text, "AB23456789");
}

#[test]
fn b050_a_pending_name_cannot_be_taken_on_either_side() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b050");
    let keeper = file.pending();
    file.answers(DP, &[Call::Create]);
    assert_eq!(errno(fs::File::create_new(file.path())), libc::EEXIST);
    assert_eq!(errno(fs::File::create(file.path())), libc::EBUSY);
    keeper.close();
    file.answers("ok", &[Call::Create]);
}

#[test]
fn b053_force_close_ends_a_pending_file() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b053");
    let _keepers = [file.open("r", "rwd"), file.pending()];
    let got = file.call_with(Call::ForceClose, &[]).is(200);
    assert_eq!(got.header("x-ms-number-of-handles-closed"), "0", "an unknown handle");
    let target = format!("{}?comp=forceclosehandles", file.target());
    let got = at.put(&target, &[("x-ms-handle-id", "*")]).is(200);
    assert_eq!(got.header("x-ms-number-of-handles-closed"), "2");
    file.call(Call::Head).refused(404, GONE);
}

#[test]
fn b054_delete_on_close_marks_when_that_handle_closes() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b054");
    let deleter = file.delete_on_close("rwd").ok().unwrap();
    file.answers("ok", &[Call::Head, Call::Get, Call::Put]);
    let keeper = file.open("r", "rwd");
    deleter.close();
    file.answers(DP, &[Call::Head]);
    keeper.close();
    file.answers(GONE, &[Call::Head]);
}

// A choice: the service says that the file "might not" be deleted; here it never is.
#[test]
fn b055_a_file_survives_the_forced_close_of_its_delete_on_close_handle() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b055");
    let deleter = file.delete_on_close("rwd").ok().unwrap();
    let target = format!("{}?comp=forceclosehandles", file.target());
    let got = at.put(&target, &[("x-ms-handle-id", "*")]).is(200);
    assert_eq!(got.header("x-ms-number-of-handles-closed"), "1");
    drop(deleter);
    assert_eq!(file.bytes(), BYTES);
    assert_eq!(file.open_errno("rwd", "none"), 0);
}

#[test]
fn b056_a_delete_that_another_handle_does_not_share_marks_nothing() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b056");
    let _reader = file.open("r", "rw");
    assert_eq!(errno(fs::remove_file(file.path())), libc::EBUSY);
    assert_eq!(file.open_errno("d", "rwd"), libc::EBUSY);
    file.answers("ok", &[Call::Head, Call::Get]);
}

#[test]
fn b057_a_refused_delete_file_leaves_no_mark() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b057");
    let reader = file.open("r", "rwd");
    file.answers(SV, &[Call::Delete]);
    file.answers("ok", &[Call::Head, Call::Get]);
    assert_eq!(file.open_errno("r", "rwd"), 0);
    reader.close();
    assert_eq!(file.bytes(), BYTES);
}

#[test]
fn b064_a_read_only_file_cannot_be_marked() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b064");
    let keeper = file.open("r", "rwd");
    file.call_with(Call::SetHeaders, &[("x-ms-file-attributes", "ReadOnly")]).is(200);
    assert_eq!(file.open_errno("d", "rwd"), 0);
    assert_eq!(errno(client::set_delete(keeper.file(), true)), libc::EACCES);
    assert_eq!(errno(fs::remove_file(file.path())), libc::EACCES);
    file.answers("ok", &[Call::Head]);
}

#[test]
fn b066_the_service_s_own_name_for_delete_pending_can_be_had() {
    let Some(at) = Meeting::start() else { return };
    let Some(service) = Meeting::alone(&["--error-names", "service"]) else { return };
    let texts = [(&at, DP), (&service, "DeletePending")].map(|(at, code)| {
        let file = at.file("b066");
        let _keeper = file.pending();
        file.call(Call::Head).refused(409, code);
        let text = file.call(Call::Get).refused(409, code).text();
        text.split("<Message>").nth(1).unwrap().split(": ").next().unwrap().to_owned()
    });
    assert_eq!(texts[0], texts[1], "the message is the same but for the holder");
}

#[test]
fn b067_unlink_marks_a_file_whose_other_handle_shares_deletion_and_is_refused_otherwise() {
    let Some(at) = Meeting::start() else { return };
    let shared = at.file("b067-shared");
    let keeper = shared.open("r", "rwd");
    fs::remove_file(shared.path()).unwrap();
    shared.answers(DP, &[Call::Head]);
    keeper.close();
    shared.answers(GONE, &[Call::Head]);
    let denied = at.file("b067-denied");
    let _keeper = denied.open("r", "rw");
    assert_eq!(errno(fs::remove_file(denied.path())), libc::EBUSY);
    denied.answers("ok", &[Call::Head]);
}
