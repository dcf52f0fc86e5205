//! The message IDs that a client may use: a window that grows with the credits it is granted
//! (MS-SMB2 3.3.1.1).
//!
//! Decides that an ID is used once, and that a client never has more than [`CREDITS_MAX`] requests
//! to send.

use std::collections::BTreeSet;

/// The most credits that a client has at a time.
pub const CREDITS_MAX: u64 = 8_192;

/// The IDs of one connection.
#[derive(Debug)]
pub struct Credits {
    /// All IDs before it are used.
    low: u64,
    /// The first ID that was not granted yet.
    end: u64,
    /// The used IDs from `low` on.
    used: BTreeSet<u64>,
}

impl Credits {
    /// The first request needs no grant.
    pub fn new() -> Self {
        Self { low: 0, end: 1, used: BTreeSet::new() }
    }

    /// Takes the IDs of a request: `charge` of them, from `id` on. False if one was used before or
    /// was not granted: the connection ends.
    pub fn take(&mut self, id: u64, charge: u16) -> bool {
        let Some(next) = id.checked_add(u64::from(charge.max(1))) else { return false };
        if id < self.low || next > self.end || self.used.range(id..next).next().is_some() {
            return false;
        }
        self.used.extend(id..next);
        while self.used.remove(&self.low) {
            self.low += 1;
        }
        true
    }

    /// Grants what is asked for, at least one, as far as the bound allows. A client that leaves
    /// an ID unused gets no new ones once the window is full.
    pub fn grant(&mut self, asked: u16) -> u16 {
        let left = CREDITS_MAX.saturating_sub(self.end - self.low);
        let granted = u64::from(asked.max(1)).min(left);
        self.end += granted;
        u16::try_from(granted).expect("it is at most what was asked for")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_used_once_and_only_after_it_was_granted() {
        let mut credits = Credits::new();
        assert!(!credits.take(1, 1), "not granted");
        assert!(credits.take(0, 0));
        assert!(!credits.take(0, 1), "used");
        assert_eq!(credits.grant(10), 10);
        assert!(credits.take(5, 3) && !credits.take(7, 1) && !credits.take(4, 2));
        assert!(credits.take(1, 4) && credits.take(8, 3) && !credits.take(11, 1));
        assert!(!credits.take(u64::MAX, 2));
        assert!(credits.used.is_empty());
    }

    #[test]
    fn a_client_has_no_more_credits_than_the_bound() {
        let mut credits = Credits::new();
        assert!(credits.take(0, 1));
        assert_eq!(credits.grant(u16::MAX), 8_192);
        assert_eq!(credits.grant(1), 0);
        assert!(credits.take(3, 1), "one before it is not used");
        assert_eq!(credits.grant(5), 0);
        assert!(credits.take(1, 2));
        assert_eq!(credits.grant(5), 3);
    }
}
