//! Copy File and Abort Copy File. Copies from other servers are in `from_url`.
//!
//! A copy that is not done in one step goes on after the answer, on a thread of its own, until it
//! is done, aborted, or the server stops. The number of such copies is bounded.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::StatusCode;
use tokio::sync::OwnedSemaphorePermit;

use super::FileCall;
use super::headers::SmbHeaders;
use super::source::{NamedFile, OwnFile, SourceUse};
use crate::file::rules::{Attributes, SharePath};
use crate::file::service::{
    Control, CopyOptions, CopyProperty, FileProperties, PendingFileCopy, Share,
};
use crate::http::auth::without_signature;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::frame::source::COPY_SOURCE;
use crate::http::reply::Reply;
use crate::sync::random::new_guid;

impl FileCall<'_> {
    pub(super) fn start_copy(&self) -> Answer {
        let (share, to) = (self.share_to_change()?, self.path()?);
        let source = self.source(COPY_SOURCE, SourceUse::Copy)?;
        let place = self.place()?;
        let mut headers = SmbHeaders::read(self.request, &share)?;
        let options = self.copy_options(&headers)?;
        let to_share = Arc::clone(&share);
        let copied = match source {
            NamedFile::Own(source) => self.copy_own(to_share, &source, &to, &options, place)?,
            NamedFile::Elsewhere(url) => {
                self.copy_elsewhere(to_share, &url, &to, &options, place)?
            }
        };
        headers.settle();
        let state = copied.copy();
        Ok(Reply::accepted()
            .version(copied.etag(), copied.last_modified())
            .maybe("x-ms-copy-id", state.map(|state| &state.id))
            .maybe("x-ms-copy-status", state.map(|state| state.status)))
    }

    /// One of the places for what may take long.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.site.copies)
            .try_acquire_owned()
            .map_err(|_| Refusal::busy("too many copies are under way; try again when one is done"))
    }

    fn copy_own(
        &self,
        share: Arc<Share>,
        source: &OwnFile,
        to: &SharePath,
        options: &CopyOptions,
        place: OwnedSemaphorePermit,
    ) -> Result<FileProperties, Refusal> {
        let asking = self.asking()?;
        let (from, started) = if let Some(snapshot) = &source.snapshot {
            let view = source.files()?.snapshot(&source.share, snapshot)?;
            let from = (&*view, &source.path);
            (None, share.start_copy_of_snapshot(asking, from, to, options))
        } else {
            let from = source.files()?.share(&source.share)?;
            let started = share.start_copy(asking, (&from, &source.path), to, options);
            (Some(from), started)
        };
        let started = started.map_err(|error| self.overwriting(error))?;
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
        rest: PendingFileCopy,
        place: OwnedSemaphorePermit,
    ) {
        let site = Arc::clone(self.site);
        let delay = site.options.copy_delay;
        let work = move || {
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
        };
        // The delay keeps no thread. A server that stops drops the task, and the copy fails.
        tokio::spawn(async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            tokio::task::spawn_blocking(work);
        });
    }

    fn copy_options(&self, headers: &SmbHeaders<'_>) -> Result<CopyOptions, Refusal> {
        const MODE: &str = "x-ms-file-permission-copy-mode";
        let permission_key = match (self.request.header(MODE)?, &headers.properties.permission_key)
        {
            (Some(mode), _) if mode.eq_ignore_ascii_case("source") => CopyProperty::Source,
            (_, Some(key)) => CopyProperty::Value(key.clone()),
            (_, None) => CopyProperty::Default,
        };
        let metadata = Some(self.request.metadata()?).filter(|given| !given.is_empty());
        if let Some(metadata) = &metadata {
            crate::rules::check_metadata(metadata.iter())
                .map_err(crate::file::rules::Denial::from)?;
        }
        Ok(CopyOptions {
            id: new_guid(),
            source: without_signature(self.request.required(COPY_SOURCE)?),
            ignore_read_only: self.request.flag("x-ms-file-copy-ignore-readonly")?,
            only_new: self.may_only_create(),
            stays_pending: !self.site.options.copy_delay.is_zero(),
            set_archive: self.request.flag("x-ms-file-copy-set-archive")?,
            metadata,
            attributes: attributes(headers),
            created: headers.properties.created,
            written: headers.properties.written,
            changed: headers.properties.changed,
            permission_key,
        })
    }

    pub(super) fn abort_copy(&self) -> Answer {
        const ACTION: &str = "x-ms-copy-action";
        let (share, path) = (self.share_to_change()?, self.path()?);
        let action = self.request.required(ACTION)?;
        if !action.eq_ignore_ascii_case("abort") {
            return Err(Refusal::header(ACTION, action, "it must be abort"));
        }
        let id = self.request.query.get("copyid").ok_or_else(|| {
            Refusal::bad_because("MissingRequiredQueryParameter", "copyid is required")
        })?;
        share.abort_copy(self.asking()?, &path, id)?;
        Ok(Reply::new(StatusCode::NO_CONTENT))
    }
}

fn attributes(headers: &SmbHeaders<'_>) -> CopyProperty<Attributes> {
    match headers.properties.attributes {
        Some(attributes) => CopyProperty::Value(attributes),
        None if headers.source_attributes => CopyProperty::Source,
        None => CopyProperty::Default,
    }
}
