//! The options of a server, without the command line: data, accounts, shares, mounts, listeners.
//!
//! [`Builder`] is the short form for programs that embed latchfs; `cli/` fills [`ServerOptions`]
//! from the command line. The start is in [`super::running`].

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::address::{ListenAddress, OptionalAddress};
use super::error::StartError;
use super::listeners::ListenOptions;
use super::mount_points::MountPoint;
use super::running::Server;
use super::tls::Certificate;
use crate::blob::service::BlobOptions;
use crate::file::service::ShareOptions;
use crate::file::service::shares::{CloneProgress, Control};
use crate::http::auth::Credential;
use crate::rules::address::ObjectAddress;
use crate::rules::service::ServiceKind;

/// Where the data is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Data {
    /// A data directory, made if missing.
    Directory(PathBuf),
    /// In memory; removed when the server stops.
    #[default]
    Memory,
    /// One existing directory, served as a share as it is.
    Existing {
        /// The directory.
        source: PathBuf,
        /// The name of the share.
        name: String,
        /// Where the share's state is kept; none for a folder in the user's state directory.
        state: Option<PathBuf>,
    },
}

/// A directory that fills a share or a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// The share or container to fill.
    pub into: SeedInto,
    /// The directory that is copied.
    pub directory: PathBuf,
}

/// The share or container that a directory fills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeedInto {
    /// A share; none where only one can be meant.
    Share(Option<String>),
    /// A share of that account, by name.
    ShareOf(String, String),
    /// A container of blobs.
    Container(String),
}

/// Told how far the filling of a share is; may cancel it.
pub type FillProgress<'a> = dyn FnMut(&str, CloneProgress) -> Control + 'a;

/// Which events are kept.
#[derive(Clone, Debug, Default)]
pub struct EventOptions {
    /// Grants and ordinary closes too.
    pub all: bool,
    /// Requests are not recorded: for measurements.
    pub no_requests: bool,
    /// A file that events are appended to, a line of JSON each.
    pub file: Option<PathBuf>,
}

/// The options of a server.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Where the data is.
    pub data: Data,
    /// The most bytes that data in memory may take; only enforced where this process may mount a
    /// tmpfs.
    pub memory_limit: Option<u64>,
    /// Whether a data directory is emptied first.
    pub reset: bool,
    /// Shares of the first account to serve, made if missing; empty for those that exist.
    pub shares: Vec<String>,
    /// Further shares, each with its account, made if missing.
    pub account_shares: Vec<(String, String)>,
    /// The directories that fill empty shares, and containers of the first account.
    pub seeds: Vec<Seed>,
    /// Load files for the first account.
    pub loads: Vec<PathBuf>,
    /// Containers, queues and tables, each with its account, made if missing; no account means the
    /// first.
    pub objects: Vec<(Option<String>, ObjectAddress)>,
    /// How shares behave.
    pub share: ShareOptions,
    /// How blobs behave.
    pub blob: BlobOptions,
    /// The shares to mount, and their mount points.
    pub mounts: Vec<MountPoint>,
    /// Where the shares of the first account are mounted if that is possible, made if missing.
    pub default_mount: Option<PathBuf>,
    /// How mounts behave.
    #[cfg(feature = "fuse")]
    pub mount: crate::file::mount::MountOptions,
    /// Accounts, and services over HTTP.
    pub listen: ListenOptions,
    /// The log of events.
    pub events: EventOptions,
    /// Where the page, the HTTP API, metrics and health are.
    pub admin: OptionalAddress,
}

/// Puts a server together: data in memory, free ports of this machine and the well-known account,
/// unless told otherwise.
///
/// ```no_run
/// let server = latchfs::Server::builder().share("docs").start()?;
/// println!("{}", server.connection_string());
/// # Ok::<(), latchfs::server::StartError>(())
/// ```
#[derive(Debug)]
pub struct Builder {
    options: ServerOptions,
    accounts: Vec<String>,
}

impl Default for Builder {
    fn default() -> Self {
        let mut options = ServerOptions::default();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        for kind in super::kinds() {
            options.listen.addresses.insert(kind, ListenAddress::At(any));
        }
        Self { options, accounts: Vec::new() }
    }
}

impl Builder {
    /// Keeps the data in this directory, made if missing.
    #[must_use]
    pub fn data(mut self, directory: impl AsRef<Path>) -> Self {
        self.options.data = Data::Directory(directory.as_ref().to_owned());
        self
    }

    /// Adds an account, as `NAME:KEY`; the first one is meant where none is named.
    #[must_use]
    pub fn account(mut self, name_and_key: impl Into<String>) -> Self {
        self.accounts.push(name_and_key.into());
        self
    }

    /// Serves this share of the first account, made if missing.
    #[must_use]
    pub fn share(mut self, name: impl Into<String>) -> Self {
        self.options.shares.push(name.into());
        self
    }

    /// Mounts a share, as `[ACCOUNT/]NAME`, on an empty directory.
    #[must_use]
    pub fn mount(mut self, share: &str, directory: impl AsRef<Path>) -> Self {
        self.options.mounts.push(MountPoint::new(share, directory.as_ref()));
        self
    }

    /// Says where a service listens, or that it does not.
    #[must_use]
    pub fn listen(mut self, service: ServiceKind, address: ListenAddress) -> Self {
        self.options.listen.addresses.insert(service, address);
        self
    }

    /// Accepts requests without a signature.
    #[must_use]
    pub fn no_auth(mut self) -> Self {
        self.options.listen.no_auth = true;
        self
    }

    /// Speaks https with this certificate.
    #[must_use]
    pub fn tls(mut self, certificate: Certificate) -> Self {
        self.options.listen.tls = Some(certificate);
        self
    }

    /// Keeps grants and ordinary closes in the log of events, as `--events all` does. Without it
    /// the log has refusals and forced closes.
    #[must_use]
    pub fn all_events(mut self) -> Self {
        self.options.events.all = true;
        self
    }

    /// Has the page, the HTTP API, metrics and health on this address; port 0 takes any free port.
    #[must_use]
    pub fn admin(mut self, address: SocketAddr) -> Self {
        self.options.admin = OptionalAddress::At(address);
        self
    }

    /// Serves the shares to SMB clients on this address; port 0 takes any free port. Without it
    /// there is no such listener.
    #[must_use]
    pub fn smb(mut self, address: SocketAddr) -> Self {
        self.options.listen.smb = OptionalAddress::At(address);
        self
    }

    /// Changes what the other methods do not reach.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut ServerOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Starts the server. It stops when the value is dropped.
    pub fn start(mut self) -> Result<Server, StartError> {
        if !self.accounts.is_empty() {
            let read = self.accounts.iter().map(|text| text.parse::<Credential>());
            self.options.listen.credentials = read.collect::<Result<_, _>>()?;
        }
        Server::start(&self.options)
    }
}
