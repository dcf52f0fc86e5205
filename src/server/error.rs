//! Why a server does not start: one line each, with what to do.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::api::SocketError;
use crate::disk::DataRootError;
use crate::file::service::FileServiceError;
use crate::file::store::root::RootError;
use crate::http::auth::CredentialError;
use crate::rules::service::ServiceKind;

/// The cure where the process may open nothing more.
const MORE_DESCRIPTORS: &str = ": raise the limit of open descriptors (ulimit -n 4096)";

/// Whether the process may open nothing more.
fn lacks_descriptors(why: &io::Error) -> bool {
    why.raw_os_error() == Some(libc::EMFILE)
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A service cannot listen where it should.
    #[error(
        "the {kind} service cannot listen on {address} ({source}){}",
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
    Data(#[from] DataRootError),
    /// The directory of an account's shares cannot be used.
    #[error(transparent)]
    Root(#[from] RootError),
    /// The data directory cannot be emptied.
    #[error("--reset: {0}")]
    Reset(#[source] DataRootError),
    /// The data cannot be used.
    #[error(transparent)]
    File(#[from] FileServiceError),
    /// An interrupted reset or restore cannot be completed.
    #[error(transparent)]
    State(#[from] crate::bench::StateError),
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
    #[error("{what}: {source}{}", if lacks_descriptors(source) { MORE_DESCRIPTORS } else { "" })]
    System {
        /// The step that failed.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
}

impl StartError {
    /// The cure for an address that cannot be listened on.
    fn listen_cure(kind: ServiceKind, address: SocketAddr, why: &io::Error) -> String {
        if lacks_descriptors(why) {
            return MORE_DESCRIPTORS.to_owned();
        }
        let any = SocketAddr::new(address.ip(), 0);
        let choice = format!("--{kind} {any} for any free port, or --{kind} off");
        match why.kind() {
            io::ErrorKind::AddrInUse => format!(": stop what listens there; or use {choice}"),
            io::ErrorKind::PermissionDenied => {
                format!(": ports below 1024 need root; use {choice}")
            }
            io::ErrorKind::AddrNotAvailable => ": this machine does not have that address".into(),
            _ => format!(": use {choice}"),
        }
    }

    /// A failure of the system while `what` was tried.
    pub(super) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
