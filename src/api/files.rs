//! Looks at the server and at its files, and what mends them: status, handles, `why`, undelete.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::ApiFailure;
use super::leases::file_of;
use super::objects::{OBJECT_FORM, ObjectState};
use super::report;
use super::rows::{ConnectionInfo, FileExplanation, HandleRow, MountRow, ServerStatus, ShareRow};
use super::session::{Session, shares_of};
use crate::file::rules::SharePath;
use crate::file::service::Share;
use crate::rules::HandleId;

/// Asks what is served, and where.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetStatus {}

/// Asks how an SDK connects to the services.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetConnection {}

/// Asks who has which file open.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetHandles {
    /// The share; the only one without it
    pub share: Option<String>,
    /// A path in the share
    pub path: Option<String>,
    /// Also handles below the path
    #[serde(default)]
    pub recursive: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandleList {
    /// By share and identity.
    pub handles: Vec<HandleRow>,
    /// How many more there are.
    pub left_out: usize,
}

/// Closes a handle by force.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CloseHandle {
    pub handle: u64,
    /// The share; the only one without it
    pub share: Option<String>,
}

/// Closes the handle of that number by force, or all, and tells how many there were.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CloseHandles {
    /// In this share alone
    pub share: Option<String>,
    /// The handle; all without it
    pub handle: Option<u64>,
}

/// How many handles were closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Closed {
    pub closed: u64,
}

/// Asks what stands in the way of an object.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetWhy {
    /// Its address.
    #[schemars(description = OBJECT_FORM)]
    pub object: String,
}

/// What stands in the way of a file, or of another object; as `latchfs why --json` prints it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Explanation {
    File(FileExplanation),
    Object(ObjectState),
}

/// Takes the delete-pending mark from a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "share": "docs", "path": "a.txt" }]))]
pub struct Undelete {
    pub share: Option<String>,
    pub path: String,
}

/// A mark was taken away, or there was none.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Undeleted {
    pub was_pending: bool,
}

impl Session {
    /// What is served, and where; with the token of the admin address for the server's owner alone.
    pub fn status(&self, _: GetStatus) -> Result<ServerStatus, ApiFailure> {
        let about = self.serving.about();
        let mounts = self.serving.mounts().into_iter();
        let connection = self.serving.connection(self.account.name());
        let accounts = self.serving.accounts();
        let mut shares = Vec::new();
        for account in &accounts {
            shares.extend(shares_of(account.file()).iter().map(|share| ShareRow {
                account: account.name().to_string(),
                name: share.name().to_string(),
                files_in_use: share.files_in_use(),
            }));
        }
        Ok(ServerStatus {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            accounts: accounts.iter().map(|account| account.name().to_string()).collect(),
            shares,
            mounts: mounts.map(MountRow::from).collect(),
            endpoint: connection.as_ref().and_then(|told| told.endpoint.clone()),
            endpoints: connection.map(|told| told.endpoints).unwrap_or_default(),
            admin: about.admin,
            admin_token: about.admin_token.filter(|_| self.is_owner),
            data: about.data,
            uptime_seconds: about.started.elapsed().as_secs(),
            clock: self.clock_state(),
            notes: about.notes,
        })
    }

    pub fn connection(&self, _: GetConnection) -> Result<ConnectionInfo, ApiFailure> {
        self.serving.connection(self.account.name()).ok_or_else(|| {
            let why = "this server offers no service over HTTP: it was started with --no-rest";
            ApiFailure::not_found(why)
        })
    }

    pub fn handles(&self, of: GetHandles) -> Result<HandleList, ApiFailure> {
        // Without a path: all open files.
        let recursive = of.recursive || of.path.is_none();
        let (name, path) = self.place(of.share.as_deref(), of.path.as_deref())?;
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
        Ok(HandleList { handles, left_out })
    }

    pub fn close_handle(&self, of: CloseHandle) -> Result<Closed, ApiFailure> {
        let CloseHandle { handle, share } = of;
        match self.close_handles(CloseHandles { share, handle: Some(handle) })? {
            Closed { closed: 0 } => {
                Err(ApiFailure::not_found(format!("handle {handle} is not open")))
            }
            closed => Ok(closed),
        }
    }

    pub fn close_handles(&self, of: CloseHandles) -> Result<Closed, ApiFailure> {
        let CloseHandles { share, handle } = of;
        let mut found: Vec<(Arc<Share>, HandleId)> = Vec::new();
        let ask = |share: &Share| share.all_handles(&SharePath::root(), true);
        for (share, opens) in self.ask_shares(share.as_deref(), None, ask)? {
            let wanted = opens.iter().filter(|open| handle.is_none_or(|id| open.id.0 == id));
            found.extend(wanted.map(|open| (Arc::clone(&share), open.id)));
        }
        if let Some(id) = handle
            && found.len() > 1
        {
            Err(format!("handle {id} is in several shares: add --share-name"))?;
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
        failed.map_or(Ok(Closed { closed }), |failed| Err(ApiFailure::failed(failed)))
    }

    pub fn why(&self, GetWhy { object }: GetWhy) -> Result<Explanation, ApiFailure> {
        let Some((share, path)) = file_of(&object) else {
            return Ok(Explanation::Object(self.why_object(&object)?));
        };
        let (share, path) = self.target(share.as_deref(), &path)?;
        let told = report::why(&*self.account, &share, &path);
        Ok(Explanation::File(told.map_err(|error| self.refused(&share, &path, error))?))
    }

    pub fn undelete(&self, of: Undelete) -> Result<Undeleted, ApiFailure> {
        let (share, path) = self.target(of.share.as_deref(), &of.path)?;
        let undone = share.undelete(&self.context("undelete"), &path);
        let was_pending = undone.map_err(|error| self.refused(&share, &path, error))?;
        Ok(Undeleted { was_pending })
    }
}
