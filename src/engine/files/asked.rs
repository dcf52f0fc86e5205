//! What a request says about properties and times, and what that makes of a file's record.
//!
//! Decides the defaults (FILEREST section 4), that content headers go together (LOCKING 7.8),
//! and the limits on what may be asked for. The last-write time is the inode's and is set by the
//! operations themselves.

use crate::core::{Attributes, Denial, Timestamp, check_metadata};
use crate::store::{HttpHeaders, Metadata, Record, Stat};

/// The longest a file may be (FILEREST section 8).
pub const FILE_SIZE_MAX: u64 = 4 << 40;

/// A time as a request gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeChange {
    /// The time of the request.
    Now,
    /// What it was; the time of the request, for a file that is made.
    Preserve,
    /// This.
    At(Timestamp),
}

/// What Put Range does to the last-write time (LOCKING 7.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LastWrite {
    /// It becomes the time of the request.
    #[default]
    Now,
    /// It stays.
    Preserve,
}

/// Whether a file is new, or brought back as it was elsewhere (`x-ms-file-property-semantics`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Semantics {
    /// New: it has the archive attribute, whatever was asked for.
    #[default]
    New,
    /// Brought back: it has the attributes that were asked for.
    Restore,
}

/// The properties of a file that is made or overwritten; what is not given is the default one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewProperties {
    /// `Archive` if none are given.
    pub attributes: Option<Attributes>,
    /// What the attributes mean.
    pub semantics: Semantics,
    /// Creation time.
    pub created: TimeChange,
    /// Last-write time.
    pub written: TimeChange,
    /// Change time.
    pub changed: TimeChange,
    /// Key of the permission; none to inherit it.
    pub permission_key: Option<String>,
    /// Content headers.
    pub headers: HttpHeaders,
    /// The user's metadata.
    pub metadata: Metadata,
}

impl Default for NewProperties {
    fn default() -> Self {
        Self {
            attributes: None,
            semantics: Semantics::default(),
            created: TimeChange::Now,
            written: TimeChange::Now,
            changed: TimeChange::Now,
            permission_key: None,
            headers: HttpHeaders::default(),
            metadata: Metadata::default(),
        }
    }
}

/// Changes of a file's properties; what is not given stays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileChanges {
    /// A new length.
    pub size: Option<u64>,
    /// Attributes. Giving some is what lets a read-only file be changed (LOCKING C3).
    pub attributes: Option<Attributes>,
    /// Creation time; stays unless said otherwise.
    pub created: TimeChange,
    /// Last-write time; stays unless said otherwise, but a new length moves it (LOCKING 7.6).
    pub written: TimeChange,
    /// Change time; the time of the request unless said otherwise.
    pub changed: TimeChange,
    /// Key of the permission.
    pub permission_key: Option<String>,
    /// Content headers, all of them: those left out are cleared (LOCKING 7.8).
    pub headers: Option<HttpHeaders>,
}

impl Default for FileChanges {
    fn default() -> Self {
        Self {
            size: None,
            attributes: None,
            created: TimeChange::Preserve,
            written: TimeChange::Preserve,
            changed: TimeChange::Now,
            permission_key: None,
            headers: None,
        }
    }
}

impl NewProperties {
    /// Refuses what no file can have.
    pub(super) fn check(&self, size: u64) -> Result<(), Denial> {
        check_size(size)?;
        check_attributes(self.attributes)?;
        Ok(check_metadata(self.metadata.iter())?)
    }

    /// The record of a file that was just made; `stat` says whether its birth time is known.
    pub(super) fn record(&self, stat: &Stat, now: Timestamp) -> Record {
        let unknown = (stat.id.born == 0).then_some(now);
        Record {
            created: self.created.kept(unknown, unknown),
            changed: self.changed.kept(None, None),
            ..self.plain_record()
        }
    }

    /// The record of a file that is overwritten. The number of changes stays, or an old `ETag`
    /// would come back.
    pub(super) fn record_over(&self, old: &Record, stat: &Stat, now: Timestamp) -> Record {
        Record {
            created: self.created.kept(old.created, Some(now)),
            changed: self.changed.kept(Some(old.changed.unwrap_or(stat.changed)), None),
            changes: old.changes,
            ..self.plain_record()
        }
    }

    fn plain_record(&self) -> Record {
        let attributes = self.attributes.map(|given| match self.semantics {
            Semantics::New => given | Attributes::ARCHIVE,
            Semantics::Restore => given,
        });
        Record {
            metadata: self.metadata.clone(),
            headers: self.headers.clone(),
            attributes,
            permission_key: self.permission_key.clone(),
            ..Record::default()
        }
    }
}

impl FileChanges {
    /// Refuses what no file can have.
    pub(super) fn check(&self) -> Result<(), Denial> {
        check_size(self.size.unwrap_or(0))?;
        check_attributes(self.attributes)
    }

    /// Applies them to a file's record.
    pub(super) fn apply(&self, record: &mut Record, stat: &Stat, now: Timestamp) {
        if let Some(attributes) = self.attributes {
            record.attributes = Some(attributes);
        }
        if let Some(key) = &self.permission_key {
            record.permission_key = Some(key.clone());
        }
        if let Some(headers) = &self.headers {
            record.headers = headers.clone();
        }
        record.created = self.created.kept(record.created, Some(now));
        record.changed = self.changed.kept(Some(record.changed.unwrap_or(stat.changed)), None);
    }
}

impl TimeChange {
    /// What the record says of a time: `before`, if it is to stay, or `now`. None leaves the word
    /// to the inode.
    fn kept(self, before: Option<Timestamp>, now: Option<Timestamp>) -> Option<Timestamp> {
        match self {
            Self::Now => now,
            Self::Preserve => before,
            Self::At(time) => Some(time),
        }
    }
}

pub(in crate::engine) fn check_size(size: u64) -> Result<(), Denial> {
    if size > FILE_SIZE_MAX { Err(Denial::FileTooLarge { max: FILE_SIZE_MAX }) } else { Ok(()) }
}

fn check_attributes(given: Option<Attributes>) -> Result<(), Denial> {
    match given {
        Some(given) if given.contains(Attributes::DIRECTORY) => {
            Err(Denial::InvalidParameter("a file cannot have the attribute of a directory"))
        }
        _ => Ok(()),
    }
}
