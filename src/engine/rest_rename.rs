//! Rename File and Rename Directory: what REST asks of both ends, and answers.
//!
//! The move itself is [`super::rename`]'s. Order of answers: a taken name, the source's, the
//! target's, the last two each in the order of LOCKING 2.8.
//!
//! Rules: LOCKING 3.9, 3.11, 4.1. A file may be replaced, by a directory too (4.2: both renames
//! were seen to ask for the lease of their target); a directory never is.

use super::changes::Change;
use super::error::Result;
use super::momentary::ask;
use super::releases::{Asked, REST_PATIENCE};
use super::rename::{Rename, RenameRules};
use super::share::Share;
use super::shown::{PropertyChanges, Shown};
use super::table::Latched;
use crate::core::file::FileState;
use crate::core::lease::LeaseId;
use crate::core::momentary::Circumstances;
use crate::core::operation::Operation;
use crate::core::{Denial, FileId, Owner, SharePath};
use crate::store::{Found, Kind, Metadata, OpenFor, Record, Stat};

/// A rename over REST as it was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct RestRename<'a> {
    /// The source is a directory; else a file.
    pub directory: bool,
    /// An existing file of the new name may be replaced.
    pub replace: bool,
    /// Also if it is read-only. Needs `replace` (LOCKING 3.9).
    pub ignore_read_only: bool,
    /// The lease ID of the source.
    pub source_lease: Option<LeaseId>,
    /// The lease ID of the file to be replaced.
    pub destination_lease: Option<LeaseId>,
    /// Properties the file is to have afterwards; none are changed without.
    pub properties: Option<&'a PropertyChanges>,
    /// Metadata that replaces the source's.
    pub metadata: Option<&'a Metadata>,
    /// The content type that replaces the source's.
    pub content_type: Option<&'a str>,
}

/// A file or directory under its new name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Renamed {
    /// The path as spelled on disk.
    pub path: SharePath,
    /// Its identity, the same as before.
    pub id: FileId,
    /// The directory that holds it now.
    pub parent: FileId,
    /// Attributes, times, `ETag`.
    pub shown: Shown,
}

impl RestRename<'_> {
    /// A lease ID for a file that is not there has no lease to match (LOCKING 4.1).
    pub(super) fn check_free(&self, to: &SharePath) -> Result<()> {
        let at = Circumstances {
            path: to,
            lease_id: self.destination_lease,
            copy_pending: false,
            read_only: false,
            range: None,
        };
        Ok(FileState::default().check_operation(Operation::CreateFileNew, &at)?)
    }

    fn changes_nothing(&self) -> bool {
        self.properties.is_none_or(PropertyChanges::is_empty)
            && self.metadata.is_none()
            && self.content_type.is_none()
    }

    fn apply(&self, record: &mut Record) {
        if let Some(properties) = self.properties {
            properties.apply(record);
        }
        if let Some(metadata) = self.metadata {
            record.metadata = metadata.clone();
        }
        if let Some(content_type) = self.content_type {
            record.headers.content_type = Some(content_type.to_owned());
        }
    }
}

impl Share {
    /// Renames a file or directory over REST.
    pub fn rest_rename(
        &self,
        who: &Owner,
        from: &SharePath,
        to: &SharePath,
        options: &RestRename<'_>,
    ) -> Result<Renamed> {
        let answer = if options.ignore_read_only && !options.replace {
            let what = "a read-only target is ignored only where it may be replaced";
            Err(Denial::InvalidParameter(what).into())
        } else {
            let rules = RenameRules::Rest(options);
            let rename = Rename { to, replace: options.replace, rules };
            let wants = Operation::RenameSource.wants();
            self.once_released(REST_PATIENCE, &[from, to], wants, || {
                Asked::again(self.rename_found(rename, || {
                    let found = self.find(from)?;
                    check_kind(found.stat.kind, options.directory)?;
                    Ok(found)
                }))
            })
        };
        let moved = self.note_refusal("rename", from, who, answer)?;
        self.tell(Change::Name(from));
        self.tell(Change::Name(to));
        // A file that is open answers by its old name too, until the kernel has forgotten that.
        self.tell(Change::Answered);
        Ok(moved.expect("a rename by REST's rules answers REST"))
    }

    /// May the source move? A directory's handles below were asked about before.
    pub(super) fn check_rest_source(
        &self,
        latched: &mut Latched,
        source: &Found,
        options: &RestRename<'_>,
    ) -> Result<()> {
        let (operation, record) = if options.directory {
            (Operation::RenameDirectory, Record::default())
        } else {
            (Operation::RenameSource, self.record(&source.path, source.stat.id)?)
        };
        ask(operation, latched, (&source.path, &record), options.source_lease, None)
    }

    /// May the target, a file, go?
    pub(super) fn check_rest_target(
        &self,
        replaced: &mut Latched,
        target: &Found,
        options: &RestRename<'_>,
    ) -> Result<()> {
        let operation = Operation::RenameTarget { ignore_read_only: options.ignore_read_only };
        let record = self.record(&target.path, target.stat.id)?;
        ask(operation, replaced, (&target.path, &record), options.destination_lease, None)
    }

    /// The name moved: what the request sets is set, still under the file's lock.
    pub(super) fn after_rest_move(
        &self,
        latched: &mut Latched,
        id: FileId,
        to: &SharePath,
        options: &RestRename<'_>,
    ) -> Result<Renamed> {
        let fd = self.dir.open_file(to, OpenFor::Read)?;
        let mut record = self.load_record(&fd, id)?;
        let shown = if options.changes_nothing() {
            Shown::of(&Stat::of(&fd)?, &record)
        } else {
            options.apply(&mut record);
            let written = options.properties.and_then(|properties| properties.written);
            self.keep(&fd, id, &mut record, written)?
        };
        self.after_write(latched, id)?;
        Ok(Renamed { path: to.clone(), id, parent: self.parent_id(to)?, shown })
    }
}

/// Rename File is for files, Rename Directory for directories, and links are not REST's.
fn check_kind(kind: Kind, directory: bool) -> Result<()> {
    match (kind, directory) {
        (Kind::File, false) | (Kind::Directory, true) => Ok(()),
        (Kind::File, true) => Err(Denial::NotDirectory.into()),
        (Kind::Directory, false) => Err(Denial::IsDirectory.into()),
        (Kind::Symlink | Kind::Special, _) => Err(Denial::NotFound.into()),
    }
}
