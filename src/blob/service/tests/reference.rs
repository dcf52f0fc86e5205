//! A slow, obvious blob service: bytes in vectors, leases as moments, all of it copied.

use std::collections::BTreeMap;

use super::{BlobType, Etag};

/// Why a request is refused, in a word.
pub type No = &'static str;

/// Seconds since the beginning.
pub type Moment = u64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lease {
    #[default]
    Available,
    Leased {
        id: u8,
        duration: Option<u64>,
        end: Option<Moment>,
    },
    Breaking {
        id: u8,
        end: Moment,
    },
    Broken {
        id: u8,
    },
    Expired {
        id: u8,
        duration: u64,
    },
}

/// How an operation meets a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Read,
    Write,
    CopyTarget,
    AbortCopy,
}

impl Lease {
    /// The lease at that moment.
    pub fn at(self, now: Moment) -> Self {
        match self {
            Self::Leased { id, duration: Some(duration), end: Some(end) } if end <= now => {
                Self::Expired { id, duration }
            }
            Self::Breaking { id, end } if end <= now => Self::Broken { id },
            other => other,
        }
    }

    fn leased(id: u8, duration: Option<u64>, now: Moment) -> Self {
        Self::Leased { id, duration, end: duration.map(|seconds| now + seconds) }
    }

    pub fn acquire(
        &mut self,
        duration: Option<u64>,
        proposed: Option<u8>,
        now: Moment,
    ) -> Result<(), No> {
        match self.at(now) {
            Self::Leased { id, .. } if proposed != Some(id) => return Err("already present"),
            Self::Breaking { id, .. } if proposed == Some(id) => return Err("breaking: acquire"),
            Self::Breaking { .. } => return Err("already present"),
            _ => {}
        }
        *self = Self::leased(proposed.unwrap_or(9), duration, now);
        Ok(())
    }

    pub fn renew(&mut self, sent: u8, now: Moment) -> Result<(), No> {
        *self = match self.at(now) {
            Self::Leased { id, duration, .. } if id == sent => Self::leased(id, duration, now),
            Self::Expired { id, duration } if id == sent => Self::leased(id, Some(duration), now),
            Self::Breaking { id, .. } | Self::Broken { id } if id == sent => {
                return Err("broken: renew");
            }
            _ => return Err("lease mismatch"),
        };
        Ok(())
    }

    pub fn change(&mut self, from: u8, to: u8, now: Moment) -> Result<(), No> {
        *self = match self.at(now) {
            Self::Leased { id, duration, end } if id == from || id == to => {
                Self::Leased { id: to, duration, end }
            }
            Self::Breaking { id, .. } if id == from => return Err("breaking: change"),
            Self::Leased { .. } | Self::Breaking { .. } => return Err("lease mismatch"),
            _ => return Err("lease not present"),
        };
        Ok(())
    }

    pub fn release(&mut self, sent: u8, now: Moment) -> Result<(), No> {
        match self.at(now) {
            Self::Leased { id, .. }
            | Self::Breaking { id, .. }
            | Self::Broken { id }
            | Self::Expired { id, .. }
                if id == sent =>
            {
                *self = Self::Available;
                Ok(())
            }
            _ => Err("lease mismatch"),
        }
    }

    /// Breaks the lease; the seconds that are left.
    pub fn break_it(&mut self, period: Option<u64>, now: Moment) -> Result<u64, No> {
        let (id, left) = match self.at(now) {
            Self::Available => return Err("lease not present"),
            Self::Leased { id, end: None, .. } => (id, period.unwrap_or(0)),
            Self::Leased { id, end: Some(end), .. } | Self::Breaking { id, end } => {
                (id, period.unwrap_or(u64::MAX).min(end - now))
            }
            Self::Broken { id } | Self::Expired { id, .. } => (id, 0),
        };
        let end = now + left;
        *self = if left == 0 { Self::Broken { id } } else { Self::Breaking { id, end } };
        Ok(left)
    }

    /// Whether a request of the class may go on.
    pub fn check(self, class: Class, sent: Option<u8>, now: Moment) -> Result<(), No> {
        let (held, infinite, over) = match self.at(now) {
            Self::Available => (None, false, None),
            Self::Leased { id, end, .. } => (Some(id), end.is_none(), None),
            Self::Breaking { id, .. } => (Some(id), false, None),
            Self::Broken { id } | Self::Expired { id, .. } => (None, false, Some(id)),
        };
        match (held, sent) {
            (Some(_), None) => match class {
                Class::Write | Class::CopyTarget => Err("lease ID missing"),
                Class::AbortCopy if infinite => Err("lease ID missing"),
                Class::AbortCopy | Class::Read => Ok(()),
            },
            (Some(id), Some(sent)) if id != sent => Err("lease ID mismatch"),
            (Some(_), Some(_)) if class == Class::CopyTarget && !infinite => {
                Err("infinite lease required")
            }
            (None, Some(sent)) if over == Some(sent) => Err("lease lost"),
            (None, Some(_)) => Err("no lease"),
            (Some(_), Some(_)) | (None, None) => Ok(()),
        }
    }

    /// A write without an ID forgets a lease that is over.
    pub fn after_write(self, now: Moment) -> Self {
        match self.at(now) {
            Self::Broken { .. } | Self::Expired { .. } => Self::Available,
            other => other,
        }
    }
}

/// A copy that is pending.
#[derive(Clone, Debug)]
pub struct Pending {
    pub due: Moment,
    pub bytes: Vec<u8>,
    pub committed: Vec<(u8, Vec<u8>)>,
}

#[derive(Clone, Debug)]
pub struct Blob {
    pub kind: BlobType,
    pub bytes: Vec<u8>,
    /// `None`: a copy has ended, and the service says which it is.
    pub etag: Option<Etag>,
    pub metadata: u64,
    pub tag: Option<u64>,
    pub lease: Lease,
    pub pending: Option<Pending>,
    pub committed: Vec<(u8, Vec<u8>)>,
    pub sealed: bool,
}

impl Blob {
    pub fn new(kind: BlobType, bytes: Vec<u8>) -> Self {
        let (lease, committed) = (Lease::default(), Vec::new());
        Self {
            kind,
            bytes,
            etag: None,
            metadata: 0,
            tag: None,
            lease,
            pending: None,
            committed,
            sealed: false,
        }
    }
}

/// A state that was deleted and is kept.
#[derive(Clone, Debug)]
pub struct Kept {
    pub until: Moment,
    pub blob: Blob,
    /// The blob itself, not a snapshot.
    pub base: bool,
}

/// All there is of a name.
#[derive(Clone, Debug, Default)]
pub struct Name {
    pub blob: Option<Blob>,
    /// The lease of a blob that has only blocks.
    pub uncommitted: Option<Lease>,
    pub blocks: BTreeMap<u8, Vec<u8>>,
    pub snapshots: Vec<Vec<u8>>,
    pub versions: Vec<Vec<u8>>,
    pub kept: Vec<Kept>,
}

/// The demands of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demand {
    pub lease: Option<u8>,
    /// If-Match: the present `ETag`, or another one.
    pub matches: Option<bool>,
    pub star: bool,
}

/// The requirement of an operation on the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Makes or replaces the blob.
    Create,
    /// Put Block: makes or keeps it.
    Stage,
    /// Changes an existing blob; If-Match on a missing one is a condition that fails.
    Update,
    /// Changes an existing blob; a missing one is not found whatever is demanded.
    Existing,
    Read,
}

impl Name {
    /// Ends a copy whose time has come.
    pub fn settle(&mut self, now: Moment) {
        let Some(blob) = &mut self.blob else { return };
        if let Some(done) = blob.pending.take_if(|pending| pending.due <= now) {
            (blob.bytes, blob.committed) = (done.bytes, done.committed);
            blob.etag = None;
        }
    }

    /// Asks the rules in their order: type, pending copy, lease, conditions.
    pub fn admit(
        &self,
        form: Form,
        class: Class,
        kind: Option<BlobType>,
        demand: Demand,
        now: Moment,
    ) -> Result<(), No> {
        let conditional = form != Form::Stage;
        let Some(blob) = &self.blob else {
            let lease = self.uncommitted.unwrap_or_default();
            match form {
                Form::Create | Form::Stage => lease.check(class, demand.lease, now)?,
                Form::Update if demand.matches.is_some() => return Err("condition"),
                Form::Update | Form::Existing | Form::Read => return Err("not found"),
            }
            let failed = conditional && demand.matches.is_some();
            return if failed { Err("condition") } else { Ok(()) };
        };
        if kind.is_some_and(|kind| kind != blob.kind) {
            return Err("type");
        }
        if blob.pending.is_some() && form != Form::Read && class != Class::AbortCopy {
            return Err("pending");
        }
        blob.lease.check(class, demand.lease, now)?;
        if conditional && demand.matches == Some(false) {
            return Err("condition");
        }
        if form == Form::Create && demand.star && demand.lease.is_none() {
            return Err("exists");
        }
        Ok(())
    }

    /// Puts a new blob in the place of what was there.
    pub fn replace(&mut self, mut new: Blob, keep: Keep, now: Moment) {
        if let Some(old) = self.blob.take() {
            new.lease = old.lease.after_write(now);
            self.set_aside(old, keep);
        } else {
            new.lease = self.uncommitted.take().unwrap_or_default().after_write(now);
            self.bury();
        }
        self.blocks.clear();
        self.blob = Some(new);
    }

    fn set_aside(&mut self, old: Blob, keep: Keep) {
        match keep {
            Keep::Nothing => {}
            Keep::Versions => self.versions.push(old.bytes),
            Keep::Until(until) => self.kept.push(Kept { until, blob: old, base: false }),
        }
    }

    /// A deleted blob whose name is used again can only come back as a snapshot.
    fn bury(&mut self) {
        self.kept.iter_mut().for_each(|kept| kept.base = false);
    }
}

/// Which states are kept when a state is replaced or deleted.
#[derive(Clone, Copy, Debug)]
pub enum Keep {
    Nothing,
    Versions,
    Until(Moment),
}
