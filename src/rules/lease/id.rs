//! The identity of a lease: a GUID, compared by value.
//!
//! Decides which spellings are GUIDs. Randomness comes from the caller.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A lease ID. Clients may spell it as any GUID that .NET reads; it is shown in lower case with
/// hyphens.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(u128);

/// A text that is no GUID.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a lease ID must be a GUID")]
pub struct NotAGuid;

impl LeaseId {
    /// A fresh ID of 16 random bytes: those bits that mark a random GUID are set (RFC 9562,
    /// version 4).
    pub const fn from_random_bytes(bytes: [u8; 16]) -> Self {
        const VERSION: u128 = 0xF << 76;
        const VARIANT: u128 = 0b11 << 62;
        let bits = u128::from_be_bytes(bytes) & !VERSION & !VARIANT;
        Self(bits | 4 << 76 | 0b10 << 62)
    }
}

impl FromStr for LeaseId {
    type Err = NotAGuid;

    /// Hyphenated, with or without braces or parentheses around it, or 32 bare digits; any case.
    fn from_str(text: &str) -> Result<Self, NotAGuid> {
        let enclosed = |open, close| text.strip_prefix(open)?.strip_suffix(close);
        let hyphenated = match enclosed('{', '}').or_else(|| enclosed('(', ')')) {
            Some(inner) => inner,
            None if text.len() == 32 => return digits(text).map(Self),
            None => text,
        };
        let mut groups = hyphenated.split('-');
        let mut value = 0;
        for length in [8, 4, 4, 4, 12] {
            let group = groups.next().filter(|group| group.len() == length);
            value = value << (4 * length) | digits(group.ok_or(NotAGuid)?)?;
        }
        match groups.next() {
            None => Ok(Self(value)),
            Some(_) => Err(NotAGuid),
        }
    }
}

/// Hex digits only: the standard parser would also take a sign.
fn digits(text: &str) -> Result<u128, NotAGuid> {
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(NotAGuid);
    }
    u128::from_str_radix(text, 16).map_err(|_| NotAGuid)
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; 36];
        let places = (0..36).filter(|place| !matches!(place, 8 | 13 | 18 | 23));
        for (count, place) in places.enumerate() {
            // 32 digits of 4 bits, the highest first.
            let digit = self.0 >> (124 - 4 * count) & 0xf;
            text[place] = DIGITS[usize::try_from(digit).unwrap_or(0)];
        }
        // ASCII, so that this never fails.
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaseId({self})")
    }
}

impl Serialize for LeaseId {
    fn serialize<T: Serializer>(&self, to: T) -> Result<T::Ok, T::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LeaseId {
    fn deserialize<T: Deserializer<'de>>(from: T) -> Result<Self, T::Error> {
        let text = <Cow<'_, str>>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
