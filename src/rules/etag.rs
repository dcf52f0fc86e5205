//! `ETag`s of blobs and containers: strictly rising counters that follow the clock.
//!
//! Decides the number and its text. How a request's conditions compare it is in
//! [`super::conditions`]; which writes move it is decided by each service.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// 1970-01-01 in ticks of 100 ns since the year 1.
const UNIX_EPOCH_TICKS: i64 = 621_355_968_000_000_000;
const TICK_NANOS: i64 = 100;

/// The version of an object, unique within its account: the time of the write in ticks of 100 ns
/// since the year 1, or one more than the account's last one if the clock has not moved on.
///
/// Its text is that of the service, `0x8DE4A3C1B2D5F00`, without quotes.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Etag(u64);

impl Etag {
    /// The `ETag` of a write at `now`, if `last` was the highest that the account gave out.
    #[must_use]
    pub fn next(last: Self, now: Timestamp) -> Self {
        Self(Self::clock(now).max(last.0.saturating_add(1)))
    }

    /// The number of a write at `now` where no other write is in the way.
    pub fn clock(now: Timestamp) -> u64 {
        let ticks = now.0.div_euclid(TICK_NANOS) + UNIX_EPOCH_TICKS;
        u64::try_from(ticks).expect("a Timestamp is later than the year 1676")
    }

    /// The number behind the text, as it is stored.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The `ETag` of a stored number.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The time that the number encodes: at least that of the write, and unique like the
    /// `ETag` itself. Snapshots and versions are named by it.
    pub fn moment(self) -> Timestamp {
        let ticks = i64::try_from(self.0).unwrap_or(i64::MAX);
        Timestamp(ticks.saturating_sub(UNIX_EPOCH_TICKS).saturating_mul(TICK_NANOS))
    }

    /// The text within quotes, as in headers.
    pub fn quoted(self) -> String {
        format!("\"{self}\"")
    }
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:015X}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_follows_the_clock_and_never_repeats() {
        let now = Timestamp(1_767_607_200_000_000_000);
        let first = Etag::next(Etag::default(), now);
        assert_eq!(first.to_string(), "0x8DE4C41304B1000");
        let second = Etag::next(first, now);
        assert_eq!(second.number(), first.number() + 1);
        let before = Etag::next(second, Timestamp(now.0 - 1_000_000_000));
        assert!(before > second, "a clock that was set back");
        let later = Etag::next(before, Timestamp(now.0 + 1_000_000_000));
        assert_eq!(later.number(), first.number() + 10_000_000);
    }

    #[test]
    fn the_ends_of_time_have_etags() {
        for end in [i64::MIN, 0, i64::MAX] {
            let etag = Etag::next(Etag::default(), Timestamp(end));
            assert_eq!(Etag::from_number(etag.number()), etag);
        }
    }

    #[test]
    fn the_moment_of_an_etag_is_that_of_its_write_in_ticks() {
        let now = Timestamp(1_767_607_200_000_000_199);
        let first = Etag::next(Etag::default(), now);
        assert_eq!(first.moment(), Timestamp(1_767_607_200_000_000_100));
        assert_eq!(Etag::next(first, now).moment(), Timestamp(1_767_607_200_000_000_200));
    }

    #[test]
    fn headers_have_quotes() {
        assert_eq!(Etag::from_number(0x8DE).quoted(), "\"0x0000000000008DE\"");
    }
}
