//! `latchfs health`: asks the admin address of a server whether the server is usable.
//!
//! For health checks in images that have neither a shell nor curl. What makes a server healthy is
//! decided in `server/health`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::json;

use super::locate::{self, ServerAndOutput};
use super::out::printable;
use super::{AGENT, EXIT_DIFFERENT};
use crate::api::GetStatus;
use crate::http::client::HttpClient;
use crate::http::frame::asked_at;
use crate::server::ListenAddress;

/// How long the server may take to answer. Its own checks take a few seconds at most.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Ask whether a server is usable
///
/// Exit status 0: every service takes connections and every mount answers. 1: the answer names
/// what does not. 2: nobody answers. Finds the server as other commands do. With --admin, or the
/// variable that the server reads too, it asks that address, and needs no control socket.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs health\n  latchfs health --admin 10009")]
pub struct Health {
    /// Admin address of the server: PORT or IP:PORT [default: the server's, asked by its socket]
    #[arg(long, value_name = "ADDR", env = "LATCHFS_ADMIN")]
    admin: Option<ListenAddress>,

    #[command(flatten)]
    common: ServerAndOutput,
}

impl Health {
    pub fn run(&self) -> Result<ExitCode> {
        let Some(address) = self.address()? else {
            bail!("the server has no admin address: start it with --admin ADDR");
        };
        let address = asked_at(address);
        let (healthy, says) =
            ask(address).with_context(|| format!("no answer from the admin address {address}"))?;
        self.common.output.show(&json!({ "healthy": healthy, "says": says }), || {
            format!("{}\n", printable(&says))
        })?;
        Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DIFFERENT) })
    }

    /// The admin address that was named, or the one that the server tells; `None` if it has none.
    fn address(&self) -> Result<Option<SocketAddr>> {
        match self.admin {
            Some(ListenAddress::At(address)) => return Ok(Some(address)),
            Some(_) => return Ok(None),
            None => {}
        }
        let status = locate::ask(&self.common.server.find()?, &GetStatus {})?;
        status.admin.map(|url| address_of(&url)).transpose()
    }
}

/// The address in the URL of the page. The host is an address of this machine, or a name of it.
fn address_of(url: &str) -> Result<SocketAddr> {
    let host = url.strip_prefix("http://").unwrap_or(url);
    let mut found = host.to_socket_addrs().with_context(|| format!("the admin address {url}"))?;
    found.next().with_context(|| format!("the admin address {url} has no address"))
}

/// Whether the server is healthy, and what it says.
fn ask(address: SocketAddr) -> Result<(bool, String)> {
    let client = HttpClient::new(AGENT, None)?.answered_within(ANSWER_MAX);
    let mut got = client.send("GET", &format!("http://{address}/healthz"), &[], Vec::new())?;
    let healthy = match got.status() {
        200 => true,
        503 => false,
        other => bail!("the answer is {other}"),
    };
    let mut says = Vec::new();
    while let Some(chunk) = got.chunk()? {
        says.extend(chunk);
        ensure!(says.len() <= ANSWER_BYTES_MAX, "the answer is too long");
    }
    Ok((healthy, String::from_utf8_lossy(&says).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_every_address_is_asked_on_this_machine() {
        let of = |text: &str| asked_at(text.parse().unwrap()).to_string();
        assert_eq!(of("0.0.0.0:1"), "127.0.0.1:1");
        assert_eq!(of("[::]:1"), "[::1]:1");
        assert_eq!(of("10.0.0.1:1"), "10.0.0.1:1");
    }
}
