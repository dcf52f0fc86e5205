//! Rename File and Rename Directory. A rename stays within one share.

use super::{Answer, Call};
use crate::engine::RestRename;
use crate::rest::headers::SmbHeaders;
use crate::rest::refusal::Refusal;
use crate::rest::reply::Reply;
use crate::rest::source::{RENAME_SOURCE, Source};

impl Call<'_> {
    pub(super) fn rename(&self, directory: bool) -> Answer {
        let (share, to) = (self.share_to_change()?, self.request.path()?);
        let refused = |why| {
            let url = self.request.required(RENAME_SOURCE)?;
            Err(Refusal::header(RENAME_SOURCE, url, why))
        };
        let source = match self.source(RENAME_SOURCE)? {
            Source::Own(source) => source,
            Source::Elsewhere(_) => return refused("it is not a file of this server"),
        };
        if source.share != self.request.share()? || source.snapshot.is_some() {
            return refused("a rename stays within one share");
        }
        let changes = SmbHeaders::read(self.request, &share)?.changes(self.request.now);
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
        let renamed = share.rest_rename(self.who, &source.path, &to, &options)?;
        Ok(Reply::ok().smb(&renamed.shown, renamed.id, renamed.parent).written())
    }
}
