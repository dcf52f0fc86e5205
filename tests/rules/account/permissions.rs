//! Security descriptors under their keys.

use latchfs::file::service::shares::{PermissionFormat, SecurityDescriptor};

use super::*;

const SDDL: &str = "O:S-1-5-21-1G:S-1-5-21-513D:AI(A;;FA;;;SY)(A;;FA;;;BA)";

#[test]
fn equal_descriptors_have_one_key_also_after_a_restart() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let permission = SecurityDescriptor::Sddl(SDDL.to_owned());
    let key = engine.create_permission(&DOCS, &permission).unwrap();
    assert_eq!(engine.create_permission(&DOCS, &permission).unwrap(), key);
    let other = SecurityDescriptor::Sddl(SDDL.replace("513", "514"));
    assert_ne!(engine.create_permission(&DOCS, &other).unwrap(), key);
    drop(engine);
    let engine = setup.open();
    assert_eq!(engine.permission(&DOCS, &key, None).unwrap(), permission);
    assert_eq!(engine.create_permission(&DOCS, &permission).unwrap(), key);
}

#[test]
fn a_descriptor_comes_back_in_its_own_format_only() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let binary = SecurityDescriptor::Binary("AQAEgA==".to_owned());
    let key = engine.create_permission(&DOCS, &binary).unwrap();
    let same = engine.permission(&DOCS, &key, Some(PermissionFormat::Binary)).unwrap();
    assert_eq!(same, binary);
    let converted = refused(engine.permission(&DOCS, &key, Some(PermissionFormat::Sddl)));
    assert_eq!(converted, ShareDenial::PermissionFormatUnsupported);
}
