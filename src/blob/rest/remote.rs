//! Sources of copies on other servers.
//!
//! Decides what is known of such a source: its answer's headers. What fits one step is fetched
//! before the copy is answered; a longer Copy Blob is answered as pending and fetched afterwards.
//! Whether other servers are asked at all is decided in `http/fetch`.

use std::sync::Arc;

use hyper::Uri;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::BlobCall;
use super::body::{finish, write};
use super::copy::{FetchedContent, PIECE_BYTES, SourcePart};
use super::headers::md5_of;
use crate::blob::rules::{BlobOperation, BlobState, BlobType, ContentProperties};
use crate::blob::service::{
    AccessConditions, BlobAt, BlobResult, BlobService, Content, ContentWriter, CopyRequest,
    DbError, SourceAsked,
};
use crate::http::fetch::{self, Stretch};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::frame::site::Site;
use crate::rules::conditions::Subject;
use crate::rules::time::parse_rfc1123;
use crate::rules::{Context, Etag, Timestamp};

/// Longer sources of Copy Blob are fetched after the answer.
const AT_ONCE_MAX: u64 = 4 << 20;

impl BlobCall<'_> {
    /// Asks another server for a source.
    async fn open_elsewhere(
        &self,
        operation: BlobOperation,
        url: &Uri,
        asked: &SourceAsked,
        wanted: &SourcePart,
    ) -> Result<(fetch::Fetched, u64, BlobState), Refusal> {
        let credentials = self.source_credentials()?;
        let fetcher = &self.site.fetcher;
        let source = match &wanted.range {
            None => fetcher.open(url, None, &credentials).await?,
            Some(range) => fetcher.open_range(url, range, &credentials).await?,
        };
        let etag = source.header("etag").unwrap_or_default();
        let modified = source.header("last-modified").and_then(|text| parse_rfc1123(&text));
        let subject = Subject {
            etag: etag.trim_matches('"'),
            last_modified: modified.unwrap_or(Timestamp(0)),
            // Another server's answer does not tell the tags.
            tags_hold: asked.tags.is_none(),
            lease_held: false,
        };
        self.check_source(operation, asked, &subject)?;
        let length = match &wanted.range {
            None => source.size(),
            Some(range) => source.size().min(range.end - range.start),
        };
        let state = described(&source, self.now)?;
        Ok((source, length, state))
    }

    /// One of the places for what may take long.
    fn place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let place = Arc::clone(&self.site.copies).try_acquire_owned();
        place.map_err(|_| Refusal::busy("too many copies are under way; try again later"))
    }

    /// Reads a source on another server into the store of the destination.
    pub(super) async fn fetch_elsewhere(
        &self,
        operation: BlobOperation,
        url: &Uri,
        source_asked: &SourceAsked,
        to: &BlobAt,
        asked: &AccessConditions,
        wanted: SourcePart,
    ) -> Result<FetchedContent, Refusal> {
        let _place = self.place()?;
        let (mut source, length, state) =
            self.open_elsewhere(operation, url, source_asked, &wanted).await?;
        let part = wanted.part || state.kind != BlobType::Block;
        let mut writer = self.begin_fetch(operation, to, asked, length, part).await?;
        let mut left = length;
        while left > 0 {
            let wanted = left.min(PIECE_BYTES as u64);
            let bytes = source.read(wanted, Stretch::BeforeAnswer).await?;
            left -= bytes.len() as u64;
            let written = write(writer, bytes.into()).await;
            writer = written.map_err(|error| self.content_refusal(error))?;
        }
        let content = finish(writer).await;
        let content = content.map_err(|error| self.content_refusal(error))?;
        Ok(FetchedContent { content, state })
    }

    /// Copy Blob from another server.
    pub(super) async fn copy_elsewhere(
        &self,
        url: &Uri,
        at: BlobAt,
        asked: AccessConditions,
        source_asked: &SourceAsked,
        mut request: CopyRequest,
    ) -> Answer {
        let operation = BlobOperation::BlobStartCopyFromURL;
        let place = self.place()?;
        let wanted = SourcePart { range: None, part: false };
        let (mut source, length, state) =
            self.open_elsewhere(operation, url, source_asked, &wanted).await?;
        let part = state.kind != BlobType::Block;
        let writer = self.begin_fetch(operation, &at, &asked, length, part).await?;
        let engine = self.engine()?;
        if length <= AT_ONCE_MAX {
            let bytes = source.read(length, Stretch::BeforeAnswer).await?;
            let written = write(writer, bytes.into()).await;
            let writer = written.map_err(|error| self.content_refusal(error))?;
            let content = finish(writer).await;
            let content = content.map_err(|error| self.content_refusal(error))?;
            let from = FetchedContent { content, state }.into();
            let cx = self.cx_now();
            let copied = engine.copy_blob(&cx, operation, &at, asked, from, request).await;
            return self.copied_reply(operation, copied);
        }
        request.properties = state.content;
        request.metadata.get_or_insert(state.metadata);
        let (site, cx) = (Arc::clone(self.site), self.cx_now());
        let id = request.id.clone();
        let copying = BackgroundCopy { site, cx, engine, at, id, source, _place: place };
        let (tell, begun) = oneshot::channel();
        // A task of its own from the first step on: a client that goes away after the copy has
        // begun must not leave it pending.
        tokio::spawn(async move {
            let BackgroundCopy { engine, cx, at, .. } = &copying;
            let begun = engine.begin_copy(cx, at, asked, state.kind, length, request).await;
            let goes_on = begun.is_ok();
            // The client may have gone away.
            let _ = tell.send(begun);
            if goes_on {
                copying.run(writer, length).await;
            }
        });
        let begun = begun.await.unwrap_or_else(|_| Err(DbError::Closed.into()));
        self.copied_reply(operation, begun)
    }
}

/// The properties of a source, read from the answer of its server. A source that is not a blob
/// becomes a block blob.
fn described(source: &fetch::Fetched, now: Timestamp) -> Result<BlobState, Refusal> {
    let kind = source.header("x-ms-blob-type").and_then(|text| BlobType::from_name(&text));
    let mut state = BlobState::new(kind.unwrap_or(BlobType::Block), Etag::default(), now);
    state.content = ContentProperties {
        content_type: source.header("content-type"),
        encoding: source.header("content-encoding"),
        language: source.header("content-language"),
        disposition: source.header("content-disposition"),
        cache_control: source.header("cache-control"),
        md5: source.header("content-md5").and_then(|text| md5_of(&text)),
    };
    state.metadata = source.metadata()?;
    Ok(state)
}

/// A copy that goes on after its answer. When the server stops this ends wherever it is, and the
/// next start fails the copy.
struct BackgroundCopy {
    site: Arc<Site>,
    cx: Context,
    engine: Arc<BlobService>,
    at: BlobAt,
    id: String,
    source: fetch::Fetched,
    _place: OwnedSemaphorePermit,
}

impl BackgroundCopy {
    async fn run(mut self, writer: ContentWriter, length: u64) {
        let outcome = match self.fetch(writer, length).await {
            // It was aborted, or its destination is gone: that is all that is left to note.
            Ok(None) => Err("it was aborted".to_owned()),
            Ok(Some(content)) => Ok(content),
            Err(why) => Err(why),
        };
        let arrived = outcome.is_ok();
        let mut ended = self.end(outcome).await;
        if let (Err(error), true) = (&ended, arrived) {
            ended = self.end(Err(error.to_string())).await;
        }
        if let Err(error) = ended {
            log::warn!("a copy could not be ended: {error}");
        }
    }

    async fn end(&self, outcome: Result<Content, String>) -> BlobResult<()> {
        self.engine.end_copy(&self.cx(), &self.at, self.id.clone(), outcome).await
    }

    fn cx(&self) -> Context {
        Context { now: self.site.now(), ..self.cx.clone() }
    }

    /// The bytes of the source; `None` if the request has ended.
    async fn fetch(
        &mut self,
        mut writer: ContentWriter,
        length: u64,
    ) -> Result<Option<Content>, String> {
        let mut left = length;
        while left > 0 {
            let waits = self.engine.awaits_bytes(&self.cx(), &self.at, &self.id);
            if !waits.map_err(|error| error.to_string())? {
                return Ok(None);
            }
            let wanted = left.min(PIECE_BYTES as u64);
            let bytes = self.source.read(wanted, Stretch::AfterAnswer).await;
            let bytes = bytes.map_err(|refusal| refusal.message)?;
            left -= bytes.len() as u64;
            writer = write(writer, bytes.into()).await.map_err(|error| error.to_string())?;
        }
        finish(writer).await.map(Some).map_err(|error| error.to_string())
    }
}
