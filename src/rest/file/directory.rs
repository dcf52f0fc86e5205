//! Directories: create, look at, set, delete.

use super::{Answer, Call};
use crate::core::{Denial, FileId, SharePath};
use crate::engine::account::{SnapshotName, SnapshotView};
use crate::engine::{DirectoryProperties, Kind, Shown};
use crate::rest::headers::SmbHeaders;
use crate::rest::refusal::Refusal;
use crate::rest::reply::Reply;

impl Call<'_> {
    pub(super) fn create_directory(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.request.path()?);
        let headers = SmbHeaders::read(self.request, &share)?;
        let metadata = self.request.metadata()?;
        crate::core::check_metadata(metadata.iter()).map_err(Denial::from)?;
        let changes = headers.changes(self.request.now);
        let made = share.create_directory(self.who, &path, &changes, &metadata)?;
        Ok(of_directory(Reply::created(), &made).written())
    }

    pub(super) fn directory_properties(&self) -> Answer {
        let path = self.request.path()?;
        let found = match self.request.snapshot()? {
            Some(snapshot) => self.snapshot_directory(&snapshot, &path)?,
            None => self.live_share()?.directory_properties(self.who, &path)?,
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
        let view = self.engine().snapshot(self.request.share()?, snapshot)?;
        let found = view.file(path)?;
        match found.stat.kind {
            Kind::Directory => {}
            Kind::File => return Err(Denial::NotDirectory.into()),
            Kind::Symlink | Kind::Special => return Err(Denial::NotFound.into()),
        }
        Ok(DirectoryProperties {
            id: found.stat.id,
            parent: snapshot_parent(&view, &found.path)?,
            shown: Shown::of(&found.stat, &found.record),
            metadata: found.record.metadata,
            path: found.path,
        })
    }

    pub(super) fn set_directory_properties(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.request.path()?);
        let headers = SmbHeaders::read(self.request, &share)?;
        let changes = headers.changes(self.request.now);
        let set = share.set_directory_properties(self.who, &path, &changes)?;
        Ok(of_directory(Reply::ok(), &set).written())
    }

    pub(super) fn set_directory_metadata(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.request.path()?);
        let metadata = self.request.metadata()?;
        crate::core::check_metadata(metadata.iter()).map_err(Denial::from)?;
        let set = share.set_directory_metadata(self.who, &path, metadata)?;
        Ok(Reply::ok().version(set.shown.etag, set.shown.last_modified).written())
    }

    pub(super) fn delete_directory(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.request.path()?);
        share.delete_directory(self.who, &path)?;
        Ok(Reply::accepted())
    }
}

fn of_directory(reply: Reply, directory: &DirectoryProperties) -> Reply {
    reply.smb(&directory.shown, directory.id, directory.parent)
}

/// The directory that holds a path of a snapshot; 0 for its root.
pub(super) fn snapshot_parent(view: &SnapshotView, path: &SharePath) -> Result<FileId, Refusal> {
    match path.parent() {
        Some(parent) => Ok(view.lookup(&parent)?.stat.id),
        None => Ok(FileId::default()),
    }
}
