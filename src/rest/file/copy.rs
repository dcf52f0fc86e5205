//! Copy File and Abort Copy File. What a source on another server takes is in `from_url`.
//!
//! A copy that is not done in one step goes on after the answer, on a thread of its own, until it
//! is done, aborted, or the server stops. There are so many places for these, and no more.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::StatusCode;
use tokio::sync::OwnedSemaphorePermit;

use super::{Answer, Call};
use crate::core::{Attributes, SharePath, Timestamp};
use crate::engine::{Control, Copied, CopyOptions, Copying, Share, Taken};
use crate::rest::headers::{SmbHeaders, TimeWord, copy_status, guid};
use crate::rest::refusal::Refusal;
use crate::rest::reply::Reply;
use crate::rest::source::{COPY_SOURCE, OwnSource, Source, without_signature};

impl Call<'_> {
    pub(super) fn start_copy(&self) -> Answer {
        let (share, to) = (self.share_to_change()?, self.request.path()?);
        let source = self.source(COPY_SOURCE)?;
        let options = self.copy_options(&share)?;
        let place = self.place()?;
        let copied = match source {
            Source::Own(source) => self.copy_own(share, &source, &to, &options, place)?,
            Source::Elsewhere(url) => self.copy_elsewhere(share, &url, &to, &options, place)?,
        };
        Ok(Reply::accepted()
            .version(copied.shown.etag, copied.shown.last_modified)
            .header("x-ms-copy-id", &copied.state.id)
            .header("x-ms-copy-status", copy_status(copied.state.status)))
    }

    /// One of the places for what may take long.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.site.copies).try_acquire_owned().map_err(|_| {
            let message = "Too many copies are under way. Try again when one is done.";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServerBusy", message)
        })
    }

    fn copy_own(
        &self,
        share: Arc<Share>,
        source: &OwnSource,
        to: &SharePath,
        options: &CopyOptions,
        place: OwnedSemaphorePermit,
    ) -> Result<Copied, Refusal> {
        let asking = self.asking()?;
        let (from, started) = if let Some(snapshot) = &source.snapshot {
            let view = self.engine().snapshot(&source.share, snapshot)?;
            let from = (&*view, &source.path);
            (None, share.start_copy_of_snapshot(asking, from, to, options)?)
        } else {
            let from = self.engine().share(&source.share)?;
            let started = share.start_copy(asking, (&from, &source.path), to, options)?;
            (Some(from), started)
        };
        if let Some(rest) = started.rest {
            self.go_on(share, from, rest, place);
        }
        Ok(started.copied)
    }

    /// Does the rest of a copy after the answer.
    fn go_on(
        &self,
        share: Arc<Share>,
        from: Option<Arc<Share>>,
        rest: Copying,
        place: OwnedSemaphorePermit,
    ) {
        let site = Arc::clone(self.site);
        tokio::task::spawn_blocking(move || {
            let finished = share.finish_copy(from.as_deref(), rest, &mut |_| {
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
            source: without_signature(self.request.required(COPY_SOURCE)?),
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
