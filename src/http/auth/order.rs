//! The two orders in which clients sort header names before they sign them.
//!
//! Decides how two names compare; [`super::shared_key`] decides when each order is tried.
//!
//! The SDKs imitate the service's collation, in which a hyphen counts only if the names are
//! otherwise equal; other clients sort by bytes.

use std::cmp::Ordering;

/// A way to sort header names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HeaderOrder {
    Bytes,
    /// By letters and digits first, by the places of hyphens second.
    HyphenLight,
}

/// The characters of header names that have a weight of their own, lightest first.
const BY_WEIGHT: &[u8] = b"!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz";

impl HeaderOrder {
    /// Compares two names in lower case.
    pub(super) fn compare(self, one: &str, other: &str) -> Ordering {
        match self {
            Self::Bytes => one.cmp(other),
            Self::HyphenLight => {
                weights(one).cmp(weights(other)).then_with(|| marks(one).cmp(marks(other)))
            }
        }
    }
}

/// Hyphens and apostrophes weigh nothing.
fn weights(name: &str) -> impl Iterator<Item = usize> {
    name.bytes().filter_map(|byte| BY_WEIGHT.iter().position(|known| *known == byte))
}

/// Where the names weigh the same, a hyphen comes after everything else.
fn marks(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().map(|byte| match byte {
        b'\'' => 1,
        b'-' => 2,
        _ => 0,
    })
}
