//! Properties and times that a request sets, and their effect on a file's record.
//!
//! Decides defaults of properties that a request leaves out, that content headers are replaced
//! together, and the limits of values. The last-write time is the inode's and is set by the
//! operations themselves.

use crate::file::rules::{Attributes, Denial};
use crate::file::store::share::{HttpHeaders, Metadata, Record, Stat};
use crate::rules::{Timestamp, check_metadata};

/// The longest a file may be.
pub const FILE_SIZE_MAX: u64 = 4 << 40;

/// The change of a time that a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TimeChange {
    /// Not named in the request: the default of the operation.
    #[default]
    NotGiven,
    /// The time of the request.
    Now,
    /// The old value; for a new file the time of the request.
    Preserve,
    /// The value of the copy's source; without a source as [`TimeChange::Preserve`].
    Source,
    At(Timestamp),
}

impl TimeChange {
    /// This change, or `default` if the request names none.
    pub(super) fn or(self, default: Self) -> Self {
        if self == Self::NotGiven { default } else { self }
    }

    /// The time that the request names.
    pub(super) fn named(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Now => Some(now),
            Self::At(time) => Some(time),
            Self::NotGiven | Self::Preserve | Self::Source => None,
        }
    }

    /// The time that the record keeps: `before` if it is preserved, or `now`. `None`: use the
    /// inode's time.
    fn kept(self, before: Option<Timestamp>, now: Option<Timestamp>) -> Option<Timestamp> {
        match self {
            Self::Now => now,
            Self::NotGiven | Self::Preserve | Self::Source => before,
            Self::At(time) => Some(time),
        }
    }
}

/// Changes of the properties that files and directories have in common.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PropertyChanges {
    /// Attributes. Giving some is what lets a read-only file be changed.
    pub attributes: Option<Attributes>,
    pub created: TimeChange,
    pub written: TimeChange,
    pub changed: TimeChange,
    /// Key of the permission.
    pub permission_key: Option<String>,
}

impl PropertyChanges {
    /// True if nothing is set.
    pub(super) fn is_empty(&self) -> bool {
        let times = [self.created, self.written, self.changed];
        let any_time = times.iter().any(|time| time.named(Timestamp(0)).is_some());
        self.attributes.is_none() && self.permission_key.is_none() && !any_time
    }

    /// Applies the changes to the record of a directory, or of a file that is renamed. Properties
    /// that are not named stay, except the change time, which becomes now.
    pub(super) fn apply(&self, record: &mut Record, now: Timestamp) {
        self.apply_plain(record);
        record.created = self.created.named(now).or(record.created);
        record.changed = self.changed.named(now);
    }

    fn apply_plain(&self, record: &mut Record) {
        record.attributes = self.attributes.or(record.attributes);
        if let Some(key) = &self.permission_key {
            record.permission_key = Some(key.clone());
        }
    }
}

/// Whether a file is new or restored (`x-ms-file-property-semantics`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Semantics {
    /// New: the file has the archive attribute in any case.
    #[default]
    New,
    /// Restored: the file has exactly the attributes of the request.
    Restore,
}

/// The properties of a file that is made or overwritten; what is not given is the default one:
/// the attribute `Archive`, the time of the request, a permission that is inherited.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewProperties {
    pub smb: PropertyChanges,
    /// Whether the file is new or restored, which decides how attributes are applied.
    pub semantics: Semantics,
    pub headers: HttpHeaders,
    pub metadata: Metadata,
    /// The caller may create a file and may not overwrite one: an existing file is refused as a
    /// name that is taken.
    pub only_new: bool,
}

/// Changes of a file's properties; what is not given stays, but for the change time, which is then
/// that of the request. A new length moves the last-write time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileChanges {
    pub size: Option<u64>,
    pub smb: PropertyChanges,
    /// Content headers, all of them: those left out are cleared.
    pub headers: Option<HttpHeaders>,
}

impl NewProperties {
    /// Refuses what no file can have.
    pub(super) fn check(&self, size: u64) -> Result<(), Denial> {
        check_size(size)?;
        check_attributes(self.smb.attributes)?;
        Ok(check_metadata(self.metadata.iter())?)
    }

    /// The record of a file that was just made; `stat` says whether its birth time is known.
    pub(super) fn record(&self, stat: &Stat, now: Timestamp) -> Record {
        let unknown = (stat.id.born == 0).then_some(now);
        Record {
            created: self.smb.created.or(TimeChange::Now).kept(unknown, unknown),
            changed: self.smb.changed.or(TimeChange::Now).kept(None, None),
            ..self.plain_record()
        }
    }

    /// The record of a file that is overwritten. The number of changes stays, or an old `ETag`
    /// would come back.
    pub(super) fn record_over(&self, old: &Record, stat: &Stat, now: Timestamp) -> Record {
        Record {
            created: self.smb.created.or(TimeChange::Now).kept(old.created, Some(now)),
            changed: self
                .smb
                .changed
                .or(TimeChange::Now)
                .kept(Some(old.changed.unwrap_or(stat.changed)), None),
            changes: old.changes,
            ..self.plain_record()
        }
    }

    fn plain_record(&self) -> Record {
        let attributes = self.smb.attributes.map(|given| match self.semantics {
            Semantics::New => given | Attributes::ARCHIVE,
            Semantics::Restore => given,
        });
        Record {
            metadata: self.metadata.clone(),
            headers: self.headers.clone(),
            attributes,
            permission_key: self.smb.permission_key.clone(),
            ..Record::default()
        }
    }
}

impl FileChanges {
    /// Refuses what no file can have.
    pub(super) fn check(&self) -> Result<(), Denial> {
        check_size(self.size.unwrap_or(0))?;
        check_attributes(self.smb.attributes)
    }

    /// Applies them to a file's record.
    pub(super) fn apply(&self, record: &mut Record, stat: &Stat, now: Timestamp) {
        self.smb.apply_plain(record);
        if let Some(headers) = &self.headers {
            record.headers = headers.clone();
        }
        let changed = self.smb.changed.or(TimeChange::Now);
        record.created = self.smb.created.kept(record.created, Some(now));
        record.changed = changed.kept(Some(record.changed.unwrap_or(stat.changed)), None);
    }
}

pub(super) fn check_size(size: u64) -> Result<(), Denial> {
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
