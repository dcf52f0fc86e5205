//! A range of bytes: which ranges exist, and when two of them overlap.
//!
//! What an overlap means for a lock or a read is decided in [`super::locks`].

use std::fmt;

/// The offset by which POSIX callers, and so FUSE, mean "to the end of the file".
const POSIX_END: u64 = i64::MAX.unsigned_abs();

/// A range of bytes of one file, within or beyond its end.
///
/// Kept as first and last byte: a range may reach up to byte 2^64-1, and the whole of that space
/// has a length no `u64` can hold. A range of no bytes still has a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ByteRange {
    start: u64,
    /// The last byte, none for a range of length zero.
    last: Option<u64>,
}

/// The range does not exist: it reaches past byte 2^64-1, or ends before it starts. SMB calls it
/// `INVALID_LOCK_RANGE`, POSIX `EINVAL`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the byte range ends past 2^64 or before its start")]
pub struct InvalidRange;

impl ByteRange {
    /// Every byte there can be.
    pub const WHOLE: Self = Self::from_bounds(0, u64::MAX);

    /// The range as SMB and REST give it. Legal as long as its last byte is at most 2^64-1;
    /// a length of zero is legal anywhere.
    pub fn new(offset: u64, length: u64) -> Result<Self, InvalidRange> {
        let last = match length.checked_sub(1) {
            None => None,
            Some(rest) => Some(offset.checked_add(rest).ok_or(InvalidRange)?),
        };
        Ok(Self { start: offset, last })
    }

    /// The range as FUSE gives it for `fcntl` locks: first and last byte, the last at `i64::MAX`
    /// or beyond meaning the end, whatever the file grows to.
    pub fn from_posix(start: u64, end: u64) -> Result<Self, InvalidRange> {
        if start > end {
            return Err(InvalidRange);
        }
        let last = if end >= POSIX_END { u64::MAX } else { end };
        Ok(Self::from_bounds(start, last))
    }

    /// No bytes, at `start`.
    pub(super) const fn empty_at(start: u64) -> Self {
        Self { start, last: None }
    }

    /// From first to last byte; `last` is not below `start`.
    pub(super) const fn from_bounds(start: u64, last: u64) -> Self {
        Self { start, last: Some(last) }
    }

    /// Where the range begins.
    pub const fn start(self) -> u64 {
        self.start
    }

    /// Its last byte, none if it has no bytes.
    pub const fn last(self) -> Option<u64> {
        self.last
    }

    /// True for a range of length zero.
    pub const fn is_empty(self) -> bool {
        self.last.is_none()
    }

    /// How many bytes it has, up to 2^64.
    pub fn length(self) -> u128 {
        self.last.map_or(0, |last| u128::from(last - self.start) + 1)
    }

    /// First and last byte for an `F_GETLK` answer, within what POSIX can say. A range of no
    /// bytes, which POSIX does not know, is told as the byte at its place.
    pub fn to_posix(self) -> (u64, u64) {
        let last = self.last.unwrap_or(self.start);
        (self.start.min(POSIX_END), last.min(POSIX_END))
    }

    /// True if the two ranges collide.
    ///
    /// With a last byte of `offset + length - 1`, a range of length zero at `p` reaches from `p`
    /// back to `p - 1`: it collides with ranges that hold both, and with no other of length zero
    /// (br13-br15, br50). At 0 there is no byte before, so `{0, 0}` collides with nothing.
    pub const fn overlaps(self, other: Self) -> bool {
        match (self.last, other.last) {
            (Some(last), Some(other_last)) => self.start <= other_last && other.start <= last,
            (Some(last), None) => self.start < other.start && other.start <= last,
            (None, Some(last)) => other.start < self.start && self.start <= last,
            (None, None) => false,
        }
    }
}

impl ByteRange {
    /// The verb that goes with the text of the range.
    pub(crate) fn verb(self) -> &'static str {
        if self.last == Some(self.start) && self.start != u64::MAX { "is" } else { "are" }
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last {
            None => write!(f, "no bytes at {}", self.start),
            Some(u64::MAX) => write!(f, "bytes {} to the end", self.start),
            Some(last) if last == self.start => write!(f, "byte {last}"),
            Some(last) => write!(f, "bytes {} to {last}", self.start),
        }
    }
}
