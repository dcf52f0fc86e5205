//! Files: create, look at, set, delete.

use super::directory::snapshot_parent;
use super::{Answer, Call};
use crate::core::lease::FileLease;
use crate::core::{Denial, SharePath};
use crate::engine::account::{SnapshotName, SnapshotView};
use crate::engine::{FileChanges, FileProperties, Kind, NewProperties, Semantics, TimeChange};
use crate::rest::checksum::{STRUCTURED, checked_body, md5};
use crate::rest::headers::{SmbHeaders, content_headers, time_change};
use crate::rest::refusal::Refusal;
use crate::rest::reply::{Content, Reply};

const CONTENT_LENGTH: &str = "x-ms-content-length";
/// The type of a file that was given none.
const TYPE_DEFAULT: &str = "application/octet-stream";

impl Call<'_> {
    pub(super) fn create_file(&self) -> Answer {
        const TYPE: &str = "x-ms-type";
        const SEMANTICS: &str = "x-ms-file-property-semantics";
        let (share, path) = (self.share_to_change()?, self.request.path()?);
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
        let headers = SmbHeaders::read(self.request, &share)?;
        let properties = NewProperties {
            attributes: headers.attributes,
            semantics,
            created: time_change(headers.created, TimeChange::Now),
            written: time_change(headers.written, TimeChange::Now),
            changed: time_change(headers.changed, TimeChange::Now),
            permission_key: headers.permission_key,
            headers: content_headers(self.request)?.unwrap_or_default(),
            metadata: self.request.metadata()?,
        };
        let sent = Some(&*bytes).filter(|bytes| !bytes.is_empty());
        let made = share.create_file(self.asking()?, &path, size, &properties, sent)?;
        Ok(Reply::created()
            .file(&made)
            .written()
            .maybe("content-md5", sent.map(md5))
            .maybe(STRUCTURED, self.request.header(STRUCTURED)?))
    }

    pub(super) fn file_properties(&self) -> Answer {
        let path = self.request.path()?;
        let file = match self.request.snapshot()? {
            Some(snapshot) => self.snapshot_file(&snapshot, &path)?.1,
            None => self.live_share()?.file_properties(self.asking()?, &path)?,
        };
        let mut reply = shown(Reply::ok(), &file)
            .maybe("content-md5", file.headers().content_md5.as_deref())
            .header("x-ms-type", "File");
        reply.body = Content::HeadOf(file.size());
        if self.request.method == hyper::Method::GET {
            // Get File Metadata: headers alone.
            reply.body = Content::Bytes(hyper::body::Bytes::new());
        }
        Ok(reply)
    }

    /// A file of a snapshot.
    pub(super) fn snapshot_file(
        &self,
        snapshot: &SnapshotName,
        path: &SharePath,
    ) -> Result<(std::sync::Arc<SnapshotView>, FileProperties), Refusal> {
        let view = self.engine().snapshot(self.request.share()?, snapshot)?;
        let found = view.file(path)?;
        match found.stat.kind {
            Kind::File => {}
            Kind::Directory => return Err(Denial::IsDirectory.into()),
            Kind::Symlink | Kind::Special => return Err(Denial::NotFound.into()),
        }
        let file = FileProperties {
            parent: snapshot_parent(&view, &found.path)?,
            path: found.path,
            stat: found.stat,
            record: found.record,
            lease: FileLease::default(),
        };
        Ok((view, file))
    }

    pub(super) fn set_file_properties(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.request.path()?);
        let headers = SmbHeaders::read(self.request, &share)?;
        let changes = FileChanges {
            size: self.request.parsed(CONTENT_LENGTH, "it must be a number")?,
            attributes: headers.attributes,
            created: time_change(headers.created, TimeChange::Preserve),
            written: time_change(headers.written, TimeChange::Preserve),
            changed: time_change(headers.changed, TimeChange::Now),
            permission_key: headers.permission_key,
            headers: content_headers(self.request)?,
        };
        let set = share.set_file_properties(self.asking()?, &path, &changes)?;
        Ok(Reply::ok().file(&set).written())
    }

    pub(super) fn set_file_metadata(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.request.path()?);
        let metadata = self.request.metadata()?;
        let set = share.set_file_metadata(self.asking()?, &path, &metadata)?;
        Ok(Reply::ok().version(set.etag(), set.last_modified()).written())
    }

    pub(super) fn delete_file(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.request.path()?);
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
        .header("content-type", content_type)
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
