//! `latchfs connection-string`: the connection string for an SDK.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::locate::AccountByPath;
use crate::api::{ApiClient, ConnectionInfo, GetConnection};

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
        self.common.output.show(&told, || format!("{}\n", told.connection_string))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// How clients of an account find the services of the server with that socket.
pub fn of_server(control: &Path, account: Option<&str>) -> Result<ConnectionInfo> {
    Ok(ApiClient::new(control).of_account(account).ask(&GetConnection {})?)
}
