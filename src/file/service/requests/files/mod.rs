//! Operations of REST on files, with typed arguments and answers.
//!
//! Each operation is one method of [`Share`] and goes through [`super::momentary`], so that the
//! rules are checked in the documented order under the file's lock. Headers and status codes are
//! decided by the front end.
//!
//! ```text
//!   create      Create File, Delete File
//!   read        Get File, Get File Properties, List Ranges
//!   difference  List Ranges, to an earlier snapshot
//!   write       Put Range
//!   properties  Set File Properties, Set File Metadata
//!   lease       Lease File
//!   change      the steps of every change
//! ```

mod change;
mod create;
mod difference;
mod lease;
mod properties;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use difference::{DiffOptions, RangeChanges};
pub use lease::LeasedFile;
pub use read::{FileReader, RangeList};

use super::super::error::{FileError, Result};
use super::super::share::Share;
use super::momentary::Asking;
use crate::file::rules::{Denial, SharePath};

impl Share {
    /// Returns the verdict on a request's arguments, and notes a refusal.
    fn arguments(
        &self,
        name: &'static str,
        asking: Asking<'_>,
        path: &SharePath,
        verdict: std::result::Result<(), Denial>,
    ) -> Result<()> {
        self.note_refusal(name, path, asking.cx.owner(), verdict.map_err(FileError::from))
    }
}
