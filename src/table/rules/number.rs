//! `Edm.Double` as JSON text, and comparison of numbers of different types.
//!
//! Decides that a written Double always has a point or an exponent, since clients tell a Double
//! from an integer by it. The three values that JSON has no number for are words.

use std::cmp::Ordering;

/// Decimal exponents that are written without `E`, as the service does.
const PLAIN_EXPONENTS: std::ops::Range<i32> = -4..15;

/// The word for a value that is no JSON number.
pub fn word(value: f64) -> Option<&'static str> {
    match value {
        _ if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

/// Reads a Double that came as a string: a number, or one of the three words.
pub fn parse(text: &str) -> Option<f64> {
    match text {
        "NaN" => return Some(f64::NAN),
        "Infinity" | "INF" => return Some(f64::INFINITY),
        "-Infinity" | "-INF" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    // The standard parser also takes `inf`, `nan` and `infinity`.
    let plain =
        text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    let value: f64 = plain.then(|| text.parse().ok())??;
    value.is_finite().then_some(value)
}

/// Appends a finite value: the shortest digits that read back as the same value, `3.0`, `-0.0`,
/// `1.5E-07`, `1E+24`.
pub fn write(value: f64, out: &mut String) {
    use std::fmt::Write as _;
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // Writing to a String does not fail.
    let _ = if PLAIN_EXPONENTS.contains(&exponent) || value == 0.0 {
        write!(out, "{value:?}")
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "{mantissa}E{sign}{:02}", exponent.unsigned_abs())
    };
}

/// Compares an integer with a Double by value, without rounding the integer. None for NaN.
pub fn compare(integer: i64, double: f64) -> Option<Ordering> {
    /// 2^63: the first Double above every `i64`.
    const PAST_ALL: f64 = 9_223_372_036_854_775_808.0;
    if double.is_nan() {
        return None;
    }
    if double >= PAST_ALL {
        return Some(Ordering::Less);
    }
    if double < -PAST_ALL {
        return Some(Ordering::Greater);
    }
    let whole = double.trunc();
    #[allow(clippy::cast_possible_truncation, reason = "within the range of i64, checked above")]
    let order = integer.cmp(&(whole as i64));
    // Where the whole parts agree the fraction decides.
    Some(order).filter(|order| order.is_ne()).or_else(|| whole.partial_cmp(&double))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(value: f64) -> String {
        let mut out = String::new();
        write(value, &mut out);
        out
    }

    #[test]
    fn a_written_double_has_a_point_or_an_exponent_t24() {
        for (value, text) in [
            (3.0, "3.0"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (-1.5, "-1.5"),
            (1e24, "1E+24"),
            (1.234_567_890_123_46e24, "1.23456789012346E+24"),
            (123_456_789_012_345.0, "123456789012345.0"),
            (1e15, "1E+15"),
            (0.000_1, "0.0001"),
            (0.000_01, "1E-05"),
            (1.5e-7, "1.5E-07"),
            (f64::MAX, "1.7976931348623157E+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
        ] {
            assert_eq!(written(value), text);
        }
    }

    #[test]
    fn words_stand_for_what_json_cannot_say() {
        for value in [f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(parse(word(value).unwrap()), Some(value));
        }
        assert!(parse(word(f64::NAN).unwrap()).unwrap().is_nan());
        assert_eq!(word(1.0), None);
        for text in ["", "nan", "inf", "infinity", "1e999", "0x10", "1 ", "one", "+", "e5"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("1.2e+24"), Some(1.2e24));
        assert_eq!(parse("4"), Some(4.0));
    }

    #[test]
    fn integers_and_doubles_compare_by_value() {
        use Ordering::{Equal, Greater, Less};
        for (integer, double, order) in [
            (3, 3.0, Equal),
            (0, -0.0, Equal),
            (3, 3.5, Less),
            (4, 3.5, Greater),
            (-3, -3.5, Greater),
            (-4, -3.5, Less),
            // 2^53 + 1 has no Double of its own.
            ((1 << 53) + 1, 9_007_199_254_740_992.0, Greater),
            (i64::MAX, 9_223_372_036_854_775_808.0, Less),
            (i64::MIN, -9_223_372_036_854_775_808.0, Equal),
            (i64::MIN, -1e300, Greater),
            (5, f64::INFINITY, Less),
            (5, f64::NEG_INFINITY, Greater),
        ] {
            assert_eq!(compare(integer, double), Some(order), "{integer} {double}");
        }
        assert_eq!(compare(5, f64::NAN), None);
    }

    proptest! {
        #[test]
        fn every_finite_double_survives_its_text(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let text = written(value);
            prop_assert!(text.contains(['.', 'E']), "{}", text);
            prop_assert_eq!(parse(&text).map(f64::to_bits), Some(bits));
            let json: f64 = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(json.to_bits(), bits);
        }
    }
}
