//! Moments of the Queue service: units of 100 ns, from 1970 to the end of the year 9999.
//!
//! Decides the resolution and the last moment, which is the expiry that a message without an
//! expiry shows. [`crate::rules::time`] decides how a moment is spelled.

use crate::rules::{Timestamp, time};

const PER_SECOND: i64 = 10_000_000;
/// Units from 1601, where the service's receipts count from, to 1970.
const FROM_1601: i64 = 11_644_473_600 * PER_SECOND;

/// A moment in units of 100 ns since 1970 UTC. A [`crate::rules::Timestamp`] ends in 2262; an
/// expiry does not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Tick(pub i64);

impl Tick {
    /// 9999-12-31T23:59:59: the last moment, and the expiry of a message that has none.
    pub const LAST: Self = Self(253_402_300_799 * PER_SECOND);

    /// The moment of a clock's reading, cut to 100 ns toward the past.
    pub const fn of(moment: Timestamp) -> Self {
        Self(moment.0.div_euclid(time::TICK_NANOS))
    }

    /// The moment as a clock would tell it; the nearest one that a clock can.
    pub const fn timestamp(self) -> Timestamp {
        Timestamp(self.0.saturating_mul(time::TICK_NANOS))
    }

    /// The moment `seconds` later, no later than [`Self::LAST`].
    #[must_use]
    pub fn after(self, seconds: u64) -> Self {
        let units = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(PER_SECOND);
        Self(self.0.saturating_add(units)).min(Self::LAST)
    }

    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Whole seconds since 1970, cut toward the past.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(PER_SECOND)
    }

    /// As a Windows FILETIME: units of 100 ns since 1601.
    pub const fn filetime(self) -> i64 {
        self.0.saturating_add(FROM_1601)
    }

    /// As an HTTP date.
    pub fn rfc1123(self) -> String {
        time::rfc1123_of_seconds(self.seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_moment_is_the_end_of_9999_and_nothing_lies_after_it() {
        assert_eq!(Tick::LAST.rfc1123(), "Fri, 31 Dec 9999 23:59:59 GMT");
        for seconds in [253_402_300_799, 253_402_300_800, u64::MAX] {
            assert_eq!(Tick(0).after(seconds), Tick::LAST, "{seconds}");
        }
        assert_eq!(Tick(5).after(1), Tick(10_000_005));
    }

    #[test]
    fn a_moment_is_cut_toward_the_past() {
        assert_eq!(Tick::of(Timestamp(199)), Tick(1));
        assert_eq!(Tick::of(Timestamp(-1)), Tick(-1));
        assert_eq!(Tick(19_999_999).seconds(), 1);
        assert_eq!(Tick(19_999_999).rfc1123(), "Thu, 01 Jan 1970 00:00:01 GMT");
        assert_eq!(Tick(7).timestamp(), Timestamp(700));
    }

    #[test]
    fn file_times_count_from_1601() {
        // 2019-10-30T19:51:16Z.
        assert_eq!(Tick(15_724_650_760_000_000).filetime(), 132_169_386_760_000_000);
    }
}
