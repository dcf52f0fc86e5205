//! Directories deleted on either side (behaviours 59-63, 65).

use std::fs;

use crate::common::calls::Call;
use crate::common::http::Got;
use crate::common::meeting::{Meeting, Subject, errno};

fn delete(directory: &Subject<'_>) -> Got {
    directory.at.delete(&format!("{}?restype=directory", directory.target()))
}

fn look(directory: &Subject<'_>) -> Got {
    directory.at.get(&format!("{}?restype=directory", directory.target()))
}

fn create(directory: &Subject<'_>) -> Got {
    directory.at.put(&format!("{}?restype=directory", directory.target()), &[])
}

#[test]
fn b059_delete_directory_removes_it_at_once_and_the_name_is_free() {
    let Some(at) = Meeting::start() else { return };
    let directory = at.directory("b059");
    delete(&directory).is(202);
    look(&directory).refused(404, "ResourceNotFound");
    assert!(!directory.path().exists());
    create(&directory).is(201);
}

#[test]
fn b060_delete_directory_refuses_one_with_entries() {
    let Some(at) = Meeting::start() else { return };
    let directory = at.directory("b060");
    fs::write(directory.path().join("file"), "").unwrap();
    delete(&directory).refused(409, "DirectoryNotEmpty");
    look(&directory).is(200);
}

// The code is a choice; that it is refused is not.
#[test]
fn b061_delete_directory_refuses_one_that_the_mount_has_open() {
    let Some(at) = Meeting::start() else { return };
    let directory = at.directory("b061");
    let opened = fs::File::open(directory.path()).unwrap();
    delete(&directory).refused(409, "SharingViolation");
    look(&directory).is(200);
    drop(opened);
    at.wait_idle("b061");
    delete(&directory).is(202);
}

// A choice: what is not listed is there all the same.
#[test]
fn b062_a_directory_with_only_a_pending_file_is_not_empty() {
    let Some(at) = Meeting::start() else { return };
    let directory = at.directory("b062");
    let keeper = at.file("b062/file").pending();
    assert!(at.listing("b062").is_empty());
    delete(&directory).refused(409, "DirectoryNotEmpty");
    assert_eq!(errno(fs::remove_dir(directory.path())), libc::ENOTEMPTY);
    keeper.close();
    delete(&directory).is(202);
}

#[test]
fn b063_create_directory_for_a_pending_name_says_that_it_is_pending() {
    let Some(at) = Meeting::start() else { return };
    let directory = at.directory("b063");
    let opened = fs::File::open(directory.path()).unwrap();
    fs::remove_dir(directory.path()).unwrap();
    create(&directory).refused(409, "SMBDeletePending");
    look(&directory).refused(409, "SMBDeletePending");
    at.named("b063/new").answers("SMBDeletePending", &[Call::Create]);
    drop(opened);
    at.wait_idle("b063");
    create(&directory).is(201);
}

#[test]
fn b065_a_directory_with_entries_is_not_marked() {
    let Some(at) = Meeting::start() else { return };
    let directory = at.directory("b065");
    at.file("b065/file");
    directory.delete_on_close("rwd").ok().unwrap().close();
    look(&directory).is(200);
    assert_eq!(errno(fs::remove_dir(directory.path())), libc::ENOTEMPTY);
    look(&directory).is(200);
}
