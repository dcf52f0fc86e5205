//! REST's operations on files: typed arguments in, typed answers out.
//!
//! Each operation is one method of [`Share`] and goes through the door of
//! [`super::momentary`], so that the rules are asked in the documented order under the file's
//! lock. Headers, status codes and their spelling are the front end's.
//!
//! ```text
//!   shown       what an answer shows of a file
//!   asked       what a request says about properties and times
//!   create      Create File
//!   read        Get File, Get File Properties, List Ranges
//!   difference  List Ranges, to an earlier snapshot
//!   write       Put Range
//!   properties  Set File Properties, Set File Metadata
//!   lease       Lease File
//!   delete      Delete File
//!   change      what all that write have in common
//! ```

mod asked;
mod change;
mod create;
mod delete;
mod difference;
mod lease;
mod properties;
mod read;
mod shown;
#[cfg(test)]
mod tests;
mod write;

pub(super) use asked::check_size;
pub use asked::{FILE_SIZE_MAX, FileChanges, LastWrite, NewProperties, Semantics, TimeChange};
pub use difference::{DiffOptions, RangeChanges};
pub use lease::Leased;
pub use read::{FileReader, RangeList};
pub use shown::FileProperties;

use super::error::{Error, Result};
use super::momentary::Asking;
use super::share::Share;
use crate::core::{Denial, SharePath};

impl Share {
    /// Passes the verdict on a request's arguments on, noting a refusal.
    fn arguments(
        &self,
        name: &'static str,
        asking: Asking<'_>,
        path: &SharePath,
        verdict: std::result::Result<(), Denial>,
    ) -> Result<()> {
        self.note_refusal(name, path, asking.who, verdict.map_err(Error::from))
    }
}
