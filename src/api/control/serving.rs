//! The interface of a server to its controllers. The mounts and the end of the process are
//! passed in by `server/`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::rows::{ConnectionInfo, MountRow};
use crate::bench::States;
use crate::file::rules::ShareMode;
use crate::rules::service::ServiceKind;
use crate::server::Accounts;

/// A mount of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MountedAt {
    pub account: String,
    pub share: String,
    pub path: PathBuf,
}

impl From<MountedAt> for MountRow {
    fn from(MountedAt { account, share, path }: MountedAt) -> Self {
        Self { account, share, path }
    }
}

/// An operation that gates and faults can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownOperation {
    /// The service that it is of.
    pub service: ServiceKind,
    pub name: &'static str,
    /// Whether gates can stop it.
    pub can_stop: bool,
}

/// The server as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// Where the data is.
    pub data: String,
    /// When the server started.
    pub started: Instant,
    /// The URL of the page and the HTTP API, if the server has them.
    pub admin: Option<String>,
    /// The token of that address, if it asks for one.
    pub admin_token: Option<String>,
    /// Notes of the start for the user: who can reach the services, why nothing is mounted.
    pub notes: Vec<String>,
}

/// A running server. Errors are texts that say what to do.
pub trait Serving: Send + Sync {
    fn accounts(&self) -> &Accounts;

    /// The server as a whole.
    fn about(&self) -> About;

    /// The state of the server as a whole; `None` where one existing directory is served.
    fn states(&self) -> Option<&States> {
        None
    }

    /// How clients of an account find its services, if any listens.
    fn connection(&self, account: &str) -> Option<ConnectionInfo>;

    /// The operations of the services, under every name that they have.
    fn operations(&self) -> Vec<KnownOperation>;

    fn mounts(&self) -> Vec<MountedAt>;

    /// From now on the process tree of `pid` opens with that share mode, on one mount or on all.
    fn start_run(&self, pid: u32, share: ShareMode, mount: Option<&Path>) -> Result<(), String>;

    /// That tree's policy ends, on every mount.
    fn end_run(&self, pid: u32);

    fn unmount(&self, path: &Path, lazily: bool) -> Result<(), String>;

    /// Has the server stop, soon.
    fn shut_down(&self);
}
