//! Queues as a whole: create, delete, list, metadata, stored access policies.
//!
//! Decides that the last writer wins (S102): no condition is read anywhere. Messages are in
//! [`super::messages`].

use super::error::QueueResult;
use super::memory::EndedObject;
use super::{Context, NewMessage, QueueService};
use crate::db::{DbService as _, Store as _};
use crate::queue::rules::parameters::LIST_MAX;
use crate::queue::rules::{QueueDenial, Tick};
use crate::queue::store::QueueRow;
use crate::rules::name::check_resource_name;
use crate::rules::policy::{SentPolicy, StoredPolicy, check_sent_policies};
use crate::rules::service::ServiceKind;
use crate::rules::time::parse_short_iso;
use crate::rules::{Metadata, check_metadata};
use crate::sync::random;

/// What Create Queue did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Created {
    /// It made the queue.
    New,
    /// The queue was there with the same metadata. Nothing changed.
    Existed,
}

/// A queue with what belongs to it as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueInfo {
    /// When it was made.
    pub created: Tick,
    pub metadata: Metadata,
    /// Its messages that are not expired, hidden ones included. Exact here.
    pub messages: u64,
}

/// What List Queues asks for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueList {
    /// Only names that begin so.
    pub prefix: String,
    /// The first name of the page; it need not exist.
    pub from: String,
    /// Queues of the page, at most [`LIST_MAX`]; none: that many.
    pub most: Option<usize>,
}

/// A page of List Queues.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueuePage {
    /// Names and metadata, by name.
    pub queues: Vec<(String, Metadata)>,
    /// The first name of the next page.
    pub next: Option<String>,
}

impl QueueService {
    pub async fn create_queue(
        &self,
        context: &Context,
        name: &str,
        metadata: Metadata,
    ) -> QueueResult<Created> {
        check_resource_name(name)?;
        check_metadata(metadata.iter())?;
        let name = name.to_owned();
        self.change(context, move |change| {
            if let Some(queue) = change.rows.queue(&name)? {
                return already_there(&queue, &metadata);
            }
            change.rows.insert_queue(&name, change.now, &metadata)?;
            change.changed(&name, None, &change.by("Create Queue").writer);
            Ok(Created::New)
        })
        .await
    }

    /// Makes a queue with messages of these texts, all of it or nothing; false if it exists.
    pub(crate) async fn create_filled(
        &self,
        context: &Context,
        name: &str,
        texts: Vec<String>,
    ) -> QueueResult<bool> {
        let name = name.to_owned();
        self.change(context, move |change| {
            if change.rows.queue(&name)?.is_some() {
                return Ok(false);
            }
            change.rows.insert_queue(&name, change.now, &Metadata::default())?;
            change.changed(&name, None, &change.by("Create Queue").writer);
            for text in texts {
                change.put(
                    &name,
                    random::bytes(),
                    &NewMessage { text, ..NewMessage::default() },
                )?;
            }
            Ok(true)
        })
        .await
    }

    /// Delete Queue. The name is free at once.
    pub async fn delete_queue(&self, context: &Context, name: &str) -> QueueResult<()> {
        check_resource_name(name)?;
        let name = name.to_owned();
        self.delete(context, move |change| {
            let queue = change.queue(&name)?;
            change.rows.delete_queue(&name, queue)?;
            change.dropped.set(true);
            let by = change.by("Delete Queue").writer;
            change.changed(&name, None, &by);
            change.memory.note(EndedObject::Queue(name), by);
            Ok(())
        })
        .await
    }

    pub fn queue_info(&self, context: &Context, name: &str) -> QueueResult<QueueInfo> {
        check_resource_name(name)?;
        self.look(context.now, |look| {
            let found = look.rows.queue(name)?;
            let queue = found.ok_or_else(|| look.memory.no_queue(name, look.now))?;
            let messages = look.rows.count(queue.id, look.now)?;
            Ok(QueueInfo { created: queue.created, metadata: queue.metadata, messages })
        })
    }

    /// Set Queue Metadata: replaces all of it.
    pub async fn set_metadata(
        &self,
        context: &Context,
        name: &str,
        metadata: Metadata,
    ) -> QueueResult<()> {
        check_resource_name(name)?;
        check_metadata(metadata.iter())?;
        let name = name.to_owned();
        self.change(context, move |change| {
            change.queue(&name)?;
            change.changed(&name, None, &change.by("Set Queue Metadata").writer);
            Ok(change.rows.set_metadata(&name, &metadata)?)
        })
        .await
    }

    pub fn policies(&self, context: &Context, name: &str) -> QueueResult<Vec<SentPolicy>> {
        check_resource_name(name)?;
        self.look(context.now, |look| {
            let found = look.rows.queue(name)?;
            let queue = found.ok_or_else(|| look.memory.no_queue(name, look.now))?;
            Ok(queue.policies)
        })
    }

    /// The stored access policy of that ID, for the check of a signature. May wait.
    pub fn policy(&self, name: &str, id: &str) -> Option<StoredPolicy> {
        let queue = self.store.read(|rows| rows.queue(name)).ok()??;
        let found = queue.policies.into_iter().find(|policy| policy.id == id)?;
        found.timed(parse_short_iso).ok()
    }

    /// Set Queue ACL: replaces all of it.
    pub async fn set_policies(
        &self,
        context: &Context,
        name: &str,
        policies: Vec<SentPolicy>,
    ) -> QueueResult<()> {
        check_resource_name(name)?;
        check_sent_policies(ServiceKind::Queue, &policies, parse_short_iso)
            .map_err(QueueDenial::from)?;
        let name = name.to_owned();
        self.change(context, move |change| {
            change.queue(&name)?;
            change.changed(&name, None, &change.by("Set Queue ACL").writer);
            Ok(change.rows.set_policies(&name, &policies)?)
        })
        .await
    }

    pub fn list_queues(&self, context: &Context, list: &QueueList) -> QueueResult<QueuePage> {
        let most = list.most.unwrap_or(LIST_MAX).min(LIST_MAX);
        self.look(context.now, |look| {
            // One more than fits is the first of the next page.
            let mut rows = look.rows.queues(&list.from, &list.prefix, most + 1)?;
            let next = rows.get(most).map(|row| row.name.clone());
            rows.truncate(most);
            let queues = rows.into_iter().map(|row| (row.name, row.metadata)).collect();
            Ok(QueuePage { queues, next })
        })
    }
}

/// Metadata is equal if names are, in any case, and values are, to the letter.
fn already_there(queue: &QueueRow, asked: &Metadata) -> QueueResult<Created> {
    let names = queue.metadata.iter().chain(asked.iter()).map(|(name, _)| name);
    let differ = |name: &&str| queue.metadata.get(name) != asked.get(name);
    let mut names: Vec<_> = names.filter(differ).map(str::to_ascii_lowercase).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Ok(Created::Existed);
    }
    Err(QueueDenial::QueueAlreadyExists { names }.into())
}
