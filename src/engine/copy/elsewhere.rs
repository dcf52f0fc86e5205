//! Copies whose bytes come from elsewhere: a front end has them and hands them in, in order.
//!
//! Decides how such a copy lives: what fits in one stretch is there at once, the rest is pending
//! until the last byte is in, as a copy within the server is. Nothing here knows where the bytes
//! are from.

use super::steps::{Stretch, UnderWay};
use super::{Bytes, Copied, CopyOptions, STRETCH_BYTES, Source};
use crate::core::{Denial, SharePath};
use crate::engine::error::{Error, Result};
use crate::engine::files::check_size;
use crate::engine::momentary::Asking;
use crate::engine::share::Share;
use crate::store::{HttpHeaders, Metadata, Record, data};

/// A source as it was described by whoever has it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Elsewhere {
    /// How many bytes it has.
    pub size: u64,
    /// The headers that its copy is shown with.
    pub headers: HttpHeaders,
    /// Its metadata, for a copy that is given none of its own.
    pub metadata: Metadata,
}

/// A copy that was started.
#[derive(Debug)]
pub struct StartedElsewhere {
    /// The destination.
    pub copied: Copied,
    /// What waits for bytes, if they are not all there. Dropped, the copy counts as failed.
    pub rest: Option<Awaiting>,
}

/// A copy that waits for bytes.
#[derive(Debug)]
pub struct Awaiting(UnderWay);

impl Awaiting {
    /// How many bytes are to be handed in next: all that are left, or as many as one step takes.
    pub fn wanted(&self) -> u64 {
        (self.0.size - self.0.done).min(STRETCH_BYTES)
    }
}

impl Share {
    /// Starts a copy of a file that somebody else has. `bytes` are all of it; without them they
    /// are handed to [`Share::copy_next`].
    pub fn start_copy_from_elsewhere(
        &self,
        asking: Asking<'_>,
        from: &Elsewhere,
        bytes: Option<&[u8]>,
        to: &SharePath,
        options: &CopyOptions,
    ) -> Result<StartedElsewhere> {
        check_size(from.size)?;
        let record = Record {
            metadata: from.metadata.clone(),
            headers: from.headers.clone(),
            ..Record::default()
        };
        let bytes = match bytes {
            Some(bytes) if bytes.len() as u64 != from.size => return Err(wrong_length()),
            Some(bytes) => Bytes::Here(bytes),
            None if from.size == 0 => Bytes::Here(&[]),
            None => Bytes::Awaited,
        };
        let source = Source { size: from.size, record: &record, shown: None, bytes };
        let (copied, running) = self.begin_copy(asking, &source, false, to, options)?;
        let rest = running.map(|running| {
            Awaiting(UnderWay::new(asking, &copied, running, source.written(options)))
        });
        Ok(StartedElsewhere { copied, rest })
    }

    /// Takes the next bytes, as many as [`Awaiting::wanted`] says. Gives the destination when
    /// that was the last of them, or when somebody has aborted the copy. After an error the copy
    /// counts as failed.
    pub fn copy_next(&self, awaiting: &mut Awaiting, bytes: &[u8]) -> Result<Option<Copied>> {
        let wanted = awaiting.wanted();
        let Awaiting(under_way) = awaiting;
        let (start, end) = (under_way.done, under_way.done + wanted);
        let written = if bytes.len() as u64 == wanted {
            self.stretch(under_way, end, |to| Ok(data::write_at(to, bytes, start)?))
        } else {
            Err(wrong_length())
        };
        match written {
            Ok(Stretch::Copied(_)) => Ok(None),
            Ok(Stretch::Ended(copied)) => Ok(Some(*copied)),
            Err(error) => {
                self.end_failed(under_way, &error);
                Err(error)
            }
        }
    }

    /// Ends a copy whose bytes will not come, and keeps why.
    pub fn copy_broke_off(&self, awaiting: &Awaiting, why: &str) {
        self.end_failed(&awaiting.0, &why);
    }
}

fn wrong_length() -> Error {
    Denial::InvalidParameter("a copy is handed as many bytes as it asks for").into()
}
