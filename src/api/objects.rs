//! Reports on blobs, queues, messages and entities: why a request on one is refused, and who
//! changed it.
//! Their leases are in [`super::leases`].
//!
//! Decides the words and the order, the same for every service. The engine remembers the changes;
//! files have opens and events instead ([`super::files`]).

use std::fmt::Display;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::address::ObjectAddress;
use super::failure::{ApiFailure, RefusalKind};
use super::session::Session;
use crate::blob::rules::tier::Tier;
use crate::blob::rules::{BlobDenial, BlobState, ContainerState};
use crate::blob::service::BlobAt;
use crate::journal::Change;
use crate::queue::rules::Message;
use crate::queue::service::Visibility;
use crate::rules::copy_status::CopyStatus;
use crate::rules::lease::{LeaseKind, LeaseStatus, TimedLease};
use crate::rules::time::iso;
use crate::rules::{Timestamp, Writer};
use crate::table::rules::etag::etag;
use crate::table::rules::{EntityKey, TableDenial, TableName};
use crate::table::service::TableError;

/// The forms of an address of an object.
pub const OBJECT_FORM: &str = "file:SHARE/PATH or SHARE:/PATH, blob:CONTAINER[/NAME], \
                               queue:NAME[/ID] or table:TABLE[/PARTITION[/ROW]]";

/// The most changes that `why` tells of.
const CHANGES_MAX: usize = 5;

/// A change of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeRow {
    pub account: String,
    pub object: String,
    /// When it was committed, in UTC.
    pub time: String,
    /// The operation, as the service's documentation names it.
    pub operation: String,
    /// The name of the client, if it has one.
    pub client: Option<String>,
    /// `x-ms-client-request-id`.
    pub client_request: Option<String>,
    /// `User-Agent`.
    pub user_agent: Option<String>,
    /// Where the request came from.
    pub address: Option<String>,
    /// The `ETag` that the object has since, if the change moved it.
    pub etag: Option<String>,
}

/// A reason why a request on an object is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObstacleRow {
    /// Which rule: `lease`, `copy_pending`, `immutable`, `archived`, `hidden`.
    pub rule: String,
    pub message: String,
}

/// The state of an object, and why requests on it are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectState {
    pub account: String,
    pub object: String,
    /// The reasons why requests are refused.
    pub in_the_way: Vec<ObstacleRow>,
    /// Its properties, by name.
    pub facts: Map<String, Value>,
    /// The latest changes, oldest first.
    pub changes: Vec<ChangeRow>,
}

impl ObjectState {
    /// The state of an object that is named later.
    fn new(
        in_the_way: impl IntoIterator<Item = ObstacleRow>,
        facts: Map<String, Value>,
        changes: Vec<ChangeRow>,
    ) -> Self {
        let in_the_way = in_the_way.into_iter().collect();
        Self { in_the_way, facts, changes, ..Self::default() }
    }
}

/// Asks for the latest changes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetHistory {
    /// Its address.
    #[schemars(description = OBJECT_FORM)]
    pub object: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// Of an object and of all below it, oldest first.
    pub changes: Vec<ChangeRow>,
}

impl Session {
    /// Reports why requests on an object are refused, and who changed it last.
    pub(super) fn why_object(&self, object: &str) -> Result<ObjectState, ApiFailure> {
        let address = address(object)?;
        let mut told = match &address {
            ObjectAddress::Blob { container, name } => {
                self.why_blob(&BlobAt::new(container.as_str(), name.as_str()))?
            }
            ObjectAddress::Container(name) => self.why_container(name)?,
            ObjectAddress::Queue(name) => self.why_queue(name)?,
            ObjectAddress::Message { queue, id } => self.why_message(queue, id)?,
            ObjectAddress::Entity { table, partition, row } => {
                self.why_entity(table, &EntityKey::new(partition, row))?
            }
            ObjectAddress::Table(table) | ObjectAddress::Partition { table, .. } => {
                self.why_table(table, &address)?
            }
            ObjectAddress::Service(_) | ObjectAddress::File { .. } => {
                Err(format!("{address}: expected {OBJECT_FORM}"))?
            }
        };
        let surplus = told.changes.len().saturating_sub(CHANGES_MAX);
        told.changes.drain(..surplus);
        told.account = self.account.name().to_string();
        told.object = address.to_string();
        Ok(told)
    }

    /// Changes of an object and of all below it, oldest first; of the whole account without one.
    pub fn history(&self, of: GetHistory) -> Result<History, ApiFailure> {
        let object = of.object.as_deref();
        let address = object.map(address).transpose()?;
        if let Some(address @ ObjectAddress::File { .. }) = &address {
            let why = "changes of files are not kept; `latchfs events` shows who was refused";
            Err(format!("{address}: {why}"))?;
        }
        let wanted = |other: &ObjectAddress| address.as_ref().is_none_or(|one| one.holds(other));
        let mut changes = self.change_rows(&self.account.changes(&wanted));
        // The last writer is in the row, and known after a restart too.
        if let Some(Ok(told)) = object.map(|object| self.why_object(object)) {
            let missing = |row: &ChangeRow| !changes.contains(row);
            let more: Vec<_> = told.changes.into_iter().filter(missing).collect();
            changes.extend(more);
        }
        changes.sort_by(|one, other| one.time.cmp(&other.time));
        Ok(History { changes })
    }

    fn why_blob(&self, at: &BlobAt) -> Result<ObjectState, ApiFailure> {
        let now = self.now();
        let standing = self.account.blob()?.why(now, at)?;
        let changes = self.change_rows(standing.changes.iter().rev());
        let address =
            ObjectAddress::Blob { container: at.container.clone(), name: at.name.clone() };
        let Some(state) = standing.state else {
            return Err(absent(&BlobDenial::BlobNotFound, &changes));
        };
        let last = (&address, state.writer.as_ref(), Some(state.etag.quoted()));
        let mut facts = facts([
            ("etag", json!(state.etag.quoted())),
            ("type", json!(state.kind.name())),
            ("length", json!(state.length)),
            ("modified", json!(iso(state.modified))),
            ("snapshots_and_versions", json!(standing.older)),
        ]);
        lease_facts(&mut facts, &state.lease, now);
        let in_the_way = blob_obstacles(&state, now);
        Ok(ObjectState::new(in_the_way, facts, self.with_last(changes, last)))
    }

    fn why_container(&self, name: &str) -> Result<ObjectState, ApiFailure> {
        let now = self.now();
        let service = self.account.blob()?;
        let address = ObjectAddress::Container(name.to_owned());
        let found = service.changes(|change| change.object == address);
        let changes = self.change_rows(found.iter().rev());
        let Some(state): Option<ContainerState> = service.container_now(name) else {
            return Err(absent(&BlobDenial::ContainerNotFound, &changes));
        };
        let last = (&address, state.writer.as_ref(), Some(state.etag.quoted()));
        let mut facts =
            facts([("etag", json!(state.etag.quoted())), ("modified", json!(iso(state.modified)))]);
        lease_facts(&mut facts, &state.lease, now);
        let by = state.leaser.as_ref();
        let in_the_way = leased(&state.lease, by, now, "deleting it needs the lease ID");
        Ok(ObjectState::new(in_the_way, facts, self.with_last(changes, last)))
    }

    fn why_queue(&self, name: &str) -> Result<ObjectState, ApiFailure> {
        // One row is left for the last change of the queue itself.
        let most = CHANGES_MAX - 1;
        let standing = self.account.queue()?.why_queue(self.now(), name, most)?;
        let holders = standing.first_back.iter().filter_map(|message| {
            let (queue, id) = (name.to_owned(), message.id.to_string());
            let address = ObjectAddress::Message { queue, id };
            message.holder.as_ref().map(|by| self.row(&address, by, None))
        });
        let mut changes = self.change_rows(&standing.last_change);
        changes.extend(holders);
        changes.sort_by(|one, other| one.time.cmp(&other.time));
        let hidden = (standing.hidden > 0).then(|| {
            let (hidden, messages) = (standing.hidden, standing.messages);
            let text = format!("no Get returns {hidden} of its {messages} messages");
            // The others expire before they are visible again.
            let comes_back = |message: &&Message| {
                message.expires.is_none_or(|expires| expires > message.visible_at)
            };
            let message = match standing.first_back.iter().find(comes_back) {
                Some(first) => {
                    let back = iso(first.visible_at.timestamp());
                    format!("{text}; the first comes back at {back}")
                }
                None => text,
            };
            ObstacleRow { rule: "hidden".into(), message }
        });
        let facts =
            facts([("messages", json!(standing.messages)), ("hidden", json!(standing.hidden))]);
        Ok(ObjectState::new(hidden, facts, changes))
    }

    fn why_message(&self, queue: &str, id: &str) -> Result<ObjectState, ApiFailure> {
        let service = self.account.queue()?;
        let standing = service.why(self.now(), queue, id)?;
        let changes = self.change_rows(standing.changes.iter().rev());
        let message = standing.message;
        let address = ObjectAddress::Message { queue: queue.to_owned(), id: id.to_owned() };
        let mut in_the_way = Vec::new();
        let visible = match standing.visibility {
            Visibility::VisibleSince(since) => since,
            Visibility::HiddenUntil(until) => {
                in_the_way.push(ObstacleRow {
                    rule: "hidden".into(),
                    message: format!("no Get returns it until {}", iso(until.timestamp())),
                });
                until
            }
        };
        let mut facts = facts([
            ("inserted", json!(iso(message.inserted.timestamp()))),
            ("visible", json!(iso(visible.timestamp()))),
            ("dequeue_count", json!(message.dequeue_count)),
        ]);
        if let Some(expires) = message.expires {
            facts.insert("expires".into(), json!(iso(expires.timestamp())));
        }
        let last = (&address, message.holder.as_ref(), None);
        Ok(ObjectState::new(in_the_way, facts, self.with_last(changes, last)))
    }

    /// A table, or the entities of one partition. No rule holds either: their changes are told.
    fn why_table(&self, name: &str, address: &ObjectAddress) -> Result<ObjectState, ApiFailure> {
        let service = self.account.table()?;
        let found = service.changes(|change| address.holds(&change.object));
        let changes = self.change_rows(found.iter().rev());
        let name = TableName::parse(name).map_err(TableError::from)?;
        match service.table(&name) {
            Ok(_) => Ok(ObjectState::new([], Map::new(), changes)),
            Err(TableError::Denied(denial)) => Err(absent(&denial, &changes)),
            Err(error) => Err(error.into()),
        }
    }

    fn why_entity(&self, name: &str, key: &EntityKey) -> Result<ObjectState, ApiFailure> {
        let denied = |error: TableDenial| ApiFailure::from(TableError::from(error));
        let name = TableName::parse(name).map_err(denied)?;
        key.check().map_err(denied)?;
        let service = self.account.table()?;
        let standing = service.why(&name, key)?;
        let changes = self.change_rows(standing.changes.iter().rev());
        let Some(ticks) = standing.ticks else {
            return Err(absent(&TableDenial::ResourceNotFound, &changes));
        };
        let address = ObjectAddress::Entity {
            table: name.to_string(),
            partition: key.partition.clone(),
            row: key.row.clone(),
        };
        let last = (&address, standing.last_writer.as_ref(), Some(etag(ticks)));
        let facts =
            facts([("etag", json!(etag(ticks))), ("properties", json!(standing.properties))]);
        Ok(ObjectState::new([], facts, self.with_last(changes, last)))
    }

    fn change_rows<'a>(&self, of: impl IntoIterator<Item = &'a Change>) -> Vec<ChangeRow> {
        let row = |change: &Change| self.row(&change.object, &change.by, change.etag.clone());
        of.into_iter().map(row).collect()
    }

    pub(super) fn row(
        &self,
        address: &ObjectAddress,
        by: &Writer,
        etag: Option<String>,
    ) -> ChangeRow {
        ChangeRow {
            account: self.account.name().to_string(),
            object: address.to_string(),
            time: iso(by.when),
            operation: by.operation.clone(),
            client: by.client.clone(),
            client_request: by.client_request.clone(),
            user_agent: by.user_agent.clone(),
            address: by.address.clone(),
            etag,
        }
    }

    /// The changes with the last writer of the object's row, which outlives a restart.
    fn with_last(
        &self,
        mut changes: Vec<ChangeRow>,
        (address, writer, etag): (&ObjectAddress, Option<&Writer>, Option<String>),
    ) -> Vec<ChangeRow> {
        let Some(writer) = writer else { return changes };
        let last = self.row(address, writer, etag);
        let same = |one: &ChangeRow| {
            one.operation == last.operation
                && (one.time == last.time || (one.etag.is_some() && one.etag == last.etag))
        };
        if !changes.iter().any(same) {
            changes.push(last);
            changes.sort_by(|one, other| one.time.cmp(&other.time));
        }
        changes
    }
}

/// The address that a request names.
pub(super) fn address(text: &str) -> Result<ObjectAddress, String> {
    ObjectAddress::read(text).ok_or_else(|| format!("{text}: expected {OBJECT_FORM}"))
}

fn facts<const N: usize>(facts: [(&str, Value); N]) -> Map<String, Value> {
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn lease_facts<K: LeaseKind>(
    facts: &mut Map<String, Value>,
    lease: &TimedLease<K>,
    now: Timestamp,
) {
    facts.insert("lease".into(), json!(lease.state(now).to_string()));
    if let Some(id) = lease.id() {
        facts.insert("lease_id".into(), json!(id.to_string()));
    }
}

fn leased<K: LeaseKind>(
    lease: &TimedLease<K>,
    by: Option<&Writer>,
    now: Timestamp,
    effect: &str,
) -> Option<ObstacleRow> {
    if lease.status(now) == LeaseStatus::Unlocked {
        return None;
    }
    let end = match lease.seconds_left(now) {
        Some(seconds) => format!("it ends in {seconds} s"),
        None => "it has no end".to_owned(),
    };
    let mut message = format!("its lease is {}: {effect}; {end}", lease.state(now));
    if let Some(by) = by {
        message.push_str("; ");
        message.push_str(&by.told_of_lease(now));
    }
    Some(ObstacleRow { rule: "lease".into(), message })
}

fn blob_obstacles(state: &BlobState, now: Timestamp) -> Vec<ObstacleRow> {
    let mut found = Vec::new();
    let by = state.leaser.as_ref();
    found.extend(leased(&state.lease, by, now, "writing and deleting need the lease ID"));
    let mut add = |rule: &str, message: String| {
        found.push(ObstacleRow { rule: rule.to_owned(), message });
    };
    if let Some(copy) = &state.copy
        && copy.status == CopyStatus::Pending
        && copy.ended(now).is_none()
    {
        add("copy_pending", format!("a copy to it is under way ({})", copy.progress()));
    }
    if let Some(policy) = state.immutability.policy.filter(|policy| policy.until > now) {
        let until = iso(policy.until);
        add("immutable", format!("a policy ({}) keeps it as it is until {until}", policy.mode));
    }
    if state.immutability.legal_hold == Some(true) {
        add("immutable", "a legal hold keeps it as it is".to_owned());
    }
    if state.tier.tier(now) == Tier::Archive {
        add("archived", "its content is archived: set another tier to read it".to_owned());
    }
    found
}

/// The refusal of an object that is not there, with the request that deleted it.
fn absent(denial: &dyn Display, changes: &[ChangeRow]) -> ApiFailure {
    let mut message = denial.to_string();
    if let Some(last) = changes.last() {
        message = format!("{message} [latchfs: {}]", last.words());
    }
    ApiFailure::rule(RefusalKind::NotFound, message)
}

impl ChangeRow {
    /// The change in words: `changed TIME by Put Blob, client request 5f`.
    pub fn words(&self) -> String {
        let Self { time, operation, .. } = self;
        let mut text = format!("changed {time} by {operation}");
        if let Some(client) = &self.client {
            text = format!("{text}, client {client}");
        }
        if let Some(id) = &self.client_request {
            text = format!("{text}, client request {id}");
        }
        if let Some(agent) = &self.user_agent {
            text = format!("{text}, {agent}");
        }
        if let Some(address) = &self.address {
            text = format!("{text}, from {address}");
        }
        text
    }
}
