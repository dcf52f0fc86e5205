//! Moments as text: the service's seven-digit ISO stamp and the RFC 1123 date of HTTP headers.
//!
//! Decides the calendar arithmetic (proleptic Gregorian, UTC, no leap seconds) and which
//! spellings are read. What a stamp is used for (a snapshot, an expiry, a header) is decided by the
//! caller.

use std::fmt::Write as _;

use super::id::Timestamp;

const DAY_SECONDS: i64 = 86_400;
const SECOND_NANOS: i64 = 1_000_000_000;
/// A stamp counts in units of 100 ns.
pub const TICK_NANOS: i64 = 100;

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The moment as `2026-01-02T03:04:05.0000000Z`, cut to 100 ns toward the past.
pub fn iso(moment: Timestamp) -> String {
    let at = Civil::of_seconds(moment.0.div_euclid(SECOND_NANOS));
    let ticks = moment.0.rem_euclid(SECOND_NANOS) / TICK_NANOS;
    let mut text = String::with_capacity("2026-01-02T03:04:05.0000000Z".len());
    push_digits(&mut text, at.year, 4);
    let parts =
        [('-', at.month), ('-', at.day), ('T', at.hour), (':', at.minute), (':', at.second)];
    for (before, number) in parts {
        text.push(before);
        push_digits(&mut text, number, 2);
    }
    text.push('.');
    push_digits(&mut text, ticks, 7);
    text.push('Z');
    text
}

/// `2026-01-05T10:00:00Z`: whole seconds, as in a SAS.
pub fn iso_seconds(moment: Timestamp) -> String {
    const SECONDS_LENGTH: usize = "2026-01-02T03:04:05".len();
    let text = iso(moment);
    text.get(..SECONDS_LENGTH).map(|whole| format!("{whole}Z")).unwrap_or(text)
}

/// The moment as `Mon, 05 Jan 2026 10:00:00 GMT`, cut to a second toward the past.
pub fn rfc1123(moment: Timestamp) -> String {
    rfc1123_of_seconds(moment.0.div_euclid(SECOND_NANOS))
}

/// The date of a number of seconds since 1970, for moments that a [`Timestamp`] cannot hold.
pub fn rfc1123_of_seconds(seconds: i64) -> String {
    let at = Civil::of_seconds(seconds);
    let mut text = String::with_capacity("Mon, 05 Jan 2026 10:00:00 GMT".len());
    text.push_str(at.weekday());
    text.push_str(", ");
    push_digits(&mut text, at.day, 2);
    text.push(' ');
    text.push_str(at.month_name());
    text.push(' ');
    push_digits(&mut text, at.year, 4);
    for (before, number) in [(' ', at.hour), (':', at.minute), (':', at.second)] {
        text.push(before);
        push_digits(&mut text, number, 2);
    }
    text.push_str(" GMT");
    text
}

/// Appends a number with so many digits. Dates are in most answers, and formatting each number by
/// the general machinery takes several times as long.
fn push_digits(text: &mut String, number: i64, digits: u32) {
    if !(0..10_i64.pow(digits)).contains(&number) {
        // A year of more digits, or before the year 0.
        let _ = write!(text, "{number:0width$}", width = digits as usize);
        return;
    }
    for place in (0..digits).rev() {
        let digit = number / 10_i64.pow(place) % 10;
        text.push(char::from(b'0' + u8::try_from(digit).unwrap_or(0)));
    }
}

/// Reads what [`iso`] writes; the fraction may have one to seven digits or be left out.
///
/// A date that a [`Timestamp`] cannot hold (before 1677, after 2262) is the nearest one it can:
/// an expiry of 9999-12-31 means never.
pub fn parse_iso(text: &str) -> Option<Timestamp> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (clock, fraction) = match time.split_once('.') {
        Some((clock, digits)) => (clock, fraction_nanos(digits)?),
        None => (time, 0),
    };
    let mut parts = date.split('-');
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2)?;
    let day = digits(parts.next()?, 2)?;
    if parts.next().is_some() {
        return None;
    }
    let at = Civil::checked(year, month, day, clock)?;
    Some(at.timestamp(fraction))
}

/// Reads a date of a signature or an access policy: as [`parse_iso`], without seconds, or the day
/// alone, which begins at midnight.
pub fn parse_short_iso(text: &str) -> Option<Timestamp> {
    let without_seconds = || parse_iso(&format!("{}:00Z", text.strip_suffix('Z')?));
    let day_alone = || parse_iso(&format!("{text}T00:00:00Z"));
    parse_iso(text).or_else(without_seconds).or_else(day_alone)
}

/// Seconds since 1970 of a date (year, month, day) and a time of day (hour, minute, second) in
/// UTC; none if there is no such day or time.
pub fn seconds_of(date: [i64; 3], time: [i64; 3]) -> Option<i64> {
    Civil::existing(date, time).map(Civil::seconds)
}

/// The date (year, month, day) and the time of day (hour, minute, second) in UTC, `seconds` after
/// 1970.
pub fn date_and_time(seconds: i64) -> ([i64; 3], [i64; 3]) {
    let at = Civil::of_seconds(seconds);
    ([at.year, at.month, at.day], [at.hour, at.minute, at.second])
}

/// Reads what [`rfc1123`] writes; the weekday must be the right one. Dates out of reach are
/// treated as by [`parse_iso`].
pub fn parse_rfc1123(text: &str) -> Option<Timestamp> {
    let (weekday, rest) = text.strip_suffix(" GMT")?.split_once(", ")?;
    let mut parts = rest.split(' ');
    let day = digits(parts.next()?, 2)?;
    let name = parts.next()?;
    let month = (1..).zip(MONTHS).find(|(_, known)| *known == name)?.0;
    let year = digits(parts.next()?, 4)?;
    let at = Civil::checked(year, month, day, parts.next()?)?;
    (parts.next().is_none() && at.weekday() == weekday).then(|| at.timestamp(0))
}

/// A date and time of day in UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
}

impl Civil {
    /// From fields as read; none if there is no such day or time.
    fn checked(year: i64, month: i64, day: i64, clock: &str) -> Option<Self> {
        let mut parts = clock.split(':');
        let hour = digits(parts.next()?, 2)?;
        let minute = digits(parts.next()?, 2)?;
        let second = digits(parts.next()?, 2)?;
        let ended = parts.next().is_none();
        ended.then(|| Self::existing([year, month, day], [hour, minute, second]))?
    }

    fn existing([year, month, day]: [i64; 3], [hour, minute, second]: [i64; 3]) -> Option<Self> {
        let exists = (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second);
        exists.then_some(Self { year, month, day, hour, minute, second })
    }

    /// Counts in eras of 400 years that begin on 1 March, so that a leap day ends its year.
    fn of_seconds(seconds: i64) -> Self {
        const ERA_DAYS: i64 = 146_097;
        let in_day = seconds.rem_euclid(DAY_SECONDS);
        let days = seconds.div_euclid(DAY_SECONDS) + DAYS_FROM_MARCH_0000;
        let in_era = days.rem_euclid(ERA_DAYS);
        let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
        let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * in_year + 2) / 153;
        let month = (from_march + 2) % 12 + 1;
        Self {
            year: year_of_era + days.div_euclid(ERA_DAYS) * 400 + i64::from(month <= 2),
            month,
            day: in_year - (153 * from_march + 2) / 5 + 1,
            hour: in_day / 3_600,
            minute: in_day / 60 % 60,
            second: in_day % 60,
        }
    }

    /// Days since 1970-01-01.
    fn days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let from_march = (self.month + 9) % 12;
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        let in_year = (153 * from_march + 2) / 5 + self.day - 1;
        365 * year + leap_days + in_year - DAYS_FROM_MARCH_0000
    }

    fn seconds(self) -> i64 {
        self.days() * DAY_SECONDS + self.hour * 3_600 + self.minute * 60 + self.second
    }

    fn timestamp(self, nanos: i64) -> Timestamp {
        let whole = i128::from(self.seconds()) * i128::from(SECOND_NANOS) + i128::from(nanos);
        let nearest = if whole < 0 { i64::MIN } else { i64::MAX };
        Timestamp(i64::try_from(whole).unwrap_or(nearest))
    }

    fn weekday(self) -> &'static str {
        // 1970-01-01 was a Thursday.
        pick(&WEEKDAYS, (self.days() + 3).rem_euclid(7))
    }

    fn month_name(self) -> &'static str {
        pick(&MONTHS, self.month - 1)
    }
}

/// Days from 0000-03-01 to 1970-01-01.
const DAYS_FROM_MARCH_0000: i64 = 719_468;

fn pick(names: &[&'static str], index: i64) -> &'static str {
    let index = usize::try_from(index).expect("calendar arithmetic yields no negative index");
    names[index]
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Exactly `count` decimal digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let plain = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

fn fraction_nanos(text: &str) -> Option<i64> {
    if !(1..=7).contains(&text.len()) {
        return None;
    }
    digits(&format!("{text:0<9}"), 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * SECOND_NANOS)
    }

    /// Seconds, ISO stamp, RFC 1123 date; values from `date -u`.
    const KNOWN: [(i64, &str, &str); 8] = [
        (0, "1970-01-01T00:00:00", "Thu, 01 Jan 1970 00:00:00 GMT"),
        (-1, "1969-12-31T23:59:59", "Wed, 31 Dec 1969 23:59:59 GMT"),
        (951_782_400, "2000-02-29T00:00:00", "Tue, 29 Feb 2000 00:00:00 GMT"),
        (1_709_210_096, "2024-02-29T12:34:56", "Thu, 29 Feb 2024 12:34:56 GMT"),
        (1_767_607_200, "2026-01-05T10:00:00", "Mon, 05 Jan 2026 10:00:00 GMT"),
        (4_107_542_400, "2100-03-01T00:00:00", "Mon, 01 Mar 2100 00:00:00 GMT"),
        (-2_203_891_200, "1900-03-01T00:00:00", "Thu, 01 Mar 1900 00:00:00 GMT"),
        (-8_520_336_000, "1700-01-01T00:00:00", "Fri, 01 Jan 1700 00:00:00 GMT"),
    ];

    #[test]
    fn known_moments_are_written_and_read_back() {
        for (seconds, stamp, date) in KNOWN {
            let full = format!("{stamp}.0000000Z");
            assert_eq!(iso(at(seconds)), full);
            assert_eq!(rfc1123(at(seconds)), date);
            assert_eq!(parse_iso(&full), Some(at(seconds)), "{full}");
            assert_eq!(parse_rfc1123(date), Some(at(seconds)), "{date}");
        }
    }

    #[test]
    fn every_day_from_the_year_0_to_9999_survives_the_round_trip() {
        let first = Civil::checked(0, 1, 1, "00:00:00").unwrap().days();
        let last = Civil::checked(9999, 12, 31, "00:00:00").unwrap().days();
        let mut before = Civil::of_seconds((first - 1) * DAY_SECONDS);
        assert_eq!((before.year, before.month, before.day), (-1, 12, 31));
        for day in first..=last {
            let here = Civil::of_seconds(day * DAY_SECONDS);
            assert_eq!(here.days(), day);
            let follows = if before.day < days_in_month(before.year, before.month) {
                (before.year, before.month, before.day + 1)
            } else if before.month < 12 {
                (before.year, before.month + 1, 1)
            } else {
                (before.year + 1, 1, 1)
            };
            assert_eq!((here.year, here.month, here.day), follows);
            before = here;
        }
        assert_eq!(last, 2_932_896);
        assert_eq!(before.weekday(), "Fri");
    }

    #[test]
    fn a_fraction_is_cut_to_ticks_toward_the_past() {
        assert_eq!(iso(Timestamp(199)), "1970-01-01T00:00:00.0000001Z");
        assert_eq!(iso(Timestamp(-1)), "1969-12-31T23:59:59.9999999Z");
        assert_eq!(parse_iso("1970-01-01T00:00:00.0000001Z"), Some(Timestamp(100)));
        assert_eq!(parse_iso("1970-01-01T00:00:00.5Z"), Some(Timestamp(500_000_000)));
        assert_eq!(parse_iso("1970-01-01T00:00:00Z"), Some(Timestamp(0)));
    }

    #[test]
    fn dates_out_of_reach_are_the_ends_of_time() {
        assert_eq!(parse_iso("9999-12-31T23:59:59.9999999Z"), Some(Timestamp(i64::MAX)));
        assert_eq!(parse_iso("0001-01-01T00:00:00Z"), Some(Timestamp(i64::MIN)));
        assert_eq!(parse_rfc1123("Fri, 31 Dec 9999 23:59:59 GMT"), Some(Timestamp(i64::MAX)));
        for end in [i64::MIN, i64::MAX] {
            let ticks = Timestamp(end.div_euclid(TICK_NANOS));
            let read = parse_iso(&iso(Timestamp(end))).unwrap();
            assert!(read.0.div_euclid(TICK_NANOS).abs_diff(ticks.0) <= 1);
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "Z",
            "T",
            "TZ",
            "2026-01-02",
            "2026-01-02T03:04:05",
            "2026-01-02 03:04:05Z",
            "2026-1-02T03:04:05Z",
            "2026-13-02T03:04:05Z",
            "2026-00-02T03:04:05Z",
            "2026-02-29T03:04:05Z",
            "2100-02-29T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "2026-01-00T03:04:05Z",
            "2026-01-02T24:00:00Z",
            "2026-01-02T03:60:05Z",
            "2026-01-02T03:04:60Z",
            "2026-01-02T03:04:05.Z",
            "2026-01-02T03:04:05.00000000Z",
            "2026-01-02T03:04:05.+1Z",
            "+026-01-02T03:04:05Z",
            "2026-01-02-03T03:04:05Z",
            "2026-01-02T03:04:05:06Z",
            "2026-01-02T03:04:05.000é0Z",
        ] {
            assert_eq!(parse_iso(text), None, "{text}");
        }
        for text in [
            "",
            " GMT",
            "Mon, 05 Jan 2026 10:00:00",
            "Tue, 05 Jan 2026 10:00:00 GMT",
            "Mon, 5 Jan 2026 10:00:00 GMT",
            "Mon, 05 jan 2026 10:00:00 GMT",
            "Mon, 05 Jan 2026  10:00:00 GMT",
            "Mon, 05 Jan 2026 10:00:00 UTC GMT",
            "Monday, 05-Jan-26 10:00:00 GMT",
            "Mon, 05 Jan 2026 10:00 GMT",
        ] {
            assert_eq!(parse_rfc1123(text), None, "{text}");
        }
    }
}
