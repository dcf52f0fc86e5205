//! `latchfs client`: names of clients; `latchfs connection-string`: how an SDK connects.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

use super::locate::AccountByPath;
use crate::api::{self, ApiClient, ClientEntry, ConnectionInfo, GetConnection};

const EXAMPLE: &str = "\
Example:
  export AZURE_STORAGE_CONNECTION_STRING=$(latchfs client add A)
  latchfs client list";

/// Give clients names, by which events and refusals tell them apart
///
/// A client has a further key of the account. The key that signs a request, or the SAS of a
/// request, names the client: through connection pools, proxies and containers. A reset leaves
/// clients as they are; they end with the server.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLE)]
pub enum ClientCommand {
    /// Add a client; prints its connection string
    #[command(after_help = "Example:\n  latchfs client add worker-7")]
    Add {
        /// 1 to 64 letters, digits, dots, hyphens and underscores
        name: String,

        #[command(flatten)]
        common: AccountByPath,
    },
    /// List the clients
    ///
    /// A table on a terminal, otherwise a line for each with a tab between: its name and its
    /// connection string.
    #[command(after_help = "Example:\n  latchfs client list --json")]
    List(AccountByPath),
    /// Remove a client: its key is one no more
    #[command(after_help = "Example:\n  latchfs client remove worker-7")]
    Remove {
        /// The client
        name: String,

        #[command(flatten)]
        common: AccountByPath,
    },
}

impl ClientCommand {
    pub fn run(&self) -> Result<ExitCode> {
        let common = match self {
            ClientCommand::Add { common, .. }
            | ClientCommand::List(common)
            | ClientCommand::Remove { common, .. } => common,
        };
        let (control, account) = common.find()?;
        let server = ApiClient::new(&control).of_account(account.as_deref());
        match self {
            ClientCommand::Add { name, .. } => {
                let added = server.ask(&api::AddClient { name: name.clone() })?;
                common.output.show(&added, || format!("{}\n", added.connection_string))
            }
            ClientCommand::List(_) => {
                let api::ClientList { clients } = server.ask(&api::GetClients {})?;
                let row = |one: &ClientEntry| [one.name.clone(), one.connection_string.clone()];
                common.output.show_rows(&clients, ["NAME", "CONNECTION STRING"], row)
            }
            ClientCommand::Remove { name, .. } => {
                server.ask(&api::RemoveClient { name: name.clone() })?;
                let done = json!({ "removed": name });
                common.output.show(&done, || format!("client {name} was removed\n"))
            }
        }
    }
}

/// Print the connection string for SDKs
///
/// It holds the account's key. With --json, its parts: account, key, endpoints.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  export AZURE_STORAGE_CONNECTION_STRING=$(latchfs connection-string)"
)]
pub struct ConnectionString {
    #[command(flatten)]
    common: AccountByPath,
}

impl ConnectionString {
    pub fn run(&self) -> Result<ExitCode> {
        let (control, account) = self.common.find()?;
        let told = of_server(&control, account.as_deref())?;
        self.common.output.show(&told, || format!("{}\n", told.connection_string))
    }
}

/// How clients of an account find the services of the server with that socket.
pub fn of_server(control: &Path, account: Option<&str>) -> Result<ConnectionInfo> {
    Ok(ApiClient::new(control).of_account(account).ask(&GetConnection {})?)
}
