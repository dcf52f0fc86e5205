//! What those see who look after a server: metrics and health, if they want them, and the log.
//!
//! Decides what makes a server healthy: the REST listener takes connections, and every mount is
//! there and answers.

use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::cli::logs::LogFormat;
use crate::control::Serving;
use crate::engine::Engine;
use crate::fuse::mounts;
use crate::observe::{AdminOptions, AdminServer, Metrics};
use crate::rest::{self, Observer};

/// How long the REST listener may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// For those who look after the server
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub struct Admin {
    /// Show /metrics and /healthz there; port 0 takes any free one
    #[arg(long, value_name = "ADDR", env = "LATCHFS_ADMIN", hide_short_help = true)]
    pub admin: Option<SocketAddr>,

    /// What lines of the log look like
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", env = "LATCHFS_LOG_FORMAT")]
    #[arg(hide_short_help = true)]
    pub log_format: LogFormat,
}

/// What is counted, where somebody wants to see it.
pub struct Counting {
    listen: SocketAddr,
    any_host: bool,
    metrics: Arc<Metrics>,
}

impl Admin {
    /// Starts to count, if anybody wants to see it. `expose`: also beyond this machine.
    pub fn count(&self, engine: &Arc<Engine>, expose: bool) -> Result<Option<Counting>> {
        let Some(listen) = self.admin else { return Ok(None) };
        ensure!(
            listen.ip().is_loopback() || expose,
            "--admin {listen} is reachable from other machines, and asks for no key: give a \
             loopback address, or --expose if that is meant"
        );
        let metrics = Arc::new(Metrics::new(Arc::clone(engine)));
        Ok(Some(Counting { listen, any_host: expose, metrics }))
    }
}

/// Passes what REST tells on.
struct Counted(Arc<Metrics>);

impl Observer for Counted {
    fn answered(&self, operation: &'static str, status: u16, took: Duration) {
        self.0.answered(operation, status, took);
    }
}

impl Counting {
    /// For the REST listener to tell.
    pub fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(Counted(Arc::clone(&self.metrics)))
    }

    /// Shows it. `rest` is where the REST listener listens.
    pub fn show(self, serving: Arc<dyn Serving>, rest: Option<SocketAddr>) -> Result<AdminServer> {
        let listen = self.listen;
        AdminServer::start(AdminOptions {
            listen,
            metrics: self.metrics,
            ailments: Box::new(move || ailments(&*serving, rest)),
            serves_host: if self.any_host { |_| true } else { is_here },
        })
        .with_context(|| format!("cannot listen on --admin {listen}"))
    }
}

fn is_here(host: &str) -> bool {
    rest::is_this_machine(rest::host_name(host))
}

fn ailments(serving: &dyn Serving, rest: Option<SocketAddr>) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(address) = rest
        && let Err(error) = takes_connections(address)
    {
        found.push(format!("REST on {address}: {error}"));
    }
    for mount in serving.mounts() {
        if let Err(why) = mounts::check(&mount.path) {
            found.push(format!("share {} on {}: {why}", mount.share, mount.path.display()));
        }
    }
    found
}

/// A connection that asks for nothing is taken and ended. The kernel takes it by itself; to end it
/// is the listener's.
fn takes_connections(address: SocketAddr) -> io::Result<()> {
    let mut connection = TcpStream::connect_timeout(&address, ANSWER_MAX)?;
    connection.set_read_timeout(Some(ANSWER_MAX))?;
    connection.shutdown(Shutdown::Write)?;
    let mut rest = [0; 64];
    while connection.read(&mut rest)? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listener_that_nobody_serves_does_not_take_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let error = takes_connections(address).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut));
        drop(listener);
        assert!(takes_connections(address).is_err());
    }
}
