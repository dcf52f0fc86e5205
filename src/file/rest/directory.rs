//! Directories: create, look at, set, delete.

use super::FileCall;
use super::headers::SmbHeaders;
use crate::file::rules::{Denial, SharePath};
use crate::file::service::shares::{SnapshotName, SnapshotView};
use crate::file::service::{DirectoryProperties, FileKind, SmbProperties};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;
use crate::rules::FileId;

impl FileCall<'_> {
    pub(super) fn create_directory(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let metadata = self.request.metadata()?;
        crate::rules::check_metadata(metadata.iter()).map_err(Denial::from)?;
        let mut headers = SmbHeaders::read(self.request, &share)?;
        let changes = headers.for_directory();
        let made = share.create_directory(self.cx(), &path, &changes, &metadata)?;
        headers.settle();
        Ok(of_directory(Reply::created(), &made).written())
    }

    pub(super) fn directory_properties(&self) -> Answer {
        let path = self.path()?;
        let found = match self.snapshot()? {
            Some(snapshot) => self.snapshot_directory(&snapshot, &path)?,
            None => self.live_share()?.directory_properties(self.cx(), &path)?,
        };
        Ok(of_directory(Reply::ok(), &found)
            .metadata(&found.metadata)
            .header("x-ms-server-encrypted", "true"))
    }

    fn snapshot_directory(
        &self,
        snapshot: &SnapshotName,
        path: &SharePath,
    ) -> Result<DirectoryProperties, Refusal> {
        let view = self.engine()?.snapshot(self.share()?, snapshot)?;
        let found = view.file(path)?;
        match found.stat.kind {
            FileKind::Directory => {}
            FileKind::File => return Err(Denial::NotDirectory.into()),
            FileKind::Symlink | FileKind::Special => return Err(Denial::NotFound.into()),
        }
        Ok(DirectoryProperties {
            id: found.stat.id,
            parent: snapshot_parent(&view, &found.path)?,
            smb: SmbProperties::of(&found.stat, &found.record),
            metadata: found.record.metadata,
            path: found.path,
        })
    }

    pub(super) fn set_directory_properties(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let mut headers = SmbHeaders::read(self.request, &share)?;
        let changes = headers.for_directory();
        let set = share.set_directory_properties(self.cx(), &path, &changes)?;
        headers.settle();
        Ok(of_directory(Reply::ok(), &set).written())
    }

    pub(super) fn set_directory_metadata(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let metadata = self.request.metadata()?;
        crate::rules::check_metadata(metadata.iter()).map_err(Denial::from)?;
        let set = share.set_directory_metadata(self.cx(), &path, metadata)?;
        Ok(Reply::ok().version(set.smb.etag, set.smb.last_modified).written())
    }

    pub(super) fn delete_directory(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        share.delete_directory(self.cx(), &path)?;
        Ok(Reply::accepted())
    }
}

fn of_directory(reply: Reply, directory: &DirectoryProperties) -> Reply {
    reply.smb(&directory.smb, directory.id, directory.parent)
}

/// The directory that holds a path of a snapshot; 0 for its root.
pub(super) fn snapshot_parent(view: &SnapshotView, path: &SharePath) -> Result<FileId, Refusal> {
    match path.parent() {
        Some(parent) => Ok(view.lookup(&parent)?.stat.id),
        None => Ok(FileId::default()),
    }
}
