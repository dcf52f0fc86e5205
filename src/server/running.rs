//! A running server: its parts, in the order they start and stop.
//!
//! Decides that order: data, listeners, mounts, control surface; and back, so that the client that
//! asked for the stop is told by the end of its connection when everything is unmounted.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::admin as admin_address;
use super::data::{self, OpenedData};
use super::error::StartError;
use super::event_file::{self, EventFile, OpenedEventFile};
use super::health::ailments;
use super::host::{Host, reached};
use super::listeners::Listeners;
use super::memory::Memory;
use super::mount_points::MountPoints;
use super::mounts::Mounts;
use super::options::{Builder, FillProgress, ServerOptions};
use crate::api::{
    About, AdminOptions, ApiFailure, ApiServer, Hold, HoldError, HoldOptions, Identity, MountRow,
    Serving, Session,
};
use crate::bench::report::Follower;
use crate::bench::{SavedState, StateError, States};
use crate::disk::DataRoot;
use crate::file::service::shares::Control;
use crate::http::auth::{Credential, OauthMode};
use crate::http::observer::Observer;
use crate::net::descriptors;
use crate::rules::service::ServiceKind;
use crate::rules::{Client, Owner};
use crate::server::Accounts;

/// The reason why a server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A signal, or a request.
    Asked,
    /// The last mount was unmounted on request.
    Unmounted,
    /// A mount has ended, by whomever it was unmounted.
    MountEnded,
}

/// A running server. Dropping it stops everything: services, mounts, sockets, data in memory.
/// Threads may share it.
pub struct Server {
    // Dropped in this order.
    listeners: Option<Listeners>,
    host: Arc<Host>,
    places: MountPoints,
    api: Option<ApiServer>,
    event_file: Option<EventFile>,
    _report: Follower,
    _root: Option<DataRoot>,
    _memory: Option<Memory>,
    names: Vec<String>,
}

impl Server {
    /// Puts a server together.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts a server with these options.
    pub fn start(options: &ServerOptions) -> Result<Self, StartError> {
        // Nobody listens: dropping the value is what ends the server.
        let (stop, _) = channel();
        Self::start_with(options, stop, &mut |_, _| Control::Continue)
    }

    /// Starts a server that says on `stop` when it should end, and on `progress` how far the
    /// filling of a share is. A start that fails removes the data directory that it made.
    pub fn start_with(
        options: &ServerOptions,
        stop: Sender<Stop>,
        progress: &mut FillProgress<'_>,
    ) -> Result<Self, StartError> {
        let missing = data::missing_directory(&options.data);
        let started = Self::begin(options, stop, progress);
        if let (Err(_), Some(directory)) = (&started, missing) {
            data::remove_directory(directory);
        }
        started
    }

    fn begin(
        options: &ServerOptions,
        stop: Sender<Stop>,
        progress: &mut FillProgress<'_>,
    ) -> Result<Self, StartError> {
        let OpenedData { memory, root, accounts, states, folder, place, mut notes, names } =
            data::open(options, progress)?;
        let folder = folder.canonicalize().map_err(StartError::system("the state folder"))?;
        // Before anything is mounted, perhaps on the folder that is to have the file.
        let event_file = options.events.file.as_deref();
        let event_file =
            event_file.map(|path| event_file::open(path, accounts.journal())).transpose()?;
        let mut admin = admin_address::bind(options.admin, &accounts, &options.listen)?;
        let metrics = admin.as_ref().map(|admin| Arc::clone(&admin.metrics));
        let observer = metrics.as_ref().map(|metrics| Arc::clone(metrics) as Arc<dyn Observer>);
        let listeners = options.listen.start(&accounts, &folder, observer.as_ref())?;
        if let Some(metrics) = &metrics {
            listeners.smb().watch(metrics);
        }
        let mut places = places(options, &names, &mut notes)?;
        places.required |= listeners.is_empty();
        let mounts = Mounts::start(&accounts, &folder, &places, options, &stop)?;
        let reached = OnceLock::from(reached(&listeners));
        notes.extend(descriptors::warning());
        notes.extend(options.listen.notes());
        let trust = |file: &PathBuf| format!("clients must trust {}", file.display());
        notes.extend(listeners.ca_file.as_ref().map(trust));
        notes.extend(mounts.why_none.as_ref().map(|why| format!("no mount, REST only: {why}")));
        notes.extend(mounts.lacks());
        let about = about(place, admin.as_ref(), options, notes)?;
        let over_smb = listeners.smb().operations();
        let host = Host { about, folder, accounts, states, mounts, reached, over_smb, stop };
        if host.mounts.list().is_empty() {
            // A directory that looks like a mount would only mislead.
            places = MountPoints::default();
        }
        let host = Arc::new(host);
        let serving = Arc::clone(&host) as Arc<dyn Serving>;
        let event_file = event_file.map(OpenedEventFile::start).transpose()?;
        let report = Arc::clone(&host.accounts.controls().report);
        let report = Follower::start(report).map_err(StartError::system("starting the report"))?;
        if let Some(admin) = &mut admin {
            let (host, services) = (Arc::clone(&host), listeners.addresses());
            admin.ailments = Box::new(move || ailments(&host, &services));
        }
        let api = ApiServer::start(&host.control(), &serving, admin)?;
        Ok(Self {
            listeners: Some(listeners),
            host,
            places,
            api: Some(api),
            event_file,
            _report: report,
            _root: root,
            _memory: memory,
            names,
        })
    }

    fn listeners(&self) -> &Listeners {
        self.listeners.as_ref().expect("listeners end with the server")
    }

    /// The accounts.
    pub fn accounts(&self) -> &Arc<Accounts> {
        &self.host.accounts
    }

    /// The accounts with their keys, the first one first.
    pub fn credentials(&self) -> &[Credential] {
        &self.listeners().credentials
    }

    /// The URL of a service, with the first account, if the service listens.
    pub fn endpoint(&self, service: ServiceKind) -> Option<String> {
        let found = self.endpoints().into_iter().find(|(kind, _)| *kind == service);
        found.map(|(_, endpoint)| endpoint)
    }

    /// The URL of each service that listens, with the first account.
    pub fn endpoints(&self) -> Vec<(ServiceKind, String)> {
        self.listeners().endpoints(self.listeners().first_account())
    }

    /// Where SMB clients connect, if they can: `smb://127.0.0.1:10445`.
    pub fn smb(&self) -> Option<&str> {
        self.listeners().smb().origin()
    }

    /// The address that each service listens on. Clients connect to [`Server::endpoints`]: a
    /// service may listen on every address of the machine.
    pub fn addresses(&self) -> Vec<(ServiceKind, SocketAddr)> {
        self.listeners().addresses()
    }

    /// The connection string of the first account: its name, its key and all endpoints.
    pub fn connection_string(&self) -> String {
        self.listeners().connection_string(self.listeners().first_account())
    }

    /// The connection string of the account of that name; `None` if the server has no such account.
    pub fn connection_string_of(&self, account: &str) -> Option<String> {
        let found = self.credentials().iter().find(|one| one.name() == account);
        found.map(|account| self.listeners().connection_string(account))
    }

    /// Whether any service listens.
    pub fn listens(&self) -> bool {
        !self.listeners().is_empty()
    }

    /// The file that clients must trust, if the certificate was made here.
    pub fn ca_file(&self) -> Option<&Path> {
        self.listeners().ca_file.as_deref()
    }

    /// The control socket, for `latchfs --control` and [`crate::api::ApiClient`].
    pub fn control(&self) -> PathBuf {
        self.host.control()
    }

    /// The file that a server in the background logs to.
    pub fn log_file(&self) -> PathBuf {
        self.host.folder.join("latchfs.log")
    }

    /// The mounts.
    pub fn mounts(&self) -> Vec<MountRow> {
        self.host.mounts.list()
    }

    /// The URL of the page and the HTTP API.
    pub fn admin(&self) -> Option<&str> {
        self.host.about.admin.as_deref()
    }

    /// The token of that address, if it asks for one.
    pub fn admin_token(&self) -> Option<&str> {
        self.host.about.admin_token.as_deref()
    }

    /// Where `DefaultAzureCredential` gets its tokens, if `--oauth basic` accepts them.
    pub fn identity(&self) -> Option<&Identity> {
        self.host.about.identity.as_ref()
    }

    /// Where the data is, for people.
    pub fn data(&self) -> &str {
        &self.host.about.data
    }

    /// The shares of the first account that were named, or that exist.
    pub fn shares(&self) -> &[String] {
        &self.names
    }

    /// Notes for the user.
    pub fn notes(&self) -> &[String] {
        &self.host.about.notes
    }

    /// Opens a file as a client would and holds it; the hold ends when it is dropped.
    pub fn hold(&self, options: &HoldOptions) -> Result<Hold, HoldError> {
        let accounts = &self.host.accounts;
        let account = match &options.account {
            Some(name) => accounts.get(name).ok_or_else(|| HoldError::NoAccount(name.clone()))?,
            None => accounts.first(),
        };
        let share = account.file().share(options.share.as_deref().unwrap_or_default())?;
        Hold::open_as(share, &options.path, &options.open_request(), &options.ranges()?)
    }

    /// A request of this process.
    pub(crate) fn session(&self) -> Result<Session, ApiFailure> {
        let serving = Arc::clone(&self.host) as Arc<dyn Serving>;
        let client = Client { session: 1 << 40, name: "this process".to_owned() };
        let owner = Owner { client: Arc::new(client), pid: std::process::id(), program: None };
        Session::new(serving, None, owner, true)
    }

    /// Removes everything: the server is as after a start with the same options and no data. All
    /// handles are closed by force; mounts stay and show the new, empty shares.
    pub fn reset(&self) -> Result<(), StateError> {
        self.states()?.reset()
    }

    /// Saves all data under a name, in place of a state that has it; see [`Server::restore_state`].
    pub fn save_state(&self, name: &str) -> Result<SavedState, StateError> {
        self.states()?.save(name)
    }

    /// Replaces all data by the state of that name. All handles are closed by force; mounts stay
    /// and show the files of the state. The clock goes as it did.
    pub fn restore_state(&self, name: &str) -> Result<(), StateError> {
        self.states()?.restore(name)
    }

    fn states(&self) -> Result<&States, StateError> {
        self.host.states.as_ref().ok_or(StateError::ExistingDirectory)
    }

    /// Forgets mounts that have ended; false if none is left.
    pub fn forget_ended_mounts(&self) -> bool {
        self.host.mounts.forget_ended()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut listeners = self.listeners.take();
        listeners.iter_mut().for_each(Listeners::begin_stop);
        // Listeners wait for requests under way, and nobody is going to release these.
        let controls = self.host.accounts.controls();
        controls.end_explorations();
        controls.gates.end_all();
        controls.faults.end_delayed();
        drop(listeners);
        self.host.mounts.unmount_all();
        self.places = MountPoints::default();
        drop(self.api.take());
        // After everything that adds to the log.
        drop(self.event_file.take());
    }
}

/// The server as a whole.
fn about(
    data: String,
    admin: Option<&AdminOptions>,
    options: &ServerOptions,
    notes: Vec<String>,
) -> Result<About, StartError> {
    let url = admin.map(|admin| admin_address::url(admin, &options.listen)).transpose();
    let url = url.map_err(StartError::system("--admin"))?;
    let token = admin.and_then(|admin| admin.token.as_ref()).map(|token| token.text().to_owned());
    let identity = admin.zip(url.as_deref());
    let identity = identity.and_then(|(admin, url)| admin_address::identity(admin, url));
    let takes_tokens = options.listen.oauth == OauthMode::Basic;
    let started = Instant::now();
    Ok(About { data, started, admin: url, admin_token: token, takes_tokens, identity, notes })
}

/// Where the options want mounts.
fn places(
    options: &ServerOptions,
    shares: &[String],
    notes: &mut Vec<String>,
) -> Result<MountPoints, StartError> {
    if !options.mounts.is_empty() {
        return MountPoints::named(&options.mounts);
    }
    let Some(base) = &options.default_mount else { return Ok(MountPoints::default()) };
    MountPoints::by_default(base, shares).or_else(|error| {
        let cure = match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                "choose a directory that this user may write with --mount-dir; in a container a \
                 mount also needs root and /dev/fuse"
            }
            _ => "choose another directory with --mount-dir",
        };
        notes.push(format!("no mount, REST only: {}: {error}: {cure}", base.display()));
        Ok(MountPoints::default())
    })
}
