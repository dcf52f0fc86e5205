//! Signed requests: which permission each operation needs, asked of whoever checks signatures.
//!
//! Decides what a SAS must allow for each operation; how a signature is made and checked is
//! [`super::auth`]'s. A source of ours that a request names by URL is asked about as if it were
//! read by that URL, unless the account's own key signed the request.

use std::sync::Arc;

use hyper::StatusCode;

use super::auth::{
    AuthError, Authorizer, Grant, GrantedBy, Level, Overrides, Permission, RequestView, Target,
};
use super::authorise::Authorise;
use super::refusal::Refusal;
use super::request::Request;
use super::route::Operation;
use super::source::{COPY_SOURCE, OwnSource, RENAME_SOURCE, SOURCE_AUTHORIZATION, Source};
use crate::core::{rest_path, stamp};
use crate::engine::Engine;
use crate::engine::account::{ShareRef, StoredPolicy};

/// The headers that name a source.
const SOURCES: [&str; 2] = [COPY_SOURCE, RENAME_SOURCE];
/// What a bearer token needs beside it.
const INTENT: &str = "x-ms-file-request-intent";

/// Lets through what is signed as it must be.
pub struct Signed {
    authorizer: Authorizer,
    names: Vec<String>,
    engine: Arc<Engine>,
}

impl Signed {
    /// By these accounts; stored policies are the engine's.
    pub fn new(authorizer: Authorizer, engine: Arc<Engine>) -> Self {
        let names = authorizer.accounts.iter().map(|account| account.name().to_owned()).collect();
        Self { authorizer, names, engine }
    }

    fn policy(&self, share: &str, id: &str) -> Option<StoredPolicy> {
        let info = self.engine.properties(&ShareRef::new(share)).ok()?;
        info.properties.policies.into_iter().find(|policy| policy.id == id)
    }

    fn granted(&self, view: &RequestView<'_>, target: &Target<'_>) -> Result<Grant, AuthError> {
        let policies = |_: &str, share: &str, id: &str| self.policy(share, id);
        self.authorizer.authorize(view, target, &policies)
    }

    /// A SAS for the target says nothing of the source: its URL must bring one of its own.
    fn check_source(&self, request: &Request, grant: &Grant) -> Result<(), Refusal> {
        if !matches!(grant.by, GrantedBy::Sas { .. }) {
            return Ok(());
        }
        for name in SOURCES {
            if request.header(name)?.is_none() {
                continue;
            }
            // Whoever has a source elsewhere asks for himself.
            if let Source::Own(source) = request.source(&self.names, name)? {
                self.check_own_source(request, &source)?;
            }
        }
        Ok(())
    }

    fn check_own_source(&self, request: &Request, source: &OwnSource) -> Result<(), Refusal> {
        let unverified = || {
            let message = "The source needs a SAS of its own, and the right to read.";
            Refusal::new(StatusCode::FORBIDDEN, "CannotVerifyCopySource", message)
        };
        let shown = request.header(SOURCE_AUTHORIZATION)?.map(|text| ("authorization", text));
        let intent = request.header(INTENT)?.map(|text| (INTENT, text));
        let headers: Vec<_> = shown.into_iter().chain(intent).collect();
        let view = RequestView {
            method: "GET",
            raw_path: source.uri.path(),
            raw_query: source.uri.query().unwrap_or_default(),
            headers: &headers,
            now: request.now,
            https: source.uri.scheme_str() == Some("https"),
            client_ip: request.peer.ip(),
        };
        let path = rest_path(&source.address.rest, true).map_err(|_| unverified())?;
        let account = &source.address.account;
        let target = Target { account, share: Some(&source.share), path: path.as_str() };
        let grant = self.granted(&view, &target).map_err(|_| unverified())?;
        if grant.allows(Level::Entry, Permission::Read) { Ok(()) } else { Err(unverified()) }
    }
}

impl Authorise for Signed {
    fn accounts(&self) -> &[String] {
        &self.names
    }

    fn authorise(&self, request: &Request, operation: Operation) -> Result<Overrides, Refusal> {
        let Some((level, any_of)) = needs(operation) else { return Ok(Overrides::default()) };
        let headers: Vec<(&str, &str)> = request
            .headers
            .iter()
            .filter_map(|(name, value)| {
                Some((name.as_str(), std::str::from_utf8(value.as_bytes()).ok()?))
            })
            .collect();
        let view = RequestView {
            method: request.method.as_str(),
            raw_path: request.uri.path(),
            raw_query: request.uri.query().unwrap_or_default(),
            headers: &headers,
            now: request.now,
            https: request.https,
            client_ip: request.peer.ip(),
        };
        let path = rest_path(&request.address.rest, true).unwrap_or_default();
        let target = Target {
            account: &request.address.account,
            share: request.address.share.as_deref(),
            path: path.as_str(),
        };
        let grant = self.granted(&view, &target).map_err(|error| refusal(&error, request))?;
        grant.check(level, any_of).map_err(|error| refusal(&error, request))?;
        self.check_source(request, &grant)?;
        Ok(grant.overrides)
    }
}

fn refusal(error: &AuthError, request: &Request) -> Refusal {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::FORBIDDEN);
    let message = format!("{error} (at {})", stamp::rfc1123(request.now));
    let mut refusal = Refusal::new(status, error.code(), message);
    if let Some(detail) = error.detail() {
        refusal = refusal.with("AuthenticationErrorDetail", detail);
    }
    refusal.challenge = error.challenge();
    refusal
}

/// What an operation needs: one of these permissions, at that level. None for a preflight, which
/// a browser sends unsigned.
fn needs(operation: Operation) -> Option<(Level, &'static [Permission])> {
    use Operation as O;
    use Permission::{Create, Delete, List, Read, Write};
    Some(match operation {
        O::ServicePreflight => return None,
        O::ServiceListSharesSegment => (Level::Service, &[List]),
        O::ServiceGetProperties | O::ServiceGetUserDelegationKey => (Level::Service, &[Read]),
        O::ServiceSetProperties => (Level::Service, &[Write]),
        O::ShareCreate | O::ShareRestore | O::ShareCreateSnapshot => {
            (Level::Share, &[Create, Write])
        }
        O::ShareGetProperties | O::ShareGetMetadata | O::ShareGetStatistics => {
            (Level::Share, &[Read, List])
        }
        O::ShareGetPermission | O::ShareGetAccessPolicy => (Level::Share, &[Read]),
        O::ShareDelete => (Level::Share, &[Delete]),
        O::ShareBreakLease => (Level::Share, &[Write, Delete]),
        O::ShareAcquireLease
        | O::ShareReleaseLease
        | O::ShareChangeLease
        | O::ShareRenewLease
        | O::ShareCreatePermission
        | O::ShareSetProperties
        | O::ShareSetMetadata
        | O::ShareSetAccessPolicy => (Level::Share, &[Write]),
        O::DirectoryListFilesAndDirectoriesSegment => (Level::Entry, &[List]),
        O::DirectoryListHandles | O::FileListHandles => (Level::Entry, &[List, Read]),
        O::DirectoryGetProperties => (Level::Entry, &[Read, List]),
        O::FileDownload | O::FileGetProperties | O::FileGetRangeList | O::FileGetSymbolicLink => {
            (Level::Entry, &[Read])
        }
        O::DirectoryCreate
        | O::FileCreate
        | O::FileStartCopy
        | O::FileCreateSymbolicLink
        | O::FileCreateHardLink => (Level::Entry, &[Create, Write]),
        O::DirectoryDelete | O::FileDelete => (Level::Entry, &[Delete]),
        O::DirectorySetProperties
        | O::DirectorySetMetadata
        | O::DirectoryForceCloseHandles
        | O::DirectoryRename
        | O::FileSetHttpHeaders
        | O::FileSetMetadata
        | O::FileAcquireLease
        | O::FileReleaseLease
        | O::FileChangeLease
        | O::FileBreakLease
        | O::FileUploadRange
        | O::FileUploadRangeFromURL
        | O::FileAbortCopy
        | O::FileForceCloseHandles
        | O::FileRename => (Level::Entry, &[Write]),
    })
}
