//! Rename File and Rename Directory. A rename stays within one share.

use super::FileCall;
use super::headers::SmbHeaders;
use super::source::{NamedFile, SourceUse};
use crate::file::service::RestRename;
use crate::http::frame::refusal::Refusal;
use crate::http::frame::service::Answer;
use crate::http::frame::source::RENAME_SOURCE;
use crate::http::reply::Reply;

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
