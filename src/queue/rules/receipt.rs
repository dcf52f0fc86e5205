//! Pop receipts: the name of one state of one message.
//!
//! Decides the form of a receipt and when two receipts are equal. [`super::message`] decides when
//! a message gets a new state, and with it a new receipt.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::id::MessageId;
use super::tick::Tick;

const BYTES: usize = 20;

/// A pop receipt. It has the form of the service's, 20 bytes in base64: 2, 3, a number, a time.
/// The service's number is always 0 and its time is the moment of next visibility, so that
/// messages of one Get share a receipt. Here the time is the moment of the change, which no two
/// states of a message share, and the number is a part of the message's ID.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Receipt([u8; BYTES]);

impl Receipt {
    /// The receipt of the state that the message has since `changed`.
    pub fn new(id: MessageId, changed: Tick) -> Self {
        let mut bytes = [0; BYTES];
        bytes[0] = 2;
        bytes[4] = 3;
        bytes[8..12].copy_from_slice(&id.bytes()[..4]);
        bytes[12..].copy_from_slice(&changed.filetime().to_le_bytes());
        Self(bytes)
    }

    /// True if a request's receipt, percent-decoded, is this one. Any text may come.
    pub fn is(&self, given: &str) -> bool {
        given == self.to_string()
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(fill: u8) -> MessageId {
        MessageId::new(1, [fill; 10])
    }

    #[test]
    fn a_receipt_has_the_form_of_the_services() {
        // The service's own example, but for its time: "AgAAAAMAAAAAAAAAvMFiZFuP1QE=".
        let receipt = Receipt::new(id(0), Tick(0)).to_string();
        assert_eq!((receipt.len(), &receipt[..15]), (28, "AgAAAAMAAAAAAAA"));
    }

    #[test]
    fn another_moment_or_another_message_is_another_receipt() {
        let receipt = Receipt::new(id(7), Tick(1_000));
        assert!(receipt.is(&receipt.to_string()));
        for other in [Receipt::new(id(7), Tick(1_001)), Receipt::new(id(8), Tick(1_000))] {
            assert!(!receipt.is(&other.to_string()));
        }
    }

    #[test]
    fn garbage_is_no_receipt() {
        let receipt = Receipt::new(id(7), Tick(1_000));
        let text = receipt.to_string();
        let cut = &text[..27];
        for garbage in ["", "garbage", cut, &format!("{text} "), &text.to_lowercase(), "ä=="] {
            assert!(!receipt.is(garbage), "{garbage}");
        }
    }
}
