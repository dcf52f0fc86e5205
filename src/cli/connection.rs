//! `latchfs connection-string`: what an SDK is configured with.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::locate::{Socket, ask, unexpected};
use super::out::Output;
use crate::control::protocol::Connection;
use crate::control::{Answer, Request};

/// Print the connection string for SDKs
///
/// It holds the account's key. With --json, its parts: account, key, endpoint.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  export AZURE_STORAGE_CONNECTION_STRING=$(latchfs connection-string)"
)]
pub struct ConnectionString {
    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Socket,
}

impl ConnectionString {
    /// Prints it.
    pub fn run(&self) -> Result<ExitCode> {
        let told = of_server(&self.server.find()?)?;
        self.output.show(&told, || format!("{}\n", told.connection_string))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// How REST clients find the server of that socket.
pub fn of_server(control: &Path) -> Result<Connection> {
    match ask(control, &Request::Connection {})? {
        Answer::Connection(told) => Ok(told),
        other => Err(unexpected(&other)),
    }
}
