//! Directories: create, look at, set, delete.

use super::FileCall;
use super::headers::SmbHeaders;
use crate::file::rules::Denial;
use crate::http::frame::service::Answer;
use crate::http::reply::Reply;

impl FileCall<'_> {
    pub(super) fn create_directory(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let metadata = self.request.metadata()?;
        crate::rules::check_metadata(metadata.iter()).map_err(Denial::from)?;
        let mut headers = SmbHeaders::read(self.request, &share)?;
        let changes = headers.for_directory();
        let made = share.create_directory(self.cx(), &path, &changes, &metadata)?;
        headers.settle();
        Ok(Reply::created().file(&made).written())
    }

    pub(super) fn directory_properties(&self) -> Answer {
        let path = self.path()?;
        let found = match self.snapshot()? {
            Some(snapshot) => {
                self.engine()?.snapshot(self.share()?, &snapshot)?.properties(&path, true)?
            }
            None => self.live_share()?.directory_properties(self.cx(), &path)?,
        };
        Ok(Reply::ok()
            .file(&found)
            .metadata(found.metadata())
            .header("x-ms-server-encrypted", "true"))
    }

    pub(super) fn set_directory_properties(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let mut headers = SmbHeaders::read(self.request, &share)?;
        let changes = headers.for_directory();
        let set = share.set_directory_properties(self.cx(), &path, &changes)?;
        headers.settle();
        Ok(Reply::ok().file(&set).written())
    }

    pub(super) fn set_directory_metadata(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        let metadata = self.request.metadata()?;
        crate::rules::check_metadata(metadata.iter()).map_err(Denial::from)?;
        let set = share.set_directory_metadata(self.cx(), &path, metadata)?;
        Ok(Reply::ok().version(set.etag(), set.last_modified()).written())
    }

    pub(super) fn delete_directory(&self) -> Answer {
        let (share, path) = (self.share_to_change()?, self.path()?);
        share.delete_directory(self.cx(), &path)?;
        Ok(Reply::accepted())
    }
}
