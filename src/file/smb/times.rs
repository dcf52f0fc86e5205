//! FILETIME: units of 100 ns since 1601, as SMB has every time.

use crate::rules::Timestamp;
use crate::rules::time::TICK_NANOS;

/// 1601 to 1970.
const EPOCH_TICKS: i64 = 116_444_736_000_000_000;

/// The moment as a FILETIME; one before 1601 is 0.
pub fn filetime(moment: Timestamp) -> u64 {
    (moment.0.div_euclid(TICK_NANOS) + EPOCH_TICKS).try_into().unwrap_or(0)
}

/// The moment of a FILETIME that is set. None for 0, -1 and -2, which leave the time as it is, and
/// for what a [`Timestamp`] cannot hold.
pub fn moment(filetime: u64) -> Option<Timestamp> {
    let ticks = i64::try_from(filetime).ok().filter(|ticks| *ticks > 0)?;
    (ticks - EPOCH_TICKS).checked_mul(TICK_NANOS).map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_comes_back_cut_to_100_ns() {
        let moment_there = Timestamp(1_767_607_200_123_456_789);
        assert_eq!(filetime(moment_there), 134_120_808_001_234_567);
        assert_eq!(moment(filetime(moment_there)), Some(Timestamp(1_767_607_200_123_456_700)));
        assert_eq!(filetime(Timestamp(i64::MIN)), 24_211_015_631_452_241);
    }

    #[test]
    fn a_time_that_is_not_set_is_none() {
        for unset in [0, u64::MAX, u64::MAX - 1, i64::MAX as u64] {
            assert_eq!(moment(unset), None, "{unset:#x}");
        }
    }
}
