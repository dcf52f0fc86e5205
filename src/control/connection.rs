//! One connection: carries its requests out, and keeps what it holds until it ends.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::events::{self, Filter};
use super::protocol::{Answer, Held, Hold, MountRow, Request, ShareRow, Status, StepAnswer};
use super::protocol::{HandleRow, read_request};
use super::report;
use super::server::Lines;
use super::serving::{Serving, Steps};
use crate::core::create::{Disposition, OpenRequest};
use crate::core::{Access, Client, Denial, HandleId, Owner, ShareMode, SharePath};
use crate::engine::{AccountError, Error, Handle, Share};

/// The most opens that one connection holds.
pub const HOLDS_MAX: usize = 1024;

/// How long a request waits for a handle whose descriptor was closed and whose release is on its
/// way (DESIGN section 4, "End of an open").
const RELEASE_WAIT: Duration = Duration::from_millis(100);

/// Session numbers of control connections start here, past those of mounts and scripts.
const SESSIONS: u64 = 1 << 32;

/// Why a request was not carried out.
pub(super) enum Not {
    Refused(Arc<Share>, SharePath, Error),
    Share(AccountError),
    Failed(String),
}

impl From<AccountError> for Not {
    fn from(error: AccountError) -> Self {
        Self::Share(error)
    }
}

impl From<String> for Not {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

/// A connection and what it holds.
pub struct Connection {
    pub(super) serving: Arc<dyn Serving>,
    pub(super) owner: Owner,
    holds: Vec<(Arc<Share>, Handle)>,
    running: bool,
}

impl Connection {
    /// Of the process `pid`.
    pub fn new(serving: Arc<dyn Serving>, number: u64, pid: u32) -> Self {
        let client = Client { session: SESSIONS + number, name: "the control socket".into() };
        let owner = Owner { client: Arc::new(client), pid, program: None };
        Self { serving, owner, holds: Vec::new(), running: false }
    }

    /// Carries a request out and answers it.
    pub fn carry_out(&mut self, request: Request, lines: &mut Lines) {
        match request {
            Request::Play { share_name, trace } => self.play(share_name.as_deref(), trace, lines),
            Request::Shutdown {} => {
                // The answer first: the server ends its connections when it stops.
                lines.write(&Answer::Done {});
                self.serving.shut_down();
            }
            Request::CreateSnapshot { share_name } => {
                let made = self.create_snapshot(share_name.as_deref(), lines);
                lines.write(&answer(made));
            }
            request => {
                let answer = answer(self.try_answer(request));
                lines.write(&answer);
            }
        }
    }

    fn try_answer(&mut self, request: Request) -> Result<Answer, Not> {
        match request {
            Request::Ping {} => Ok(Answer::Done {}),
            Request::Status {} => Ok(Answer::Status(self.status())),
            Request::Hold(hold) => self.hold(&hold),
            Request::Handles { share_name, path, recursive } => {
                self.handles(share_name.as_deref(), path.as_deref(), recursive)
            }
            Request::CloseHandle { share_name, handle, all } => {
                self.close_handle(share_name.as_deref(), handle, all)
            }
            Request::Undelete { share_name, path } => {
                let (share, path) = self.target(share_name.as_deref(), &path)?;
                let undone = share.undelete(&self.owner, &path);
                let was_pending = undone.map_err(|error| Not::Refused(share, path, error))?;
                Ok(Answer::Undeleted { was_pending })
            }
            Request::Why { share_name, path } => {
                let (share, path) = self.target(share_name.as_deref(), &path)?;
                let told = report::why(&share, &path, self.serving.events());
                Ok(Answer::Why(told.map_err(|error| Not::Refused(share, path, error))?))
            }
            Request::Events { share_name, path, after, wait_ms } => {
                let path = path.map(|path| share_path(&path)).transpose()?;
                let filter = Filter { share_name, path };
                let patience = Duration::from_millis(wait_ms);
                let page = events::page(&*self.serving, &filter, after, patience);
                Ok(Answer::Events(page))
            }
            Request::RunStart { share, mount } => self.start_run(&share, mount.as_deref()),
            Request::RunEnd {} => {
                self.end_run();
                Ok(Answer::Done {})
            }
            Request::Unmount { path, lazy } => {
                self.serving.unmount(&path, lazy)?;
                Ok(Answer::Done {})
            }
            Request::Step { .. } => Err("no script is playing: ask for 'play' first".to_owned())?,
            Request::Connection {} => {
                let told = self.serving.connection().ok_or_else(no_listener)?;
                Ok(Answer::Connection(told))
            }
            Request::ListShares { deleted } => self.list_shares(deleted),
            Request::CreateShare { name, quota_gib } => self.create_share(&name, quota_gib),
            Request::DeleteShare { name, snapshots } => self.delete_share(&name, snapshots),
            Request::Lease { share_name, path } => self.lease(share_name.as_deref(), &path),
            Request::BreakLease { share_name, path, period } => {
                self.break_lease(share_name.as_deref(), &path, period)
            }
            Request::ListSnapshots { share_name } => self.list_snapshots(share_name.as_deref()),
            Request::DeleteSnapshot { share_name, snapshot } => {
                self.delete_snapshot(share_name.as_deref(), &snapshot)
            }
            Request::CreateSnapshot { .. } | Request::Play { .. } | Request::Shutdown {} => {
                unreachable!("carry_out() has done these")
            }
        }
    }

    fn status(&self) -> Status {
        let shares = self.serving.shares();
        let mounts = self.serving.mounts();
        Status {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            shares: shares
                .iter()
                .map(|share| ShareRow {
                    name: share.name().to_string(),
                    files_in_use: share.files_in_use(),
                })
                .collect(),
            mounts: mounts
                .into_iter()
                .map(|mount| MountRow { share: mount.share, path: mount.path })
                .collect(),
            endpoint: self.serving.connection().map(|told| told.endpoint),
        }
    }

    /// The share of that name, or the only one.
    pub(super) fn share(&self, name: Option<&str>) -> Result<Arc<Share>, String> {
        let mut shares = self.serving.shares();
        let Some(name) = name else {
            let Some(only) = shares.pop() else { return Err("no share is served".into()) };
            return if shares.is_empty() {
                Ok(only)
            } else {
                Err("several shares are served: say which with --share-name".into())
            };
        };
        if let Some(found) = shares.iter().find(|share| **share.name() == *name) {
            return Ok(Arc::clone(found));
        }
        let there: Vec<_> = shares.iter().map(|share| &**share.name()).collect();
        Err(format!("no share '{name}' is served here, only {}", there.join(", ")))
    }

    pub(super) fn target(
        &self,
        name: Option<&str>,
        path: &str,
    ) -> Result<(Arc<Share>, SharePath), String> {
        Ok((self.share(name)?, share_path(path)?))
    }

    fn hold(&mut self, hold: &Hold) -> Result<Answer, Not> {
        if self.holds.len() >= HOLDS_MAX {
            return Err(format!("one connection holds at most {HOLDS_MAX} opens").into());
        }
        let (share, path) = self.target(hold.share_name.as_deref(), &hold.path)?;
        let request = open_request(hold)?;
        let mut owner = self.owner.clone();
        owner.program = Some("latchfs hold".into());
        let opened = match share.open_waiting(&owner, &path, &request, RELEASE_WAIT) {
            Ok(opened) => opened,
            Err(error) => return Err(Not::Refused(share, path, error)),
        };
        let granted = Held {
            handle: opened.handle.id().0,
            share_name: share.name().to_string(),
            path: opened.path.to_string(),
            access: request.rights.access().to_string(),
            share: request.share.to_string(),
        };
        self.holds.push((share, opened.handle));
        Ok(Answer::Held(granted))
    }

    fn handles(
        &self,
        name: Option<&str>,
        path: Option<&str>,
        recursive: bool,
    ) -> Result<Answer, Not> {
        let shares = match (name, path) {
            (None, None) => self.serving.shares(),
            _ => vec![self.share(name)?],
        };
        // Without a path all that is open is meant.
        let recursive = recursive || path.is_none();
        let path = share_path(path.unwrap_or_default())?;
        let mut handles: Vec<HandleRow> = Vec::new();
        let mut left_out = 0;
        for share in shares {
            let opens = match share.all_handles(&path, recursive) {
                Ok(opens) => opens,
                Err(error) => return Err(Not::Refused(share, path, error)),
            };
            let room = report::HANDLES_MAX - handles.len();
            left_out += opens.len().saturating_sub(room);
            handles.extend(opens.iter().take(room).map(|open| report::row(share.name(), open)));
        }
        Ok(Answer::Handles { handles, left_out })
    }

    fn close_handle(
        &self,
        name: Option<&str>,
        handle: Option<u64>,
        all: bool,
    ) -> Result<Answer, Not> {
        let shares = match name {
            Some(_) => vec![self.share(name)?],
            None => self.serving.shares(),
        };
        let mut found: Vec<(Arc<Share>, HandleId)> = Vec::new();
        for share in shares {
            let opens = match share.all_handles(&SharePath::root(), true) {
                Ok(opens) => opens,
                Err(error) => return Err(Not::Refused(share, SharePath::root(), error)),
            };
            let wanted = opens.iter().filter(|open| all || Some(open.id.0) == handle);
            found.extend(wanted.map(|open| (Arc::clone(&share), open.id)));
        }
        match (handle, all) {
            (Some(_), true) | (None, false) => {
                return Err("either a handle or all of them".to_owned().into());
            }
            (Some(id), false) if found.len() > 1 => {
                let message = format!("handle {id} is in several shares: say --share-name");
                return Err(message.into());
            }
            _ => {}
        }
        let mut closed = 0;
        for (share, id) in found {
            match share.force_close(&self.owner, id) {
                // None, if its holder closed it meanwhile, or it ended with another.
                Ok(ended) => closed += ended,
                Err(error) => return Err(format!("handle {id}: {error}").into()),
            }
        }
        Ok(Answer::Closed { closed })
    }

    fn start_run(&mut self, share: &str, mount: Option<&Path>) -> Result<Answer, Not> {
        let share = share_mode(share)?;
        self.serving.start_run(self.owner.pid, share, mount)?;
        self.running = true;
        Ok(Answer::Done {})
    }

    fn end_run(&mut self) {
        if std::mem::take(&mut self.running) {
            self.serving.end_run(self.owner.pid);
        }
    }

    fn play(&mut self, name: Option<&str>, trace: bool, lines: &mut Lines) {
        let share = match self.share(name) {
            Ok(share) => share,
            Err(message) => return lines.write(&Answer::Failed { message }),
        };
        lines.write(&Answer::Done {});
        if let Err(message) = self.serving.play(&share, trace, &mut StepLines(lines)) {
            lines.write(&Answer::Failed { message });
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end_run();
        for (share, handle) in self.holds.drain(..) {
            match share.close(&handle) {
                // Force-closed: it has ended already.
                Ok(()) | Err(Error::Denied(Denial::HandleClosed)) => {}
                Err(error) => log::error!("closing handle {}: {error}", handle.id()),
            }
        }
    }
}

/// What is answered.
fn answer(done: Result<Answer, Not>) -> Answer {
    match done {
        Ok(answer) => answer,
        Err(Not::Failed(message)) => Answer::Failed { message },
        Err(Not::Refused(share, path, Error::Denied(denial))) => {
            Answer::Refused(report::refused(&share, &path, &denial))
        }
        Err(Not::Refused(_, path, Error::Store(error))) => {
            Answer::Failed { message: format!("{path}: {error}") }
        }
        Err(Not::Share(AccountError::Denied(denial))) => {
            Answer::Refused(report::refused_share(&denial))
        }
        Err(Not::Share(error)) => Answer::Failed { message: error.to_string() },
    }
}

fn no_listener() -> String {
    "this server has no REST listener: it was started with --no-rest".to_owned()
}

/// The steps of a connection that plays.
struct StepLines<'a>(&'a mut Lines);

impl Steps for StepLines<'_> {
    fn next_step(&mut self) -> Option<Map<String, Value>> {
        loop {
            let read = self.0.next_line()?;
            let ended = read.is_err();
            let message = match read.and_then(|line| read_request(&line)) {
                Ok(Request::Step { step }) => return Some(step),
                Ok(_) => "this connection plays a script and takes steps only".to_owned(),
                Err(message) => message,
            };
            self.0.write(&Answer::Failed { message });
            if ended {
                return None;
            }
        }
    }

    fn answer(&mut self, answer: Result<StepAnswer, String>) {
        self.0.write(&match answer {
            Ok(answer) => Answer::Step(answer),
            Err(message) => Answer::Failed { message },
        });
    }
}

fn share_path(path: &str) -> Result<SharePath, String> {
    SharePath::new(path).map_err(|error| format!("{path}: {error}"))
}

fn open_request(hold: &Hold) -> Result<OpenRequest, String> {
    let access = Access::parse(&hold.access)
        .ok_or_else(|| format!("'{}' is no access: letters r, w, d, or none", hold.access))?;
    let mut request = OpenRequest::plain(access, share_mode(&hold.share)?);
    request.options.delete_on_close = hold.delete_on_close;
    request.disposition = match hold.disposition.as_deref().unwrap_or("open") {
        "open" => Disposition::Open,
        "create" => Disposition::Create,
        "open-if" => Disposition::OpenIf,
        "overwrite" => Disposition::Overwrite,
        "overwrite-if" => Disposition::OverwriteIf,
        "supersede" => Disposition::Supersede,
        other => {
            return Err(format!(
                "'{other}' is no disposition: open, create, open-if, overwrite, overwrite-if, \
                 supersede"
            ));
        }
    };
    Ok(request)
}

fn share_mode(text: &str) -> Result<ShareMode, String> {
    ShareMode::parse(text)
        .ok_or_else(|| format!("'{text}' is no share mode: letters r, w, d, or none"))
}
