//! File attributes: the set that `x-ms-file-attributes` and an SMB client show.
//!
//! Decides how the set is written on the wire and numbered in NTFS. `Normal` stands for the empty
//! set. The attributes of a file that never had any set (`Archive`, `Directory`), and the words
//! `preserve` and `now`, are decided by the callers.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

use serde::{Deserialize, Serialize};

/// `FILE_ATTRIBUTE_NORMAL`, which NTFS uses for the empty set.
const NORMAL: u32 = 0x80;

/// A set of file attributes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Attributes(u32);

/// Every attribute with its name, in the order in which the service lists them.
const NAMES: [(Attributes, &str); 9] = [
    (Attributes::READ_ONLY, "ReadOnly"),
    (Attributes::HIDDEN, "Hidden"),
    (Attributes::SYSTEM, "System"),
    (Attributes::ARCHIVE, "Archive"),
    (Attributes::TEMPORARY, "Temporary"),
    (Attributes::OFFLINE, "Offline"),
    (Attributes::NOT_CONTENT_INDEXED, "NotContentIndexed"),
    (Attributes::NO_SCRUB_DATA, "NoScrubData"),
    (Attributes::DIRECTORY, "Directory"),
];

impl Attributes {
    /// The empty set: FileREST's `None`, NTFS's `Normal`.
    pub const NONE: Self = Self(0);
    /// Refuses writes and deletion.
    pub const READ_ONLY: Self = Self(0x1);
    /// Left out of ordinary listings by clients.
    pub const HIDDEN: Self = Self(0x2);
    /// Belongs to the operating system.
    pub const SYSTEM: Self = Self(0x4);
    pub const DIRECTORY: Self = Self(0x10);
    /// Changed since the last backup.
    pub const ARCHIVE: Self = Self(0x20);
    /// Not meant to last.
    pub const TEMPORARY: Self = Self(0x100);
    /// The bytes are not at hand.
    pub const OFFLINE: Self = Self(0x1000);
    /// Left out of content indexes.
    pub const NOT_CONTENT_INDEXED: Self = Self(0x2000);
    /// Left out of integrity scans.
    pub const NO_SCRUB_DATA: Self = Self(0x2_0000);

    /// The NTFS number of the set; the empty set is `Normal`, 0x80, since 0 means "leave as it
    /// is" there (MS-FSCC 2.6).
    pub const fn bits(self) -> u32 {
        if self.0 == 0 { NORMAL } else { self.0 }
    }

    /// The set of an NTFS number. `Normal` adds nothing; bits without a name here are dropped.
    #[must_use]
    pub fn from_bits(bits: u32) -> Self {
        let known = NAMES.iter().fold(0, |all, (one, _)| all | one.0);
        Self(bits & known)
    }

    /// True for the empty set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if every member of `other` is in `self`.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Adds the members of `other`.
    pub fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Takes the members of `other` away.
    pub fn remove(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    /// Reads the header form: names joined by `|`, in any case, blanks around them allowed.
    /// `None` adds nothing, and a blank text is the empty set. An unknown or missing name between
    /// bars is no set.
    pub fn parse(text: &str) -> Option<Self> {
        let mut set = Self::NONE;
        if text.trim().is_empty() {
            return Some(set);
        }
        for name in text.split('|').map(str::trim) {
            if name.eq_ignore_ascii_case("none") {
                continue;
            }
            let (one, _) = NAMES.iter().find(|(_, n)| n.eq_ignore_ascii_case(name))?;
            set.insert(*one);
        }
        Some(set)
    }
}

impl BitOr for Attributes {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Attributes {
    fn bitor_assign(&mut self, other: Self) {
        self.insert(other);
    }
}

impl fmt::Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("None");
        }
        let members = NAMES.iter().filter(|(one, _)| self.contains(*one));
        for (position, (_, name)) in members.enumerate() {
            if position > 0 {
                f.write_str(" | ")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attributes({self})")
    }
}

impl Serialize for Attributes {
    fn serialize<T: serde::Serializer>(&self, to: T) -> Result<T::Ok, T::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<T: serde::Deserializer<'de>>(from: T) -> Result<Self, T::Error> {
        let text = <std::borrow::Cow<'_, str>>::deserialize(from)?;
        Self::parse(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("'{text}' is not a set of attributes")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_form_is_read_in_any_case_and_with_blanks() {
        let both = Attributes::READ_ONLY | Attributes::ARCHIVE;
        for text in ["ReadOnly|Archive", " readonly | ARCHIVE ", "Archive|None|ReadOnly"] {
            assert_eq!(Attributes::parse(text), Some(both), "{text}");
        }
        for text in ["", "  ", "None", "none", "none | None"] {
            assert_eq!(Attributes::parse(text), Some(Attributes::NONE), "{text:?}");
        }
    }

    #[test]
    fn an_unknown_or_missing_name_is_no_set() {
        for text in ["Compressed", "Archive|", "|", "Archive||Hidden", "preserve", "Read Only"] {
            assert_eq!(Attributes::parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_attribute_has_its_ntfs_number_and_its_name() {
        for (number, name) in [
            (0x1, "ReadOnly"),
            (0x2, "Hidden"),
            (0x4, "System"),
            (0x10, "Directory"),
            (0x20, "Archive"),
            (0x80, "None"),
            (0x100, "Temporary"),
            (0x1000, "Offline"),
            (0x2000, "NotContentIndexed"),
            (0x2_0000, "NoScrubData"),
        ] {
            let set = Attributes::from_bits(number);
            assert_eq!(set.to_string(), name);
            assert_eq!(set.bits(), number, "{name}");
            assert_eq!(Attributes::parse(name), Some(set));
        }
    }

    #[test]
    fn the_text_lists_members_in_the_services_order() {
        let set = Attributes::from_bits(u32::MAX);
        assert_eq!(
            set.to_string(),
            "ReadOnly | Hidden | System | Archive | Temporary | Offline | NotContentIndexed | \
             NoScrubData | Directory"
        );
        assert_eq!(Attributes::NONE.to_string(), "None");
    }

    #[test]
    fn members_come_and_go() {
        let mut set = Attributes::ARCHIVE;
        set.insert(Attributes::READ_ONLY | Attributes::HIDDEN);
        assert!(set.contains(Attributes::READ_ONLY | Attributes::ARCHIVE));
        set.remove(Attributes::READ_ONLY | Attributes::SYSTEM);
        assert_eq!(set, Attributes::ARCHIVE | Attributes::HIDDEN);
        assert!(!set.contains(Attributes::READ_ONLY));
    }

    #[test]
    fn json_is_the_text() {
        let set = Attributes::HIDDEN | Attributes::ARCHIVE;
        let json = serde_json::to_string(&set).unwrap();
        assert_eq!(json, "\"Hidden | Archive\"");
        assert_eq!(serde_json::from_str::<Attributes>(&json).unwrap(), set);
        assert!(serde_json::from_str::<Attributes>("\"Shiny\"").is_err());
    }
}
