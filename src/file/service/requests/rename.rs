//! Rename File and Rename Directory: the checks of REST on source and target, and the answer.
//!
//! The move itself is in [`super::super::names::rename`]. Order of the checks: a taken name, the
//! source, the target; the last two in the order of docs/semantics.md. A file may be replaced, also
//! by a directory; a directory, a link or a special file is never replaced.

use std::os::fd::OwnedFd;

use super::super::error::Result;
use super::super::names::rename::{Rename, RenameRules};
use super::super::opens::table::Latched;
use super::super::share::{ChangeNotice, Share};
use super::file_properties::FileProperties;
use super::momentary::{ask, check_kind};
use super::property_changes::PropertyChanges;
use crate::file::rules::operation::FileOperation;
use crate::file::rules::{Denial, SharePath};
use crate::file::store::share::{FoundFile, Metadata, OpenFor, Record, Stat};
use crate::rules::lease::LeaseId;
use crate::rules::{Context, FileId, Timestamp};

/// The options of a rename over REST.
#[derive(Clone, Copy, Debug, Default)]
pub struct RestRename<'a> {
    /// The source is a directory; else a file.
    pub directory: bool,
    /// An existing file of the new name may be replaced.
    pub replace: bool,
    /// Also if it is read-only. Needs `replace`.
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

/// A rename that is about to happen: the properties that the request sets are set.
pub(crate) struct RestMove {
    fd: OwnedFd,
    id: FileId,
    /// The directory that will hold the name.
    parent: FileId,
    record: Record,
    /// Record and write time as they were, if they were changed.
    before: Option<(Record, Timestamp)>,
}

impl RestRename<'_> {
    fn changes_nothing(&self) -> bool {
        self.properties.is_none_or(PropertyChanges::is_empty)
            && self.metadata.is_none()
            && self.content_type.is_none()
    }

    fn apply(&self, record: &mut Record, now: Timestamp) {
        if let Some(properties) = self.properties {
            properties.apply(record, now);
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
        cx: &Context,
        from: &SharePath,
        to: &SharePath,
        options: &RestRename<'_>,
    ) -> Result<FileProperties> {
        let answer = if options.ignore_read_only && !options.replace {
            let what = "a read-only target is ignored only where it may be replaced";
            Err(Denial::InvalidParameter(what).into())
        } else {
            let rules = RenameRules::Rest(options, cx.now);
            let rename = Rename { to, replace: options.replace, rules };
            let wants = FileOperation::RenameSource.wants();
            let find = || {
                let found = self.find(from)?;
                check_kind(found.stat.kind, options.directory)?;
                Ok(found)
            };
            let moved = || {
                self.note_change(cx, from, (None, None));
                self.note_change(cx, to, (None, None));
            };
            self.when_free(&[from, to], wants, || self.rename_found(rename, find, &moved))
        };
        let operation = if options.directory { "Rename Directory" } else { "Rename File" };
        let moved = self.note_refusal(operation, from, cx.owner(), answer)?;
        self.flush_left(from);
        self.flush_left(to);
        self.tell(ChangeNotice::Name(from));
        self.tell(ChangeNotice::Name(to));
        // A file that is open answers by its old name too, until the kernel has forgotten that.
        self.tell(ChangeNotice::Answered);
        Ok(moved.expect("a rename by REST's rules answers REST"))
    }

    /// Checks that the source may be moved. Handles below a directory were checked before.
    pub(crate) fn check_rest_source(
        &self,
        latched: &mut Latched,
        source: &FoundFile,
        options: &RestRename<'_>,
    ) -> Result<()> {
        let (operation, record) = if options.directory {
            (FileOperation::RenameDirectory, Record::default())
        } else {
            (FileOperation::RenameSource, self.record(&source.path, source.stat.id)?)
        };
        ask(operation, latched, (&source.path, &record), options.source_lease, None)
    }

    /// Checks that the target, a file, may be replaced.
    pub(crate) fn check_rest_target(
        &self,
        replaced: &mut Latched,
        target: &FoundFile,
        options: &RestRename<'_>,
    ) -> Result<()> {
        let operation = FileOperation::RenameTarget { ignore_read_only: options.ignore_read_only };
        let record = self.record(&target.path, target.stat.id)?;
        ask(operation, replaced, (&target.path, &record), options.destination_lease, None)
    }

    /// Sets the properties of the request before the name moves, so that a lack of space refuses
    /// the request with nothing changed. The file's lock is held.
    pub(crate) fn prepare_rest_move(
        &self,
        source: &FoundFile,
        to: &SharePath,
        (options, now): (&RestRename<'_>, Timestamp),
    ) -> Result<RestMove> {
        let parent = self.parent_id(to)?;
        let fd = self.disk().open_file(&source.path, OpenFor::Read)?;
        let stat = Stat::of(&fd)?;
        let mut record = self.load_record(&fd, stat.id)?;
        let before = record.clone();
        let changes = !options.changes_nothing();
        if changes {
            options.apply(&mut record, now);
            let written = options.properties.and_then(|changes| changes.written.named(now));
            self.keep(&fd, stat.id, &mut record, written)?;
        }
        let before = changes.then_some((before, stat.written));
        Ok(RestMove { fd, id: stat.id, parent, record, before })
    }

    /// Restores the properties of a file whose name could not be moved.
    pub(crate) fn undo_rest_move(&self, prepared: RestMove) {
        let RestMove { fd, id, before, .. } = prepared;
        if let Some((mut record, written)) = before
            && let Err(error) = self.keep(&fd, id, &mut record, Some(written))
        {
            log::warn!("share {}: properties set for a failed rename stay: {error}", self.name());
        }
    }

    pub(crate) fn after_rest_move(
        &self,
        latched: &mut Latched,
        prepared: RestMove,
        to: &SharePath,
    ) -> Result<FileProperties> {
        let RestMove { fd, id, parent, record, .. } = prepared;
        self.after_write(latched, id);
        let (path, stat, lease) = (to.clone(), Stat::of(&fd)?, latched.state.lease());
        Ok(FileProperties { path, stat, record, parent, lease })
    }
}
