//! `Edm.DateTime`: a count of 100 ns, its ISO text, and what texts are read.
//!
//! Decides the spellings of a date and which dates an entity may hold.

use crate::rules::id::Timestamp;
use crate::rules::time::{TICK_NANOS, numbers, push_digits, push_iso, seconds_of};

/// A moment in units of 100 ns since 1601-01-01 UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Ticks(pub i64);

const SECOND_TICKS: i64 = 10_000_000;
/// Seconds from 1601-01-01 to 1970-01-01.
const EPOCH_SECONDS: i64 = 11_644_473_600;
/// 9999-12-31T23:59:59.9999999Z.
const LAST: Ticks = Ticks(2_650_467_743_999_999_999);

impl Ticks {
    /// The tick that `moment` lies in.
    pub const fn of(moment: Timestamp) -> Self {
        Self(moment.0.div_euclid(TICK_NANOS) + EPOCH_SECONDS * SECOND_TICKS)
    }

    /// The moment the tick begins, the nearest end of time if a [`Timestamp`] cannot hold it.
    pub const fn timestamp(self) -> Timestamp {
        let ticks = self.0.saturating_sub(EPOCH_SECONDS * SECOND_TICKS);
        Timestamp(ticks.saturating_mul(TICK_NANOS))
    }

    /// True for what an entity may hold: 1601 to 9999.
    pub fn is_storable(self) -> bool {
        (Self(0)..=LAST).contains(&self)
    }

    /// Appends `2021-04-08T14:34:34.7905688Z`: the fraction without the zeros at its end.
    pub fn write(self, out: &mut String) {
        self.write_with(out, ":");
    }

    /// Appends the text with `colon` between hours, minutes and seconds.
    pub fn write_with(self, out: &mut String, colon: &str) {
        push_iso(out, self.0.div_euclid(SECOND_TICKS) - EPOCH_SECONDS, colon);
        let fraction = self.0.rem_euclid(SECOND_TICKS);
        if fraction != 0 {
            out.push('.');
            push_digits(out, fraction, 7);
            out.truncate(out.trim_end_matches('0').len());
        }
        out.push('Z');
    }

    /// Reads an ISO date: the day alone, or with a time to the minute, the second or any fraction
    /// of it; `Z`, an offset, or neither, which means UTC. Digits beyond 100 ns are cut off.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let date = numbers(date, '-', [4, 2, 2])?;
        let (clock, offset) = match rest.strip_prefix(['T', 't', ' ']) {
            None if rest.is_empty() => ("00:00", 0),
            None => return None,
            Some(time) => split_offset(time)?,
        };
        let (clock, fraction) = match clock.split_once('.') {
            Some((clock, fraction)) => (clock, parse_fraction(fraction)?),
            None => (clock, 0),
        };
        let to_the_minute = || {
            let [hour, minute] = numbers(clock, ':', [2, 2])?;
            (fraction == 0).then_some([hour, minute, 0])
        };
        let clock = numbers(clock, ':', [2, 2, 2]).or_else(to_the_minute)?;
        let seconds = seconds_of(date, clock)? - offset;
        Some(Self((seconds + EPOCH_SECONDS) * SECOND_TICKS + fraction))
    }
}

impl std::fmt::Display for Ticks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::with_capacity(28);
        self.write(&mut text);
        f.write_str(&text)
    }
}

/// The time of day, and the seconds by which it is ahead of UTC.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, 0)) };
    let (clock, offset) = time.split_at(at);
    let (hours, minutes) =
        offset[1..].split_once(':').or_else(|| offset[1..].split_at_checked(2))?;
    let ([hours], [minutes]) = (numbers(hours, ':', [2])?, numbers(minutes, ':', [2])?);
    let seconds = i64::from(hours) * 3_600 + i64::from(minutes) * 60;
    let legal = hours <= 14 && minutes < 60;
    legal.then_some((clock, if offset.starts_with('-') { -seconds } else { seconds }))
}

fn parse_fraction(text: &str) -> Option<i64> {
    if text.is_empty() || text.len() > 32 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut ticks = 0;
    for index in 0..7 {
        ticks = ticks * 10 + text.as_bytes().get(index).map_or(0, |digit| i64::from(digit - b'0'));
    }
    Some(ticks)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> String {
        Ticks::parse(text).unwrap_or_else(|| panic!("{text}")).to_string()
    }

    #[test]
    fn dates_are_read_in_all_their_spellings_and_written_in_one_t26() {
        for (given, written) in [
            ("2021-04-08T14:34:34.7905688Z", "2021-04-08T14:34:34.7905688Z"),
            ("2021-04-08T14:34:34.000000Z", "2021-04-08T14:34:34Z"),
            ("2021-04-08T14:34:34.2600000Z", "2021-04-08T14:34:34.26Z"),
            ("2021-04-08T14:34:34", "2021-04-08T14:34:34Z"),
            ("2021-04-08T14:34Z", "2021-04-08T14:34:00Z"),
            ("2021-04-08", "2021-04-08T00:00:00Z"),
            ("2021-04-08 14:34:34", "2021-04-08T14:34:34Z"),
            ("2021-04-08T14:34:34.123456789Z", "2021-04-08T14:34:34.1234567Z"),
            ("2021-04-08T14:34:34+02:00", "2021-04-08T12:34:34Z"),
            ("2021-04-08T14:34:34.5-0330", "2021-04-08T18:04:34.5Z"),
            ("1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ] {
            assert_eq!(read(given), written, "{given}");
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "zz",
            "2021-4-8",
            "2021-02-29",
            "2021-04-08T",
            "2021-04-08T14",
            "2021-04-08T25:00:00Z",
            "2021-04-08T14:34.5Z",
            "2021-04-08T14:34:34.Z",
            "2021-04-08T14:34:34.5.5Z",
            "2021-04-08T14:34:34+2",
            "2021-04-08T14:34:34+15:00",
            "2021-04-08X14:34:34Z",
            "2021-04-0é",
            "2021-04-08T14:34:34ZZ",
        ] {
            assert_eq!(Ticks::parse(text), None, "{text}");
        }
    }

    #[test]
    fn entities_hold_dates_from_1601_to_9999() {
        let storable = |text| Ticks::parse(text).unwrap().is_storable();
        assert!(storable("1601-01-01T00:00:00Z") && storable("9999-12-31T23:59:59.9999999Z"));
        assert!(!storable("1600-12-31T23:59:59.9999999Z") && !storable("9999-12-31T23:59-00:01"));
    }

    #[test]
    fn a_timestamp_is_the_tick_it_lies_in() {
        let moment = Timestamp(1_617_892_474_790_568_899);
        assert_eq!(Ticks::of(moment).to_string(), "2021-04-08T14:34:34.7905688Z");
        assert_eq!(Ticks::of(moment).timestamp(), Timestamp(1_617_892_474_790_568_800));
        assert_eq!(Ticks::of(Timestamp(-1)).to_string(), "1969-12-31T23:59:59.9999999Z");
    }

    proptest! {
        #[test]
        fn every_storable_tick_survives_its_text(ticks in 0..=LAST.0) {
            let text = Ticks(ticks).to_string();
            prop_assert_eq!(Ticks::parse(&text), Some(Ticks(ticks)));
            prop_assert!(text.len() <= 28);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = Ticks::parse(&text);
        }

        #[test]
        fn no_text_like_a_date_panics(text in "[0-9TZ:.+-]{0,40}") {
            let _ = Ticks::parse(&text);
        }
    }
}
