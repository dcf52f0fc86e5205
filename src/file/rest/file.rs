//! Files: create, look at, set, delete. Renaming files and directories, within one share.

use super::FileCall;
use super::headers::{NO_TYPE, SmbHeaders, changed_content_headers, content_headers};
use super::source::{NamedFile, SourceUse};
use crate::file::rules::SharePath;
use crate::file::service::shares::{SnapshotName, SnapshotView};
use crate::file::service::{FileChanges, FileProperties, NewProperties, RestRename, Semantics};
use crate::http::checksum::{STRUCTURED, checked_body};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::frame::source::RENAME_SOURCE;
use crate::http::reply::{Reply, ReplyBody};

const CONTENT_LENGTH: &str = "x-ms-content-length";
/// The type of a file that was given none.
const TYPE_DEFAULT: &str = "application/octet-stream";

impl FileCall<'_> {
    pub(super) fn create_file(&self) -> Answer {
        const TYPE: &str = "x-ms-type";
        const SEMANTICS: &str = "x-ms-file-property-semantics";
        let (share, path) = (self.share_to_change()?, self.path()?);
        let kind = self.request.required(TYPE)?;
        if !kind.eq_ignore_ascii_case("file") {
            return Err(Refusal::header(TYPE, kind, "it must be file"));
        }
        let size = self.request.parsed(CONTENT_LENGTH, "it must be a number")?;
        let size = size.ok_or_else(|| Refusal::missing_header(CONTENT_LENGTH))?;
        let semantics = match self.request.header(SEMANTICS)? {
            None => Semantics::New,
            Some(text) if text.eq_ignore_ascii_case("new") => Semantics::New,
            Some(text) if text.eq_ignore_ascii_case("restore") => Semantics::Restore,
            Some(text) => {
                return Err(Refusal::header(SEMANTICS, text, "it must be New or Restore"));
            }
        };
        let bytes = checked_body(self.request)?;
        let (content, metadata) = (content_headers(self.request)?, self.request.metadata()?);
        let mut headers = SmbHeaders::read(self.request, &share)?;
        let properties = NewProperties {
            smb: headers.properties.clone(),
            semantics,
            headers: content.unwrap_or_default(),
            metadata,
            only_new: self.may_only_create(),
        };
        let sent = Some(&*bytes).filter(|bytes| !bytes.is_empty());
        let made = share.create_file(self.asking()?, &path, size, &properties, sent);
        let made = made.map_err(|error| self.overwriting(error))?;
        headers.settle();
        Ok(Reply::created()
            .file(&made)
            .written()
            .maybe("content-md5", self.request.header("content-md5")?)
            .maybe(STRUCTURED, self.request.header(STRUCTURED)?))
    }

    pub(super) fn file_properties(&self) -> Answer {
        let path = self.path()?;
        let file = match self.snapshot()? {
            Some(snapshot) => self.snapshot_file(&snapshot, &path)?.1,
            None => self.live_share()?.file_properties(self.asking()?, &path)?,
        };
        let mut reply = shown(Reply::ok(), &file)
            .maybe("content-md5", file.headers().content_md5.as_deref())
            .header("x-ms-type", "File");
        reply.body = ReplyBody::HeadOf(file.size());
        if self.request.method == hyper::Method::GET {
            // Get File Metadata: headers alone.
            reply.body = ReplyBody::Bytes(hyper::body::Bytes::new());
        }
        Ok(reply)
    }

    /// A file of a snapshot.
    pub(super) fn snapshot_file(
        &self,
        snapshot: &SnapshotName,
        path: &SharePath,
    ) -> Result<(std::sync::Arc<SnapshotView>, FileProperties), Refusal> {
        let view = self.engine()?.snapshot(self.share()?, snapshot)?;
        let file = view.properties(path, false)?;
        Ok((view, file))
    }

    pub(super) fn set_file_properties(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let size = self.request.parsed(CONTENT_LENGTH, "it must be a number")?;
        let content = changed_content_headers(self.request, size.is_some())?;
        let mut headers = SmbHeaders::read(self.request, &share)?;
        let changes = FileChanges { size, smb: headers.properties.clone(), headers: content };
        let set = share.set_file_properties(self.asking()?, &path, &changes)?;
        headers.settle();
        Ok(Reply::ok().file(&set).written())
    }

    pub(super) fn set_file_metadata(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let metadata = self.request.metadata()?;
        let set = share.set_file_metadata(self.asking()?, &path, &metadata)?;
        Ok(Reply::ok().version(set.etag(), set.last_modified()).written())
    }

    pub(super) fn delete_file(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        share.delete_file(self.asking()?, &path)?;
        Ok(Reply::accepted())
    }
}

/// All that Get File and Get File Properties show alike.
pub(super) fn shown(reply: Reply, file: &FileProperties) -> Reply {
    let stored = file.headers();
    let content_type = stored.content_type.as_deref().unwrap_or(TYPE_DEFAULT);
    reply
        .file(file)
        .metadata(file.metadata())
        .maybe("content-type", Some(content_type).filter(|given| *given != NO_TYPE))
        .maybe("content-encoding", stored.content_encoding.as_deref())
        .maybe("content-language", stored.content_language.as_deref())
        .maybe("content-disposition", stored.content_disposition.as_deref())
        .maybe("cache-control", stored.cache_control.as_deref())
        .header("x-ms-server-encrypted", "true")
        .header("x-ms-lease-status", file.lease.status())
        .header("x-ms-lease-state", file.lease.state())
        .maybe("x-ms-lease-duration", file.lease.duration())
        .copy(file.copy())
}

impl FileCall<'_> {
    pub(super) fn rename(&self, directory: bool) -> Answer {
        let (share, to) = (self.share_to_change()?, self.path()?);
        let refused = |why| {
            let url = self.request.required(RENAME_SOURCE)?;
            Err(Refusal::header(RENAME_SOURCE, url, why))
        };
        let source = match self.source(RENAME_SOURCE, SourceUse::Move)? {
            NamedFile::Own(source) => source,
            NamedFile::Elsewhere(_) => return refused("it is not a file of this server"),
        };
        if source.account.name() != self.account.name()
            || source.share != self.share()?
            || source.snapshot.is_some()
        {
            return refused("a rename stays within one share");
        }
        let mut headers = SmbHeaders::read(self.request, &share)?;
        let changes = headers.for_directory();
        let metadata = Some(self.request.metadata()?).filter(|given| !given.is_empty());
        let options = RestRename {
            directory,
            replace: self.request.flag("x-ms-file-rename-replace-if-exists")?,
            ignore_read_only: self.request.flag("x-ms-file-rename-ignore-readonly")?,
            source_lease: self.request.lease_id("x-ms-source-lease-id")?,
            destination_lease: self.request.lease_id("x-ms-destination-lease-id")?,
            properties: Some(&changes),
            metadata: metadata.as_ref(),
            content_type: self.request.header("x-ms-content-type")?,
        };
        let renamed = share.rest_rename(self.cx(), &source.path, &to, &options)?;
        headers.settle();
        Ok(Reply::ok().file(&renamed).written())
    }
}
