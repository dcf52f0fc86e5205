//! The state of one message, and its next state after each operation (S96-S102).
//!
//! Decides visibility, expiry, order, and when a receipt becomes invalid. Every step is a function
//! of the state, the request and the time; the engine finds messages and keeps their state.

use super::denial::{Absence, Mismatch, QueueDenial};
use super::id::MessageId;
use super::parameters::PutTimes;
use super::receipt::Receipt;
use super::tick::Tick;
use crate::rules::Writer;

/// A message without its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    pub id: MessageId,
    /// When it was put.
    pub inserted: Tick,
    /// From when on it is gone; none: never.
    pub expires: Option<Tick>,
    /// From when on it is visible.
    pub visible_at: Tick,
    /// When it got its present state, as the moment of a change: no two states share one, so that
    /// it is ahead of the clock where the clock stands or was set back.
    pub changed: Tick,
    /// How often it was got.
    pub dequeue_count: u32,
    /// The request that got or updated it last.
    pub holder: Option<Writer>,
}

/// A change of a message: the request, and the moment of the change, which no other change of the
/// account shares.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedBy {
    /// The request, with the moment as its time.
    pub writer: Writer,
    pub at: Tick,
}

impl ChangedBy {
    /// A change by a request at a moment.
    pub fn new(writer: Writer, at: Tick) -> Self {
        Self { writer: Writer { when: at.timestamp(), ..writer }, at }
    }
}

impl Message {
    /// A new message, put at `now`; `changed` is the moment of the change.
    pub fn put(id: MessageId, times: PutTimes, now: Tick, changed: Tick) -> Self {
        Self {
            id,
            inserted: now,
            expires: times.expires(now),
            visible_at: now.after(times.visibility.into()),
            changed,
            dequeue_count: 0,
            holder: None,
        }
    }

    /// The message got at `now` and hidden for `visibility` seconds (S98, S99).
    #[must_use]
    pub fn got(self, visibility: u32, now: Tick, by: ChangedBy) -> Self {
        let dequeue_count = self.dequeue_count.saturating_add(1);
        Self { dequeue_count, ..self.changed_by(visibility, now, by) }
    }

    /// The message updated at `now`, or why it is not. Count, expiry and insertion stay.
    pub fn updated(
        self,
        receipt: &str,
        visibility: u32,
        now: Tick,
        by: ChangedBy,
    ) -> Result<Self, QueueDenial> {
        self.check(receipt, now)?;
        Ok(self.changed_by(visibility, now, by))
    }

    /// Whether a request at `now` with that receipt may delete or update the message. It may even
    /// after the message became visible again, as long as nobody got or updated it since.
    pub fn check(&self, receipt: &str, now: Tick) -> Result<(), QueueDenial> {
        if let Some(since) = self.expires.filter(|expires| *expires <= now) {
            return Err(QueueDenial::no_message(Absence::Expired { since, now }));
        }
        if !self.receipt().is(receipt) {
            let (holder, visible_at) = (self.holder.clone(), self.visible_at);
            let mismatch = Mismatch { holder, visible_at, now };
            return Err(QueueDenial::PopReceiptMismatch(Box::new(mismatch)));
        }
        Ok(())
    }

    /// True if the message is past its time to live at `now`.
    pub fn is_expired(&self, now: Tick) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// The receipt of the present state.
    pub fn receipt(&self) -> Receipt {
        Receipt::new(self.id, self.changed)
    }

    /// The expiry that an answer shows.
    pub fn shown_expiry(&self) -> Tick {
        self.expires.unwrap_or(Tick::LAST)
    }

    /// Where the message stands in its queue: visible ones in the order in which they became so,
    /// then by insertion.
    pub fn order(&self) -> (Tick, i64) {
        (self.visible_at, self.id.seq())
    }

    fn changed_by(self, visibility: u32, now: Tick, by: ChangedBy) -> Self {
        // After a restart with a clock that was set back, the moments of changes begin again.
        let changed = by.at.max(self.changed.next());
        let holder = Writer { when: changed.timestamp(), ..by.writer };
        Self { visible_at: now.after(visibility.into()), changed, holder: Some(holder), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parameters::{SEVEN_DAYS, TimeToLive};
    use super::*;

    fn id() -> MessageId {
        MessageId::new(1, [7; 10])
    }

    fn by(seconds: u64) -> ChangedBy {
        let operation = "Get Messages".to_owned();
        ChangedBy::new(Writer { operation, ..Writer::default() }, Tick(0).after(seconds))
    }

    fn put(visibility: u32, seconds: u64) -> Message {
        let time_to_live = TimeToLive::Seconds(seconds);
        Message::put(id(), PutTimes { visibility, time_to_live }, Tick(0), Tick(0))
    }

    fn at(seconds: u64) -> Tick {
        Tick(0).after(seconds)
    }

    /// Whether a Get or Peek at `now` finds the message, by the rule of `queue/store`.
    fn finds(message: &Message, now: Tick) -> bool {
        message.visible_at <= now && !message.is_expired(now)
    }

    /// The rows of `docs/queue.md` about one message, which are tried through HTTP too.
    #[test]
    fn a_message_does_what_the_page_says() {
        let page = include_str!("../../../docs/queue.md");
        let table = page.split("\n## What a message does\n").nth(1).expect("the heading");
        let table = table.split("\n## ").next().unwrap();
        let rows =
            table.lines().filter(|line| line.starts_with("| a,") || line.starts_with("| a |"));
        let mut tried = 0;
        for row in rows {
            let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            let (mut message, mut now) = (put(0, SEVEN_DAYS.into()), 0);
            let mut receipts = vec![message.receipt().to_string()];
            for step in cells[0].split(", ").skip(1).chain([cells[1]]) {
                let words: Vec<_> = step.split(' ').collect();
                let named = |name: &str| match name {
                    "`put`" => receipts[0].clone(),
                    "`old`" => receipts[receipts.len() - 2].clone(),
                    _ => receipts[receipts.len() - 1].clone(),
                };
                let answer = match words[..] {
                    ["wait", seconds, "s"] => {
                        now += seconds.parse::<u64>().unwrap();
                        Ok(message.clone())
                    }
                    ["got", "for", seconds, "s"] => {
                        assert!(finds(&message, at(now)), "{row}");
                        Ok(message.clone().got(seconds.parse().unwrap(), at(now), by(now)))
                    }
                    ["Update", "to", seconds, "s", "by", name] => {
                        let (name, seconds) = (named(name), seconds.parse().unwrap());
                        message.clone().updated(&name, seconds, at(now), by(now))
                    }
                    ["Delete", "by", name] if name != "nothing" => {
                        let deleted = message.check(&named(name), at(now));
                        // Gone from now on.
                        deleted.map(|()| Message { expires: Some(at(now)), ..message.clone() })
                    }
                    _ => continue, // Get and what has no receipt are no rules of a message.
                };
                let told = match answer {
                    Err(QueueDenial::PopReceiptMismatch(_)) => "400 PopReceiptMismatch",
                    Err(_) => "404 MessageNotFound",
                    Ok(_) if words[0] == "wait" => "nothing",
                    Ok(_) => "204",
                };
                if step == cells[1] {
                    assert_eq!(told, cells[2], "{row}");
                    tried += 1;
                }
                if let Ok(next) = answer {
                    if next.receipt() != message.receipt() {
                        receipts.push(next.receipt().to_string());
                    }
                    message = next;
                }
            }
            assert_eq!(finds(&message, at(now)), cells[3] == "a", "{row}");
        }
        assert_eq!(tried, 13);
    }

    #[test]
    fn a_fresh_message_is_visible_at_once_unless_it_asks_to_be_hidden() {
        assert!(finds(&put(0, 10), Tick(0)));
        let hidden = put(2, 10);
        assert!(!finds(&hidden, Tick(at(2).0 - 1)));
        assert!(finds(&hidden, at(2)));
    }

    #[test]
    fn q2_a_message_that_was_got_is_hidden_to_the_tick() {
        let got = put(0, 100).got(30, at(5), by(5));
        assert_eq!((got.visible_at, got.dequeue_count), (at(35), 1));
        assert!(!finds(&got, Tick(at(35).0 - 1)));
        assert!(finds(&got, at(35)));
    }

    #[test]
    fn q12_an_update_changes_visibility_and_receipt_and_nothing_else() {
        let got = put(0, 100).got(30, at(1), by(1));
        let updated = got.clone().updated(&got.receipt().to_string(), 10, at(2), by(2)).unwrap();
        assert_eq!(updated.visible_at, at(12));
        assert_ne!(updated.receipt(), got.receipt());
        assert_eq!(updated.dequeue_count, got.dequeue_count);
        assert_eq!((updated.inserted, updated.expires), (got.inserted, got.expires));
        let refused = updated.clone().updated(&got.receipt().to_string(), 10, at(3), by(3));
        assert!(matches!(refused, Err(QueueDenial::PopReceiptMismatch(_))));
    }

    #[test]
    fn q22_an_expired_message_is_not_found_whatever_its_receipt() {
        let fresh = put(0, 10);
        let (good, garbage) = (fresh.receipt().to_string(), "garbage");
        assert!(finds(&fresh, Tick(at(10).0 - 1)) && !finds(&fresh, at(10)));
        for receipt in [good.as_str(), garbage] {
            let absence = Absence::Expired { since: at(10), now: at(10) };
            let refused = QueueDenial::no_message(absence);
            assert_eq!(fresh.check(receipt, at(10)), Err(refused.clone()));
            assert_eq!(fresh.clone().updated(receipt, 5, at(10), by(10)), Err(refused));
        }
    }

    #[test]
    fn a_message_may_be_hidden_past_its_expiry_and_does_not_live_longer() {
        let got = put(0, 10).got(SEVEN_DAYS, at(1), by(1));
        assert!(!got.is_expired(Tick(at(10).0 - 1)));
        assert!(got.is_expired(at(10)) && !finds(&got, at(700_000)));
    }

    #[test]
    fn q44_no_two_states_share_a_receipt_when_the_clock_stands_or_is_set_back() {
        let mut message = put(0, 100).got(1, at(50), by(50));
        let mut seen = vec![message.receipt()];
        for seconds in [50, 50, 0, 49] {
            message = message.got(1, at(50), by(seconds));
            assert!(!seen.contains(&message.receipt()));
            seen.push(message.receipt());
            assert_eq!(message.visible_at, at(51));
        }
    }

    #[test]
    fn a_message_that_comes_back_stands_behind_those_that_were_visible_before() {
        let late = Message::put(MessageId::new(2, [1; 10]), PutTimes::default(), at(1), at(1));
        let back = put(0, 100).got(1, at(2), by(2));
        assert!(put(0, 100).order() < late.order() && late.order() < back.order());
    }

    #[test]
    fn q23_a_message_without_expiry_shows_the_end_of_9999() {
        let times = PutTimes { visibility: 0, time_to_live: TimeToLive::Forever };
        let message = Message::put(id(), times, Tick(0), Tick(0));
        assert_eq!(message.shown_expiry(), Tick::LAST);
        assert!(!message.is_expired(Tick::LAST));
    }
}
