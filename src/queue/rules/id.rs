//! Message IDs: GUIDs that lead to their row without an index.
//!
//! Decides that an ID carries the message's number, hidden among random bits so that no counter
//! shows. An ID names a message only if all of it is equal to the stored one.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// The largest number that an ID can carry.
pub const SEQ_MAX: i64 = (1 << 48) - 1;

/// The ID of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct MessageId(Uuid);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl MessageId {
    /// The ID of message number `seq`, with these random bits. It is a version 4 GUID (RFC 9562)
    /// whose last 48 bits are the number under a mask made of the others.
    pub fn new(seq: i64, random: [u8; 10]) -> Self {
        assert!((0..=SEQ_MAX).contains(&seq), "a message's number has at most 48 bits");
        let mut bytes = [0; 16];
        bytes[..10].copy_from_slice(&random);
        bytes[6] = bytes[6] & 0x0F | 0x40;
        bytes[8] = bytes[8] & 0x3F | 0x80;
        let hidden = (seq ^ mask(&bytes)).to_be_bytes();
        bytes[10..].copy_from_slice(&hidden[2..]);
        Self(Uuid::from_bytes(bytes))
    }

    /// The number of the message.
    pub fn seq(self) -> i64 {
        let mut hidden = [0; 8];
        hidden[2..].copy_from_slice(&self.bytes()[10..]);
        i64::from_be_bytes(hidden) ^ mask(self.bytes())
    }

    /// Its bytes, as they are stored.
    pub const fn bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The ID of stored bytes.
    pub const fn of_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

/// 48 bits that depend on all random ones (the mixing step of `SplitMix64`).
fn mask(bytes: &[u8; 16]) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&bytes[..8]);
    let rest = u64::from(bytes[8]) << 8 | u64::from(bytes[9]);
    let mut mixed = u64::from_be_bytes(first) ^ rest.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    i64::try_from(mixed >> 16).unwrap_or(0)
}

/// A text that is no message ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a message ID is a GUID such as 5974b586-0df3-4e2d-ad0c-18e3892bfca2")]
pub struct NoMessageId;

impl FromStr for MessageId {
    type Err = NoMessageId;

    /// Reads what `Display` writes, in either case.
    fn from_str(text: &str) -> Result<Self, NoMessageId> {
        // The crate also reads forms of other lengths.
        let id = Uuid::try_parse(text).ok().filter(|_| text.len() == Hyphenated::LENGTH);
        id.map(Self).ok_or(NoMessageId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_leads_to_its_number_and_survives_its_spelling() {
        for seq in [0, 1, 2, 77, 1 << 20, SEQ_MAX] {
            for fill in [0, 1, 0x5A, 0xFF] {
                let id = MessageId::new(seq, [fill; 10]);
                assert_eq!(id.seq(), seq);
                let text = id.to_string();
                assert_eq!(text.parse(), Ok(id), "{text}");
                assert_eq!(text.to_uppercase().parse(), Ok(id), "{text}");
                assert_eq!((&text[14..15], text.len()), ("4", 36), "{text}");
                assert!("89ab".contains(&text[19..20]), "{text}");
            }
        }
    }

    #[test]
    fn numbers_in_a_row_do_not_show() {
        let ids: Vec<_> = (0..4_u8).map(|at| MessageId::new(at.into(), [at; 10])).collect();
        for pair in ids.windows(2) {
            assert_ne!(pair[0].bytes()[10..15], pair[1].bytes()[10..15]);
        }
    }

    #[test]
    fn what_is_no_guid_is_no_id() {
        for text in [
            "",
            "x",
            "5974b5860df34e2dad0c18e3892bfca2",
            "5974b586-0df3-4e2d-ad0c-18e3892bfca",
            "5974b586-0df3-4e2d-ad0c-18e3892bfcag",
            "5974b586-0df3-4e2d-ad0c+18e3892bfca2",
            "{974b586-0df3-4e2d-ad0c-18e3892bfca}",
            "5974b586-0df3-4e2d-ad0c-18e3892bfcä",
        ] {
            assert_eq!(text.parse::<MessageId>(), Err(NoMessageId), "{text}");
        }
    }
}
