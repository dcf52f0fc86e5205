//! One connection: carries its requests out, and keeps what it holds until it ends.
//!
//! A connection is a client of the control socket, or one of the HTTP API (`api/calls`). Only the
//! socket has requests that answer more than once ([`ControlConnection::carry_out`]).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::address::{ObjectAddress, PrintedFile};
use super::events::{self, EventFilter};
use super::protocol::{
    ControlAnswer, ControlRequest, HandleRow, MountRow, RefusalDetail, ServerStatus, ShareRow,
};
use super::refusal::{FailureKind, RefusalKind};
use super::server::ControlLines;
use super::serving::Serving;
use super::wire::ReceivedRequest;
use super::{holds, report};
use crate::blob::service::BlobError;
use crate::file::rules::{Denial, ShareMode, SharePath};
use crate::file::service::shares::ListOptions;
use crate::file::service::{FileError, FileService, FileServiceError, Handle, Share};
use crate::queue::service::QueueError;
use crate::rules::{Client, HandleId, Owner};
use crate::server::Account;
use crate::table::service::TableError;

/// Session numbers of control connections start here, past those of mounts and scripts.
const SESSIONS: u64 = 1 << 32;

/// Why a request was not carried out.
pub(super) enum RequestFailure {
    Refused(Arc<Share>, SharePath, FileError),
    Share(FileServiceError),
    Object(Box<RefusalDetail>),
    Failed(FailureKind, String),
}

impl RequestFailure {
    /// The object that the request names does not exist.
    pub(super) fn missing(message: String) -> Self {
        Self::Failed(FailureKind::NotFound, message)
    }

    /// A bound of the server is reached.
    pub(super) fn busy(message: String) -> Self {
        Self::Failed(FailureKind::Busy, message)
    }

    /// The disk is full.
    pub(super) fn full(message: String) -> Self {
        Self::Failed(FailureKind::Full, message)
    }

    pub(super) fn system(message: String) -> Self {
        Self::Failed(FailureKind::Failed, message)
    }

    /// A refusal that concerns a blob, a message or an entity.
    pub(super) fn object(kind: RefusalKind, message: String) -> Self {
        Self::Object(Box::new(RefusalDetail { kind, message, holder: None }))
    }
}

impl From<BlobError> for RequestFailure {
    fn from(error: BlobError) -> Self {
        match error.denial().map(RefusalKind::of_blob) {
            Some(kind) => Self::object(kind, error.to_string()),
            None => Self::system(error.to_string()),
        }
    }
}

impl From<QueueError> for RequestFailure {
    fn from(error: QueueError) -> Self {
        match error.denial().map(RefusalKind::of_queue) {
            Some(kind) => Self::object(kind, error.to_string()),
            None => Self::system(error.to_string()),
        }
    }
}

impl From<TableError> for RequestFailure {
    fn from(error: TableError) -> Self {
        match error.denial().map(RefusalKind::of_table) {
            Some(kind) => Self::object(kind, error.to_string()),
            None => Self::system(error.to_string()),
        }
    }
}

impl From<FileServiceError> for RequestFailure {
    fn from(error: FileServiceError) -> Self {
        Self::Share(error)
    }
}

/// A text says what is wrong with the request.
impl From<String> for RequestFailure {
    fn from(message: String) -> Self {
        Self::Failed(FailureKind::BadRequest, message)
    }
}

/// A connection and what it holds.
pub struct ControlConnection {
    pub(super) serving: Arc<dyn Serving>,
    /// The account that the request under way means.
    pub(super) account: Arc<Account>,
    pub(super) owner: Owner,
    pub(super) holds: Vec<(Arc<Share>, Handle)>,
    running: bool,
}

impl ControlConnection {
    /// A client of the control socket: the process `pid`.
    pub fn of_socket(serving: Arc<dyn Serving>, number: u64, pid: u32) -> Self {
        let client = Client { session: SESSIONS + number, name: "the control socket".into() };
        Self::new(serving, Owner { client: Arc::new(client), pid, program: None })
    }

    /// The client that `owner` names.
    pub fn new(serving: Arc<dyn Serving>, owner: Owner) -> Self {
        let account = Arc::clone(serving.accounts().first());
        Self { serving, account, owner, holds: Vec::new(), running: false }
    }

    /// Carries a request out that has one answer. May wait.
    pub fn answer(&mut self, account: Option<&str>, request: ControlRequest) -> ControlAnswer {
        let done = match find_account(&*self.serving, account) {
            Ok(account) => {
                self.account = account;
                self.try_answer(request)
            }
            Err(not) => Err(not),
        };
        answer(self.account.name(), done)
    }

    /// Carries a request of the control socket out and answers it.
    pub fn carry_out(&mut self, received: ReceivedRequest, lines: &mut ControlLines) {
        match find_account(&*self.serving, received.account.as_deref()) {
            Ok(account) => self.account = account,
            Err(not) => return lines.write(&answer(self.account.name(), Err(not))),
        }
        match received.request {
            ControlRequest::Shutdown {} => {
                // The answer first: the server ends its connections when it stops.
                lines.write(&ControlAnswer::Done {});
                self.serving.shut_down();
            }
            ControlRequest::CreateSnapshot { share_name } => {
                let made = self.create_snapshot(share_name.as_deref(), lines);
                lines.write(&answer(self.account.name(), made));
            }
            request => {
                let done = self.try_answer(request);
                lines.write(&answer(self.account.name(), done));
            }
        }
    }

    fn try_answer(&mut self, request: ControlRequest) -> Result<ControlAnswer, RequestFailure> {
        match request {
            ControlRequest::Ping {} => Ok(ControlAnswer::Done {}),
            ControlRequest::Status {} => Ok(ControlAnswer::Status(self.status())),
            ControlRequest::Hold(hold) => self.hold(&hold),
            ControlRequest::Holding { handle, wait_ms } => {
                self.holding(handle, Duration::from_millis(wait_ms))
            }
            ControlRequest::Release { handle } => self.release(handle),
            ControlRequest::Handles { share_name, path, recursive } => {
                self.handles(share_name.as_deref(), path.as_deref(), recursive)
            }
            ControlRequest::CloseHandle { share_name, handle, all } => {
                self.close_handle(share_name.as_deref(), handle, all)
            }
            ControlRequest::Undelete { share_name, path } => {
                let (share, path) = self.target(share_name.as_deref(), &path)?;
                let undone = share.undelete(&self.context("undelete"), &path);
                let was_pending =
                    undone.map_err(|error| RequestFailure::Refused(share, path, error))?;
                Ok(ControlAnswer::Undeleted { was_pending })
            }
            ControlRequest::Why { share_name, path } => {
                let (share, path) = self.target(share_name.as_deref(), &path)?;
                let told = report::why(&self.account, &share, &path);
                Ok(ControlAnswer::Why(
                    told.map_err(|error| RequestFailure::Refused(share, path, error))?,
                ))
            }
            ControlRequest::WhyObject { object } => self.why_object(&object),
            ControlRequest::History { object } => self.history(object.as_deref()),
            ControlRequest::ObjectLease { object } => self.object_lease(&object),
            ControlRequest::BreakObjectLease { object, period } => {
                self.break_object_lease(&object, period)
            }
            ControlRequest::Events { share_name, path, after, wait_ms } => {
                let filter = self.filter(share_name.as_deref(), path.as_deref())?;
                let patience = Duration::from_millis(wait_ms);
                let page = events::page(self.account.journal(), &filter, after, patience);
                Ok(ControlAnswer::Events(page))
            }
            ControlRequest::Locks { share_name, path } => {
                self.locks(share_name.as_deref(), path.as_deref())
            }
            ControlRequest::Pending {} => self.pending(),
            ControlRequest::Leases {} => self.leases(),
            ControlRequest::Messages { queue } => self.messages(queue.as_deref()),
            ControlRequest::Stream(request) => Ok(self.stream(&request)),
            ControlRequest::RunStart { share_mode, mount } => {
                self.start_run(&share_mode, mount.as_deref())
            }
            ControlRequest::RunEnd {} => {
                self.end_run();
                Ok(ControlAnswer::Done {})
            }
            ControlRequest::Unmount { path, lazy } => {
                self.serving.unmount(&path, lazy)?;
                Ok(ControlAnswer::Done {})
            }
            ControlRequest::Connection {} => {
                let told = self.serving.connection(self.account.name()).ok_or_else(no_listener)?;
                Ok(ControlAnswer::Connection(told))
            }
            ControlRequest::Clock(request) => self.clock(&request),
            ControlRequest::Gate(request) => self.gate(request),
            ControlRequest::Fault(request) => self.fault(request),
            ControlRequest::State(request) => self.state(&request),
            ControlRequest::ListShares { deleted } => self.list_shares(deleted),
            ControlRequest::CreateShare { name, quota_gib } => self.create_share(&name, quota_gib),
            ControlRequest::DeleteShare { name, snapshots } => self.delete_share(&name, snapshots),
            ControlRequest::Lease { share_name, path } => self.lease(share_name.as_deref(), &path),
            ControlRequest::BreakLease { share_name, path, period } => {
                self.break_lease(share_name.as_deref(), &path, period)
            }
            ControlRequest::ListSnapshots { share_name } => {
                self.list_snapshots(share_name.as_deref())
            }
            ControlRequest::DeleteSnapshot { share_name, snapshot } => {
                self.delete_snapshot(share_name.as_deref(), &snapshot)
            }
            ControlRequest::CreateSnapshot { .. } | ControlRequest::Shutdown {} => {
                Err("only the control socket takes this request".to_owned())?
            }
        }
    }

    fn status(&self) -> ServerStatus {
        let about = self.serving.about();
        let mounts = self.serving.mounts().into_iter();
        let connection = self.serving.connection(self.account.name());
        let accounts = self.serving.accounts();
        let mut shares = Vec::new();
        for account in accounts.iter() {
            shares.extend(shares_of(account.file()).iter().map(|share| ShareRow {
                account: account.name().to_string(),
                name: share.name().to_string(),
                files_in_use: share.files_in_use(),
            }));
        }
        ServerStatus {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            accounts: accounts.names(),
            shares,
            mounts: mounts.map(MountRow::from).collect(),
            endpoint: connection.as_ref().and_then(|told| told.endpoint.clone()),
            endpoints: connection.map(|told| told.endpoints).unwrap_or_default(),
            admin: about.admin,
            admin_token: about.admin_token,
            data: about.data,
            uptime_seconds: about.started.elapsed().as_secs(),
            clock: self.clock_state(),
            notes: about.notes,
        }
    }

    /// The shares of the account.
    pub(super) fn shares(&self) -> Vec<Arc<Share>> {
        shares_of(self.account.file())
    }

    /// The share of that name, or the only one.
    pub(super) fn share(&self, name: Option<&str>) -> Result<Arc<Share>, RequestFailure> {
        let mut shares = self.shares();
        let Some(name) = name else {
            let only =
                shares.pop().ok_or_else(|| RequestFailure::missing("no share is served".into()))?;
            return if shares.is_empty() {
                Ok(only)
            } else {
                Err("several shares are served: name one, as in NAME:/PATH".to_owned().into())
            };
        };
        if let Some(found) = shares.iter().find(|share| **share.name() == *name) {
            return Ok(Arc::clone(found));
        }
        let there: Vec<_> = shares.iter().map(|share| &**share.name()).collect();
        let there = there.join(", ");
        Err(RequestFailure::missing(format!("no share '{name}' is served here, only {there}")))
    }

    /// Asks every share of the account, or the one of that name. Of all, a share that is deleted or
    /// replaced meanwhile is left out: it holds nothing any more.
    pub(super) fn ask_shares<T>(
        &self,
        name: Option<&str>,
        path: Option<&SharePath>,
        ask: impl Fn(&Share) -> Result<T, FileError>,
    ) -> Result<Vec<(Arc<Share>, T)>, RequestFailure> {
        let all = name.is_none() && path.is_none();
        let shares = if all { self.shares() } else { vec![self.share(name)?] };
        let mut told = Vec::new();
        for share in shares {
            match ask(&share) {
                Ok(answer) => told.push((share, answer)),
                Err(FileError::Denied(Denial::ShareDeleted | Denial::ShareReplaced)) if all => {}
                Err(error) => {
                    let path = path.cloned().unwrap_or_else(SharePath::root);
                    return Err(RequestFailure::Refused(share, path, error));
                }
            }
        }
        Ok(told)
    }

    /// The share and the file that a request names.
    pub(super) fn target(
        &self,
        name: Option<&str>,
        path: &str,
    ) -> Result<(Arc<Share>, SharePath), RequestFailure> {
        let (name, path) = self.place(name, Some(path))?;
        Ok((self.share(name.as_deref())?, path.unwrap_or_else(SharePath::root)))
    }

    /// The share and the path that a request names. Without a name of the share, the path may have
    /// it: `SHARE:/PATH` or `file:SHARE/PATH`.
    pub(super) fn place(
        &self,
        name: Option<&str>,
        path: Option<&str>,
    ) -> Result<(Option<String>, Option<SharePath>), RequestFailure> {
        let printed = if name.is_none() { path.and_then(PrintedFile::read) } else { None };
        let Some(printed) = printed else {
            return Ok((name.map(str::to_owned), path.map(share_path).transpose()?));
        };
        if let Some(account) = printed.account.filter(|other| **other != **self.account.name()) {
            let share = &printed.share;
            Err(format!("{account}/{share} is of another account: ask with account={account}"))?;
        }
        Ok((Some(printed.share), Some(share_path(&printed.path)?)))
    }

    /// The events that a request names: by a share, a path, or an object of another service.
    fn filter(
        &self,
        name: Option<&str>,
        path: Option<&str>,
    ) -> Result<EventFilter, RequestFailure> {
        let object = path.and_then(ObjectAddress::read);
        if let Some(object) = object.filter(|object| !matches!(object, ObjectAddress::File { .. }))
        {
            return Ok(EventFilter { object: Some(object), ..EventFilter::default() });
        }
        let (share_name, path) = self.place(name, path)?;
        if let Some(name) = &share_name {
            self.share(Some(name))?;
        }
        Ok(EventFilter { share_name, path, object: None })
    }

    fn handles(
        &self,
        name: Option<&str>,
        path: Option<&str>,
        recursive: bool,
    ) -> Result<ControlAnswer, RequestFailure> {
        // Without a path: all open files.
        let recursive = recursive || path.is_none();
        let (name, path) = self.place(name, path)?;
        let below = path.clone().unwrap_or_else(SharePath::root);
        let mut handles: Vec<HandleRow> = Vec::new();
        let mut left_out = 0;
        let ask = |share: &Share| share.all_handles(&below, recursive);
        for (share, opens) in self.ask_shares(name.as_deref(), path.as_ref(), ask)? {
            let room = report::HANDLES_MAX - handles.len();
            left_out += opens.len().saturating_sub(room);
            let opens = opens.iter().take(room);
            handles.extend(report::rows(self.account.name(), share.name(), opens, share.now()));
        }
        Ok(ControlAnswer::Handles { handles, left_out })
    }

    fn close_handle(
        &self,
        name: Option<&str>,
        handle: Option<u64>,
        all: bool,
    ) -> Result<ControlAnswer, RequestFailure> {
        let mut found: Vec<(Arc<Share>, HandleId)> = Vec::new();
        let ask = |share: &Share| share.all_handles(&SharePath::root(), true);
        for (share, opens) in self.ask_shares(name, None, ask)? {
            let wanted = opens.iter().filter(|open| all || Some(open.id.0) == handle);
            found.extend(wanted.map(|open| (Arc::clone(&share), open.id)));
        }
        match (handle, all) {
            (Some(_), true) | (None, false) => {
                return Err("either a handle or all of them".to_owned().into());
            }
            (Some(id), false) if found.len() > 1 => {
                let message = format!("handle {id} is in several shares: add --share-name");
                return Err(message.into());
            }
            _ => {}
        }
        let (mut closed, mut failed) = (0, None);
        for (share, id) in found {
            match share.force_close(&self.context("close-handle"), id) {
                // None, if its holder closed it meanwhile, or it ended with another.
                Ok(ended) => closed += ended,
                // The others are closed all the same.
                Err(error) => failed = failed.or(Some(format!("handle {id}: {error}"))),
            }
        }
        failed.map_or(Ok(ControlAnswer::Closed { closed }), |failed| {
            Err(RequestFailure::system(failed))
        })
    }

    fn start_run(
        &mut self,
        share: &str,
        mount: Option<&Path>,
    ) -> Result<ControlAnswer, RequestFailure> {
        let share = share_mode(share)?;
        self.serving.start_run(self.owner.pid, share, mount)?;
        self.running = true;
        Ok(ControlAnswer::Done {})
    }

    fn end_run(&mut self) {
        if std::mem::take(&mut self.running) {
            self.serving.end_run(self.owner.pid);
        }
    }
}

impl Drop for ControlConnection {
    fn drop(&mut self) {
        self.end_run();
        for (share, handle) in self.holds.drain(..) {
            holds::close(&share, &handle);
        }
    }
}

/// The answer to a request, as it is sent.
fn answer(account: &str, done: Result<ControlAnswer, RequestFailure>) -> ControlAnswer {
    match done {
        Ok(answer) => answer,
        Err(RequestFailure::Failed(kind, message)) => ControlAnswer::Failed { kind, message },
        Err(RequestFailure::Refused(share, path, FileError::Denied(denial))) => {
            ControlAnswer::Refused(report::refused(account, &share, &path, &denial))
        }
        Err(RequestFailure::Refused(_, path, FileError::Store(error))) => {
            failed(format!("{path}: {error}"))
        }
        Err(RequestFailure::Object(refused)) => ControlAnswer::Refused(*refused),
        Err(RequestFailure::Share(FileServiceError::Denied(denial))) => {
            ControlAnswer::Refused(report::refused_share(&denial))
        }
        Err(RequestFailure::Share(error)) => failed(error.to_string()),
    }
}

fn failed(message: String) -> ControlAnswer {
    ControlAnswer::Failed { kind: FailureKind::Failed, message }
}

fn no_listener() -> RequestFailure {
    let message = "this server offers no service over HTTP: it was started with --no-rest";
    RequestFailure::missing(message.to_owned())
}

/// The account of that name, or the first.
fn find_account(serving: &dyn Serving, name: Option<&str>) -> Result<Arc<Account>, RequestFailure> {
    let accounts = serving.accounts();
    let Some(name) = name else { return Ok(Arc::clone(accounts.first())) };
    accounts.get(name).map(Arc::clone).ok_or_else(|| {
        let names = accounts.names().join(", ");
        RequestFailure::missing(format!("no account '{name}' is served here, only {names}"))
    })
}

/// The shares of a File service, by name.
fn shares_of(file: &FileService) -> Vec<Arc<Share>> {
    let listed = file.every_share(&ListOptions::default()).unwrap_or_default();
    listed.iter().filter_map(|info| file.share(&info.name).ok()).collect()
}

pub(super) fn share_path(path: &str) -> Result<SharePath, String> {
    SharePath::new(path).map_err(|error| format!("{path}: {error}"))
}

pub(super) fn share_mode(text: &str) -> Result<ShareMode, String> {
    ShareMode::parse(text)
        .ok_or_else(|| format!("share mode '{text}': expected letters r, w, d, or none"))
}
