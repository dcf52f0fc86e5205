//! Put Range From URL, and Copy File from another server.
//!
//! Decides what is known of a source elsewhere, and how its bytes get to the engine: what one
//! step takes is read before anything is changed, so that a source that fails leaves the
//! destination as it was; the rest of a long one arrives after the answer.

use std::ops::Range;
use std::sync::Arc;

use hyper::{StatusCode, Uri};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;

use super::FileCall;
use super::content::ranged;
use super::download::{self, FileDownload};
use super::source::{NamedFile, OwnFile, SourceUse};
use crate::file::rules::{Denial, SharePath};
use crate::file::service::{
    Asking, Awaiting, CopyOptions, CopyProperty, FileProperties, HttpHeaders, IO_MAX, Metadata,
    RemoteSource, Share, TimeChange,
};
use crate::http::checksum::{crc64, crc64_header, crc64_text, md5};
use crate::http::fetch::{Fetched, Stretch};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::frame::source::COPY_SOURCE;
use crate::http::request::byte_range;

impl FileCall<'_> {
    pub(super) fn upload_range_from_url(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let range = self.written_range()?;
        let bytes = self.source_bytes(range.end - range.start)?;
        let crc = crc64(&bytes);
        if let Some(wanted) = crc64_header(self.request, "x-ms-source-content-crc64")?
            && wanted != crc
        {
            return Err(Refusal::bad_because("Crc64Mismatch", ""));
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
        let source = self.source(COPY_SOURCE, SourceUse::Range)?;
        let asked = match self.request.header(RANGE)? {
            Some(text) => byte_range(text)
                .ok_or_else(|| Refusal::header(RANGE, text, "it must be bytes=FIRST-LAST"))?,
            None => 0..length,
        };
        if asked.end - asked.start != length || length > IO_MAX as u64 {
            let why = "it must be as long as the range that is written, at most 4 MiB";
            return Err(Refusal::header(RANGE, "", why));
        }
        match source {
            NamedFile::Own(source) => self.own_bytes(*source, asked),
            NamedFile::Elsewhere(url) => {
                let _place = self.place()?;
                let credentials = self.source_credentials()?;
                let fetching = async {
                    let fetcher = &self.site.fetcher;
                    let mut fetched = fetcher.open_range(&url, &asked, &credentials).await?;
                    if fetched.size() < length {
                        return Err(Denial::EndOfFile.into());
                    }
                    fetched.read(length, Stretch::BeforeAnswer).await
                };
                Handle::current().block_on(fetching)
            }
        }
    }

    fn own_bytes(&self, source: OwnFile, asked: Range<u64>) -> Result<Vec<u8>, Refusal> {
        let length = asked.end - asked.start;
        let download = if let Some(snapshot) = &source.snapshot {
            let view = source.files()?.snapshot(&source.share, snapshot)?;
            FileDownload {
                source: download::DownloadSource::Snapshot(view, source.path),
                range: asked,
            }
        } else {
            let asking = Asking { cx: self.cx(), lease_id: None };
            let from = source.files()?.share(&source.share)?;
            let reader = from.open_reader(asking, &source.path, Some(asked))?;
            let range = reader.range();
            FileDownload { range, source: download::DownloadSource::Live(Box::new(reader)) }
        };
        let bytes = download.read_all()?;
        if bytes.len() as u64 != length {
            return Err(Denial::EndOfFile.into());
        }
        Ok(bytes)
    }

    /// Starts a copy from another server; a long one goes on after the answer.
    pub(super) fn copy_elsewhere(
        &self,
        share: Arc<Share>,
        url: &Uri,
        to: &SharePath,
        options: &CopyOptions,
        place: OwnedSemaphorePermit,
    ) -> Result<FileProperties, Refusal> {
        check_nothing_taken(options)?;
        let credentials = self.source_credentials()?;
        let runtime = Handle::current();
        let mut fetched = runtime.block_on(self.site.fetcher.open(url, None, &credentials))?;
        let from = described(&fetched)?;
        let bytes = if from.size <= IO_MAX as u64 {
            Some(runtime.block_on(fetched.read(from.size, Stretch::BeforeAnswer))?)
        } else {
            None
        };
        let asking = self.asking()?;
        let started = share.start_copy_from_remote(asking, &from, bytes.as_deref(), to, options);
        let started = started.map_err(|error| self.overwriting(error))?;
        if let Some(rest) = started.rest {
            runtime.spawn(async move {
                hand_in(share, rest, fetched).await;
                drop(place);
            });
        }
        Ok(started.copied)
    }
}

/// Hands the bytes of a source to the copy that waits for them, until it has all, is aborted, or
/// they do not come. When the server stops this ends wherever it is, and the copy has failed.
async fn hand_in(share: Arc<Share>, mut awaiting: Awaiting, mut fetched: Fetched) {
    loop {
        let read = fetched.read(awaiting.wanted(), Stretch::AfterAnswer).await;
        let to = Arc::clone(&share);
        let taken = spawn_blocking(move || match read {
            Ok(bytes) => to.copy_next(&mut awaiting, &bytes).map(|ended| (ended, awaiting)),
            Err(refusal) => {
                to.copy_broke_off(&awaiting, &refusal.message);
                Err(crate::file::rules::Denial::Cancelled.into())
            }
        });
        match taken.await {
            Ok(Ok((None, rest))) => awaiting = rest,
            Ok(Ok((Some(_), _))) => return,
            Ok(Err(error)) => return log::info!("a copy ended early: {error}"),
            Err(error) => return log::error!("a copy ended badly: {error}"),
        }
    }
}

/// Another server's answer has none of the properties that a file has.
fn check_nothing_taken(options: &CopyOptions) -> Result<(), Refusal> {
    let why = "a source on another server has no such property";
    let taken = [
        ("x-ms-file-attributes", options.attributes == CopyProperty::Source),
        ("x-ms-file-creation-time", options.created == TimeChange::Source),
        ("x-ms-file-last-write-time", options.written == TimeChange::Source),
        ("x-ms-file-change-time", options.changed == TimeChange::Source),
        ("x-ms-file-permission-copy-mode", options.permission_key == CopyProperty::Source),
    ];
    match taken.iter().find(|(_, taken)| *taken) {
        Some((name, _)) => Err(Refusal::header(name, "source", why)),
        None => Ok(()),
    }
}

/// The properties of a source on another server, read from its headers.
fn described(source: &Fetched) -> Result<RemoteSource, Refusal> {
    let metadata = source.metadata()?.into_iter().collect::<Metadata>();
    let get = |name: &str| source.header(name);
    let headers = HttpHeaders {
        content_type: get("content-type"),
        content_encoding: get("content-encoding"),
        content_language: get("content-language"),
        content_disposition: get("content-disposition"),
        cache_control: get("cache-control"),
        content_md5: get("content-md5"),
    };
    Ok(RemoteSource { size: source.size(), headers, metadata })
}
