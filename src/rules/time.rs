//! Moments as text: the service's seven-digit ISO stamp and the RFC 1123 date, which headers and
//! messages of refusals have.
//!
//! Decides which spellings are read. The calendar (proleptic Gregorian, UTC, no leap seconds) is
//! that of the crate `time`. What a stamp is used for (a snapshot, an expiry, a header) is decided
//! by the caller.

use std::fmt::Write as _;

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

use super::id::Timestamp;

const SECOND_NANOS: i64 = 1_000_000_000;
/// A stamp counts in units of 100 ns.
pub const TICK_NANOS: i64 = 100;

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The moment as `2026-01-02T03:04:05.0000000Z`, cut to 100 ns toward the past.
pub fn iso(moment: Timestamp) -> String {
    let mut text = String::with_capacity("2026-01-02T03:04:05.0000000Z".len());
    push_iso(&mut text, seconds(moment), ":");
    text.push('.');
    push_digits(&mut text, moment.0.rem_euclid(SECOND_NANOS) / TICK_NANOS, 7);
    text.push('Z');
    text
}

/// `2026-01-05T10:00:00Z`: whole seconds, as in a SAS.
pub fn iso_seconds(moment: Timestamp) -> String {
    let mut text = String::with_capacity("2026-01-02T03:04:05Z".len());
    push_iso(&mut text, seconds(moment), ":");
    text.push('Z');
    text
}

/// The moment as `Mon, 05 Jan 2026 10:00:00 GMT`, cut to a second toward the past.
pub fn rfc1123(moment: Timestamp) -> String {
    rfc1123_of_seconds(seconds(moment))
}

/// The date of a number of seconds since 1970, for moments that a [`Timestamp`] cannot hold.
pub fn rfc1123_of_seconds(seconds: i64) -> String {
    let at = utc(seconds);
    let mut text = String::with_capacity("Mon, 05 Jan 2026 10:00:00 GMT".len());
    text.push_str(weekday(at));
    text.push_str(", ");
    push_digits(&mut text, at.day().into(), 2);
    text.push(' ');
    text.push_str(MONTHS[usize::from(u8::from(at.month())) - 1]);
    text.push(' ');
    push_digits(&mut text, at.year().into(), 4);
    for (before, number) in [(' ', at.hour()), (':', at.minute()), (':', at.second())] {
        text.push(before);
        push_digits(&mut text, number.into(), 2);
    }
    text.push_str(" GMT");
    text
}

/// Appends `2026-01-02T03:04:05`, with `colon` between hours, minutes and seconds.
pub fn push_iso(text: &mut String, seconds: i64, colon: &str) {
    let at = utc(seconds);
    push_digits(text, at.year().into(), 4);
    for (before, number) in [
        ("-", at.month().into()),
        ("-", at.day()),
        ("T", at.hour()),
        (colon, at.minute()),
        (colon, at.second()),
    ] {
        text.push_str(before);
        push_digits(text, number.into(), 2);
    }
}

/// Appends a number with so many digits. Dates are in most answers, and formatting each number by
/// the general machinery takes several times as long.
pub fn push_digits(text: &mut String, number: i64, digits: u32) {
    if !(0..10_i64.pow(digits)).contains(&number) {
        // A year before the year 0.
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
    let seconds = seconds_of(numbers(date, '-', [4, 2, 2])?, numbers(clock, ':', [2, 2, 2])?)?;
    Some(timestamp(seconds, fraction))
}

/// Reads a date of a signature or an access policy: as [`parse_iso`], without seconds, or the day
/// alone, which begins at midnight.
pub fn parse_short_iso(text: &str) -> Option<Timestamp> {
    let without_seconds = || parse_iso(&format!("{}:00Z", text.strip_suffix('Z')?));
    let day_alone = || parse_iso(&format!("{text}T00:00:00Z"));
    parse_iso(text).or_else(without_seconds).or_else(day_alone)
}

/// Reads what [`rfc1123`] writes; the weekday must be the right one. Dates out of reach are
/// treated as by [`parse_iso`].
pub fn parse_rfc1123(text: &str) -> Option<Timestamp> {
    let (day_name, rest) = text.strip_suffix(" GMT")?.split_once(", ")?;
    let mut parts = rest.splitn(4, ' ');
    let [day] = numbers(parts.next()?, ' ', [2])?;
    let name = parts.next()?;
    let month = (1..).zip(MONTHS).find(|(_, known)| *known == name)?.0;
    let [year] = numbers(parts.next()?, ' ', [4])?;
    let seconds = seconds_of([year, month, day], numbers(parts.next()?, ':', [2, 2, 2])?)?;
    (weekday(utc(seconds)) == day_name).then(|| timestamp(seconds, 0))
}

/// Seconds since 1970 of a date (year, month, day) and a time of day (hour, minute, second) in
/// UTC; none if there is no such day or time.
pub fn seconds_of(date: [u16; 3], [hour, minute, second]: [u16; 3]) -> Option<i64> {
    let [year, month, day] = date;
    let byte = |number: u16| u8::try_from(number).ok();
    let month = Month::try_from(byte(month)?).ok()?;
    let date = Date::from_calendar_date(year.into(), month, byte(day)?).ok()?;
    let time = Time::from_hms(byte(hour)?, byte(minute)?, byte(second)?).ok()?;
    Some(PrimitiveDateTime::new(date, time).assume_utc().unix_timestamp())
}

/// The date and time of day in UTC, `seconds` after 1970; the last of the year 9999 for later ones.
pub fn utc(seconds: i64) -> OffsetDateTime {
    let nearest = if seconds < 0 { PrimitiveDateTime::MIN } else { PrimitiveDateTime::MAX };
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(nearest.assume_utc())
}

/// Numbers of exactly so many decimal digits each, `between` them.
pub fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[u16; N]> {
    let mut parts = text.split(between);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits)?;
        *number = part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(numbers)
}

fn seconds(moment: Timestamp) -> i64 {
    moment.0.div_euclid(SECOND_NANOS)
}

fn timestamp(seconds: i64, nanos: i64) -> Timestamp {
    let whole = i128::from(seconds) * i128::from(SECOND_NANOS) + i128::from(nanos);
    let nearest = if whole < 0 { i64::MIN } else { i64::MAX };
    Timestamp(i64::try_from(whole).unwrap_or(nearest))
}

fn weekday(at: OffsetDateTime) -> &'static str {
    WEEKDAYS[usize::from(at.weekday().number_days_from_monday())]
}

fn fraction_nanos(text: &str) -> Option<i64> {
    let plain = (1..=7).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| format!("{text:0<9}").parse().ok())?
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
