//! Copies of a file on another server: a front end fetches the bytes and passes them in, in order.
//!
//! Decides when such a copy is pending: a source that fits in one stretch is copied at once, a
//! longer one is pending until its last byte was passed in. How the bytes are fetched is decided by
//! the front end.

use super::super::file_properties::FileProperties;
use super::super::momentary::Asking;
use super::super::property_changes::check_size;
use super::steps::{StretchOutcome, UnderWay};
use super::{CopyOptions, FileCopySource, STRETCH_BYTES, SourceBytes};
use crate::file::rules::{Denial, SharePath};
use crate::file::service::error::{FileError, Result};
use crate::file::service::share::Share;
use crate::file::store::share::{HttpHeaders, Metadata, Record, data};

/// A source on another server, as its answer describes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RemoteSource {
    /// How many bytes it has.
    pub size: u64,
    /// The headers that its copy is shown with.
    pub headers: HttpHeaders,
    /// Its metadata, for a copy that is given none of its own.
    pub metadata: Metadata,
}

/// A copy that was started.
#[derive(Debug)]
pub struct StartedRemote {
    pub copied: FileProperties,
    /// The rest of the copy, which waits for bytes; `None` if all are there. If the value is
    /// dropped, the copy fails.
    pub rest: Option<Awaiting>,
}

/// A copy that waits for bytes.
#[derive(Debug)]
pub struct Awaiting(UnderWay);

impl Awaiting {
    /// How many bytes to pass in next: all that are left, or as many as one step takes.
    pub fn wanted(&self) -> u64 {
        (self.0.size - self.0.done).min(STRETCH_BYTES)
    }
}

impl Share {
    /// Starts a copy of a file on another server. `bytes` is the whole source; without it the bytes
    /// are passed to [`Share::copy_next`].
    pub fn start_copy_from_remote(
        &self,
        asking: Asking<'_>,
        from: &RemoteSource,
        bytes: Option<&[u8]>,
        to: &SharePath,
        options: &CopyOptions,
    ) -> Result<StartedRemote> {
        check_size(from.size)?;
        let record = Record {
            metadata: from.metadata.clone(),
            headers: from.headers.clone(),
            ..Record::default()
        };
        let bytes = match bytes {
            Some(bytes) if bytes.len() as u64 != from.size => return Err(wrong_length()),
            Some(bytes) => SourceBytes::Here(bytes),
            None if from.size == 0 => SourceBytes::Here(&[]),
            None => SourceBytes::Awaited,
        };
        let source = FileCopySource { size: from.size, record: &record, smb: None, bytes };
        let (copied, running) = self.begin_copy(asking, &source, false, to, options)?;
        let rest = running.map(|running| {
            Awaiting(UnderWay::new(
                asking,
                &copied,
                running,
                source.written(options, asking.cx.now),
            ))
        });
        Ok(StartedRemote { copied, rest })
    }

    /// Writes the next bytes, as many as [`Awaiting::wanted`] says. Returns the destination after
    /// the last of them, or if the copy was aborted. After an error the copy has failed.
    pub fn copy_next(
        &self,
        awaiting: &mut Awaiting,
        bytes: &[u8],
    ) -> Result<Option<FileProperties>> {
        let wanted = awaiting.wanted();
        let Awaiting(under_way) = awaiting;
        let (start, end) = (under_way.done, under_way.done + wanted);
        let written = if bytes.len() as u64 == wanted {
            self.stretch(under_way, end, |to| Ok(data::write_at(to, bytes, start)?))
        } else {
            Err(wrong_length())
        };
        match written {
            Ok(StretchOutcome::Copied(_)) => Ok(None),
            Ok(StretchOutcome::Ended(copied)) => Ok(Some(*copied)),
            Err(error) => {
                self.end_failed(under_way, &error);
                Err(error)
            }
        }
    }

    /// Ends a copy whose bytes cannot be fetched, and keeps the reason.
    pub fn copy_broke_off(&self, awaiting: &Awaiting, why: &str) {
        self.end_failed(&awaiting.0, &why);
    }
}

fn wrong_length() -> FileError {
    Denial::InvalidParameter("a copy is handed as many bytes as it asks for").into()
}
