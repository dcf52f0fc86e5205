//! What is served, and where: the server as a whole, and how an SDK connects to its services.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::controls::ClockState;
use super::failure::ApiFailure;
use super::routes::{GetConnection, GetStatus};
use super::serving::Reached;
use super::session::{Session, shares_of};

/// The server and everything that it serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerStatus {
    pub version: String,
    pub pid: u32,
    pub accounts: Vec<String>,
    pub shares: Vec<ShareRow>,
    pub mounts: Vec<MountRow>,
    /// The URL of the File service, with the account, if that service listens.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// The URL of each service that listens, with the account.
    #[serde(default)]
    pub endpoints: BTreeMap<String, String>,
    /// The URL of the page and the HTTP API, if the server has them.
    #[serde(default)]
    pub admin: Option<String>,
    /// The token of that address, if it asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin_token: Option<String>,
    /// Where the data is.
    #[serde(default)]
    pub data: String,
    /// For how long the server has run.
    #[serde(default)]
    pub uptime_seconds: u64,
    #[serde(default)]
    pub clock: ClockState,
    /// What the start screen notes: who can reach the services, why nothing is mounted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShareRow {
    pub account: String,
    pub name: String,
    /// How many of its files have opens, locks or leases.
    pub files_in_use: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MountRow {
    pub account: String,
    pub share: String,
    pub path: PathBuf,
}

/// How clients of the REST listener find it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionInfo {
    pub account: String,
    pub key: String,
    /// The URL of the File service, with the account, if that service listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The URL of each service that listens, with the account.
    #[serde(default)]
    pub endpoints: BTreeMap<String, String>,
    /// All of it in one.
    pub connection_string: String,
    /// The certificate that clients must trust, if it was made by the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

impl Session {
    /// What is served, and where; with the token of the admin address for the server's owner alone.
    pub fn status(&self, _: GetStatus) -> Result<ServerStatus, ApiFailure> {
        let about = self.serving.about();
        let connection = self.serving.reached(self.account.name()).map(|reached| reached.info);
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
            mounts: self.serving.mounts(),
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
        Ok(self.reached()?.info)
    }

    /// How clients reach the services of the account.
    pub(super) fn reached(&self) -> Result<Reached, ApiFailure> {
        self.serving.reached(self.account.name()).ok_or_else(|| {
            let why = "this server offers no service over HTTP: it was started with --no-rest";
            ApiFailure::not_found(why)
        })
    }
}
