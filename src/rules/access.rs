//! Access and share modes: the two sets that an open names, and that a refusal shows of its holder.
//!
//! Decides how the sets are read and written. Which of them exclude each other is decided in the
//! rules of the File service.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// Bits shared by [`Access`] and [`ShareMode`].
const R: u8 = 1;
const W: u8 = 2;
const D: u8 = 4;

/// The access of an open: a subset of read, write and delete, all that the share check looks at.
///
/// The empty set is an *attribute-only* open: it neither causes nor suffers a sharing violation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Access(u8);

/// The share mode of an open: the access that it allows to other opens, a subset of read, write and
/// delete.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct ShareMode(u8);

macro_rules! rwd_set {
    ($set:ident) => {
        impl $set {
            pub const NONE: Self = Self(0);
            pub const R: Self = Self(R);
            pub const W: Self = Self(W);
            pub const D: Self = Self(D);
            pub const RW: Self = Self(R | W);
            /// Read, write and delete.
            pub const RWD: Self = Self(R | W | D);

            /// All eight sets, in the order of their bits.
            pub const ALL: [Self; 8] =
                [Self(0), Self(1), Self(2), Self(3), Self(4), Self(5), Self(6), Self(7)];

            /// The set as bits: 1 read, 2 write, 4 delete.
            pub const fn bits(self) -> u8 {
                self.0
            }

            /// The set of the given bits; others are dropped.
            #[must_use]
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits & (R | W | D))
            }

            /// True for the empty set.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// True if every member of `other` is in `self`.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// True if the two sets have a member in common.
            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// Reads the letters `r`, `w`, `d` in any order and case; `none`, `-` and the empty
            /// text are the empty set.
            pub fn parse(text: &str) -> Option<Self> {
                if matches!(text, "" | "-") || text.eq_ignore_ascii_case("none") {
                    return Some(Self::NONE);
                }
                let mut bits = 0;
                for letter in text.chars() {
                    bits |= match letter.to_ascii_lowercase() {
                        'r' => R,
                        'w' => W,
                        'd' => D,
                        _ => return None,
                    };
                }
                Some(Self(bits))
            }
        }

        impl BitOr for $set {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl BitOrAssign for $set {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl fmt::Display for $set {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self.is_empty() {
                    return f.write_str("none");
                }
                for (bit, letter) in [(R, "r"), (W, "w"), (D, "d")] {
                    if self.0 & bit != 0 {
                        f.write_str(letter)?;
                    }
                }
                Ok(())
            }
        }

        impl fmt::Debug for $set {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($set))
            }
        }
    };
}

rwd_set!(Access);
rwd_set!(ShareMode);

impl Access {
    /// True if `share` lets this access through.
    pub const fn allowed_by(self, share: ShareMode) -> bool {
        self.0 & share.0 == self.0
    }
}
