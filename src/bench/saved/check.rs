//! The parts of an account in a saved state, looked at before anything is replaced by them.
//!
//! Decides which files and folders are the parts of a state, and that a state is whole: every part
//! is there that was saved, and every small file in it can be understood. Rows and content files
//! are looked at by the services' stores when they replace their rows.

use std::path::{Path, PathBuf};

use crate::disk::error::StoreError;
use crate::disk::state::check_state_in;
use crate::file::store::root::aside::{FILES, STATE_PARTS};
use crate::file::store::root::{DELETED, SERVICES, SHARES, deleted_at};
use crate::file::store::share::tree;

/// The parts of the account whose folder is `folder`, as paths in it: its databases, its shares,
/// and the folders of the state that is kept of them.
pub fn saved_parts(folder: &Path) -> Result<Vec<String>, StoreError> {
    let mut parts = tree::names(folder)?;
    parts.retain(|name| folder.join(name).is_file());
    for part in STATE_PARTS.into_iter().chain([FILES]) {
        let names = tree::names(&folder.join(part))?;
        parts.extend(names.into_iter().map(|name| format!("{part}/{name}")));
    }
    parts.sort();
    Ok(parts)
}

/// Refuses the account in `folder` if one of `parts`, those that were saved, is missing, or if a
/// small file is damaged. The error names the file.
pub fn check_saved(folder: &Path, parts: &[String]) -> Result<(), StoreError> {
    if let Some(lost) = parts.iter().map(|part| folder.join(part)).find(|part| !part.exists()) {
        return Err(StoreError::missing(&lost));
    }
    for share in below(&folder.join(SHARES))? {
        check_state_in(&share)?;
    }
    for deleted in below(&folder.join(DELETED))? {
        deleted_at(&deleted)?;
        check_state_in(&deleted.join("state"))?;
    }
    check_state_in(&folder.join(SERVICES))
}

fn below(folder: &Path) -> Result<impl Iterator<Item = PathBuf>, StoreError> {
    Ok(tree::names(folder)?.into_iter().map(move |name| folder.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_lost_part_or_a_damaged_small_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for made in ["files/docs", "shares/docs/share", "deleted/old@1/state", "services/service"] {
            fs::create_dir_all(at(made)).unwrap();
        }
        for small in ["shares/docs/share/properties.json", "services/service/blob.json"] {
            fs::write(at(small), r#"{"v":1,"value":{}}"#).unwrap();
        }
        for epoch in ["shares/docs/epoch", "deleted/old@1/state/epoch"] {
            fs::write(at(epoch), "00000007\n").unwrap();
        }
        fs::write(at("deleted/old@1/when"), "2026-11-17T09:00:00.0000000Z").unwrap();
        fs::write(at("blob.db"), "rows").unwrap();
        let parts = saved_parts(folder.path()).unwrap();
        let expected =
            ["blob.db", "deleted/old@1", "files/docs", "services/service", "shares/docs"];
        assert_eq!(parts, expected);
        let check = || check_saved(folder.path(), &parts);
        check().unwrap();
        let small = [
            "shares/docs/epoch",
            "shares/docs/share/properties.json",
            "deleted/old@1/state/epoch",
            "deleted/old@1/when",
            "services/service/blob.json",
        ];
        for path in small {
            let good = fs::read(at(path)).unwrap();
            for bad in [&b""[..], b"\xFF\xFE", b"{}"] {
                fs::write(at(path), bad).unwrap();
                let said = check().unwrap_err().to_string();
                assert!(
                    said.starts_with(&format!("{} is damaged: ", at(path).display())),
                    "{said}"
                );
            }
            fs::write(at(path), good).unwrap();
        }
        for part in &parts {
            let aside = at("aside");
            fs::rename(at(part), &aside).unwrap();
            let said = check().unwrap_err().to_string();
            assert_eq!(said, format!("{} is damaged: it is missing", at(part).display()));
            fs::rename(&aside, at(part)).unwrap();
        }
        check().unwrap();
    }
}
