//! Copy Blob, Copy Blob From URL, Put Blob From URL, and the From URL forms of Put Block, Put Page
//! and Append Block.
//!
//! Decides what a source must show where the credentials of the request do not cover it
//! ([`crate::http::frame::source`]): a SAS or token of its own, or public access. Within one
//! account no byte is copied; from another account of this server they are. Sources on other
//! servers are in [`super::remote`].

use std::ops::Range;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{StatusCode, Uri};
use percent_encoding::percent_decode_str;

use super::BlobCall;
use super::append::appended_reply;
use super::blocks::BLOCK_MAX;
use super::body::not_empty;
use super::operations::{BLOB_DOWNLOAD, SERVICE_TABLE};
use super::put::PUT_MAX;
use super::request::{SOURCE_IF_TAGS, selector};
use crate::blob::rules::append::APPEND_MAX;
use crate::blob::rules::name::ROOT;
use crate::blob::rules::{BlobDenial, BlobOperation, BlobState, BlobType, pages};
use crate::blob::service::{
    AccessConditions, BlobAt, BlobContent, BlobResult, BlobService, BodyRole, Content,
    ContentError, ContentPlan, ContentWriter, CopiedBlob, CopyFrom, CopyRequest, DbError,
    OpenedBlob, PageChange, PutPages, SourceAsked,
};
use crate::http::auth::{
    AuthError, AuthTarget, Permission, RequestView, ResourceLevel, without_signature,
};
use crate::http::checksum::{crc64_header, crc64_text};
use crate::http::frame::host::{self, HostedAccount};
use crate::http::frame::receive::too_large;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::frame::source::{COPY_SOURCE, NamedSource, unauthorised_source};
use crate::http::reply::Reply;
use crate::http::request::{Query, byte_range};
use crate::rules::conditions::Subject;
use crate::rules::conditions::copy::source_failure;
use crate::rules::service::ServiceKind;
use crate::sync::random::new_guid;

/// Bytes copied in one step.
pub(super) const PIECE_BYTES: usize = 1 << 20;
const SOURCE_MD5: &str = "x-ms-source-content-md5";

/// A blob of this server that a request names as its source.
struct OwnBlob {
    account: Arc<dyn HostedAccount>,
    at: BlobAt,
}

/// The source that `x-ms-copy-source` names.
enum BlobSource {
    Own(OwnBlob),
    Elsewhere(Uri),
}

/// A source that was read into the store of the destination.
pub(super) struct FetchedContent {
    pub content: Content,
    /// As far as its properties are known.
    pub state: BlobState,
}

/// The part of a source to read, and whether it becomes a blob or a part of one.
pub(super) struct SourcePart {
    pub range: Option<Range<u64>>,
    /// For a block, pages or an appended block.
    pub part: bool,
}

impl From<FetchedContent> for CopyFrom {
    fn from(FetchedContent { content, state }: FetchedContent) -> Self {
        Self::Fetched {
            kind: state.kind,
            content,
            properties: state.content,
            metadata: state.metadata,
        }
    }
}

impl BlobCall<'_> {
    pub(super) async fn copy_blob(self, _: Incoming) -> Answer {
        self.copy_whole(BlobOperation::BlobStartCopyFromURL).await
    }

    pub(super) async fn copy_from_url(self, _: Incoming) -> Answer {
        self.copy_whole(BlobOperation::BlobCopyFromURL).await
    }

    pub(super) async fn put_blob_from_url(self, _: Incoming) -> Answer {
        self.copy_whole(BlobOperation::BlockBlobPutBlobFromUrl).await
    }

    async fn copy_whole(self, operation: BlobOperation) -> Answer {
        let (at, asked) = (self.blob_to_change()?, self.asked(operation)?);
        let source_asked = self.source_asked(operation)?;
        let source = self.source(operation).await?;
        let engine = self.engine()?;
        let request = self.copy_request(operation)?;
        // A checksum of the source is compared with its bytes.
        let hashed = self.headers.contains_key(SOURCE_MD5);
        let from = match source {
            BlobSource::Own(own) if own.account.name() == self.0.account.name() && !hashed => {
                CopyFrom::Here { at: own.at, asked: source_asked }
            }
            BlobSource::Elsewhere(url) if operation == BlobOperation::BlobStartCopyFromURL => {
                return self.copy_elsewhere(&url, at, asked, &source_asked, request).await;
            }
            source => {
                let wanted = SourcePart { range: None, part: false };
                let fetched =
                    self.fetch(operation, source, &source_asked, &at, &asked, wanted).await?;
                fetched.into()
            }
        };
        let copied = engine.copy_blob(&self.cx_now(), operation, &at, asked, from, request).await;
        self.copied_reply(operation, copied)
    }

    /// The answer to a copy.
    pub(super) fn copied_reply(
        &self,
        operation: BlobOperation,
        copied: BlobResult<CopiedBlob>,
    ) -> Answer {
        let copied = self.told(copied)?;
        let reply = match operation {
            BlobOperation::BlockBlobPutBlobFromUrl => Reply::created(),
            _ => Reply::accepted()
                .header("x-ms-copy-id", &copied.copy.id)
                .header("x-ms-copy-status", copied.copy.status),
        };
        let md5 = copied.written.state.content.md5.as_ref().map(super::headers::md5_text);
        let synchronous = operation != BlobOperation::BlobStartCopyFromURL;
        Ok(reply.blob_written(&copied.written).maybe("content-md5", md5.filter(|_| synchronous)))
    }

    fn copy_request(&self, operation: BlobOperation) -> Result<CopyRequest, Refusal> {
        let new = self.new_blob(false)?;
        let metadata = Some(new.metadata.clone()).filter(|metadata| !metadata.is_empty());
        let keeps = match self.header("x-ms-copy-source-blob-properties")? {
            Some(text) => !text.eq_ignore_ascii_case("false"),
            None => true,
        };
        let put = operation == BlobOperation::BlockBlobPutBlobFromUrl;
        let properties = if put { self.content_sent()? } else { None }.unwrap_or_default();
        let copy_tags = self.copies_tags()?;
        if copy_tags {
            self.check_letter(Permission::Tags)?;
        }
        let seal = match self.header("x-ms-seal-blob")? {
            Some(_) => Some(self.flag("x-ms-seal-blob")?),
            None => None,
        };
        Ok(CopyRequest {
            id: new_guid(),
            source: without_signature(self.required(COPY_SOURCE)?),
            metadata,
            properties,
            drops_properties: put && !keeps,
            copy_tags,
            seal,
            new,
        })
    }

    /// Whether the tags of the source are copied.
    fn copies_tags(&self) -> Result<bool, Refusal> {
        let option = self.header("x-ms-copy-source-tag-option")?;
        Ok(option.is_some_and(|option| option.eq_ignore_ascii_case("COPY")))
    }

    pub(super) async fn abort_copy(self, _: Incoming) -> Answer {
        const ACTION: &str = "x-ms-copy-action";
        let operation = BlobOperation::BlobAbortCopyFromURL;
        let (at, asked) = (self.blob_to_change()?, self.asked(operation)?);
        match self.required(ACTION)? {
            text if text.eq_ignore_ascii_case("abort") => {}
            text => return Err(Refusal::header(ACTION, text, "it must be abort")),
        }
        let missing = || {
            Refusal::bad("MissingRequiredQueryParameter", "The query parameter copyid is required.")
        };
        let id = self.query.get("copyid").ok_or_else(missing)?.to_owned();
        self.told(self.engine()?.abort_copy(self.cx(), &at, asked, id).await)?;
        Ok(Reply::new(StatusCode::NO_CONTENT))
    }

    pub(super) async fn put_block_from_url(self, _: Incoming) -> Answer {
        let operation = BlobOperation::BlockBlobStageBlockFromURL;
        let (at, asked) = (self.blob_to_change()?, self.asked(operation)?);
        let id = self.block_id()?;
        let fetched = self.fetch_part(operation, &at, &asked).await?;
        let crc = fetched.content.crc64();
        let content = not_empty(fetched.content)?;
        let cx = self.cx_now();
        let put = self.engine()?.put_block(&cx, operation, &at, asked, id, content).await;
        self.told(put)?;
        Ok(Reply::created()
            .header("x-ms-content-crc64", crc64_text(crc))
            .header("x-ms-request-server-encrypted", "true")
            .encryption(&self.encryption_sent()?))
    }

    pub(super) async fn append_from_url(self, _: Incoming) -> Answer {
        let operation = BlobOperation::AppendBlobAppendBlockFromUrl;
        let (at, asked) = (self.blob_to_change()?, self.asked(operation)?);
        let conditions = self.append_conditions()?;
        let content = not_empty(self.fetch_part(operation, &at, &asked).await?.content)?;
        let reply = Reply::created().header("x-ms-content-crc64", crc64_text(content.crc64()));
        let (engine, cx) = (self.engine()?, self.cx_now());
        let done = engine.append_block(&cx, operation, &at, asked, conditions, content).await;
        Ok(appended_reply(reply, &self.told(done)?))
    }

    pub(super) async fn put_page_from_url(self, _: Incoming) -> Answer {
        let operation = BlobOperation::PageBlobUploadPagesFromURL;
        let (at, asked) = (self.blob_to_change()?, self.asked(operation)?);
        let (range, conditions) = (self.page_range()?, self.sequence_conditions()?);
        let content = self.fetch_part(operation, &at, &asked).await?.content;
        let reply = Reply::created().header("x-ms-content-crc64", crc64_text(content.crc64()));
        let change = PageChange::Update(content);
        let put = PutPages { first: range.start, last: range.end - 1, change, conditions };
        let done = self.engine()?.put_pages(&self.cx_now(), operation, &at, asked, put).await;
        let written = self.told(done)?;
        Ok(reply
            .blob_written(&written)
            .header("x-ms-blob-sequence-number", written.state.sequence_number))
    }

    /// The bytes of a source for a part of the blob `to`.
    async fn fetch_part(
        &self,
        operation: BlobOperation,
        to: &BlobAt,
        asked: &AccessConditions,
    ) -> Result<FetchedContent, Refusal> {
        const RANGE: &str = "x-ms-source-range";
        let range = match self.header(RANGE)? {
            None => None,
            Some(text) => {
                let bad = || Refusal::header(RANGE, text, "it must be bytes=FIRST-LAST");
                Some(byte_range(text).ok_or_else(bad)?)
            }
        };
        let source_asked = self.source_asked(operation)?;
        let source = self.source(operation).await?;
        let wanted = SourcePart { range, part: true };
        self.fetch(operation, source, &source_asked, to, asked, wanted).await
    }

    /// Reads a source into the store of the destination, and compares its checksums.
    async fn fetch(
        &self,
        operation: BlobOperation,
        source: BlobSource,
        source_asked: &SourceAsked,
        to: &BlobAt,
        asked: &AccessConditions,
        wanted: SourcePart,
    ) -> Result<FetchedContent, Refusal> {
        let fetched = match source {
            BlobSource::Own(own) => {
                self.fetch_own(operation, &own, source_asked, to, asked, wanted).await
            }
            BlobSource::Elsewhere(url) => {
                self.fetch_elsewhere(operation, &url, source_asked, to, asked, wanted).await
            }
        }?;
        let sent = crc64_header(self, "x-ms-source-content-crc64")?;
        if sent.is_some_and(|sent| sent != fetched.content.crc64()) {
            return Err(Refusal::bad_because("Crc64Mismatch", ""));
        }
        let sent = self.md5_header(SOURCE_MD5)?;
        if sent.is_some() && sent != fetched.content.md5() {
            return Err(Refusal::bad_because("Md5Mismatch", ""));
        }
        Ok(fetched)
    }

    /// A place for the bytes of a source, if the rules admit the write.
    pub(super) async fn begin_fetch(
        &self,
        operation: BlobOperation,
        to: &BlobAt,
        asked: &AccessConditions,
        length: u64,
        part: bool,
    ) -> Result<ContentWriter, Refusal> {
        let max = match operation {
            BlobOperation::PageBlobUploadPagesFromURL => pages::PUT_MAX,
            BlobOperation::AppendBlobAppendBlockFromUrl => APPEND_MAX,
            BlobOperation::BlockBlobStageBlockFromURL => BLOCK_MAX,
            _ => PUT_MAX,
        };
        if length > max {
            return Err(too_large(max));
        }
        let engine = self.engine()?;
        self.told(engine.check(self.cx(), operation, to, asked))?;
        let md5 = self.headers.contains_key(SOURCE_MD5);
        let role = if part { BodyRole::Part } else { BodyRole::Whole };
        self.begin(&engine, ContentPlan { length: Some(length), role, md5 }).await
    }

    /// Reads a source of this server into the store of the destination.
    async fn fetch_own(
        &self,
        operation: BlobOperation,
        own: &OwnBlob,
        source_asked: &SourceAsked,
        to: &BlobAt,
        asked: &AccessConditions,
        wanted: SourcePart,
    ) -> Result<FetchedContent, Refusal> {
        host::open(ServiceKind::Blob, &own.account, &self.site.options.limits).await?;
        let source: &Arc<BlobService> = host::open_service(&*own.account, ServiceKind::Blob)?;
        let asked_of_source =
            AccessConditions { key: source_asked.key.clone(), ..AccessConditions::default() };
        let opened = source.open_blob(self.cx(), &own.at, asked_of_source, wanted.range).await;
        let opened = opened.map_err(|error| error.of_source(operation));
        let OpenedBlob { blob, range, content } = self.told(opened)?;
        let etag = blob.state.etag.to_string();
        let tags = source_asked.tags.as_ref();
        let subject = Subject {
            etag: &etag,
            last_modified: blob.state.modified,
            tags_hold: tags.is_none_or(|query| query.holds(&own.at.container, &blob.state.tags)),
            lease_held: false,
        };
        self.check_source(operation, source_asked, &subject)?;
        // Append and page blobs are written in parts later: none of their bytes are in the row.
        let part = wanted.part || blob.state.kind != BlobType::Block;
        let length = range.end - range.start;
        let writer = self.begin_fetch(operation, to, asked, length, part).await?;
        let copied = tokio::task::spawn_blocking(move || copy_in(range, content, writer)).await;
        let content = copied
            .unwrap_or_else(|error| Err(DbError::Panicked(error.to_string()).into()))
            .map_err(|error| self.content_refusal(error))?;
        Ok(FetchedContent { content, state: Arc::unwrap_or_clone(blob.state) })
    }

    /// Asks the conditions of a source whose bytes are copied.
    pub(super) fn check_source(
        &self,
        operation: BlobOperation,
        asked: &SourceAsked,
        subject: &Subject<'_>,
    ) -> Result<(), Refusal> {
        let failed = source_failure(&asked.conditions, subject);
        match (failed, operation.rules().copy) {
            (Some(failed), Some(kind)) => {
                let denial = BlobDenial::CopyCondition(kind.source_refusal(failed));
                self.told(Err(denial.into()))
            }
            _ => Ok(()),
        }
    }

    /// The source that `x-ms-copy-source` names; a blob of this server only if the request may read
    /// it.
    async fn source(&self, operation: BlobOperation) -> Result<BlobSource, Refusal> {
        let own = match self.source_in(COPY_SOURCE)? {
            NamedSource::Own(own) => own,
            NamedSource::Elsewhere(url) => return Ok(BlobSource::Elsewhere(url)),
        };
        let invalid = || Refusal::header(COPY_SOURCE, "", "it is no URL of a blob");
        let account = self.site.accounts.account(&own.address.account).ok_or_else(invalid)?;
        let first = own.address.container.clone().ok_or_else(invalid)?;
        let name = percent_decode_str(&own.address.rest).decode_utf8().map_err(|_| invalid())?;
        let at = if name.is_empty() { BlobAt::new(ROOT, first) } else { BlobAt::new(first, name) };
        let at = at.state(selector(&Query::read(own.uri.query().unwrap_or_default()))?);
        let tags = self.copies_tags()? || self.headers.contains_key(SOURCE_IF_TAGS);
        if !self.covers_source(&own, operation == BlobOperation::BlobStartCopyFromURL) {
            self.check_source_right(&account, own.uri, &at, tags).await?;
        }
        Ok(BlobSource::Own(OwnBlob { account, at }))
    }

    /// An error unless the request may read its source, and its tags if it uses them. Asked on a
    /// thread that may block, since the container's row may decide.
    async fn check_source_right(
        &self,
        account: &Arc<dyn HostedAccount>,
        uri: Uri,
        at: &BlobAt,
        tags: bool,
    ) -> Result<(), Refusal> {
        let sent = self.source_credentials()?.into_iter();
        let sent: Vec<_> = sent.map(|(name, value)| (name, value.to_owned())).collect();
        let (site, account, at) = (Arc::clone(self.site), Arc::clone(account), at.clone());
        // The source is read here, over the connection of this request.
        let (https, client_ip) = (self.https, self.peer.ip());
        let (now, outside) = (self.now, self.outside);
        let check = move || {
            let headers: Vec<_> = sent.iter().map(|(name, value)| (*name, &**value)).collect();
            let (raw_path, raw_query) = (uri.path(), uri.query().unwrap_or_default());
            let headers = &headers;
            let view = RequestView {
                method: "GET",
                raw_path,
                raw_query,
                headers,
                now,
                outside,
                https,
                client_ip,
            };
            let target = AuthTarget {
                signatures: SERVICE_TABLE.signatures,
                account: account.name(),
                container: Some(&at.container),
                path: &at.name,
                level: ResourceLevel::Object,
            };
            let admission = &site.options.admission;
            match admission.source_grant(&SERVICE_TABLE, &*account, &view, &target) {
                Ok(grant) => {
                    grant.check_letters(&[Permission::Read])?;
                    if tags { grant.check_letters(&[Permission::Tags]) } else { Ok(()) }
                }
                Err(AuthError::NoCredentials)
                    if !tags
                        && super::operations::is_public(
                            &*account,
                            &at.container,
                            &BLOB_DOWNLOAD,
                        ) =>
                {
                    Ok(())
                }
                Err(error) => Err(error),
            }
        };
        let answer = tokio::task::spawn_blocking(check).await.map_err(Refusal::internal)?;
        answer.map_err(|error: AuthError| unauthorised_source(&error))
    }
}

/// Copies the bytes of a blob of this server.
fn copy_in(
    range: Range<u64>,
    mut content: BlobContent,
    mut writer: ContentWriter,
) -> Result<Content, ContentError> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut offset = range.start;
    while offset < range.end {
        let wanted = usize::try_from(range.end - offset).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let read = match &mut content {
            BlobContent::Zeros => wanted,
            BlobContent::Whole(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let read = wanted.min(bytes.len() - from);
                piece[..read].copy_from_slice(&bytes[from..from + read]);
                read
            }
            BlobContent::Stored(reader) => reader.read_at(offset, &mut piece[..wanted])?,
        };
        if read == 0 {
            return Err(DbError::Io("the source ended early".into()).into());
        }
        writer.write(&piece[..read])?;
        offset += read as u64;
    }
    writer.finish()
}
