//! Operations of REST on files, with typed arguments and answers.
//!
//! Each operation is one method of [`Share`] and goes through [`super::momentary`], so that the
//! rules are checked in the documented order under the file's lock. Headers and status codes are
//! decided by the front end.
//!
//! ```text
//!   create    Create File, Delete File
//!   read      Get File, Get File Properties, List Ranges, also to an earlier snapshot
//!   write     Put Range, Set File Properties and Metadata; the steps of every change
//!   lease     Lease File
//! ```

mod create;
mod lease;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{DiffOptions, FileReader, RangeChanges, RangeList};

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
