//! State of a Queue service outside its database: the last moments that were used, and the
//! requests that lately deleted messages and queues.
//!
//! Decides that time never runs back, that no two changes share a moment, and that the number of
//! remembered deletions is bounded. A restart loses what was remembered, on which only the text of
//! a 404 depends. It does not lose the last change, which is a receipt: a ceiling in the database
//! lies at or above every change that was committed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::clock::{Present, TimeSource};
use crate::db::DbError;
use crate::db::counted::{CountingMemory, RisingCount};
use crate::journal::{AccountJournal, History};
use crate::queue::rules::{Absence, MessageId, QueueDenial, Tick};
use crate::queue::store::QueueRows;
use crate::rules::service::ServiceKind;
use crate::rules::{Timestamp, Writer};
use crate::sync::Mutex;
use crate::sync::bell::Bell;

/// Ends that are remembered.
const ENDS_MAX: usize = 1_024;

const POISON: &str = "nothing panics while the memory of queues is held";

pub(crate) struct QueueMemory {
    /// The time of the last change, from which timeouts count. It stands while a clock that was set
    /// back catches up.
    now: AtomicI64,
    /// The moments of changes, which make receipts.
    pub count: RisingCount<Tick>,
    /// Noted in the transaction: a request of the same commit is told who was faster. The journal
    /// has a change only after its commit.
    ends: Mutex<VecDeque<(EndedObject, Writer)>>,
    present: Present,
    /// The queue where the last Get found something. Only how Gets are carried out depends on it.
    hot: Mutex<Option<String>>,
    last_seq: Mutex<LastSeq>,
    pub history: History,
    /// Wakes the sweeper. Rung by what was committed, so that it rings without the client too.
    pub bell: Arc<Bell>,
}

/// The number of the message that was put last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct LastSeq {
    number: i64,
    /// No row has a higher number: something was put since they were opened or replaced.
    is_highest: bool,
}

/// What a request ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum EndedObject {
    Message(MessageId),
    /// All messages of a queue up to this number.
    Messages(String, i64),
    Queue(String),
}

impl QueueMemory {
    /// Changes begin above `ceiling`.
    pub fn above(ceiling: Tick, journal: AccountJournal) -> Self {
        Self {
            now: AtomicI64::default(),
            count: RisingCount::above(ceiling),
            ends: Mutex::default(),
            present: Present::default(),
            hot: Mutex::default(),
            last_seq: Mutex::default(),
            history: History::new(journal, ServiceKind::Queue),
            bell: Arc::default(),
        }
    }

    /// Whether the last Get that found something found it in this queue.
    pub fn found_last(&self, queue: &str) -> bool {
        self.hot.lock().expect(POISON).as_deref() == Some(queue)
    }

    /// A Get has found something in a queue, or nothing.
    pub fn note_found(&self, queue: &str, found: bool) {
        let mut hot = self.hot.lock().expect(POISON);
        if (hot.as_deref() == Some(queue)) != found {
            *hot = found.then(|| queue.to_owned());
        }
    }

    /// The number of the message that was put last.
    pub fn last_seq(&self, rows: &QueueRows<'_>) -> Result<i64, DbError> {
        let last = *self.last_seq.lock().expect(POISON);
        Ok(if last.is_highest { last.number } else { last.number.max(rows.last_seq()?) })
    }

    /// A message with this number is being put. The number is not given again if the message is
    /// not committed. Called by the writer.
    pub fn seq_is_used(&self, number: i64) {
        *self.last_seq.lock().expect(POISON) = LastSeq { number, is_highest: true };
    }

    /// The time and the moment of a change when the clock says `now`. Called by the writer, which
    /// makes one change after the other.
    pub fn moments_of_change(&self, now: Timestamp) -> (Tick, Tick) {
        let now = self.moment_of_look(now);
        self.now.store(now.0, Ordering::SeqCst);
        (now, self.count.next(now))
    }

    /// The moment of a look when the clock says `now`: not before any change that can be seen.
    pub fn moment_of_look(&self, now: Timestamp) -> Tick {
        Tick(self.now.load(Ordering::SeqCst)).max(Tick::of(self.present.of(now)))
    }

    /// Remembers who ended something.
    pub fn note(&self, ended: EndedObject, by: Writer) {
        let mut ends = self.ends.lock().expect(POISON);
        if ends.len() == ENDS_MAX {
            ends.pop_front();
        }
        ends.push_back((ended, by));
    }

    /// The refusal for a message that a queue does not have.
    pub fn no_message(&self, queue: &str, id: MessageId, now: Tick) -> QueueDenial {
        QueueDenial::no_message(self.absence(now, |ended| match ended {
            EndedObject::Message(ended) => *ended == id,
            EndedObject::Messages(name, last) => name == queue && id.seq() <= *last,
            EndedObject::Queue(_) => false,
        }))
    }

    /// The refusal for a queue that is not there.
    pub fn no_queue(&self, queue: &str, now: Tick) -> QueueDenial {
        let is = |ended: &EndedObject| matches!(ended, EndedObject::Queue(name) if name == queue);
        QueueDenial::no_queue(self.absence(now, is))
    }

    /// The latest end that fits. A message that was put after a Clear has a later end of its own,
    /// if it has one, and that one is forgotten later than the Clear.
    fn absence(&self, now: Tick, fits: impl Fn(&EndedObject) -> bool) -> Absence {
        let ends = self.ends.lock().expect(POISON);
        match ends.iter().rev().find(|(ended, _)| fits(ended)) {
            Some((_, by)) => Absence::Ended { by: by.clone(), now },
            None => Absence::Unknown,
        }
    }
}

impl CountingMemory<Tick> for QueueMemory {
    fn count(&self) -> &RisingCount<Tick> {
        &self.count
    }

    /// Time starts again where the clock is.
    fn rows_replaced(&self, clock: &Arc<dyn TimeSource>) {
        self.present.set_back(clock);
        self.now.store(0, Ordering::SeqCst);
        self.last_seq.lock().expect(POISON).is_highest = false;
        self.ends.lock().expect(POISON).clear();
        self.history.clear();
        self.bell.ring();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(request: &str) -> Writer {
        Writer { client_request: Some(request.to_owned()), ..Writer::default() }
    }

    fn id(number: i64) -> MessageId {
        MessageId::new(number, [3; 10])
    }

    #[test]
    fn q44_time_never_runs_back_and_no_two_changes_share_a_moment() {
        let memory = QueueMemory::above(Tick::default(), AccountJournal::default());
        let moments = [1_000, 1_000, 50, 1_050, 1_100, 90_000].map(|nanos| {
            let looked = memory.moment_of_look(Timestamp(nanos));
            let (now, change) = memory.moments_of_change(Timestamp(nanos));
            assert_eq!(looked, now);
            (now.0, change.0)
        });
        assert_eq!(moments, [(10, 10), (10, 11), (10, 12), (10, 13), (11, 14), (900, 900)]);
    }

    #[test]
    fn the_latest_end_is_told_and_old_ones_are_forgotten() {
        let memory = QueueMemory::above(Tick::default(), AccountJournal::default());
        let told = |number| {
            let denial = memory.no_message("queue", id(number), Tick(0));
            denial.requester().and_then(|by| by.client_request.clone())
        };
        memory.note(EndedObject::Messages("queue".to_owned(), 5), by("clear"));
        memory.note(EndedObject::Messages("other".to_owned(), 50), by("other"));
        memory.note(EndedObject::Message(id(3)), by("delete"));
        assert_eq!((told(3).as_deref(), told(5).as_deref()), (Some("delete"), Some("clear")));
        assert_eq!(told(6), None);
        for number in 0..ENDS_MAX {
            memory.note(EndedObject::Queue(number.to_string()), by("queue"));
        }
        assert_eq!((told(3), told(5)), (None, None));
        assert!(memory.no_queue("0", Tick(0)).requester().is_some());
        memory.note(EndedObject::Message(id(9)), by("one more"));
        assert_eq!(memory.no_queue("0", Tick(0)).requester(), None);
        assert_eq!(memory.ends.lock().unwrap().len(), ENDS_MAX);
    }
}
