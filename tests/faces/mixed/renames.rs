//! Renames on either side (behaviours 68-72), and opens of the directory of the new name.

use std::fs;

use crate::common::calls::Call;
use crate::common::meeting::{BYTES, Meeting, errno};

const SV: &str = "SharingViolation";

#[test]
fn b068_a_rename_on_the_mount_does_not_replace_an_open_file() {
    let Some(at) = Meeting::start() else { return };
    let (from, to) = (at.file_of("b068-from", b"new"), at.file("b068-to"));
    let reader = to.open("r", "rwd");
    assert_eq!(errno(fs::rename(from.path(), to.path())), libc::EBUSY);
    assert_eq!(to.bytes(), BYTES);
    reader.close();
    fs::rename(from.path(), to.path()).unwrap();
    assert_eq!(to.bytes(), b"new");
    from.answers("ResourceNotFound", &[Call::Head]);
}

#[test]
fn b069_rename_file_needs_an_open_source_to_share_deletion_and_keeps_its_identity() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b069");
    let reader = file.open("r", "r");
    file.answers(SV, &[Call::RenameFrom]);
    reader.close();
    let reader = file.open("r", "rwd");
    let id = file.shown("x-ms-file-id");
    let got = file.call(Call::RenameFrom).is(200);
    assert_eq!(got.header("x-ms-file-id"), id);
    let renamed = file.beside(".target");
    assert_eq!(renamed.shown("x-ms-file-id"), id);
    assert_eq!(renamed.handles()[0].id, reader.id());
    assert!(renamed.path().exists() && !file.path().exists());
}

// That open handles below refuse is documented; the code is a choice.
#[test]
fn b070_rename_directory_waits_for_the_handles_below_or_closes_them() {
    let Some(at) = Meeting::start() else { return };
    at.directory("b070");
    let _holder = at.file("b070/file").open("r", "rwd");
    let url = at.url("b070");
    let source = [("x-ms-file-rename-source", url.as_str())];
    let rename = || at.put("/share/b070-new?restype=directory&comp=rename", &source);
    rename().refused(409, SV);
    let all = [("x-ms-handle-id", "*"), ("x-ms-recursive", "true")];
    let got = at.put("/share/b070?comp=forceclosehandles", &all).is(200);
    assert_eq!(got.header("x-ms-number-of-handles-closed"), "1");
    rename().is(200);
    assert_eq!(fs::read(at.path("b070-new/file")).unwrap(), BYTES);
}

#[test]
fn b071_rename_file_replaces_only_if_asked() {
    let Some(at) = Meeting::start() else { return };
    let (from, to) = (at.file_of("b071-from", b"new"), at.file("b071-to"));
    let url = at.url(&from.name);
    let source = ("x-ms-file-rename-source", url.as_str());
    let target = format!("{}?comp=rename", to.target());
    at.put(&target, &[source]).refused(409, "ResourceAlreadyExists");
    at.put(&target, &[source, ("x-ms-file-rename-replace-if-exists", "true")]).is(200);
    assert_eq!(fs::read(to.path()).unwrap(), b"new");
    assert!(!from.path().exists());
}

#[test]
fn b072_rename_file_replaces_a_read_only_file_only_if_that_is_ignored() {
    let Some(at) = Meeting::start() else { return };
    let to = at.file("b072");
    to.call_with(Call::SetHeaders, &[("x-ms-file-attributes", "ReadOnly")]).is(200);
    to.call(Call::RenameOnto).refused(409, "ReadOnlyAttribute");
    to.call_with(Call::RenameOnto, &[("x-ms-file-rename-ignore-readonly", "true")]).is(200);
}

#[test]
fn a_rename_is_refused_on_both_sides_while_the_directory_of_the_new_name_is_not_shared() {
    let Some(at) = Meeting::start() else { return };
    at.directory("into");
    let file = at.file("into/file");
    let renamed = at.path("into/renamed");
    for (access, share) in [("d", "rwd"), ("r", "rd")] {
        let holder = at.named("into").open(access, share);
        assert_eq!(errno(fs::rename(file.path(), &renamed)), libc::EBUSY);
        let got = file.call(Call::RenameFrom).refused(409, SV);
        let who = format!("has the directory of the new name open for {access}, sharing {share};");
        assert!(got.text().contains(&who), "{}", got.text());
        assert!(got.text().contains(&holder.id().to_string()), "{}", got.text());
        holder.close();
    }
    let _holder = at.named("into").open("none", "none");
    fs::rename(file.path(), &renamed).unwrap();
    at.named("into/renamed").call(Call::RenameFrom).is(200);
}
