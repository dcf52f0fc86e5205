//! What is remembered of the requests so far: by object, by client, and by both.
//!
//! Decides how much is remembered: [`ENTRIES_MAX`] pairs of a client and an object. What does not
//! fit is not looked at, and the report says that it is incomplete. What follows from it is
//! decided in the files of the rules.

use std::collections::{HashMap, VecDeque};
use std::fmt::{self, Write as _};
use std::sync::Arc;

use super::finding::Evidence;
use super::row::ReportRow;
use crate::rules::Timestamp;
use crate::rules::asked::{Asked, Fingerprint, Parts};
use crate::rules::time::iso;

/// The most pairs of a client and an object, and the most objects and clients, that are remembered.
pub const ENTRIES_MAX: usize = 200_000;
/// The most requests of a client between a read and a write that rests on it.
pub const BETWEEN_MAX: u64 = 32;
/// How many of the latest changes of an object are remembered.
const WRITES_MAX: usize = 8;
/// How many of the latest lists of a client, and of its answers that were lost, are remembered.
const LATEST_MAX: usize = 4;

/// The number of a client since the last barrier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClientId(u32);

/// The number of an object since the last barrier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectId(u32);

/// A row that may become evidence.
#[derive(Clone, Debug)]
pub struct Step {
    pub seq: u64,
    pub time: Timestamp,
    pub client: ClientId,
    pub operation: &'static str,
    pub object: ObjectId,
    /// The `ETag` that was read, or that the object had afterwards.
    pub etag: Option<Arc<str>>,
    pub status: Option<u16>,
    /// How many requests the client had sent.
    pub nth: u64,
}

/// A change of an object.
#[derive(Clone, Debug)]
pub struct Write {
    pub step: Step,
    /// The `ETag` that the object had; none if it was not there.
    pub before: Option<Arc<str>>,
    /// The part that was changed; none: the whole.
    pub parts: Option<Parts>,
    /// It can lose nothing: a condition or a lease guards it, or it appends.
    pub is_guarded: bool,
}

/// What a client has read of an object.
#[derive(Clone, Debug)]
pub struct Read {
    pub step: Step,
    pub parts: ReadParts,
}

/// The part of an object that a client has read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadParts {
    /// Its content, or this part of it, with the attributes.
    Content(Option<Parts>),
    /// Its metadata and headers alone.
    Attributes,
}

impl ReadParts {
    /// Whether a write of `parts` may rest on this.
    pub fn supports(&self, parts: Option<&Parts>) -> bool {
        match (self, parts) {
            (_, Some(Parts::Metadata | Parts::Headers)) => true,
            (Self::Content(read), written) => Parts::overlap(read.as_ref(), written),
            (Self::Attributes, _) => false,
        }
    }
}

/// An `ETag` that a client learned without the content.
#[derive(Clone, Debug)]
pub struct Learned {
    pub step: Step,
    /// By the answer to its own write.
    pub by_write: bool,
}

/// A change whose answer the client did not get.
#[derive(Clone, Debug)]
pub struct Unanswered {
    pub step: Step,
    pub body: Option<u64>,
    pub asked: Asked,
}

/// What is remembered of a client and an object.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// Its last read of the content, or of the attributes alone.
    pub content: Option<Read>,
    pub attributes: Option<Read>,
    pub learned: Option<Learned>,
    /// It was told that the object is not there.
    pub absent: Option<Step>,
    pub unanswered: VecDeque<Unanswered>,
    /// It acquired a lease of the object and has not been told that the lease is over.
    pub leases: Option<Step>,
    /// The receipts of a message that it was given, the latest last.
    pub receipts: Vec<(Fingerprint, Step)>,
}

/// A list that a client was shown.
#[derive(Clone, Debug)]
pub struct Shown {
    pub step: Step,
    pub prefix: String,
    pub objects: Vec<ObjectId>,
}

/// What is remembered of a client.
#[derive(Clone, Debug)]
pub struct ClientState {
    pub name: Arc<str>,
    /// One of its requests was surely its own.
    pub is_strong: bool,
    pub requests: u64,
    pub lists: VecDeque<Shown>,
    /// The objects that it believes to lease.
    pub believes: Vec<ObjectId>,
}

/// A blob that was created without content.
#[derive(Clone, Debug)]
pub struct CreatedEmpty {
    pub step: Step,
    /// The first read of another client meanwhile.
    pub read: Option<Step>,
}

/// What is remembered of an object.
#[derive(Clone, Debug, Default)]
pub struct ObjectState {
    pub name: Arc<str>,
    pub writes: VecDeque<Write>,
    pub empty: Option<CreatedEmpty>,
    /// The client that acquired the lease last.
    pub lease: Option<Step>,
    /// The last write of it under the lease of another object, and that object.
    pub under: Option<(ObjectId, Step)>,
    /// The lease of this object was seen as a lock for others.
    pub is_lock: bool,
    /// The message was given last with this receipt.
    pub given: Option<(Fingerprint, Step)>,
    /// Opened for writing through a mount.
    pub opened: Option<Step>,
    /// Overwrites whose predecessor's row has not come yet.
    pub waiting: Vec<super::overwritten::Overwrite>,
}

impl ObjectState {
    /// The change that gave the object this `ETag`.
    pub fn write_of(&self, etag: &str) -> Option<&Write> {
        self.writes.iter().rev().find(|write| write.step.etag.as_deref() == Some(etag))
    }
}

/// What is remembered since the last barrier.
#[derive(Debug)]
pub struct Past {
    /// The most objects, clients, and pairs of them.
    max: usize,
    client_ids: HashMap<Arc<str>, ClientId>,
    clients: Vec<ClientState>,
    object_ids: HashMap<Box<str>, ObjectId>,
    objects: Vec<ObjectState>,
    entries: HashMap<(ClientId, ObjectId), Entry>,
    /// The name that is looked up: kept, so that a look allocates nothing.
    key: String,
    /// Something did not fit.
    pub is_full: bool,
}

impl Past {
    pub fn new(max: usize) -> Self {
        Self {
            max,
            client_ids: HashMap::new(),
            clients: Vec::new(),
            object_ids: HashMap::new(),
            objects: Vec::new(),
            entries: HashMap::new(),
            key: String::new(),
            is_full: false,
        }
    }

    /// Nothing is remembered any more.
    pub fn clear(&mut self) {
        *self = Self::new(self.max);
    }

    /// The client of a row; none if there are too many.
    pub fn client_of(&mut self, row: &ReportRow<'_>) -> Option<ClientId> {
        self.client(&row.client.name, row.client.by.is_strong())
    }

    /// The client of this name; none if there are too many.
    pub fn client(&mut self, name: &Arc<str>, is_strong: bool) -> Option<ClientId> {
        let id = if let Some(id) = self.client_ids.get(name) {
            *id
        } else {
            let id = ClientId(self.next(self.clients.len())?);
            self.client_ids.insert(Arc::clone(name), id);
            self.clients.push(ClientState {
                name: Arc::clone(name),
                is_strong: false,
                requests: 0,
                lists: VecDeque::new(),
                believes: Vec::new(),
            });
            id
        };
        self.of_client(id).is_strong |= is_strong;
        Some(id)
    }

    /// The object of this name in an account; none if there are too many.
    pub fn object(&mut self, account: &str, name: impl fmt::Display) -> Option<ObjectId> {
        self.key.clear();
        write!(self.key, "{account}\0{name}").ok()?;
        if let Some(id) = self.object_ids.get(&*self.key) {
            return Some(*id);
        }
        let id = ObjectId(self.next(self.objects.len())?);
        self.object_ids.insert(self.key.as_str().into(), id);
        let name = self.key[account.len() + 1..].into();
        self.objects.push(ObjectState { name, ..ObjectState::default() });
        Some(id)
    }

    fn next(&mut self, length: usize) -> Option<u32> {
        self.is_full |= length >= self.max;
        u32::try_from(length).ok().filter(|_| length < self.max)
    }

    pub fn of_client(&mut self, id: ClientId) -> &mut ClientState {
        &mut self.clients[id.0 as usize]
    }

    pub fn of_object(&mut self, id: ObjectId) -> &mut ObjectState {
        &mut self.objects[id.0 as usize]
    }

    pub fn seen_client(&self, id: ClientId) -> &ClientState {
        &self.clients[id.0 as usize]
    }

    pub fn seen_object(&self, id: ObjectId) -> &ObjectState {
        &self.objects[id.0 as usize]
    }

    /// What is remembered of a client and an object; none if it was nothing.
    pub fn seen(&self, client: ClientId, object: ObjectId) -> Option<&Entry> {
        self.entries.get(&(client, object))
    }

    /// The entry of a client and an object, to be filled; none if there are too many.
    pub fn entry(&mut self, client: ClientId, object: ObjectId) -> Option<&mut Entry> {
        let is_room = self.entries.len() < self.max;
        match self.entries.entry((client, object)) {
            std::collections::hash_map::Entry::Occupied(there) => Some(there.into_mut()),
            std::collections::hash_map::Entry::Vacant(vacant) if is_room => {
                Some(vacant.insert(Entry::default()))
            }
            std::collections::hash_map::Entry::Vacant(_) => {
                self.is_full = true;
                None
            }
        }
    }

    /// Remembers a change as the latest.
    pub fn wrote(&mut self, write: Write) {
        push_latest(&mut self.of_object(write.step.object).writes, write, WRITES_MAX);
    }

    pub fn shown(&mut self, client: ClientId, list: Shown) {
        push_latest(&mut self.of_client(client).lists, list, LATEST_MAX);
    }

    pub fn unanswered(&mut self, lost: Unanswered) {
        if let Some(entry) = self.entry(lost.step.client, lost.step.object) {
            push_latest(&mut entry.unanswered, lost, LATEST_MAX);
        }
    }

    /// Whether the client has sent few enough requests since.
    pub fn is_recent(&self, step: &Step) -> bool {
        // The request that is looked at is counted already.
        self.seen_client(step.client).requests - step.nth <= BETWEEN_MAX + 1
    }

    pub fn name(&self, client: ClientId) -> &str {
        &self.seen_client(client).name
    }

    pub fn evidence(&self, step: &Step) -> Evidence {
        Evidence {
            seq: step.seq,
            time: iso(step.time),
            client: self.name(step.client).to_owned(),
            operation: step.operation.to_owned(),
            object: self.seen_object(step.object).name.to_string(),
            etag: step.etag.as_deref().map(str::to_owned),
            status: step.status,
        }
    }
}

fn push_latest<T>(rows: &mut VecDeque<T>, row: T, most: usize) {
    if rows.len() >= most {
        rows.pop_front();
    }
    // Most objects have one row, and the first growth would be for four.
    if rows.capacity() == 0 {
        rows.reserve_exact(1);
    }
    rows.push_back(row);
}
