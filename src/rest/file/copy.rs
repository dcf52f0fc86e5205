//! Copy File, Abort Copy File, and Put Range From URL: sources on this server only.
//!
//! A copy that is not done in one step goes on after the answer, on a thread of its own, until it
//! is done, aborted, or the server stops. There are so many places for these, and no more.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::StatusCode;
use tokio::sync::OwnedSemaphorePermit;

use super::content::ranged;
use super::rename::SourceFile;
use super::{Answer, Call};
use crate::core::{Attributes, Timestamp};
use crate::engine::{Asking, Control, CopyOptions, Copying, IO_MAX, Share, Taken};
use crate::rest::checksum::{crc64, crc64_header, crc64_text, md5};
use crate::rest::download::{Download, Source};
use crate::rest::headers::{SmbHeaders, TimeWord, copy_status, guid};
use crate::rest::refusal::Refusal;
use crate::rest::reply::Reply;

const COPY_SOURCE: &str = "x-ms-copy-source";

impl Call<'_> {
    pub(super) fn start_copy(&self) -> Answer {
        let (share, to) = (self.share_to_change()?, self.request.path()?);
        let source = self.copy_source()?;
        if source.snapshot.is_some() {
            return Err(Refusal::not_implemented("A copy from a snapshot"));
        }
        let from = self.engine().share(&source.share)?;
        let options = self.copy_options(&share)?;
        let place = Arc::clone(&self.site.copies).try_acquire_owned().map_err(|_| {
            let message = "Too many copies are under way. Try again when one is done.";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServerBusy", message)
        })?;
        let started = share.start_copy(self.asking()?, (&from, &source.path), &to, &options)?;
        let copied = started.copied;
        if let Some(rest) = started.rest {
            self.go_on(share, from, rest, place);
        }
        Ok(Reply::accepted()
            .version(copied.shown.etag, copied.shown.last_modified)
            .header("x-ms-copy-id", &copied.state.id)
            .header("x-ms-copy-status", copy_status(copied.state.status)))
    }

    /// Does the rest of a copy after the answer.
    fn go_on(
        &self,
        share: Arc<Share>,
        from: Arc<Share>,
        rest: Copying,
        place: OwnedSemaphorePermit,
    ) {
        let site = Arc::clone(self.site);
        tokio::task::spawn_blocking(move || {
            let finished = share.finish_copy(Some(&from), rest, &mut |_| {
                if site.stopping.load(Ordering::Acquire) {
                    Control::Cancel
                } else {
                    Control::Continue
                }
            });
            if let Err(error) = finished {
                log::info!("a copy ended early: {error}");
            }
            drop(place);
        });
    }

    fn copy_source(&self) -> Result<SourceFile, Refusal> {
        let url = self.request.required(COPY_SOURCE)?;
        self.source(COPY_SOURCE, url)?.ok_or_else(|| {
            Refusal::new(
                StatusCode::FORBIDDEN,
                "CannotVerifyCopySource",
                "The source of the copy is not on this server, and no other is asked.",
            )
        })
    }

    fn copy_options(&self, share: &Share) -> Result<CopyOptions, Refusal> {
        const MODE: &str = "x-ms-file-permission-copy-mode";
        let headers = SmbHeaders::read(self.request, share)?;
        let permission_key = match (self.request.header(MODE)?, &headers.permission_key) {
            (Some(mode), _) if mode.eq_ignore_ascii_case("source") => Taken::Source,
            (_, Some(key)) => Taken::Value(key.clone()),
            (_, None) => Taken::Default,
        };
        let metadata = Some(self.request.metadata()?).filter(|given| !given.is_empty());
        if let Some(metadata) = &metadata {
            crate::core::check_metadata(metadata.iter()).map_err(crate::core::Denial::from)?;
        }
        Ok(CopyOptions {
            id: guid(),
            source: self.request.required(COPY_SOURCE)?.to_owned(),
            ignore_read_only: self.request.flag("x-ms-file-copy-ignore-readonly")?,
            set_archive: self.request.flag("x-ms-file-copy-set-archive")?,
            metadata,
            attributes: attributes(&headers),
            created: taken(headers.created, self.request.now),
            written: taken(headers.written, self.request.now),
            changed: taken(headers.changed, self.request.now),
            permission_key,
        })
    }

    pub(super) fn abort_copy(&self) -> Answer {
        const ACTION: &str = "x-ms-copy-action";
        let (share, path) = (self.share_to_change()?, self.request.path()?);
        let action = self.request.required(ACTION)?;
        if !action.eq_ignore_ascii_case("abort") {
            return Err(Refusal::header(ACTION, action, "it must be abort"));
        }
        let id = self.request.query.get("copyid").ok_or_else(|| {
            let message = "The query parameter copyid is required and was not given.";
            Refusal::bad("MissingRequiredQueryParameter", message)
        })?;
        share.abort_copy(self.asking()?, &path, id)?;
        Ok(Reply::new(StatusCode::NO_CONTENT))
    }

    pub(super) fn upload_range_from_url(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.request.path()?);
        let range = self.written_range()?;
        let bytes = self.source_bytes(range.end - range.start)?;
        let crc = crc64(&bytes);
        if let Some(wanted) = crc64_header(self.request, "x-ms-source-content-crc64")?
            && wanted != crc
        {
            let message = "The CRC64 of the source is not the one that the request gives.";
            return Err(Refusal::bad("Crc64Mismatch", message));
        }
        let matching = crc64_header(self.request, "x-ms-source-if-match-crc64")?;
        let other = crc64_header(self.request, "x-ms-source-if-none-match-crc64")?;
        if matching.is_some_and(|wanted| wanted != crc) || other == Some(crc) {
            let message = "The condition on the CRC64 of the source is not met.";
            return Err(Refusal::new(
                StatusCode::PRECONDITION_FAILED,
                "SourceConditionNotMet",
                message,
            ));
        }
        let asking = self.asking()?;
        let file = share.put_range(asking, &path, range.start, &bytes, self.last_write()?)?;
        Ok(ranged(&file)
            .header("content-md5", md5(&bytes))
            .header("x-ms-content-crc64", crc64_text(crc)))
    }

    /// The bytes of the source, as many as are to be written.
    fn source_bytes(&self, length: u64) -> Result<Vec<u8>, Refusal> {
        const RANGE: &str = "x-ms-source-range";
        let source = self.copy_source()?;
        let asked = match self.request.header(RANGE)? {
            Some(text) => crate::rest::request::byte_range(text)
                .ok_or_else(|| Refusal::header(RANGE, text, "it must be bytes=FIRST-LAST"))?,
            None => 0..length,
        };
        if asked.end - asked.start != length || length > IO_MAX as u64 {
            let why = "it must be as long as the range that is written, at most 4 MiB";
            return Err(Refusal::header(RANGE, "", why));
        }
        let download = if let Some(snapshot) = source.snapshot {
            let view = self.engine().snapshot(&source.share, &snapshot)?;
            Download { source: Source::Snapshot(view, source.path), range: asked }
        } else {
            let asking = Asking { who: self.who, lease_id: None };
            let from = self.engine().share(&source.share)?;
            let reader = from.open_reader(asking, &source.path, Some(asked))?;
            Download { range: reader.range(), source: Source::Live(Box::new(reader)) }
        };
        let bytes = download.read_all()?;
        if bytes.len() as u64 != length {
            return Err(crate::core::Denial::EndOfFile.into());
        }
        Ok(bytes)
    }
}

fn taken(word: Option<TimeWord>, now: Timestamp) -> Taken<Timestamp> {
    match word {
        None | Some(TimeWord::Preserve) => Taken::Default,
        Some(TimeWord::Source) => Taken::Source,
        Some(TimeWord::Now) => Taken::Value(now),
        Some(TimeWord::At(time)) => Taken::Value(time),
    }
}

fn attributes(headers: &SmbHeaders) -> Taken<Attributes> {
    match headers.attributes {
        Some(attributes) => Taken::Value(attributes),
        None if headers.source_attributes => Taken::Source,
        None => Taken::Default,
    }
}
