//! The file that a copy, a range from a URL or a rename names as its source.
//!
//! Decides whether the request may use it. A SAS for the target says nothing of the source: the
//! URL of the source must bring a SAS of its own, unless the account's key or a bearer token
//! covers both. Which URLs are this server's is decided in [`crate::http::frame::source`].

use std::sync::Arc;

use hyper::{StatusCode, Uri};

use super::rest_path::rest_path;
use super::{FileCall, operations, snapshot_of};
use crate::file::rules::SharePath;
use crate::file::service::FileService;
use crate::file::service::shares::SnapshotName;
use crate::http::auth::{AuthError, AuthTarget, GrantedBy, Permission, RequestView, ResourceLevel};
use crate::http::frame::host::{HostedAccount, service};
use crate::http::frame::refusal::Refusal;
use crate::http::frame::source::{NamedSource, OwnSource, SOURCE_AUTHORIZATION};
use crate::http::request::Query;
use crate::rules::service::ServiceKind;

/// The header that a bearer token needs beside it.
const INTENT: &str = "x-ms-file-request-intent";

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
    /// To copy it, as a whole or a range of its bytes.
    Copy,
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
        let same_account = account.name() == self.account.name();
        let covered = match self.grant.by {
            GrantedBy::Nothing => true,
            GrantedBy::SharedKey | GrantedBy::Bearer { .. } => same_account,
            GrantedBy::Sas { .. } | GrantedBy::Anonymous => false,
        };
        if covered {
            return Ok(());
        }
        let shown = self.header(SOURCE_AUTHORIZATION)?.map(|text| ("authorization", text));
        let intent = self.header(INTENT)?.map(|text| (INTENT, text));
        let headers: Vec<_> = shown.into_iter().chain(intent).collect();
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
        let grant = grant.map_err(|error| unverified(&error))?;
        let enough: &[Permission] = match wanted {
            SourceUse::Copy => &[Permission::Read],
            // The service asks the target for the right to write, and the source for any right on
            // the file itself.
            SourceUse::Move => &[Permission::Read, Permission::Write, Permission::Delete],
        };
        if enough.iter().any(|one| grant.allows(ResourceLevel::Object, *one)) {
            return Ok(());
        }
        let (granted, needed) = (String::new(), enough.to_vec());
        Err(unverified(&AuthError::PermissionMismatch { granted, needed }))
    }
}

fn unverified(error: &AuthError) -> Refusal {
    let message = format!(
        "Could not verify the copy source within the specified time. [latchfs: the source needs a \
         SAS of its own with the right to read; for a rename, to write or to delete will do: \
         {error}]"
    );
    Refusal::new(StatusCode::FORBIDDEN, "CannotVerifyCopySource", message)
        .with("CopySourceStatusCode", error.status().to_string())
        .with("CopySourceErrorCode", error.code().to_owned())
}
