//! A request inside its transaction: finds the state that the request names, asks the rules,
//! publishes the new state.
//!
//! Decides what happens to the state that a write replaces: it stays as a version, or as a deleted
//! snapshot while the service retains deleted data, or goes.

use std::cell::RefCell;

use super::BlobMemory;
use super::access::{AccessConditions, BlobAt, Selector};
use super::error::{BlobError, BlobResult};
use crate::blob::rules::{
    AdmitRequest, BlobDenial, BlobOperation, BlobState, BlobType, ContainerState, Encryption,
    FoundObject, admit, admit_container,
};
use crate::blob::store::{
    BlobTx, ContainerId, ContainerRow, Retained, StateId, StateKey, StateKind, WriteTx,
};
use crate::journal::Change;
use crate::rules::address::ObjectAddress;
use crate::rules::lease::{BlobLease, LeaseClass};
use crate::rules::{Context, Etag, Timestamp, Writer};

/// A state of a blob.
pub(super) type BlobRow = crate::blob::store::StateRow<BlobState>;

/// A look at one committed state of the database.
pub(crate) struct BlobView<'a> {
    pub tx: &'a BlobTx<'a>,
    pub memory: &'a BlobMemory,
    pub now: Timestamp,
}

/// A change under way, in the writer's transaction.
pub(crate) struct BlobChange<'a> {
    look: BlobView<'a>,
    pub tx: &'a WriteTx<'a>,
    cx: &'a Context,
    changes: RefCell<Vec<Change>>,
}

/// The container and state that a name leads to.
#[derive(Debug)]
pub(crate) struct ResolvedBlob {
    pub container: ContainerId,
    /// The encryption scope of the container, and whether it denies every other.
    pub scope: (Option<String>, bool),
    /// The state that the request names; of the current one, also an uncommitted blob.
    pub row: Option<BlobRow>,
    /// Whether deleted blobs of that name are kept. Known if the request names the current state.
    has_deleted: bool,
}

/// How a state that is replaced is set aside.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetAside {
    /// It makes room at once.
    Moved,
    /// It stays until the new one takes its place, which is made of its parts.
    Copied,
}

impl ResolvedBlob {
    /// The blob, a snapshot or a version; not an uncommitted blob.
    pub fn blob(&self) -> Option<&BlobRow> {
        self.row.as_ref().filter(|row| row.key != StateKey::Uncommitted)
    }

    /// The `ETag` of the blob, if there is one.
    pub fn etag(&self) -> Option<Etag> {
        self.blob().map(|row| row.record.etag)
    }

    /// The blob, which the rules have admitted.
    pub fn admitted(self) -> BlobResult<BlobRow> {
        self.row
            .filter(|row| row.key != StateKey::Uncommitted)
            .ok_or_else(|| BlobDenial::BlobNotFound.into())
    }

    fn found(&self) -> FoundObject<'_> {
        match &self.row {
            None => FoundObject::Nothing,
            Some(row) if row.key == StateKey::Uncommitted => {
                FoundObject::Uncommitted(&row.record.lease)
            }
            Some(row) => FoundObject::Blob(&row.record),
        }
    }
}

impl BlobView<'_> {
    /// The container of that name.
    pub fn container(&self, name: &str) -> BlobResult<ContainerRow<ContainerState>> {
        Ok(self.tx.container(name)?.ok_or(BlobDenial::ContainerNotFound)?)
    }

    /// Refuses the name of a container that exists.
    pub fn check_container_free(&self, name: &str) -> BlobResult<()> {
        match self.tx.container::<ContainerState>(name)? {
            Some(_) => Err(BlobDenial::ContainerAlreadyExists.into()),
            None => Ok(()),
        }
    }

    /// The container and state that the address names.
    pub fn place(&self, at: &BlobAt) -> BlobResult<ResolvedBlob> {
        let ContainerRow { id: container, record, .. } = self.container(&at.container)?;
        let scope = (record.encryption_scope, record.deny_scope_override);
        let state = |key| {
            let found = self.tx.state::<BlobState>(container, &at.name, key)?;
            Ok::<_, BlobError>(found.map(|row| self.at_now(row)))
        };
        let mut has_deleted = false;
        let row = match at.selector {
            Selector::Current => {
                let head = self.tx.head::<BlobState>(container, &at.name)?;
                has_deleted = head.has_deleted;
                head.row.map(|row| self.at_now(row))
            }
            Selector::Snapshot(moment) => {
                state(StateKey::Snapshot(moment))?.filter(|row| row.retained.is_none())
            }
            Selector::Version(moment) => match state(StateKey::Version(moment))? {
                Some(row) => Some(row).filter(|row| row.retained.is_none()),
                None => state(StateKey::Current)?.filter(|row| row.record.version == Some(moment)),
            },
        };
        Ok(ResolvedBlob { container, scope, row, has_deleted })
    }

    /// A row as it is at this moment.
    pub fn at_now(&self, row: BlobRow) -> BlobRow {
        BlobRow { record: row.record.at(self.now), ..row }
    }

    /// Asks the rules about a request on a blob.
    pub fn admit(
        &self,
        operation: BlobOperation,
        at: &BlobAt,
        asked: &AccessConditions,
        place: &ResolvedBlob,
    ) -> BlobResult<()> {
        let admitted = self.memory.admit(operation, at, asked, place.found(), self.now);
        admitted.map_err(|denial| {
            let writer = place.blob().and_then(|row| row.record.writer.as_ref());
            let leaser = place.row.as_ref().and_then(|row| row.record.leaser.as_ref());
            let error = BlobError::by(denial, writer, leaser);
            match place.blob() {
                Some(row) => error.of_state(&row.record),
                None => error,
            }
        })
    }

    /// Finds a blob and asks the rules about a request on it.
    pub fn admitted(
        &self,
        operation: BlobOperation,
        at: &BlobAt,
        asked: &AccessConditions,
    ) -> BlobResult<ResolvedBlob> {
        let place = self.place(at)?;
        self.admit(operation, at, asked, &place)?;
        Ok(place)
    }

    /// Asks the rules about a request on a container.
    pub fn admit_container(
        &self,
        operation: BlobOperation,
        asked: &AccessConditions,
        container: &ContainerRow<ContainerState>,
    ) -> BlobResult<()> {
        let ask = AdmitRequest {
            operation,
            conditions: &asked.conditions,
            tags: None,
            lease: asked.lease,
            key: None,
            versioning: false,
            only_new: false,
            now: self.now,
        };
        let record = &container.record;
        admit_container(&ask, record)
            .map_err(|denial| BlobError::by(denial, record.writer.as_ref(), record.leaser.as_ref()))
    }

    /// How long a state that is deleted now is kept, `None` if it goes at once.
    pub fn retention(&self) -> Option<Retained> {
        self.memory.settings.retained(self.now)
    }
}

impl BlobMemory {
    /// Asks the rules about a request on a blob that was found.
    pub(super) fn admit(
        &self,
        operation: BlobOperation,
        at: &BlobAt,
        asked: &AccessConditions,
        found: FoundObject<'_>,
        now: Timestamp,
    ) -> Result<(), BlobDenial> {
        let ask = AdmitRequest {
            operation,
            conditions: &asked.conditions,
            tags: asked.tags.as_ref(),
            lease: asked.lease,
            key: asked.key.as_deref(),
            versioning: self.options.versioning,
            only_new: asked.only_new,
            now,
        };
        admit(&ask, &at.container, found)
    }
}

impl<'a> std::ops::Deref for BlobChange<'a> {
    type Target = BlobView<'a>;

    fn deref(&self) -> &BlobView<'a> {
        &self.look
    }
}

impl<'a> BlobChange<'a> {
    pub fn new(tx: &'a WriteTx<'a>, memory: &'a BlobMemory, cx: &'a Context) -> Self {
        let look = BlobView { tx, memory, now: memory.present.of(cx.now) };
        Self { look, tx, cx, changes: RefCell::default() }
    }

    /// Takes the entries for the history out of the change.
    pub fn changes(&self) -> Vec<Change> {
        self.changes.take()
    }

    /// A version later than all before.
    pub fn etag(&self) -> BlobResult<Etag> {
        Ok(Etag::from_number(self.tx.next_counter(Etag::clock(self.now))?))
    }

    /// The request as the last writer of what it changes, with the `ETag` before the change and
    /// after it. The history and the journal get it too.
    pub fn writer(
        &self,
        operation: BlobOperation,
        container: &str,
        name: Option<&str>,
        (before, after): (Option<Etag>, Option<Etag>),
    ) -> Writer {
        let by = self.cx.writer(operation.title());
        let container = container.to_owned();
        let object = match name {
            Some(name) => ObjectAddress::Blob { container, name: name.to_owned() },
            None => ObjectAddress::Container(container),
        };
        self.cx.changed(&object, (before.map(Etag::quoted), after.map(Etag::quoted)), None);
        let etag = after.filter(|_| before != after).map(Etag::quoted);
        self.changes.borrow_mut().push(Change { object, etag, by: by.clone() });
        by
    }

    /// Notes when the lease that the request acted on ends by itself.
    pub fn leased_until(&self, until: Option<Timestamp>) {
        self.cx.note(|given| given.lease_until = until);
    }

    /// The state that a write at `place` begins with: new content and properties, the creation
    /// time and the lease of what was there.
    pub fn new_state(&self, kind: BlobType, place: &ResolvedBlob) -> BlobResult<BlobState> {
        let etag = self.etag()?;
        let mut state = BlobState::new(kind, etag, self.now);
        if let Some(before) = &place.row {
            state.lease = before.record.lease;
            state.lease.after_write(self.now);
            if state.lease != BlobLease::default() {
                state.leaser.clone_from(&before.record.leaser);
            }
        }
        if let Some(before) = place.blob() {
            state.created = before.record.created;
            state.modified = state.modified.max(before.record.modified);
        }
        if self.memory.options.versioning {
            state.version = Some(etag.moment());
        }
        Ok(state)
    }

    /// Makes `state` the blob, in place of what was there. `put` writes its row.
    pub fn publish(
        &self,
        operation: BlobOperation,
        at: &BlobAt,
        place: &ResolvedBlob,
        mut state: BlobState,
        aside: SetAside,
        put: impl FnOnce(&BlobState) -> BlobResult<StateId>,
    ) -> BlobResult<BlobState> {
        let etags = (place.etag(), Some(state.etag));
        state.writer = Some(self.writer(operation, &at.container, Some(&at.name), etags));
        self.set_aside(place, &at.name, aside)?;
        if let Some(row) = place.row.as_ref().filter(|row| row.key == StateKey::Uncommitted) {
            self.tx.remove(row.id)?;
        }
        let id = put(&state)?;
        if !state.tags.is_empty() {
            self.tx.set_tags(id, state.tags.iter())?;
        }
        Ok(state)
    }

    /// Keeps the current state before it is replaced: as a version, or as a deleted snapshot.
    fn set_aside(&self, place: &ResolvedBlob, name: &str, aside: SetAside) -> BlobResult<()> {
        let container = place.container;
        let Some(before) = place.blob() else {
            return if place.has_deleted { self.bury(container, name) } else { Ok(()) };
        };
        let old = old_state(&before.record);
        let (key, retained) = if self.memory.options.versioning {
            (StateKey::Version(version_of(&old)), None)
        } else if let Some(retained) = self.retention() {
            (StateKey::Snapshot(self.etag()?.moment()), Some(retained))
        } else {
            return Ok(());
        };
        match aside {
            SetAside::Copied => {
                self.tx.put_shared(container, name, key, &old, before.id, retained)?;
            }
            SetAside::Moved => self.tx.rekey(before.id, key, &old, retained)?,
        }
        Ok(())
    }

    /// Makes room for a new blob where a deleted one is kept: that one can only come back as a
    /// snapshot.
    fn bury(&self, container: ContainerId, name: &str) -> BlobResult<()> {
        let deleted: Vec<BlobRow> = self.tx.states_of(container, name, StateKind::Deleted)?;
        for row in &deleted {
            let key = StateKey::Snapshot(self.etag()?.moment());
            self.tx.rekey(row.id, key, &row.record, row.retained)?;
        }
        Ok(())
    }

    /// Keeps the current state as a version beside the current one, which shares its content.
    pub fn keep_version(&self, container: ContainerId, row: &BlobRow) -> BlobResult<()> {
        if self.memory.options.versioning {
            let old = old_state(&row.record);
            let key = StateKey::Version(version_of(&old));
            self.tx.put_shared(container, &row.name, key, &old, row.id, None)?;
        }
        Ok(())
    }

    /// Changes the record of a blob whose content stays, and with it its `ETag` if `change` does.
    pub fn update(
        &self,
        operation: BlobOperation,
        at: &BlobAt,
        row: &BlobRow,
        change: impl FnOnce(&mut BlobState) -> BlobResult<()>,
    ) -> BlobResult<BlobState> {
        let mut state = row.record.clone();
        change(&mut state)?;
        if operation.rules().lease == LeaseClass::Write {
            state.lease.after_write(self.now);
        }
        let etags = (Some(row.record.etag), Some(state.etag));
        let writer = self.writer(operation, &at.container, Some(&at.name), etags);
        if row.record.etag != state.etag {
            state.writer = Some(writer);
        }
        self.tx.update(row.id, &state)?;
        if row.record.tags != state.tags {
            self.tx.set_tags(row.id, state.tags.iter())?;
        }
        Ok(state)
    }
}

/// The record of a state that is no longer current: it has no lease and no uncommitted blocks.
pub(super) fn old_state(current: &BlobState) -> BlobState {
    let (lease, staged) = (BlobLease::default(), Encryption::default());
    BlobState { lease, leaser: None, staged, ..current.clone() }
}

/// The version ID of a state. One from before versions were kept is named by its `ETag`.
pub(super) fn version_of(state: &BlobState) -> Timestamp {
    state.version.unwrap_or_else(|| state.etag.moment())
}
