//! Security descriptors, kept once each under a key that files refer to.
//!
//! Decides what passes for a descriptor and what its key is: equal texts have one key, in every
//! run. They are not enforced. SDDL and binary are kept as they were given and are not converted
//! into each other.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::error::{FileServiceResult, ShareDenial};
use super::{FileService, ShareRef};
use crate::rules::lease::ShareUse;

/// The most that fits a header; what is larger goes through
/// [`FileService::create_permission`]. For front ends to hold.
pub const PERMISSION_HEADER_BYTES_MAX: usize = 8 * 1024;
/// The most that is kept: an access list has at most 64 KiB, and is longer as text.
pub const PERMISSION_BYTES_MAX: usize = 128 * 1024;
/// The descriptor of files and directories without one of their own, which inherit it in the
/// service: full access for the system and administrators, change for authenticated users (our
/// choice).
const INHERITED: &str = "O:BAG:SYD:(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1301bf;;;AU)";

/// How a descriptor is written (`x-ms-file-permission-format`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PermissionFormat {
    Sddl,
    /// As bytes, in base64.
    Binary,
}

/// A security descriptor as it was given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecurityDescriptor {
    /// `O:..G:..D:..`.
    Sddl(String),
    /// Base64.
    Binary(String),
}

impl SecurityDescriptor {
    /// The descriptor of a file or directory that was given none.
    pub(crate) fn inherited() -> Self {
        Self::Sddl(INHERITED.into())
    }

    /// How it is written.
    pub fn format(&self) -> PermissionFormat {
        match self {
            Self::Sddl(_) => PermissionFormat::Sddl,
            Self::Binary(_) => PermissionFormat::Binary,
        }
    }

    /// The descriptor as it was given.
    pub fn text(&self) -> &str {
        match self {
            Self::Sddl(text) | Self::Binary(text) => text,
        }
    }

    /// Refuses what is no descriptor.
    pub fn check(&self) -> Result<(), ShareDenial> {
        if self.text().len() > PERMISSION_BYTES_MAX {
            return Err(ShareDenial::FilePermissionTooLarge);
        }
        match self {
            Self::Sddl(text) => check_sddl(text),
            Self::Binary(text) if is_base64(text) => Ok(()),
            Self::Binary(_) => Err(ShareDenial::FileInvalidPermission("it is not base64")),
        }
    }

    /// The key to try `attempt`-th, in the form of the service's: two numbers and an asterisk.
    pub(crate) fn key(&self, attempt: u32) -> String {
        // FNV-1a of 128 bits: stable between builds, unlike the standard hasher.
        const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0100_0000_0000_0000_0000_013b;
        let kind = match self {
            Self::Sddl(_) => 0,
            Self::Binary(_) => 1,
        };
        let bytes = std::iter::once(kind).chain(self.text().bytes());
        let hash = bytes.fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
        let hash = hash.wrapping_add(attempt.into());
        format!("{}*{}", hash >> 64, hash & u128::from(u64::MAX))
    }
}

/// The key of a file or directory that was given no descriptor: all of them show one.
pub(crate) fn inherited_permission_key() -> &'static str {
    static KEY: LazyLock<String> = LazyLock::new(|| SecurityDescriptor::inherited().key(0));
    &KEY
}

impl FileService {
    /// Keeps a descriptor for the files of a share; its key.
    pub fn create_permission(
        &self,
        at: &ShareRef<'_>,
        permission: &SecurityDescriptor,
    ) -> FileServiceResult<String> {
        let share = self.share_to_change(at)?;
        let served = self.served(at.name)?;
        // Held until it is written: two texts of one hash at once would take one key.
        let _changing = served.changing();
        served.kept()?.own.lease.check(ShareUse::Other, at.lease_id, self.now())?;
        share.keep_permission(permission)
    }

    /// The descriptor of a key, in the format it was given in.
    pub fn permission(
        &self,
        at: &ShareRef<'_>,
        key: &str,
        wanted: Option<PermissionFormat>,
    ) -> FileServiceResult<SecurityDescriptor> {
        let permission = self.share(at.name)?.permission(key)?;
        match wanted {
            Some(wanted) if wanted != permission.format() => {
                Err(ShareDenial::PermissionFormatUnsupported.into())
            }
            _ => Ok(permission),
        }
    }
}

/// Owner, group and access list must be there, in this order, and parentheses must match. The
/// rest is not parsed.
fn check_sddl(text: &str) -> Result<(), ShareDenial> {
    let refused = |why| Err(ShareDenial::FileInvalidPermission(why));
    let Some(rest) = text.strip_prefix("O:") else { return refused("it does not start with O:") };
    let Some((owner, rest)) = rest.split_once("G:") else { return refused("it has no part G:") };
    let Some((group, lists)) = rest.split_once("D:") else { return refused("it has no part D:") };
    if owner.is_empty() || group.is_empty() {
        return refused("its owner or group is empty");
    }
    if text.contains(char::is_control) {
        return refused("it holds a control character");
    }
    let mut depth = 0_u32;
    for letter in lists.chars() {
        match letter {
            '(' => depth += 1,
            ')' if depth == 0 => return refused("a parenthesis is closed that was not opened"),
            ')' => depth -= 1,
            _ => {}
        }
    }
    if depth > 0 { refused("a parenthesis is not closed") } else { Ok(()) }
}

/// True for standard base64 of at least one byte, padded.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len().is_multiple_of(4)
        && !digits.is_empty()
        && text.len() - digits.len() <= 2
        && digits.bytes().all(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SDDL: &str = "O:S-1-5-21-1G:S-1-5-21-513D:AI(A;;FA;;;SY)(A;;FA;;;BA)";

    #[test]
    fn a_descriptor_has_owner_group_and_list_and_its_parentheses_match() {
        assert_eq!(check_sddl(SDDL), Ok(()));
        assert_eq!(check_sddl("O:SYG:SYD:"), Ok(()), "an empty list is one");
        for bad in [
            "",
            "invalid",
            "G:SYD:(A;;FA;;;SY)",
            "O:SYD:(A;;FA;;;SY)",
            "O:SYG:SY",
            "O:G:SYD:",
            "O:SYG:SYD:(A;;FA;;;SY",
            "O:SYG:SYD:A;;FA;;;SY)(",
            "O:SYG:SYD:\n",
        ] {
            let answer = check_sddl(bad);
            assert!(matches!(answer, Err(ShareDenial::FileInvalidPermission(_))), "{bad}");
        }
    }

    #[test]
    fn the_bound_of_a_descriptor_is_held_at_it_and_past_it() {
        let sized = |bytes: usize| {
            let text = format!("O:SYG:SYD:{}", "x".repeat(bytes - 10));
            SecurityDescriptor::Sddl(text).check()
        };
        assert_eq!(sized(PERMISSION_BYTES_MAX), Ok(()));
        assert_eq!(sized(PERMISSION_BYTES_MAX + 1), Err(ShareDenial::FilePermissionTooLarge));
    }

    #[test]
    fn binary_is_base64() {
        for good in ["AQAEgA==", "AQAE", "AQA=", "+/+/"] {
            assert_eq!(SecurityDescriptor::Binary(good.into()).check(), Ok(()), "{good}");
        }
        for bad in ["", "====", "AQA", "A===", "AQ=E", "AQ-E", "AQ E"] {
            assert!(SecurityDescriptor::Binary(bad.into()).check().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_is_the_same_on_every_build() {
        let key = SecurityDescriptor::Sddl(SDDL.into()).key(0);
        assert_eq!(key, SecurityDescriptor::Sddl(SDDL.to_owned()).key(0));
        assert_ne!(key, SecurityDescriptor::Binary(SDDL.into()).key(0));
        assert_ne!(key, SecurityDescriptor::Sddl(SDDL.into()).key(1));
        assert_eq!(SecurityDescriptor::Sddl(String::new()).key(0), EMPTY_KEY);
    }

    /// One round of FNV-1a over a zero byte, worked out apart.
    const EMPTY_KEY: &str = "15143577399135472815*8687772917524206719";
}
