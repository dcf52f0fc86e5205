//! Why a server does not start: one line each, with what to do.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::control::SocketError;
use crate::core::service::ServiceKind;
use crate::engine::file::FileServiceError;
use crate::rest::auth::CredentialError;
use crate::store::RootError;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A service cannot listen where it should.
    #[error(
        "the {kind} service cannot listen on {address} ({source}): {}",
        Self::listen_cure(*kind, *address, source)
    )]
    Listen {
        /// The service.
        kind: ServiceKind,
        /// Where it should listen.
        address: SocketAddr,
        /// Why it cannot.
        source: io::Error,
    },
    /// An address that other machines reach, with access that anybody has.
    #[error(
        "{address} is reachable from other machines, and {why}: {cure}, or give --expose if that \
         is meant"
    )]
    Exposed {
        /// The address.
        address: SocketAddr,
        /// Why anybody has access.
        why: &'static str,
        /// The advice to the user.
        cure: &'static str,
    },
    /// The accounts cannot be served together.
    #[error(transparent)]
    Accounts(#[from] CredentialError),
    /// The certificate cannot be had.
    #[error("{0}")]
    Certificate(String),
    /// Options that contradict each other, or what is there.
    #[error("{0}")]
    Options(String),
    /// The data directory cannot be used.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The data directory cannot be emptied.
    #[error("--reset: {0}")]
    Reset(#[source] RootError),
    /// The data cannot be used.
    #[error(transparent)]
    File(#[from] FileServiceError),
    /// An interrupted reset or restore cannot be completed.
    #[error(transparent)]
    State(#[from] crate::engine::StateError),
    /// A share cannot be made.
    #[error("share {name}: {source}")]
    Share {
        /// The share.
        name: String,
        /// Why.
        source: FileServiceError,
    },
    /// A share cannot be filled.
    #[error("--seed {}: {source}", path.display())]
    Seed {
        /// The directory that was to be copied.
        path: PathBuf,
        /// Why not.
        source: RootError,
    },
    /// A mount point cannot be used.
    #[error("the mount point {}: {source}", path.display())]
    MountPoint {
        /// The mount point.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A mount was asked for and cannot be made.
    #[error("{0}")]
    Mount(String),
    /// The control socket cannot be had.
    #[error(transparent)]
    Control(#[from] SocketError),
    /// The system refused something else.
    #[error("{what}: {source}")]
    System {
        /// The step that failed.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
}

impl StartError {
    /// A failure of the system while `what` was tried.
    pub(super) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
