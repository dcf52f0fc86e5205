//! The rights that an SMB client asks for.
//!
//! Decides how they reduce to the three that take part in the share check ([`Access`]). The check
//! itself is in [`super::share`].

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

use super::Access;

/// The access rights of an SMB open, bit for bit as on the wire (MS-SMB2 2.2.13.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Rights(u32);

impl Rights {
    /// Read the file's bytes, list a directory.
    pub const READ_DATA: Self = Self(0x1);
    /// Write the file's bytes, add a file to a directory.
    pub const WRITE_DATA: Self = Self(0x2);
    /// Append, add a directory to a directory.
    pub const APPEND_DATA: Self = Self(0x4);
    pub const READ_EA: Self = Self(0x8);
    pub const WRITE_EA: Self = Self(0x10);
    pub const EXECUTE: Self = Self(0x20);
    /// Delete children of a directory.
    pub const DELETE_CHILD: Self = Self(0x40);
    pub const READ_ATTRIBUTES: Self = Self(0x80);
    pub const WRITE_ATTRIBUTES: Self = Self(0x100);
    pub const DELETE: Self = Self(0x1_0000);
    /// Read the security descriptor.
    pub const READ_CONTROL: Self = Self(0x2_0000);
    /// Write the access list.
    pub const WRITE_DAC: Self = Self(0x4_0000);
    pub const WRITE_OWNER: Self = Self(0x8_0000);
    /// Wait on the handle.
    pub const SYNCHRONIZE: Self = Self(0x10_0000);
    /// Whatever the caller may have; here that is everything.
    pub const MAXIMUM_ALLOWED: Self = Self(0x200_0000);
    pub const GENERIC_ALL: Self = Self(0x1000_0000);
    /// Execute and read attributes.
    pub const GENERIC_EXECUTE: Self = Self(0x2000_0000);
    /// Write data and attributes.
    pub const GENERIC_WRITE: Self = Self(0x4000_0000);
    /// Read data and attributes.
    pub const GENERIC_READ: Self = Self(0x8000_0000);

    const NAMES: [(&'static str, Self); 19] = [
        ("READ_DATA", Self::READ_DATA),
        ("WRITE_DATA", Self::WRITE_DATA),
        ("APPEND_DATA", Self::APPEND_DATA),
        ("READ_EA", Self::READ_EA),
        ("WRITE_EA", Self::WRITE_EA),
        ("EXECUTE", Self::EXECUTE),
        ("DELETE_CHILD", Self::DELETE_CHILD),
        ("READ_ATTRIBUTES", Self::READ_ATTRIBUTES),
        ("WRITE_ATTRIBUTES", Self::WRITE_ATTRIBUTES),
        ("DELETE", Self::DELETE),
        ("READ_CONTROL", Self::READ_CONTROL),
        ("WRITE_DAC", Self::WRITE_DAC),
        ("WRITE_OWNER", Self::WRITE_OWNER),
        ("SYNCHRONIZE", Self::SYNCHRONIZE),
        ("MAXIMUM_ALLOWED", Self::MAXIMUM_ALLOWED),
        ("GENERIC_ALL", Self::GENERIC_ALL),
        ("GENERIC_EXECUTE", Self::GENERIC_EXECUTE),
        ("GENERIC_WRITE", Self::GENERIC_WRITE),
        ("GENERIC_READ", Self::GENERIC_READ),
    ];

    /// The rights of an access mask as a client sends it.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The mask of the specific rights, as a client is told what was granted.
    pub const fn bits(self) -> u32 {
        self.specific().0
    }

    /// The right of that name, without the `FILE_` prefix.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, right)| *right)
    }

    /// True if every right of `other` is in `self`, once generic rights are spelled out.
    pub const fn contains(self, other: Self) -> bool {
        self.specific().0 & other.0 == other.0
    }

    /// These rights with `MAXIMUM_ALLOWED` and the generic rights replaced by specific ones (MS-FSA
    /// 2.1.5.1, the usual file mapping). No right is refused here, so the maximum is all rights.
    #[must_use]
    pub const fn specific(self) -> Self {
        const STANDARD: u32 = 0x12_0000; // READ_CONTROL, SYNCHRONIZE
        let mut bits = self.0;
        if bits & (Self::GENERIC_ALL.0 | Self::MAXIMUM_ALLOWED.0) != 0 {
            bits |= 0x1F_01FF;
        }
        if bits & Self::GENERIC_READ.0 != 0 {
            bits |= 0x89 | STANDARD;
        }
        if bits & Self::GENERIC_WRITE.0 != 0 {
            bits |= 0x116 | STANDARD;
        }
        if bits & Self::GENERIC_EXECUTE.0 != 0 {
            bits |= 0xA0 | STANDARD;
        }
        Self(bits & 0x1F_01FF)
    }

    /// The part that takes part in the share check.
    pub const fn access(self) -> Access {
        let bits = self.specific().0;
        let mut access = 0;
        if bits & (Self::READ_DATA.0 | Self::EXECUTE.0) != 0 {
            access |= Access::R.bits();
        }
        if bits & (Self::WRITE_DATA.0 | Self::APPEND_DATA.0) != 0 {
            access |= Access::W.bits();
        }
        if bits & Self::DELETE.0 != 0 {
            access |= Access::D.bits();
        }
        Access::from_bits(access)
    }
}

impl BitOr for Rights {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Rights {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl From<Access> for Rights {
    /// The data rights a mount open of that access carries, with attributes to read and write:
    /// POSIX asks for neither, and has both.
    fn from(access: Access) -> Self {
        let mut rights = Self::READ_ATTRIBUTES | Self::WRITE_ATTRIBUTES | Self::SYNCHRONIZE;
        if access.contains(Access::R) {
            rights |= Self::READ_DATA | Self::EXECUTE;
        }
        if access.contains(Access::W) {
            rights |= Self::WRITE_DATA | Self::APPEND_DATA;
        }
        if access.contains(Access::D) {
            rights |= Self::DELETE;
        }
        rights
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Self::NAMES
            .iter()
            .filter(|(_, right)| self.0 & right.0 != 0)
            .map(|(name, _)| *name)
            .collect();
        write!(f, "Rights({})", names.join("|"))
    }
}
