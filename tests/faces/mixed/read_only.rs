//! The read-only attribute (behaviours 73-78).

use crate::common::calls::Call;
use crate::common::meeting::{Meeting, Subject, errno};

const RO: &str = "ReadOnlyAttribute";

fn read_only<'a>(at: &'a Meeting, name: &str) -> Subject<'a> {
    let file = at.file(name);
    file.call_with(Call::SetHeaders, &[("x-ms-file-attributes", "ReadOnly")]).is(200);
    file
}

#[test]
fn b073_a_read_only_file_is_not_written() {
    let Some(at) = Meeting::start() else { return };
    let file = read_only(&at, "b073");
    for call in [Call::Put, Call::Clear, Call::SetMetadata, Call::Create] {
        file.call(call).refused(409, RO);
    }
    assert_eq!(errno(file.descriptor("w")), libc::EACCES);
}

#[test]
fn b074_a_read_only_file_is_not_deleted() {
    let Some(at) = Meeting::start() else { return };
    let file = read_only(&at, "b074");
    file.call(Call::Delete).refused(409, RO);
    assert_eq!(errno(std::fs::remove_file(file.path())), libc::EACCES);
    file.answers("ok", &[Call::Head]);
}

#[test]
fn b075_the_attribute_is_taken_away_and_the_file_written() {
    let Some(at) = Meeting::start() else { return };
    let file = read_only(&at, "b075");
    let target = format!("{}?comp=properties", file.target());
    at.put(&target, &[("x-ms-file-attributes", "None")]).is(200);
    file.answers("ok", &[Call::Put]);
    assert_eq!(errno(file.descriptor("w")), 0);
}

#[test]
fn b076_properties_without_attributes_are_not_set() {
    let Some(at) = Meeting::start() else { return };
    let file = read_only(&at, "b076");
    file.call(Call::SetHeaders).refused(409, RO);
    file.call(Call::Resize).refused(409, RO);
}

#[test]
fn b077_a_read_only_file_is_read_and_listed() {
    let Some(at) = Meeting::start() else { return };
    at.directory("b077");
    let file = read_only(&at, "b077/file");
    file.answers("ok", &[Call::Get, Call::Head, Call::Metadata, Call::Ranges]);
    assert_eq!(at.listing("b077"), ["file"]);
    assert_eq!(file.open_errno("r", "rwd"), 0);
}

#[test]
fn b078_a_copy_onto_a_read_only_file_must_ignore_that() {
    let Some(at) = Meeting::start() else { return };
    let file = read_only(&at, "b078");
    file.call(Call::CopyOnto).refused(409, RO);
    file.call_with(Call::CopyOnto, &[("x-ms-file-copy-ignore-readonly", "true")]).is(202);
}
