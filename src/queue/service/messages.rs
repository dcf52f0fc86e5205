//! Messages: put, get, peek, update, delete, clear (S96-S102).
//!
//! Decides that all messages of one Get are taken in one transaction, so that no two clients get
//! the same one (S98), and that a Get of an empty queue writes nothing.

use std::slice;

use super::error::{QueueError, QueueResult};
use super::memory::EndedObject;
use super::{Context, QueueChange, QueueService};
use crate::db::DbError;
use crate::db::DbService as _;
use crate::queue::rules::{Absence, Message, MessageId, PutTimes, QueueDenial, check_text};
use crate::queue::store::QueueId;
use crate::rules::name::check_resource_name;
use crate::sync::random;

/// Expired messages at the head of a queue that one transaction of a Get removes.
const EXPIRED_MAX: usize = 256;
/// Transactions of one Get. Behind more expired messages than they remove, a Get finds nothing
/// until the sweeper has been there.
const SWEEPS_MAX: usize = 8;
/// Expired messages that a Peek passes.
const PASSED_MAX: usize = EXPIRED_MAX * SWEEPS_MAX;

/// What Put Message asks for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewMessage {
    pub text: String,
    /// When it becomes visible, and when it expires.
    pub times: PutTimes,
}

/// A message with its text, as Get and Peek show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    pub message: Message,
    pub text: String,
}

impl QueueService {
    pub async fn put_message(
        &self,
        context: &Context,
        queue: &str,
        new: NewMessage,
    ) -> QueueResult<Message> {
        check_resource_name(queue)?;
        check_text(&new.text)?;
        let random = random::bytes();
        let queue = queue.to_owned();
        self.change(context, move |change| change.put(&queue, random, &new)).await
    }

    /// Get Messages: takes at most `most` visible messages and hides them for `visibility`
    /// seconds.
    pub async fn get_messages(
        &self,
        context: &Context,
        queue: &str,
        most: u32,
        visibility: u32,
    ) -> QueueResult<Vec<Shown>> {
        check_resource_name(queue)?;
        // Clients poll: most Gets find nothing, and need no writer. After one that found something
        // the next mostly does too, and a look would only cost time.
        let hot = self.memory.found_last(queue);
        if !hot && !self.has_visible(context, queue)? {
            return Ok(Vec::new());
        }
        for _ in 0..SWEEPS_MAX {
            let name = queue.to_owned();
            let get = move |change: &QueueChange<'_>| change.get(&name, most, visibility);
            let got = self.change(context, get).await;
            let (taken, cut) = match got {
                // On a full disk a Get that finds nothing is no error.
                Err(QueueError::Store(DbError::Full { .. }))
                    if hot && !self.has_visible(context, queue)? =>
                {
                    return Ok(Vec::new());
                }
                got => got?,
            };
            self.memory.note_found(queue, !taken.is_empty());
            if !cut || !taken.is_empty() {
                return Ok(taken);
            }
        }
        // Behind all that is expired there may be some: the next Get is to find them.
        self.memory.bell.ring();
        Ok(Vec::new())
    }

    /// Whether a Get may find something.
    fn has_visible(&self, context: &Context, queue: &str) -> QueueResult<bool> {
        self.look(context.now, |look| {
            Ok(look.rows.has_visible(look.queue(queue)?, look.now, EXPIRED_MAX)?)
        })
    }

    /// Peek Messages: shows at most `most` visible messages and changes nothing.
    pub fn peek_messages(
        &self,
        context: &Context,
        queue: &str,
        most: u32,
    ) -> QueueResult<Vec<Shown>> {
        check_resource_name(queue)?;
        self.look(context.now, |look| {
            let queue = look.queue(queue)?;
            let head = look.rows.head(queue, look.now, count(most), PASSED_MAX)?;
            let shown = head.visible.into_iter().map(|message| {
                let text = look.rows.text(message.id)?;
                Ok(Shown { message, text })
            });
            shown.collect()
        })
    }

    /// Update Message: hides it for `visibility` seconds from now; replaces its text if one is
    /// given.
    pub async fn update_message(
        &self,
        context: &Context,
        queue: &str,
        id: &str,
        receipt: &str,
        (visibility, text): (u32, Option<String>),
    ) -> QueueResult<Message> {
        check_resource_name(queue)?;
        text.as_deref().map_or(Ok(()), check_text)?;
        let (queue, id, receipt) = (queue.to_owned(), id.to_owned(), receipt.to_owned());
        self.change(context, move |change| {
            let (_, message) = change.message(&queue, &id)?;
            let by = change.by("Update Message");
            let message = message.updated(&receipt, visibility, change.now, by.clone())?;
            change.rows.change_message(&message)?;
            change.changed(&queue, Some(message.id), &by.writer);
            if let Some(text) = text {
                change.rows.set_text(message.id, &text)?;
            }
            Ok(message)
        })
        .await
    }

    pub async fn delete_message(
        &self,
        context: &Context,
        queue: &str,
        id: &str,
        receipt: &str,
    ) -> QueueResult<()> {
        check_resource_name(queue)?;
        let (queue, id, receipt) = (queue.to_owned(), id.to_owned(), receipt.to_owned());
        self.delete(context, move |change| {
            let name = queue;
            let (queue, message) = change.message(&name, &id)?;
            message.check(&receipt, change.now)?;
            change.rows.remove_messages(queue, slice::from_ref(&message))?;
            let by = change.by("Delete Message").writer;
            change.changed(&name, Some(message.id), &by);
            change.memory.note(EndedObject::Message(message.id), by);
            Ok(())
        })
        .await
    }

    /// Clear Messages: all of a queue, hidden ones included, in constant time.
    pub async fn clear_messages(&self, context: &Context, queue: &str) -> QueueResult<()> {
        check_resource_name(queue)?;
        let name = queue.to_owned();
        self.delete(context, move |change| {
            let queue = change.queue(&name)?;
            if change.rows.has_messages(queue)? {
                change.rows.clear_queue(&name, queue)?;
                change.dropped.set(true);
                let last = change.memory.last_seq(change.rows)?;
                let by = change.by("Clear Messages").writer;
                change.changed(&name, None, &by);
                change.memory.note(EndedObject::Messages(name, last), by);
            }
            Ok(())
        })
        .await
    }
}

impl QueueChange<'_> {
    pub(super) fn put(
        &self,
        name: &str,
        random: [u8; 10],
        new: &NewMessage,
    ) -> QueueResult<Message> {
        let queue = self.queue(name)?;
        let id = MessageId::new(self.next_seq()?, random);
        let message = Message::put(id, new.times, self.now, self.at);
        self.rows.insert_message(queue, &message, &new.text)?;
        self.changed(name, Some(message.id), &self.by("Put Message").writer);
        Ok(message)
    }

    /// Takes messages. True if there may be more behind the expired ones that were removed.
    fn get(&self, name: &str, most: u32, visibility: u32) -> QueueResult<(Vec<Shown>, bool)> {
        let queue = self.queue(name)?;
        let head = self.rows.head(queue, self.now, count(most), EXPIRED_MAX)?;
        self.rows.remove_messages(queue, &head.expired)?;
        let by = self.by("Get Messages");
        let taken = head.visible.into_iter().map(|message| {
            let message = message.got(visibility, self.now, by.clone());
            self.rows.change_message(&message)?;
            self.changed(name, Some(message.id), &by.writer);
            let text = self.rows.text(message.id)?;
            Ok(Shown { message, text })
        });
        Ok((taken.collect::<QueueResult<_>>()?, head.cut))
    }

    /// The message that a request names, or the refusal. A text that is no ID names none.
    fn message(&self, name: &str, id: &str) -> QueueResult<(QueueId, Message)> {
        let queue = self.queue(name)?;
        let Ok(id) = id.parse() else {
            return Err(QueueDenial::no_message(Absence::Unknown).into());
        };
        let message = self.rows.message(queue, id)?;
        let message = message.ok_or_else(|| self.memory.no_message(name, id, self.now))?;
        Ok((queue, message))
    }
}

fn count(most: u32) -> usize {
    usize::try_from(most).unwrap_or(usize::MAX)
}
