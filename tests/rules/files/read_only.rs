//! The read-only attribute.

use latchfs::file::rules::Attributes;
use latchfs::file::service::{FileChanges, PropertyChanges};

use crate::files::fixture::{BYTES, Call, Fixture, code};

const READ_ONLY: &str = "ReadOnlyAttribute";

#[test]
fn b073_a_read_only_file_refuses_writes() {
    let fixture = Fixture::new();
    let path = fixture.read_only_file();
    for call in [Call::Put, Call::Clear, Call::SetMetadata, Call::Create, Call::Resize] {
        assert_eq!(code(&fixture.call(fixture.rest(), &path, call)), READ_ONLY, "{call:?}");
    }
    assert_eq!(fixture.get(&path, None).unwrap(), BYTES);
}

#[test]
fn b075_setting_other_attributes_makes_it_writable_again() {
    let fixture = Fixture::new();
    let path = fixture.read_only_file();
    let attributes = Some(Attributes::NONE);
    let smb = PropertyChanges { attributes, ..PropertyChanges::default() };
    let changes = FileChanges { smb, ..FileChanges::default() };
    let shown = fixture.share.set_file_properties(fixture.rest(), &path, &changes).unwrap();
    assert_eq!(shown.smb().attributes.to_string(), "None");
    assert_eq!(code(&fixture.put(&path, 0, b"new")), "ok");
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
