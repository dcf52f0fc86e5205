//! List Ranges against an earlier snapshot: what of a file is not as it was.
//!
//! Decides whether the file is the one that the snapshot has. Copies are other files than their
//! originals, so births decide: a file that is younger than the copy under its name was made anew,
//! and one that is older than a snapshot without it was moved here.

use std::ops::Range;
use std::os::fd::AsFd;

use super::super::account::SnapshotView;
use super::super::error::Result;
use super::super::momentary::{Asking, Granted, Wanted};
use super::super::share::Share;
use super::read::clipped;
use super::shown::FileProperties;
use crate::core::operation::Operation;
use crate::core::{Denial, SharePath};
use crate::store::Stat;
use crate::store::difference::{Changed, changes};

/// What is asked of a difference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiffOptions {
    /// The bytes it is about; all, if none are named.
    pub window: Option<Range<u64>>,
    /// Nothing before this is wanted: the next page starts here.
    pub from: u64,
    /// The most parts.
    pub most: usize,
    /// A file that was moved here may be asked about: all of it is new under this name.
    pub moved: bool,
}

/// What changed of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeChanges {
    /// The file at the moment the request was let through.
    pub properties: FileProperties,
    /// Ascending, apart from each other.
    pub changes: Vec<Changed>,
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
        let target = (path, Wanted::File);
        let (properties, new, window) =
            self.momentarily("list ranges", Operation::ListRanges, asking, target, None, |at| {
                let window = options.bytes(at.found.stat.size)?;
                let properties = self.shown(&at)?;
                let Granted { fd, .. } = at;
                Ok((properties, fd, window))
            })?;
        let old = since.earlier(&properties.path)?;
        let born = properties.stat.id.born;
        let other = match &old {
            Some(copy) => born > Stat::of(copy)?.id.born,
            None => !options.moved && born < since.begun()?.0,
        };
        // A file system without birth times does not tell.
        if other && born != 0 {
            return Err(Denial::OtherGeneration.into());
        }
        let changes = changes(new, old.as_ref().map(AsFd::as_fd), window, options.most)?;
        Ok(RangeChanges { properties, changes })
    }
}
