//! Rename File and Rename Directory, and how a request names a source.
//!
//! A source is a URL, percent-encoded, whose query may carry a signature. One that names this
//! server or one of its accounts is ours, whatever host it is spelled with (FILEREST section 2).

use hyper::Uri;

use super::{Answer, Call};
use crate::core::{SharePath, rest_path};
use crate::engine::RestRename;
use crate::engine::account::SnapshotName;
use crate::rest::address::{Address, host_account, host_name, is_this_machine};
use crate::rest::headers::SmbHeaders;
use crate::rest::refusal::Refusal;
use crate::rest::reply::Reply;
use crate::rest::request::{Query, snapshot_of};

/// The longest source (FILEREST section 8).
const SOURCE_BYTES_MAX: usize = 2_048;

/// A file of this server that a request names as its source.
pub(super) struct SourceFile {
    pub share: String,
    pub path: SharePath,
    pub snapshot: Option<SnapshotName>,
}

impl Call<'_> {
    pub(super) fn rename(&self, directory: bool) -> Answer {
        const NAME: &str = "x-ms-file-rename-source";
        let (share, to) = (self.share_to_change()?, self.request.path()?);
        let url = self.request.required(NAME)?;
        let source = self
            .source(NAME, url)?
            .ok_or_else(|| Refusal::header(NAME, url, "it is not a file of this server"))?;
        if source.share != self.request.share()? || source.snapshot.is_some() {
            return Err(Refusal::header(NAME, url, "a rename stays within one share"));
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

    /// The file that the URL in header `name` stands for; none if it is not of this server.
    pub(super) fn source(&self, name: &str, url: &str) -> Result<Option<SourceFile>, Refusal> {
        if url.len() > SOURCE_BYTES_MAX {
            return Err(Refusal::header(name, "", "it is longer than 2 KiB"));
        }
        let invalid = || Refusal::header(name, url, "it is no URL of a file");
        let uri: Uri = url.parse().map_err(|_| invalid())?;
        uri.scheme().ok_or_else(invalid)?;
        let authority = uri.authority().ok_or_else(invalid)?.as_str();
        if !self.is_ours(authority) {
            return Ok(None);
        }
        let accounts = self.site.options.authorise.accounts();
        let address =
            Address::read(accounts, authority, uri.path(), None).map_err(|_| invalid())?;
        let dots = self.request.flag("x-ms-source-allow-trailing-dot")?;
        let path = rest_path(&address.rest, dots)?;
        let snapshot = snapshot_of(&Query::read(uri.query().unwrap_or_default()))?;
        Ok(Some(SourceFile { share: address.share.ok_or_else(invalid)?, path, snapshot }))
    }

    /// True for the host of this request, this machine at our port, and our accounts anywhere.
    fn is_ours(&self, authority: &str) -> bool {
        let accounts = self.site.options.authorise.accounts();
        let host = self.request.headers.get("host").and_then(|host| host.to_str().ok());
        let here = || {
            let port = self.site.addr.port().to_string();
            is_this_machine(host_name(authority))
                && authority.rsplit_once(':').is_some_and(|(_, given)| given == port)
        };
        host == Some(authority) || host_account(accounts, authority).is_some() || here()
    }
}
