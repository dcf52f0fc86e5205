//! The query parameters of message operations: which values are legal, and what they mean.
//!
//! Decides bounds, defaults and the code of a bad value. `queue/rest` reads the query.

use super::denial::QueueDenial;
use super::tick::Tick;

/// Seconds in seven days: the longest visibility timeout, and the default time to live.
pub const SEVEN_DAYS: u32 = 604_800;
/// Messages that one Get or Peek may return.
pub const MESSAGES_MAX: u32 = 32;
/// Bytes of a message's text in UTF-8.
pub const TEXT_BYTES_MAX: usize = 65_536;
/// Queues of one page of a listing.
pub const LIST_MAX: usize = 5_000;

/// The name of the parameter for the number of messages.
pub const NUMBER_OF_MESSAGES: &str = "numofmessages";
/// The name of the parameter for the visibility timeout.
pub const VISIBILITY_TIMEOUT: &str = "visibilitytimeout";
/// The name of the parameter for the time to live.
pub const TIME_TO_LIVE: &str = "messagettl";
/// The name of the parameter for the pop receipt.
pub const POP_RECEIPT: &str = "popreceipt";

/// A parameter with bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounded {
    /// Its name in the query.
    pub name: &'static str,
    /// The least legal value.
    pub least: u32,
    /// The greatest legal value.
    pub most: u32,
    /// The value that counts if none is given; none if one must be given.
    pub default: Option<u32>,
}

/// Messages that Get and Peek ask for.
pub const NUMBER: Bounded =
    Bounded { name: NUMBER_OF_MESSAGES, least: 1, most: MESSAGES_MAX, default: Some(1) };
/// For how many seconds Get hides messages.
pub const GET_VISIBILITY: Bounded =
    Bounded { name: VISIBILITY_TIMEOUT, least: 1, most: SEVEN_DAYS, default: Some(30) };
/// For how many seconds Put hides the new message.
pub const PUT_VISIBILITY: Bounded =
    Bounded { name: VISIBILITY_TIMEOUT, least: 0, most: SEVEN_DAYS, default: Some(0) };
/// For how many seconds Update hides the message.
pub const UPDATE_VISIBILITY: Bounded =
    Bounded { name: VISIBILITY_TIMEOUT, least: 0, most: SEVEN_DAYS, default: None };

impl Bounded {
    /// The value of the parameter, as the query has it.
    pub fn read(&self, given: Option<&str>) -> Result<u32, QueueDenial> {
        let Some(text) = given else {
            return self.default.ok_or(QueueDenial::MissingParameter(self.name));
        };
        let value = number(self.name, text)?;
        u32::try_from(value).ok().filter(|value| (self.least..=self.most).contains(value)).ok_or(
            QueueDenial::OutOfRange {
                name: self.name,
                value: text.to_owned(),
                least: self.least,
                most: self.most,
            },
        )
    }
}

/// A whole number. One that no 64 bits can hold is as large as can be: it is out of any range,
/// but it is a number.
fn number(name: &'static str, text: &str) -> Result<i64, QueueDenial> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QueueDenial::invalid(name, text, "it must be a whole number"));
    }
    let nearest = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Ok(text.parse().unwrap_or(nearest))
}

/// How long a message lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeToLive {
    Seconds(u64),
    /// It does not expire.
    Forever,
}

/// The times that Put Message asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PutTimes {
    /// Seconds for which the new message is hidden.
    pub visibility: u32,
    /// How long it lives.
    pub time_to_live: TimeToLive,
}

impl Default for PutTimes {
    fn default() -> Self {
        Self { visibility: 0, time_to_live: TimeToLive::Seconds(SEVEN_DAYS.into()) }
    }
}

impl PutTimes {
    /// The times as the query has them. A message must become visible before it expires, which is
    /// checked only if both times are given: with the default time to live, a timeout of seven
    /// days is legal.
    pub fn read(visibility: Option<&str>, time_to_live: Option<&str>) -> Result<Self, QueueDenial> {
        let hidden = PUT_VISIBILITY.read(visibility)?;
        let Some(text) = time_to_live else {
            return Ok(Self { visibility: hidden, ..Self::default() });
        };
        let invalid = |why| QueueDenial::invalid(TIME_TO_LIVE, text, why);
        let time_to_live = match number(TIME_TO_LIVE, text)? {
            -1 => TimeToLive::Forever,
            seconds @ 1.. => TimeToLive::Seconds(seconds.unsigned_abs()),
            _ => return Err(invalid("it must be -1 (never expires) or at least 1")),
        };
        if let (Some(given), TimeToLive::Seconds(seconds)) = (visibility, time_to_live)
            && u64::from(hidden) >= seconds
        {
            let why = "the message would expire before it becomes visible: the visibility timeout \
                       must be less than the time to live";
            return Err(QueueDenial::invalid(VISIBILITY_TIMEOUT, given, why));
        }
        Ok(Self { visibility: hidden, time_to_live })
    }

    /// When a message that is put at `now` expires; none: never.
    pub fn expires(self, now: Tick) -> Option<Tick> {
        match self.time_to_live {
            TimeToLive::Seconds(seconds) => Some(now.after(seconds)),
            TimeToLive::Forever => None,
        }
    }
}

/// Checks the text of a message.
pub fn check_text(text: &str) -> Result<(), QueueDenial> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(QueueDenial::TextTooLarge { bytes: text.len() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(bounded: Bounded, text: &str) -> Result<u32, QueueDenial> {
        bounded.read(Some(text))
    }

    #[test]
    fn q25_values_are_held_at_their_bounds_and_past_them() {
        for (bounded, least, most) in [
            (NUMBER, 1, 32),
            (GET_VISIBILITY, 1, 604_800),
            (PUT_VISIBILITY, 0, 604_800),
            (UPDATE_VISIBILITY, 0, 604_800),
        ] {
            for value in [least, most] {
                assert_eq!(range(bounded, &value.to_string()), Ok(value), "{bounded:?}");
            }
            let past = [i64::from(least) - 1, i64::from(most) + 1, i64::MIN, i64::MAX];
            let past = past.map(|value| value.to_string());
            for text in past.iter().map(String::as_str).chain(["99999999999999999999999"]) {
                let value = text.to_owned();
                let refused = QueueDenial::OutOfRange { name: bounded.name, value, least, most };
                assert_eq!(range(bounded, text), Err(refused), "{bounded:?}");
            }
        }
    }

    #[test]
    fn what_is_no_number_is_an_invalid_value() {
        for text in ["", "x", "1x", "1.0", "-", "+", "0x1", " 1", "1 ", "--1", "\u{661}"] {
            let refused = range(NUMBER, text);
            assert!(matches!(refused, Err(QueueDenial::InvalidParameter { .. })), "{text}");
            let refused = PutTimes::read(None, Some(text));
            assert!(matches!(refused, Err(QueueDenial::InvalidParameter { .. })), "{text}");
        }
        assert_eq!(range(NUMBER, "+5"), Ok(5));
        assert_eq!(range(NUMBER, "005"), Ok(5));
    }

    #[test]
    fn defaults_are_one_message_thirty_seconds_and_seven_days() {
        assert_eq!(NUMBER.read(None), Ok(1));
        assert_eq!(GET_VISIBILITY.read(None), Ok(30));
        assert_eq!(PutTimes::read(None, None), Ok(PutTimes::default()));
        let missing = QueueDenial::MissingParameter("visibilitytimeout");
        assert_eq!(UPDATE_VISIBILITY.read(None), Err(missing));
    }

    #[test]
    fn q23_a_message_expires_after_its_time_to_live_or_never() {
        let expires = |ttl| PutTimes::read(None, ttl).unwrap().expires(Tick(0));
        assert_eq!(expires(None), Some(Tick(0).after(604_800)));
        assert_eq!(expires(Some("604801")), Some(Tick(0).after(604_801)));
        assert_eq!(expires(Some("-1")), None);
        assert_eq!(expires(Some("9223372036854775807")), Some(Tick::LAST));
    }

    #[test]
    fn q24_a_message_must_become_visible_before_it_expires() {
        for (visibility, ttl) in [(None, "0"), (None, "-2"), (Some("10"), "10"), (Some("11"), "10")]
        {
            let refused = PutTimes::read(visibility, Some(ttl));
            assert!(matches!(refused, Err(QueueDenial::InvalidParameter { .. })), "{ttl}");
        }
        for (visibility, ttl) in [
            (Some("9"), Some("10")),
            (Some("604800"), None),
            (Some("604800"), Some("-1")),
            (None, Some("1")),
        ] {
            assert!(PutTimes::read(visibility, ttl).is_ok(), "{visibility:?} {ttl:?}");
        }
    }

    #[test]
    fn a_text_is_measured_in_bytes() {
        assert_eq!(check_text(&"x".repeat(65_536)), Ok(()));
        assert_eq!(check_text(&"ä".repeat(32_768)), Ok(()));
        let refused = Err(QueueDenial::TextTooLarge { bytes: 65_538 });
        assert_eq!(check_text(&"ä".repeat(32_769)), refused);
    }
}
