//! The origin of a copy in a snapshot: the file of the share that it was made from, in an extended
//! attribute of the copy; a file that was moved after the snapshot is found there by its identity.
//!
//! Decides the attribute's form. Where the file system has no attributes a copy has no origin, and
//! callers compare by path and birth time.

use std::os::fd::AsFd;

use rustix::fs::XattrFlags;

use crate::rules::FileId;

const NAME: &str = "user.latchfs.origin";

/// Longer than two numbers of 64 bits with a blank between them.
const LENGTH_MAX: usize = 48;

/// Notes the original of a copy, if that can be noted.
pub(crate) fn set(copy: impl AsFd, original: FileId) {
    let text = format!("{} {}", original.ino, original.born);
    if let Err(error) = rustix::fs::fsetxattr(copy, NAME, text.as_bytes(), XattrFlags::empty()) {
        log::debug!("a copy in a snapshot has no origin: {error}");
    }
}

/// The original of a copy, if it was noted.
pub fn of(copy: impl AsFd) -> Option<FileId> {
    let mut text = [0_u8; LENGTH_MAX];
    let length = rustix::fs::fgetxattr(copy, NAME, &mut text[..]).ok()?;
    let (ino, born) = str::from_utf8(&text[..length]).ok()?.split_once(' ')?;
    Some(FileId { ino: ino.parse().ok()?, born: born.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_comes_back_also_from_before_1970_and_rubbish_is_none() {
        let file = tempfile::tempfile_in(".").unwrap();
        assert_eq!(of(&file), None);
        let original = FileId { ino: u64::MAX, born: i64::MIN };
        set(&file, original);
        if rustix::fs::fgetxattr(&file, NAME, &mut [0_u8; 1][..0]).is_err() {
            println!("SKIPPED: no extended attributes here");
            return;
        }
        assert_eq!(of(&file), Some(original));
        rustix::fs::fsetxattr(&file, NAME, b"rubbish", XattrFlags::empty()).unwrap();
        assert_eq!(of(&file), None);
    }
}
