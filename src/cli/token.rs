//! `latchfs token`: bearer tokens for a server with `--oauth basic`. What they say is decided in
//! `http/auth`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;

use super::locate::AccountByPath;
use super::serve::shell_quoted;
use super::time::duration;
use crate::api::{ApiClient, GetToken, TokenGiven};

const EXAMPLE: &str = "\
Example:
  latchfs serve --daemon --tls self --oauth basic
  eval \"$(latchfs token --env)\"  # DefaultAzureCredential works in this shell";

/// Print a bearer token, or the variables by which SDKs get tokens
///
/// For a server with --oauth basic, which checks no signature. With --env: the variables by which
/// `DefaultAzureCredential` of the SDKs gets its tokens from the server, as from Azure App Service,
/// and trusts the certificate of --tls self.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct TokenCommand {
    /// For how long: 10m, 1h, 7d
    #[arg(long, value_name = "TIME", default_value = "1h", env = "LATCHFS_EXPIRES")]
    #[arg(value_parser = duration)]
    expires: Duration,

    /// The user whom the token names
    #[arg(long, value_name = "NAME", env = "LATCHFS_SUBJECT", conflicts_with = "env")]
    subject: Option<String>,

    /// Print variables to set in a shell
    #[arg(long)]
    env: bool,

    #[command(flatten)]
    common: AccountByPath,
}

impl TokenCommand {
    pub fn run(&self) -> Result<ExitCode> {
        let (control, account) = self.common.find()?;
        let server = ApiClient::new(&control).of_account(account.as_deref());
        let seconds = Some(self.expires.as_secs());
        let given = server.ask(&GetToken { seconds, subject: self.subject.clone() })?;
        if self.env && given.identity.is_none() {
            bail!(
                "the server has no admin address, which gives the tokens: leave --admin off away"
            );
        }
        self.common.output.show(&given, || {
            if self.env { variables(&given) } else { format!("{}\n", given.access_token) }
        })
    }
}

fn variables(given: &TokenGiven) -> String {
    let mut pairs = Vec::new();
    if let Some(identity) = &given.identity {
        pairs.push(("IDENTITY_ENDPOINT", identity.endpoint.clone()));
        pairs.push(("IDENTITY_HEADER", identity.header.clone()));
    }
    if let Some(file) = &given.ca_file {
        // What Python's requests and Node read.
        let file = file.to_string_lossy().into_owned();
        pairs
            .extend(["REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"].map(|name| (name, file.clone())));
    }
    let line = |(name, value): &(_, String)| format!("export {name}={}\n", shell_quoted(value));
    pairs.iter().map(line).collect()
}
