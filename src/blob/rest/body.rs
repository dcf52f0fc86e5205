//! Bodies on their way in: received piece by piece into the store, with their checksums.
//!
//! Decides how long a body may be and that a checksum is compared before anything refers to the
//! bytes. Memory for one request is bounded by the pieces that arrive, whatever the body's length.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body as _, Bytes, Incoming};
use tokio::time::timeout;

use super::BlobCall;
use super::headers::md5_text;
use crate::blob::rules::BlobOperation;
use crate::blob::service::{
    AccessConditions, BlobAt, BlobService, BodyRole, Content, ContentError, ContentPlan,
    ContentWriter, DbError,
};
use crate::http::checksum::{
    self, STRUCTURED, STRUCTURED_CRC64, STRUCTURED_LENGTH, crc64, crc64_header, crc64_text,
    is_structured,
};
use crate::http::frame::receive::{discard, too_large};
use crate::http::frame::refusal::Refusal;
use crate::http::reply::Reply;
use crate::http::unframed::Unframer;

/// Longest document (XML) of a request.
pub(super) const DOCUMENT_MAX: usize = 8 << 20;
/// Bytes of a refused request that are read so that its connection stays usable.
const DRAIN_MAX: usize = 64 << 20;
/// A body that was received.
pub(super) struct ReceivedBody {
    pub content: Content,
    /// Whether the request brought an MD5, which the answer repeats.
    pub by_md5: bool,
    /// Whether the body was structured, which the answer repeats.
    pub structured: bool,
}

impl ReceivedBody {
    /// The form of the body, as the answer repeats it.
    pub(super) fn form(&self, reply: Reply) -> Reply {
        reply.maybe(STRUCTURED, self.structured.then_some(STRUCTURED_CRC64))
    }

    /// The checksum that answers to parts of a blob carry, and the form of the body.
    pub(super) fn checksum(&self, reply: Reply) -> Reply {
        let reply = self.form(reply);
        match self.content.md5().filter(|_| self.by_md5) {
            Some(md5) => reply.header("content-md5", md5_text(md5)),
            None => reply.header("x-ms-content-crc64", crc64_text(self.content.crc64())),
        }
    }
}

/// Content that was received: a blob, a block, bytes to append, pages.
pub(super) struct ReceivedPart<P> {
    pub engine: Arc<BlobService>,
    pub at: BlobAt,
    pub asked: AccessConditions,
    /// The parameters of the operation.
    pub parameters: P,
    pub body: ReceivedBody,
}

/// The checksums that a request gives for its document.
pub(super) struct SentSums {
    md5: Option<[u8; 16]>,
    crc64: Option<u64>,
}

impl SentSums {
    /// Refuses a document that is not the one that was sent.
    pub(super) fn check(&self, document: &[u8]) -> Result<(), Refusal> {
        if let Some(sent) = self.md5.map(md5_text) {
            let found = checksum::md5(document);
            if found != sent {
                return Err(md5_mismatch(sent, found));
            }
        }
        match self.crc64 {
            Some(sent) if sent != crc64(document) => Err(Refusal::bad_because("Crc64Mismatch", "")),
            _ => Ok(()),
        }
    }
}

impl BlobCall<'_> {
    /// The checksums that the headers give for the document of the request.
    pub(super) fn sums_sent(&self) -> Result<SentSums, Refusal> {
        let md5 = self.md5_header("content-md5")?;
        Ok(SentSums { md5, crc64: crc64_header(self, "x-ms-content-crc64")? })
    }

    /// The length of the content that the headers announce, without frames; `None` if they announce
    /// none.
    pub(super) fn announced(&self) -> Result<Option<u64>, Refusal> {
        let name = if is_structured(self)? { STRUCTURED_LENGTH } else { "content-length" };
        self.parsed(name, "it must be a number")
    }

    /// Refuses a request whose body is too long.
    pub(super) fn check_length(&self, max: u64) -> Result<(), Refusal> {
        match self.announced()? {
            Some(length) if length > max => Err(too_large(max)),
            _ => Ok(()),
        }
    }

    /// Receives the body of an operation that writes a blob or a part of one, once the operation is
    /// admitted. `parameters` reads and checks the parameters that the operation has besides.
    pub(super) async fn receive_part<P>(
        &self,
        operation: BlobOperation,
        mut body: Option<Incoming>,
        (role, max): (BodyRole, u64),
        parameters: impl FnOnce() -> Result<P, Refusal>,
    ) -> Result<ReceivedPart<P>, Refusal> {
        let prepared = async {
            self.check_length(max)?;
            let (at, asked) = (self.blob_to_change()?, self.asked(operation)?);
            let parameters = parameters()?;
            let engine = self.engine()?;
            self.told(engine.check(self.cx(), operation, &at, &asked))?;
            Ok((engine, at, asked, parameters))
        }
        .await;
        let (engine, at, asked, parameters) = self.drained(&mut body, prepared).await?;
        let body = body.take().ok_or_else(|| Refusal::bad("InvalidInput", "There is no body."))?;
        let body = self.receive(body, role, max).await?;
        Ok(ReceivedPart { engine, at, asked, parameters, body })
    }

    /// Refuses a part of a blob that is announced as empty.
    pub(super) fn check_announced(&self, why: &str) -> Result<(), Refusal> {
        if self.announced()? == Some(0) {
            return Err(Refusal::header("Content-Length", "0", why));
        }
        Ok(())
    }

    /// Receives a body into the store. The MD5 of a whole blob is needed in any case, and the one
    /// that the blob is to keep (`x-ms-blob-content-md5`) must be that of the body. It goes before
    /// `Content-MD5`.
    pub(super) async fn receive(
        &self,
        body: Incoming,
        role: BodyRole,
        max: u64,
    ) -> Result<ReceivedBody, Refusal> {
        let begun = async {
            let whole = role == BodyRole::Whole;
            let sent = self.sums_of_content(whole)?;
            let engine = self.engine()?;
            let md5 = whole || sent.md5.is_some();
            let plan = ContentPlan { length: self.announced()?, role, md5 };
            let writer = self.begin(&engine, plan).await?;
            Ok((sent, writer))
        };
        let (sent, writer) = match begun.await {
            Ok(begun) => begun,
            Err(refusal) => return Err(self.drain(body, refusal).await),
        };
        // Until all of the body is read, a refusal ends the connection.
        let writer = self.copy_in(body, writer, max).await.map_err(Refusal::closing)?;
        let content = finish(writer).await.map_err(|error| self.content_refusal(error))?;
        if let (Some(sent), Some(found)) = (sent.md5, content.md5())
            && sent != found
        {
            return Err(md5_mismatch(md5_text(sent), md5_text(found)));
        }
        if sent.crc64.is_some_and(|sent| sent != content.crc64()) {
            return Err(Refusal::bad_because("Crc64Mismatch", ""));
        }
        self.cx().note(|given| given.body = Some(content.crc64()));
        Ok(ReceivedBody { content, by_md5: sent.md5.is_some(), structured: is_structured(self)? })
    }

    /// The checksums that the headers give for content: all of a blob, or a part of one.
    fn sums_of_content(&self, whole: bool) -> Result<SentSums, Refusal> {
        let kept = if whole { self.md5_header("x-ms-blob-content-md5")? } else { None };
        let sent = self.sums_sent()?;
        Ok(SentSums { md5: kept.or(sent.md5), ..sent })
    }

    /// A place for a body. Making a file and reserving its space is not done on the event loop.
    pub(super) async fn begin(
        &self,
        engine: &Arc<BlobService>,
        plan: ContentPlan,
    ) -> Result<ContentWriter, Refusal> {
        if plan.is_kept_in_memory() {
            return self.told(engine.begin_body(plan));
        }
        let engine = Arc::clone(engine);
        let begin = move || engine.begin_body(plan);
        match tokio::task::spawn_blocking(begin).await {
            Ok(writer) => self.told(writer),
            Err(panicked) => Err(Refusal::internal(panicked)),
        }
    }

    async fn copy_in(
        &self,
        mut body: Incoming,
        mut writer: ContentWriter,
        max: u64,
    ) -> Result<ContentWriter, Refusal> {
        let mut frames = is_structured(self)?.then(Unframer::default);
        let mut received = 0;
        while let Some(mut bytes) = self.piece(&mut body).await? {
            loop {
                let part = match &mut frames {
                    None => Some(std::mem::take(&mut bytes)).filter(|bytes| !bytes.is_empty()),
                    Some(frames) => frames.next(&mut bytes)?,
                };
                let Some(part) = part else { break };
                received += part.len() as u64;
                if received > max {
                    return Err(too_large(max));
                }
                let written = write(writer, part).await;
                writer = written.map_err(|error| self.content_refusal(error))?;
            }
        }
        frames.map_or(Ok(()), |frames| frames.finish())?;
        Ok(writer)
    }

    /// The next piece of a body. A client that sends nothing for too long is given up.
    async fn piece(&self, body: &mut Incoming) -> Result<Option<Bytes>, Refusal> {
        // Else the end would be waited for, which is known.
        while !body.is_end_stream() {
            let frame = timeout(self.site.options.limits.body_wait, body.frame()).await;
            match frame {
                Err(_) => {
                    let message = "The operation could not be completed within the permitted time. \
                                   [latchfs: the body did not arrive in time]";
                    let status = StatusCode::REQUEST_TIMEOUT;
                    return Err(Refusal::new(status, "OperationTimedOut", message).closing());
                }
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => {
                    let message = format!("The body broke off: {error}.");
                    return Err(Refusal::bad("InvalidInput", message).closing());
                }
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Reads the body of a request that is refused before it was received, up to a bound and while
    /// it comes: a client that is still sending would otherwise see its connection end instead of
    /// the answer.
    pub(super) async fn drained<T>(
        &self,
        body: &mut Option<Incoming>,
        result: Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        match result {
            // The body of a request that goes on must stay where it is.
            Ok(result) => Ok(result),
            Err(refusal) => Err(match body.take() {
                Some(body) => self.drain(body, refusal).await,
                None => refusal,
            }),
        }
    }

    /// As [`BlobCall::drained`], of a request that is refused.
    async fn drain(&self, body: Incoming, refusal: Refusal) -> Refusal {
        if refusal.close || body.is_end_stream() {
            return refusal;
        }
        // A client that waits for a word before it sends the body gets the answer instead.
        let expects = self.headers.contains_key("expect");
        let limits = &self.site.options.limits;
        let all_came = !expects && discard(body, DRAIN_MAX, limits).await;
        if all_came { refusal } else { refusal.closing() }
    }

    pub(super) fn content_refusal(&self, error: ContentError) -> Refusal {
        match error {
            ContentError::Length { declared, received } => Refusal::bad(
                "InvalidInput",
                format!("The body has {received} bytes, not the {declared} of its Content-Length."),
            )
            .closing(),
            ContentError::Store(error) => {
                let failed: Result<(), Refusal> = self.told(Err(error.into()));
                failed.err().unwrap_or_else(broken)
            }
        }
    }
}

/// Refuses a block or an append without a byte, as one whose `Content-Length` is 0.
pub(super) fn not_empty(content: Content) -> Result<Content, Refusal> {
    if content.length() > 0 {
        return Ok(content);
    }
    Err(Refusal::header("Content-Length", "0", "a block has at least one byte"))
}

/// Writes a piece of a body. Where a file has to be made first, that is not done on the event loop.
pub(super) async fn write(
    mut writer: ContentWriter,
    piece: Bytes,
) -> Result<ContentWriter, ContentError> {
    match writer.try_write(&piece) {
        Some(written) => written.map(|()| writer),
        None => on_a_thread(move || writer.write(&piece).map(|()| writer)).await,
    }
}

/// Ends a body. Where that waits for the disk, it does not wait on the event loop.
pub(super) async fn finish(mut writer: ContentWriter) -> Result<Content, ContentError> {
    match writer.try_finish() {
        Some(finished) => finished,
        None => on_a_thread(move || writer.finish()).await,
    }
}

async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ContentError> + Send + 'static,
) -> Result<T, ContentError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(DbError::Panicked(error.to_string()).into()))
}

fn broken() -> Refusal {
    let message = "The server encountered an internal error. Please retry the request.";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
}

/// The refusal of bytes whose MD5 is not the one that the request gives.
fn md5_mismatch(sent: String, found: String) -> Refusal {
    Refusal::bad_because("Md5Mismatch", "")
        .with("UserSpecifiedMd5", sent)
        .with("ServerCalculatedMd5", found)
}
