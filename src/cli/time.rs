//! Durations as people write them, and times as they fit a table.

use std::time::Duration;

use anyhow::{Context, Result, bail};

/// Reads `30s`, `500ms`, `5m`, `2h`, `7d`. A number without a unit is refused: readers disagree on
/// what it means.
pub fn duration(text: &str) -> Result<Duration> {
    const FORM: &str = "expected a number and ms, s, m, h or d, as in 30s";
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().context(FORM)?;
    let seconds = |factor: u64| number.checked_mul(factor).map(Duration::from_secs);
    let time = match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => seconds(1),
        "m" => seconds(60),
        "h" => seconds(3600),
        "d" => seconds(24 * 3600),
        _ => bail!(FORM),
    };
    time.context("that is too long")
}

/// A span in short, for a table.
pub fn short(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// The time of day of a time in ISO 8601, to the millisecond, for a table.
pub fn time_of_day(time: &str) -> String {
    const PLACE: std::ops::Range<usize> = "2026-01-02T".len().."2026-01-02T03:04:05.000".len();
    time.get(PLACE).unwrap_or(time).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        for (text, millis) in [
            ("30s", 30_000),
            ("500ms", 500),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("2d", 172_800_000),
        ] {
            assert_eq!(duration(text).unwrap(), Duration::from_millis(millis), "{text}");
        }
        for text in
            ["", "7", "s", "3x", "-1s", "1.5s", "99999999999999999999s", "18446744073709551615h"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_short() {
        assert_eq!([5, 65, 3700].map(short), ["5s", "1m05s", "1h01m"]);
    }
}
