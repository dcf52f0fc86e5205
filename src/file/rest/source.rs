//! The file that a copy, a range from a URL or a rename names as its source.
//!
//! Decides the permissions that the request needs there. Which URLs are this server's, and whether
//! the credentials of the request cover the source too, is decided in
//! [`crate::http::frame::source`].

use std::sync::Arc;

use hyper::Uri;

use super::rest_path::rest_path;
use super::{FileCall, operations, snapshot_of};
use crate::file::rules::SharePath;
use crate::file::service::FileService;
use crate::file::service::shares::SnapshotName;
use crate::http::auth::{AuthTarget, Permission, RequestView, ResourceLevel};
use crate::http::frame::host::{HostedAccount, service};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::source::{NamedSource, OwnSource, unauthorised_source};
use crate::http::request::Query;
use crate::rules::service::ServiceKind;

pub(super) enum NamedFile {
    /// A file of this server.
    Own(Box<OwnFile>),
    /// A file elsewhere: the server there decides who may read it.
    Elsewhere(Uri),
}

/// A file of this server that a request names as its source.
pub(super) struct OwnFile {
    pub account: Arc<dyn HostedAccount>,
    pub share: String,
    pub path: SharePath,
    pub snapshot: Option<SnapshotName>,
}

impl OwnFile {
    /// The files of its account.
    pub(super) fn files(&self) -> Result<&Arc<FileService>, Refusal> {
        service(&*self.account, ServiceKind::File)
    }
}

/// The intended use of a source.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceUse {
    /// To copy it as a whole.
    Copy,
    /// To write a range of its bytes.
    Range,
    /// To move it away.
    Move,
}

impl FileCall<'_> {
    /// The source that the URL in header `name` addresses, if the request may use it in this way.
    pub(super) fn source(&self, name: &str, wanted: SourceUse) -> Result<NamedFile, Refusal> {
        let own = match self.source_in(name)? {
            NamedSource::Own(own) => own,
            NamedSource::Elsewhere(uri) => return Ok(NamedFile::Elsewhere(uri)),
        };
        let invalid = || Refusal::header(name, "", "it is no URL of a file");
        let share = own.address.container.clone().ok_or_else(invalid)?;
        let dots = self.flag("x-ms-source-allow-trailing-dot")?;
        let path = rest_path(&own.address.rest, dots)?;
        let snapshot = snapshot_of(&Query::read(own.uri.query().unwrap_or_default()))?;
        let account = self.site.accounts.account(&own.address.account).ok_or_else(invalid)?;
        self.check_source(&*account, &own, &path, wanted)?;
        Ok(NamedFile::Own(Box::new(OwnFile { account, share, path, snapshot })))
    }

    fn check_source(
        &self,
        account: &dyn HostedAccount,
        own: &OwnSource,
        path: &SharePath,
        wanted: SourceUse,
    ) -> Result<(), Refusal> {
        if self.covers_source(own, wanted != SourceUse::Range) {
            return Ok(());
        }
        let headers = self.source_credentials()?;
        let view = RequestView {
            method: "GET",
            raw_path: own.uri.path(),
            raw_query: own.uri.query().unwrap_or_default(),
            headers: &headers,
            now: self.now,
            outside: self.outside,
            // The source is read here, over the connection of this request.
            https: self.https,
            client_ip: self.peer.ip(),
        };
        let service = &operations::SERVICE_TABLE;
        let target = AuthTarget {
            signatures: service.signatures,
            account: account.name(),
            container: own.address.container.as_deref(),
            path: path.as_str(),
            level: ResourceLevel::Object,
        };
        let grant = self.site.options.admission.source_grant(service, account, &view, &target);
        let grant = grant.map_err(|error| unauthorised_source(&error))?;
        let enough: &[Permission] = match wanted {
            SourceUse::Copy | SourceUse::Range => &[Permission::Read],
            // The service asks the target for the right to write, and the source for any right on
            // the file itself.
            SourceUse::Move => &[Permission::Read, Permission::Write, Permission::Delete],
        };
        grant.check_letters(enough).map_err(|error| unauthorised_source(&error))
    }
}
