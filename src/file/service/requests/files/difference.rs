//! List Ranges against an earlier snapshot: the ranges of a file that have changed.
//!
//! Decides whether the file is the one that the snapshot has under this path, and which copy it is
//! compared with if it was moved. Copies know their originals; where they do not, births decide: a
//! file that is older than a snapshot without it was moved here.

use std::ops::Range;
use std::os::fd::AsFd;

use super::super::file_properties::FileProperties;
use super::super::momentary::{Asking, Granted, WantedKind};
use super::read::clipped;
use crate::file::rules::operation::FileOperation;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::error::Result;
use crate::file::service::share::Share;
use crate::file::service::shares::{EarlierFile, SnapshotView};
use crate::file::store::share::difference::ChangedRange;
use crate::file::store::share::pages::{Accounted, changed_pages};

/// The options of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiffOptions {
    /// The bytes it is about; all, if none are named.
    pub window: Option<Range<u64>>,
    /// Nothing before this is wanted: the next page starts here.
    pub from: u64,
    pub most: usize,
    /// A file that was moved here is compared with its copy under the former name.
    pub moved: bool,
}

/// The changed ranges of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeChanges {
    /// The file at the moment the request was admitted.
    pub properties: FileProperties,
    /// Ascending, apart from each other.
    pub changes: Vec<ChangedRange>,
}

impl DiffOptions {
    /// The bytes to look at of a file of `size` bytes.
    pub fn bytes(&self, size: u64) -> std::result::Result<Range<u64>, Denial> {
        let window = clipped(self.window.clone(), size)?;
        Ok(window.start.max(self.from)..window.end)
    }
}

impl Share {
    /// List Ranges with `prevsharesnapshot`: the file now against `since`. The rules are asked
    /// once; what is written while it is compared may or may not show.
    pub fn changes_since(
        &self,
        asking: Asking<'_>,
        path: &SharePath,
        since: &SnapshotView,
        options: &DiffOptions,
    ) -> Result<RangeChanges> {
        let target = (path, WantedKind::File);
        let (properties, new, window) = self.momentarily(
            "List Ranges",
            FileOperation::ListRanges,
            asking,
            target,
            None,
            |at| {
                let window = options.bytes(at.found.stat.size)?;
                let properties = self.properties_of(&at)?;
                let Granted { fd, .. } = at;
                Ok((properties, fd, window))
            },
        )?;
        let mut old = since.earlier(&properties.path)?;
        let id = properties.stat.id;
        let other = match &old {
            Some(copy) => !copy.may_be_of(id),
            None => id.born < since.begun()?.0,
        };
        // A file system without birth times does not tell.
        if other && id.born != 0 {
            let copy = if options.moved { since.copy_of(id)? } else { None };
            // Moved from where copies do not know their originals: all of it is new here.
            if copy.is_none() && (old.is_some() || !options.moved) {
                return Err(Denial::OtherGeneration.into());
            }
            old = copy;
        }
        let account = properties.record.ranges.as_ref();
        let new = Accounted { fd: new.as_fd(), account };
        let old = old.as_ref().map(EarlierFile::accounted);
        let changes = changed_pages(new, old, window, since.taken(), options.most)?;
        Ok(RangeChanges { properties, changes })
    }
}
