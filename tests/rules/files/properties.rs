//! Set File Properties and Set File Metadata: what is replaced and what stays.

use latchfs::file::rules::{Attributes, SharePath};
use latchfs::file::service::{FILE_SIZE_MAX, FileChanges, HttpHeaders, PropertyChanges, Result};

use crate::files::fixture::{Call, Fixture, code};

fn set(fixture: &Fixture, path: &SharePath, changes: &FileChanges) -> Result<HttpHeaders> {
    let shown = fixture.share.set_file_properties(fixture.rest(), path, changes)?;
    Ok(shown.headers().clone())
}

#[test]
fn a_longer_file_ends_in_zeros() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let longer = FileChanges { size: Some(12), ..FileChanges::default() };
    set(&fixture, &path, &longer).unwrap();
    assert_eq!(fixture.get(&path, None).unwrap(), b"0123456789\0\0");
    let size = Some(FILE_SIZE_MAX + 1);
    let too_long = FileChanges { size, ..FileChanges::default() };
    assert_eq!(code(&set(&fixture, &path, &too_long)), "OutOfRangeInput");
}

#[test]
fn attributes_and_permission_stay_until_they_are_set() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let smb = PropertyChanges {
        attributes: Some(Attributes::SYSTEM),
        permission_key: Some("7*7".into()),
        ..PropertyChanges::default()
    };
    let given = FileChanges { smb, ..FileChanges::default() };
    set(&fixture, &path, &given).unwrap();
    set(&fixture, &path, &FileChanges::default()).unwrap();
    let shown = fixture.head(&path).unwrap();
    assert_eq!(shown.smb().attributes, Attributes::SYSTEM);
    assert_eq!(shown.smb().permission_key.as_deref(), Some("7*7"));
    let attributes = Some(Attributes::DIRECTORY);
    let smb = PropertyChanges { attributes, ..PropertyChanges::default() };
    let directory = FileChanges { smb, ..FileChanges::default() };
    assert_eq!(code(&set(&fixture, &path, &directory)), "InvalidHeaderValue");
}

#[test]
fn mode_bits_are_not_the_attribute() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let path = fixture.file();
    let bits = std::fs::Permissions::from_mode(0o444);
    std::fs::set_permissions(fixture.root.join(path.as_str()), bits).unwrap();
    assert_eq!(fixture.head(&path).unwrap().smb().attributes, Attributes::ARCHIVE);
    assert_eq!(code(&fixture.call(fixture.rest(), &path, Call::Delete)), "ok");
}
