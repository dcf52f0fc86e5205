//! `latchfs client`: names of clients.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

use super::locate::AccountByPath;
use crate::api::{self, ApiClient, ClientEntry};

const EXAMPLE: &str = "\
Example:
  export AZURE_STORAGE_CONNECTION_STRING=$(latchfs client add A)
  latchfs client list";

/// Give clients names, by which events and refusals tell them apart
///
/// A client has a further key of the account. The key that signs a request, or the SAS of a
/// request, names the client: through connection pools, proxies and containers. A reset leaves
/// clients as they are; they end with the server.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct ClientCommand {
    #[command(subcommand)]
    command: ClientSubcommand,
}

#[derive(Debug, Subcommand)]
enum ClientSubcommand {
    Add(AddClient),
    List(ListClients),
    Remove(RemoveClient),
}

/// Add a client; prints its connection string
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs client add worker-7")]
struct AddClient {
    /// 1 to 64 letters, digits, dots, hyphens and underscores
    name: String,

    #[command(flatten)]
    common: AccountByPath,
}

/// List the clients
///
/// A table on a terminal, otherwise a line for each with a tab between: its name and its connection
/// string.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs client list --json")]
struct ListClients {
    #[command(flatten)]
    common: AccountByPath,
}

/// Remove a client: its key is one no more
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs client remove worker-7")]
struct RemoveClient {
    /// The client
    name: String,

    #[command(flatten)]
    common: AccountByPath,
}

impl ClientCommand {
    pub fn run(&self) -> Result<ExitCode> {
        let common = match &self.command {
            ClientSubcommand::Add(AddClient { common, .. })
            | ClientSubcommand::List(ListClients { common })
            | ClientSubcommand::Remove(RemoveClient { common, .. }) => common,
        };
        let (control, account) = common.find()?;
        let server = ApiClient::new(&control).of_account(account.as_deref());
        match &self.command {
            ClientSubcommand::Add(AddClient { name, .. }) => {
                let added = server.ask(&api::AddClient { name: name.clone() })?;
                common.output.show(&added, || format!("{}\n", added.connection_string))?;
            }
            ClientSubcommand::List(_) => {
                let api::ClientList { clients } = server.ask(&api::GetClients {})?;
                let row = |one: &ClientEntry| [one.name.clone(), one.connection_string.clone()];
                common.output.show_rows(&clients, ["NAME", "CONNECTION STRING"], row)?;
            }
            ClientSubcommand::Remove(RemoveClient { name, .. }) => {
                server.ask(&api::RemoveClient { name: name.clone() })?;
                let done = json!({ "removed": name });
                common.output.show(&done, || format!("client {name} was removed\n"))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
