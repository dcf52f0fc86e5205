//! Set File Properties and Set File Metadata: what is replaced and what stays.

use latchfs::file::rules::{Attributes, SharePath};
use latchfs::file::service::{
    FILE_SIZE_MAX, FileChanges, HttpHeaders, Metadata, PropertyChanges, Result,
};
use latchfs::rules::metadata::METADATA_BYTES_MAX;

use crate::files::fixture::{Fixture, code};

fn set(fixture: &Fixture, path: &SharePath, changes: &FileChanges) -> Result<HttpHeaders> {
    let shown = fixture.share.set_file_properties(fixture.rest(), path, changes)?;
    Ok(shown.headers().clone())
}

#[test]
fn naming_one_content_header_replaces_all_and_a_resize_keeps_them() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let both = HttpHeaders {
        content_type: Some("text/plain".into()),
        cache_control: Some("no-store".into()),
        ..HttpHeaders::default()
    };
    let given = FileChanges { headers: Some(both.clone()), ..FileChanges::default() };
    assert_eq!(set(&fixture, &path, &given).unwrap(), both);
    let resize = FileChanges { size: Some(4), ..FileChanges::default() };
    assert_eq!(set(&fixture, &path, &resize).unwrap(), both);
    assert_eq!(fixture.get(&path, None).unwrap(), b"0123");
    let one = HttpHeaders { content_language: Some("de".into()), ..HttpHeaders::default() };
    let given = FileChanges { headers: Some(one.clone()), ..FileChanges::default() };
    assert_eq!(set(&fixture, &path, &given).unwrap(), one);
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
fn metadata_is_replaced_as_a_whole() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let set = |pairs: &[(&str, &str)]| {
        let metadata: Metadata = pairs.iter().copied().collect();
        fixture.share.set_file_metadata(fixture.rest(), &path, &metadata)
    };
    set(&[("Cat", "tabby"), ("dog", "")]).unwrap();
    let shown = set(&[("bird", "wren")]).unwrap();
    assert_eq!(shown.metadata().iter().collect::<Vec<_>>(), [("bird", "wren")]);
    assert!(set(&[]).unwrap().metadata().is_empty());
}

#[test]
fn metadata_has_limits() {
    let fixture = Fixture::new();
    let path = fixture.file();
    let set = |name: &str, value: &str| {
        let metadata: Metadata = [(name, value)].into_iter().collect();
        fixture.share.set_file_metadata(fixture.rest(), &path, &metadata)
    };
    let full = "x".repeat(METADATA_BYTES_MAX - 1);
    assert_eq!(set("a", &full).unwrap().metadata().get("A"), Some(&*full));
    assert_eq!(fixture.head(&path).unwrap().metadata().get("a"), Some(&*full));
    assert_eq!(code(&set("ab", &full)), "MetadataTooLarge");
    assert_eq!(code(&set("", "x")), "EmptyMetadataKey");
    assert_eq!(code(&set("9", "x")), "InvalidMetadata");
    assert_eq!(fixture.head(&path).unwrap().metadata().get("a"), Some(&*full));
}
