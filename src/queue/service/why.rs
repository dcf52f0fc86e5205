//! Recent changes of messages and queues; who has a message, and until when.
//!
//! Decides nothing; it reports the state that the next request would meet.

use super::QueueService;
use super::error::QueueResult;
use super::memory::QueueMemory;
use crate::db::Store as _;
use crate::journal::Change;
use crate::queue::rules::{Absence, Message, MessageId, QueueDenial, Tick};
use crate::queue::store::QueueRows;
use crate::rules::Timestamp;
use crate::rules::address::ObjectAddress;
use crate::rules::name::check_resource_name;

/// What the next Get would make of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visibility {
    /// A Get may return it, since this moment.
    VisibleSince(Tick),
    /// No Get returns it until this moment.
    HiddenUntil(Tick),
}

/// The state of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageExplanation {
    /// The message, with the request that got or updated it last.
    pub message: Message,
    /// What the next Get would make of it.
    pub visibility: Visibility,
    /// The moment of this look.
    pub now: Tick,
    /// Remembered changes, the latest first.
    pub changes: Vec<Change>,
}

/// The state of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueExplanation {
    /// How many messages it has, hidden ones included.
    pub messages: u64,
    /// How many of them are hidden.
    pub hidden: usize,
    /// Those of the hidden that come back first, each with the request that got or updated it
    /// last.
    pub first_back: Vec<Message>,
    /// The last change of the queue itself, if it is remembered.
    pub last_change: Option<Change>,
}

/// Hidden messages, each with its queue.
pub type Hidden = Vec<(String, Message)>;

impl QueueService {
    /// The state of a message. A message that is not there is refused as an operation would be,
    /// with the request that ended it if that is remembered. May wait.
    pub fn why(&self, now: Timestamp, queue: &str, id: &str) -> QueueResult<MessageExplanation> {
        check_resource_name(queue)?;
        let now = self.memory.moment_of_look(now);
        self.store.read(|rows| standing(rows, &self.memory, now, (queue, id)))
    }

    /// The state of a queue, with at most `most` of its hidden messages. A queue that is not there
    /// is refused as an operation would be. May wait.
    pub fn why_queue(
        &self,
        now: Timestamp,
        queue: &str,
        most: usize,
    ) -> QueueResult<QueueExplanation> {
        check_resource_name(queue)?;
        let now = self.memory.moment_of_look(now);
        let object = ObjectAddress::Queue(queue.to_owned());
        let last_change = self.changes(|change| change.object == object).into_iter().next();
        self.store.read(|rows| {
            let found = rows.queue_id(queue)?.ok_or_else(|| self.memory.no_queue(queue, now))?;
            let (hidden, more) = rows.hidden(Some(queue), now, most)?;
            Ok(QueueExplanation {
                messages: rows.count(found, now)?,
                hidden: hidden.len() + more,
                first_back: hidden.into_iter().map(|(_, message)| message).collect(),
                last_change,
            })
        })
    }

    /// Messages that no Get returns yet, of one queue or of all: the `most` that come back first,
    /// each with its queue, how many more there are, and the moment of the look. May wait.
    pub fn hidden(
        &self,
        now: Timestamp,
        queue: Option<&str>,
        most: usize,
    ) -> QueueResult<(Hidden, usize, Tick)> {
        let now = self.memory.moment_of_look(now);
        self.store.read(|rows| {
            if let Some(queue) = queue {
                check_resource_name(queue)?;
                rows.queue_id(queue)?.ok_or_else(|| self.memory.no_queue(queue, now))?;
            }
            let (found, more) = rows.hidden(queue, now, most)?;
            Ok((found, more, now))
        })
    }

    /// Remembered changes that `wanted` holds for, the latest first.
    pub fn changes(&self, wanted: impl Fn(&Change) -> bool) -> Vec<Change> {
        self.memory.history.latest(wanted)
    }
}

fn standing(
    rows: &QueueRows<'_>,
    memory: &QueueMemory,
    now: Tick,
    (queue, id): (&str, &str),
) -> QueueResult<MessageExplanation> {
    let found = rows.queue_id(queue)?.ok_or_else(|| memory.no_queue(queue, now))?;
    let Ok(id) = id.parse::<MessageId>() else {
        return Err(QueueDenial::no_message(Absence::Unknown).into());
    };
    let message = rows.message(found, id)?.ok_or_else(|| memory.no_message(queue, id, now))?;
    if let Some(since) = message.expires.filter(|expires| *expires <= now) {
        return Err(QueueDenial::no_message(Absence::Expired { since, now }).into());
    }
    let visibility = if message.visible_at <= now {
        Visibility::VisibleSince(message.visible_at)
    } else {
        Visibility::HiddenUntil(message.visible_at)
    };
    let object = ObjectAddress::Message { queue: queue.to_owned(), id: id.to_string() };
    let changes = memory.history.latest(|change| change.object == object);
    Ok(MessageExplanation { message, visibility, now, changes })
}
