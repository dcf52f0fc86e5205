//! Rows of messages: the head of a queue, one message by its number, counts, and what is swept.
//!
//! Finds and keeps [`Message`]s; decides nothing about them. Queues are in
//! [`super::queues`].

use std::borrow::Cow;

use rusqlite::types::ValueRef;
use rusqlite::{Row, params};

use super::{QueueId, QueueRows};
use crate::db::DbError;
use crate::queue::rules::{Message, MessageId, Tick};
use crate::rules::Writer;

/// The messages at the head of a queue.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueHead {
    /// Those that are visible, in the order of the queue.
    pub visible: Vec<Message>,
    /// Those that stood before them and are expired.
    pub expired: Vec<Message>,
    /// True if more expired messages stand there than may be passed: visible ones may follow.
    pub cut: bool,
}

const COLUMNS: &str = "SELECT id, inserted, expires, visible_at, changed, dequeue_count, \
                       operation, request, agent, address FROM message";

/// The queue's messages that are due, as the index has them.
const DUE: &str = "INDEXED BY due WHERE qid = ?1 AND visible_at <= ?2 ORDER BY visible_at, seq";

impl QueueRows<'_> {
    /// The first `most` visible messages of a queue, and the expired ones that were passed on the
    /// way: at most `expired_most`, where the look ends.
    pub fn head(
        &self,
        queue: QueueId,
        now: Tick,
        most: usize,
        expired_most: usize,
    ) -> Result<QueueHead, DbError> {
        let mut query = self.0.prepare_cached(&format!("{COLUMNS} {DUE}"))?;
        let mut rows = query.query([queue.0, now.0])?;
        let mut head = QueueHead::default();
        while head.visible.len() < most {
            let Some(row) = rows.next()? else { break };
            let message = read_message(row)?;
            if !message.is_expired(now) {
                head.visible.push(message);
            } else if head.expired.len() < expired_most {
                head.expired.push(message);
            } else {
                head.cut = true;
                break;
            }
        }
        Ok(head)
    }

    /// True if a queue has a visible message, or may have one behind more than `expired_most`
    /// expired ones.
    pub fn has_visible(
        &self,
        queue: QueueId,
        now: Tick,
        expired_most: usize,
    ) -> Result<bool, DbError> {
        let text = format!("SELECT expires FROM message {DUE}");
        let mut query = self.0.prepare_cached(&text)?;
        let mut rows = query.query([queue.0, now.0])?;
        for _ in 0..=expired_most {
            let Some(row) = rows.next()? else { return Ok(false) };
            let expires: Option<i64> = row.get(0)?;
            if expires.is_none_or(|expires| expires > now.0) {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// The message of that ID in a queue.
    pub fn message(&self, queue: QueueId, id: MessageId) -> Result<Option<Message>, DbError> {
        let text = format!("{COLUMNS} WHERE seq = ?1 AND qid = ?2");
        let mut query = self.0.prepare_cached(&text)?;
        let mut rows = query.query([id.seq(), queue.0])?;
        let found = rows.next()?.map(read_message).transpose()?;
        Ok(found.filter(|message| message.id == id))
    }

    /// Messages that no Get returns yet, those of one queue or of all, with the names of their
    /// queues: the `most` that come back first, and how many more there are.
    pub fn hidden(
        &self,
        queue: Option<&str>,
        now: Tick,
        most: usize,
    ) -> Result<(Vec<(String, Message)>, usize), DbError> {
        let mut query = self.0.prepare_cached(
            "SELECT id, inserted, expires, visible_at, changed, dequeue_count, operation, request, \
             agent, address, queue.name FROM queue JOIN message INDEXED BY due \
             ON message.qid = queue.qid AND visible_at > ?1 \
             WHERE (?2 IS NULL OR queue.name = ?2) AND (expires IS NULL OR expires > ?1) \
             ORDER BY visible_at, seq",
        )?;
        let mut rows = query.query(params![now.0, queue])?;
        let (mut found, mut more) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            if found.len() < most {
                found.push((row.get(10)?, read_message(row)?));
            } else {
                more += 1;
            }
        }
        Ok((found, more))
    }

    /// The text of a message.
    pub fn text(&self, id: MessageId) -> Result<String, DbError> {
        let mut query = self.0.prepare_cached("SELECT text FROM text WHERE seq = ?1")?;
        Ok(query.query_row([id.seq()], |row| row.get(0))?)
    }

    /// The highest number of a message.
    pub fn last_seq(&self) -> Result<i64, DbError> {
        let mut query = self.0.prepare_cached("SELECT max(seq) FROM message")?;
        let last: Option<i64> = query.query_row([], |row| row.get(0))?;
        Ok(last.unwrap_or(0))
    }

    /// Adds a new message.
    pub fn insert_message(
        &self,
        queue: QueueId,
        message: &Message,
        text: &str,
    ) -> Result<(), DbError> {
        let Message { id, inserted, expires, visible_at, changed, dequeue_count, .. } = message;
        let insert = "INSERT INTO message (seq, qid, id, inserted, expires, visible_at, changed, \
                      dequeue_count) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        self.0.prepare_cached(insert)?.execute(params![
            id.seq(),
            queue.0,
            id.bytes(),
            inserted.0,
            expires.map(|expires| expires.0),
            visible_at.0,
            changed.0,
            dequeue_count,
        ])?;
        let insert = "INSERT INTO text (seq, text) VALUES (?1, ?2)";
        self.0.prepare_cached(insert)?.execute(params![id.seq(), text])?;
        self.count_messages(queue, 1)
    }

    /// Keeps a message that was got or updated.
    pub fn change_message(&self, message: &Message) -> Result<(), DbError> {
        let by = message.holder.as_ref();
        // A row without an operation has no holder. A text that a holder did not send is empty.
        let sent = |text: fn(&Writer) -> &Option<String>| {
            by.map(|by| text(by).as_deref().unwrap_or_default())
        };
        let update = "UPDATE message SET visible_at = ?2, changed = ?3, dequeue_count = ?4, \
                      operation = ?5, request = ?6, agent = ?7, address = ?8 WHERE seq = ?1";
        self.0.prepare_cached(update)?.execute(params![
            message.id.seq(),
            message.visible_at.0,
            message.changed.0,
            message.dequeue_count,
            by.map(|by| &by.operation),
            sent(|by| &by.client_request),
            sent(|by| &by.user_agent),
            by.map(place_of),
        ])?;
        Ok(())
    }

    /// Replaces the text of a message.
    pub fn set_text(&self, id: MessageId, text: &str) -> Result<(), DbError> {
        let update = "UPDATE text SET text = ?2 WHERE seq = ?1";
        self.0.prepare_cached(update)?.execute(params![id.seq(), text])?;
        Ok(())
    }

    /// Removes messages of a queue.
    pub fn remove_messages(&self, queue: QueueId, messages: &[Message]) -> Result<(), DbError> {
        for message in messages {
            self.remove_rows(message.id.seq())?;
        }
        self.count_messages(queue, -i64::try_from(messages.len()).unwrap_or(0))
    }

    /// The messages of a queue that are not expired, hidden ones included.
    pub fn count(&self, queue: QueueId, now: Tick) -> Result<u64, DbError> {
        let kept = "SELECT messages FROM message_count WHERE qid = ?1";
        let kept: i64 = self.0.prepare_cached(kept)?.query_row([queue.0], |row| row.get(0))?;
        let expired = "SELECT count(*) FROM message INDEXED BY expiry \
                       WHERE expires <= ?2 AND qid = ?1";
        let mut expired = self.0.prepare_cached(expired)?;
        let expired: i64 = expired.query_row([queue.0, now.0], |row| row.get(0))?;
        Ok(u64::try_from(kept - expired).unwrap_or(0))
    }

    /// True if a queue has rows of messages, expired ones included.
    pub fn has_messages(&self, queue: QueueId) -> Result<bool, DbError> {
        let text = "SELECT EXISTS (SELECT 1 FROM message INDEXED BY due WHERE qid = ?1)";
        Ok(self.0.prepare_cached(text)?.query_row([queue.0], |row| row.get(0))?)
    }

    fn count_messages(&self, queue: QueueId, more: i64) -> Result<(), DbError> {
        if more != 0 {
            let text = "UPDATE message_count SET messages = messages + ?2 WHERE qid = ?1";
            self.0.prepare_cached(text)?.execute([queue.0, more])?;
        }
        Ok(())
    }

    fn remove_rows(&self, seq: i64) -> Result<(), DbError> {
        self.0.prepare_cached("DELETE FROM message WHERE seq = ?1")?.execute([seq])?;
        self.0.prepare_cached("DELETE FROM text WHERE seq = ?1")?.execute([seq])?;
        Ok(())
    }
}

/// What the sweeper asks for.
impl QueueRows<'_> {
    /// When the next message expires.
    pub fn next_expiry(&self) -> Result<Option<Tick>, DbError> {
        let text = "SELECT min(expires) FROM message INDEXED BY expiry WHERE expires IS NOT NULL";
        let first: Option<i64> = self.0.prepare_cached(text)?.query_row([], |row| row.get(0))?;
        Ok(first.map(Tick))
    }

    /// True if rows of dropped messages wait to be swept.
    pub fn has_gone(&self) -> Result<bool, DbError> {
        let text = "SELECT EXISTS (SELECT 1 FROM gone)";
        Ok(self.0.prepare_cached(text)?.query_row([], |row| row.get(0))?)
    }

    /// Removes at most `most` expired messages; says how many.
    pub fn sweep_expired(&self, now: Tick, most: usize) -> Result<usize, DbError> {
        let text = "SELECT seq, qid FROM message INDEXED BY expiry \
                    WHERE expires <= ?1 ORDER BY expires LIMIT ?2";
        let mut query = self.0.prepare_cached(text)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = query.query_map([now.0, most], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let found: Vec<(i64, i64)> = rows.collect::<Result<_, _>>()?;
        for (seq, queue) in &found {
            self.remove_rows(*seq)?;
            // A dropped queue has no count any more.
            self.count_messages(QueueId(*queue), -1)?;
        }
        Ok(found.len())
    }

    /// Removes at most `most` rows of dropped messages; says how many. A drop is forgotten when
    /// none of its rows is left, so that a crash in between loses nothing.
    pub fn sweep_gone(&self, most: usize) -> Result<usize, DbError> {
        let text = "SELECT min(qid) FROM gone";
        let first: Option<i64> = self.0.prepare_cached(text)?.query_row([], |row| row.get(0))?;
        let Some(queue) = first else { return Ok(0) };
        let text = "SELECT seq FROM message INDEXED BY due WHERE qid = ?1 LIMIT ?2";
        let mut query = self.0.prepare_cached(text)?;
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let rows = query.query_map([queue, limit], |row| row.get(0))?;
        let found: Vec<i64> = rows.collect::<Result<_, _>>()?;
        for seq in &found {
            self.remove_rows(*seq)?;
        }
        if found.len() < most {
            self.0.prepare_cached("DELETE FROM gone WHERE qid = ?1")?.execute([queue])?;
        }
        Ok(found.len())
    }
}

/// Between an address and the name of a client in one column.
const SEPARATOR: char = '\u{1f}';

/// The address that a request came from, with the name of its client if it has one.
fn place_of(by: &Writer) -> Cow<'_, str> {
    let address = by.address.as_deref().unwrap_or_default();
    match &by.client {
        None => address.into(),
        Some(client) => format!("{address}{SEPARATOR}{client}").into(),
    }
}

fn read_message(row: &Row<'_>) -> Result<Message, DbError> {
    let id: [u8; 16] = row.get(0)?;
    let changed = Tick(row.get(4)?);
    let sent =
        |column| Ok::<_, DbError>(Some(row.get(column)?).filter(|text: &String| !text.is_empty()));
    let holder = if row.get_ref(6)? == ValueRef::Null {
        None
    } else {
        let place: String = row.get(9)?;
        let (address, client) = place.split_once(SEPARATOR).unwrap_or((&place, ""));
        let kept = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Some(Writer {
            operation: row.get(6)?,
            client: kept(client),
            client_request: sent(7)?,
            user_agent: sent(8)?,
            address: kept(address),
            when: changed.timestamp(),
        })
    };
    Ok(Message {
        id: MessageId::of_bytes(id),
        inserted: Tick(row.get(1)?),
        expires: row.get::<_, Option<i64>>(2)?.map(Tick),
        visible_at: Tick(row.get(3)?),
        changed,
        dequeue_count: row.get(5)?,
        holder,
    })
}
