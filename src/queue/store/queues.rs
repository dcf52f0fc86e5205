//! Rows of queues.
//!
//! Decides how metadata and policies are spelled in a row. Messages are in [`super::messages`].

use rusqlite::{OptionalExtension, Row, params};
use serde::de::DeserializeOwned;

use super::{QueueId, QueueRows};
use crate::db::DbError;
use crate::queue::rules::Tick;
use crate::rules::Metadata;
use crate::rules::policy::SentPolicy;

/// A queue with what belongs to it as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueRow {
    pub name: String,
    /// The identity of its messages.
    pub id: QueueId,
    /// When it was made.
    pub created: Tick,
    pub metadata: Metadata,
    /// Its stored access policies.
    pub policies: Vec<SentPolicy>,
}

const COLUMNS: &str = "SELECT name, qid, created, metadata, policies FROM queue";

impl QueueRows<'_> {
    /// The identity of a queue's messages, if there is the queue.
    pub fn queue_id(&self, name: &str) -> Result<Option<QueueId>, DbError> {
        let mut query = self.0.prepare_cached("SELECT qid FROM queue WHERE name = ?1")?;
        Ok(query.query_row([name], |row| row.get(0).map(QueueId)).optional()?)
    }

    pub fn queue(&self, name: &str) -> Result<Option<QueueRow>, DbError> {
        let mut query = self.0.prepare_cached(&format!("{COLUMNS} WHERE name = ?1"))?;
        let mut rows = query.query([name])?;
        rows.next()?.map(read_queue).transpose()
    }

    /// Queues in the order of their names: those from `from` on that begin with `prefix`, at most
    /// `most`.
    pub fn queues(&self, from: &str, prefix: &str, most: usize) -> Result<Vec<QueueRow>, DbError> {
        let text = format!("{COLUMNS} WHERE name >= ?1 ORDER BY name");
        let mut query = self.0.prepare_cached(&text)?;
        let mut rows = query.query([from.max(prefix)])?;
        let mut queues = Vec::new();
        while queues.len() < most {
            let Some(row) = rows.next()? else { break };
            let queue = read_queue(row)?;
            if !queue.name.starts_with(prefix) {
                break;
            }
            queues.push(queue);
        }
        Ok(queues)
    }

    /// Adds a queue without messages.
    pub fn insert_queue(
        &self,
        name: &str,
        created: Tick,
        metadata: &Metadata,
    ) -> Result<(), DbError> {
        let id = self.new_messages()?;
        let text = "INSERT INTO queue (name, qid, created, metadata, policies) \
                    VALUES (?1, ?2, ?3, ?4, '[]')";
        let values = params![name, id.0, created.0, written(metadata)?];
        self.0.prepare_cached(text)?.execute(values)?;
        Ok(())
    }

    /// Removes a queue. Its messages are gone at once; their rows are swept later.
    pub fn delete_queue(&self, name: &str, id: QueueId) -> Result<(), DbError> {
        self.0.prepare_cached("DELETE FROM queue WHERE name = ?1")?.execute([name])?;
        self.drop_messages(id)
    }

    /// Gives a queue a fresh identity for its messages; the former ones are gone at once, and
    /// their rows are swept later.
    pub fn clear_queue(&self, name: &str, id: QueueId) -> Result<(), DbError> {
        let fresh = self.new_messages()?;
        let text = "UPDATE queue SET qid = ?2 WHERE name = ?1";
        self.0.prepare_cached(text)?.execute(params![name, fresh.0])?;
        self.drop_messages(id)
    }

    /// Replaces a queue's metadata.
    pub fn set_metadata(&self, name: &str, metadata: &Metadata) -> Result<(), DbError> {
        let text = "UPDATE queue SET metadata = ?2 WHERE name = ?1";
        let values = params![name, written(metadata)?];
        self.0.prepare_cached(text)?.execute(values)?;
        Ok(())
    }

    /// Replaces a queue's stored access policies.
    pub fn set_policies(&self, name: &str, policies: &[SentPolicy]) -> Result<(), DbError> {
        let text = "UPDATE queue SET policies = ?2 WHERE name = ?1";
        let values = params![name, written(&policies)?];
        self.0.prepare_cached(text)?.execute(values)?;
        Ok(())
    }

    /// A fresh identity for the messages of a queue. Identities of swept messages come again.
    fn new_messages(&self) -> Result<QueueId, DbError> {
        let text = "SELECT 1 + max(coalesce((SELECT max(qid) FROM message_count), 0), \
                    coalesce((SELECT max(qid) FROM gone), 0))";
        let id = QueueId(self.0.prepare_cached(text)?.query_row([], |row| row.get(0))?);
        let text = "INSERT INTO message_count (qid, messages) VALUES (?1, 0)";
        self.0.prepare_cached(text)?.execute([id.0])?;
        Ok(id)
    }

    fn drop_messages(&self, id: QueueId) -> Result<(), DbError> {
        self.0.prepare_cached("DELETE FROM message_count WHERE qid = ?1")?.execute([id.0])?;
        self.0.prepare_cached("INSERT INTO gone (qid) VALUES (?1)")?.execute([id.0])?;
        Ok(())
    }
}

fn read_queue(row: &Row<'_>) -> Result<QueueRow, DbError> {
    Ok(QueueRow {
        name: row.get(0)?,
        id: QueueId(row.get(1)?),
        created: Tick(row.get(2)?),
        metadata: read(row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?)?,
        policies: read(row.get_ref(4)?.as_str().map_err(rusqlite::Error::from)?)?,
    })
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, DbError> {
    serde_json::from_str(text).map_err(|error| DbError::damaged(format!("a queue: {error}")))
}

fn written(value: &impl serde::Serialize) -> Result<String, DbError> {
    serde_json::to_string(value).map_err(|error| DbError::Io(format!("writing JSON: {error}")))
}
