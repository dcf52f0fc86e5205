//! Lists what an account stores, one level at a time: containers, queues, tables and shares, then
//! what is in one of them.
//!
//! Decides the names in JSON and the bound of a level. The services decide what a listing contains.

use std::ops::ControlFlow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::ObjectAddress;
use super::failure::ApiFailure;
use super::objects::{OBJECT_FORM, address};
use super::session::Session;
use crate::blob::service::{BlobListItem, ListBlobs};
use crate::file::rules::SharePath;
use crate::file::service::{FileKind, PageOptions, Share};
use crate::queue::service::QueueList;
use crate::table::rules::{EntityFields as _, EntityKey, TableName, Top};
use crate::table::service::{EntityQuery, EntityRef, EntitySink, TableError, TableQuery};

/// The most entries of a level.
pub const LEVEL_MAX: usize = 500;
/// The most messages of a queue, which is the most that Peek Messages shows.
const MESSAGES_MAX: u32 = 32;
/// The most letters of a message.
const TEXT_MAX: usize = 200;

/// Asks for one level of what is stored.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetObjects {
    /// A container, prefix, queue, table, share or directory; all of these without it.
    #[schemars(description = OBJECT_FORM)]
    pub object: Option<String>,
}

/// One level of what is stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ObjectList {
    /// In the order of the service.
    pub objects: Vec<StoredRow>,
    /// The level has more entries than these.
    pub more: bool,
}

/// An entry of a level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoredRow {
    /// Its address, which names the level below it.
    pub object: String,
    /// `container`, `prefix`, `blob`, `queue`, `message`, `table`, `entity`, `share`, `directory`
    /// or `file`.
    pub kind: String,
    /// The length of a blob or a file, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The beginning of a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl ObjectList {
    fn add(&mut self, kind: &str, object: &ObjectAddress, length: Option<u64>) {
        let (object, kind) = (object.to_string(), kind.to_owned());
        self.objects.push(StoredRow { object, kind, length, text: None });
    }
}

impl Session {
    /// One level of what the account stores. Changes nothing, and takes no message.
    pub fn objects(&self, of: GetObjects) -> Result<ObjectList, ApiFailure> {
        let Some(object) = &of.object else { return self.all_containers() };
        match address(object)? {
            ObjectAddress::Container(container) => self.blobs(&container, ""),
            ObjectAddress::Blob { container, name } => self.blobs(&container, &name),
            ObjectAddress::Queue(queue) => self.visible_messages(&queue),
            ObjectAddress::Table(table) => self.entities(&table),
            ObjectAddress::File { share, path } => self.files(&share, &path),
            other => Err(format!("{other} has no level below it"))?,
        }
    }

    fn all_containers(&self) -> Result<ObjectList, ApiFailure> {
        let (mut list, context) = (ObjectList::default(), self.context("ls"));
        if let Some(service) = self.account.used_blob()? {
            let page = service.list_containers(&context, "", None, LEVEL_MAX, false)?;
            list.more |= page.next.is_some();
            for container in page.containers {
                list.add("container", &ObjectAddress::Container(container.name), None);
            }
        }
        if let Some(service) = self.account.used_queue()? {
            let asked = QueueList { most: Some(LEVEL_MAX), ..QueueList::default() };
            let page = service.list_queues(&context, &asked)?;
            list.more |= page.next.is_some();
            for (name, _) in page.queues {
                list.add("queue", &ObjectAddress::Queue(name), None);
            }
        }
        if let Some(service) = self.account.used_table()? {
            let asked = TableQuery { top: Top(LEVEL_MAX), ..TableQuery::default() };
            let page = service.list_tables(asked)?;
            list.more |= page.next.is_some();
            for name in page.names {
                list.add("table", &ObjectAddress::Table(name), None);
            }
        }
        let shares = self.shares();
        list.more |= shares.len() > LEVEL_MAX;
        for share in shares.into_iter().take(LEVEL_MAX) {
            let (share, path) = (share.name().to_string(), String::new());
            list.add("share", &ObjectAddress::File { share, path }, None);
        }
        Ok(list)
    }

    /// Blobs and prefixes of a container up to the next slash.
    fn blobs(&self, container: &str, prefix: &str) -> Result<ObjectList, ApiFailure> {
        let mut list = ObjectList::default();
        let (prefix, delimiter) = (prefix.to_owned(), Some("/".to_owned()));
        let asked = ListBlobs { prefix, delimiter, limit: LEVEL_MAX, ..ListBlobs::default() };
        let Some(service) = self.account.used_blob()? else { return Ok(list) };
        let page = service.list_blobs(&self.context("ls"), container, &asked)?;
        list.more = page.next.is_some();
        for item in page.items {
            let (kind, name, length) = match item {
                BlobListItem::Prefix(name) => ("prefix", name, None),
                BlobListItem::Blob(blob) => ("blob", blob.name, Some(blob.state.length)),
            };
            let container = container.to_owned();
            list.add(kind, &ObjectAddress::Blob { container, name }, length);
        }
        Ok(list)
    }

    fn visible_messages(&self, queue: &str) -> Result<ObjectList, ApiFailure> {
        let mut list = ObjectList::default();
        let Some(service) = self.account.used_queue()? else { return Ok(list) };
        let shown = service.peek_messages(&self.context("ls"), queue, MESSAGES_MAX)?;
        list.more = shown.len() == MESSAGES_MAX as usize;
        for one in shown {
            let (queue, id) = (queue.to_owned(), one.message.id.to_string());
            list.add("message", &ObjectAddress::Message { queue, id }, None);
            if let Some(row) = list.objects.last_mut() {
                row.text = Some(one.text.chars().take(TEXT_MAX).collect());
            }
        }
        Ok(list)
    }

    fn entities(&self, table: &str) -> Result<ObjectList, ApiFailure> {
        let name = TableName::parse(table).map_err(TableError::from)?;
        let asked = EntityQuery { top: Top(LEVEL_MAX), ..EntityQuery::all(name) };
        let Some(service) = self.account.used_table()? else { return Ok(ObjectList::default()) };
        let (Keys(keys), next) = service.query(&asked, Keys::default())?;
        let mut list = ObjectList { more: next.is_some(), ..ObjectList::default() };
        for EntityKey { partition, row } in keys {
            let table = table.to_owned();
            list.add("entity", &ObjectAddress::Entity { table, partition, row }, None);
        }
        Ok(list)
    }

    fn files(&self, name: &str, path: &str) -> Result<ObjectList, ApiFailure> {
        let (_, dir) = self.place(Some(name), Some(path))?;
        let dir = dir.unwrap_or_else(SharePath::root);
        let options =
            PageOptions { prefix: "", after: None, limit: LEVEL_MAX, smb: false, pending: false };
        let ask = |share: &Share| share.list_page(&dir, options);
        let mut list = ObjectList::default();
        for (_, page) in self.ask_shares(Some(name), Some(&dir), ask)? {
            list.more = page.next.is_some();
            for entry in page.entries {
                let (share, above) = (name.to_owned(), path.trim_matches('/'));
                let slash = if above.is_empty() { "" } else { "/" };
                let address =
                    ObjectAddress::File { share, path: [above, slash, &entry.name].concat() };
                match entry.stat.kind {
                    FileKind::Directory => list.add("directory", &address, None),
                    _ => list.add("file", &address, Some(entry.stat.size)),
                }
            }
        }
        Ok(list)
    }
}

/// The keys of a page of entities.
#[derive(Default)]
struct Keys(Vec<EntityKey>);

impl EntitySink for Keys {
    fn add(&mut self, entity: &EntityRef<'_>) -> ControlFlow<()> {
        self.0.push(EntityKey::new(entity.partition(), entity.row()));
        ControlFlow::Continue(())
    }
}
