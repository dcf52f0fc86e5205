//! The health of a server: its data is whole and in its place, every service takes connections,
//! and every mount answers.
//!
//! The listener that reports it is in `api/`.

use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use super::host::Host;
use crate::rules::service::ServiceKind;

/// How long a service may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// The reasons why a server is not healthy, a line each; empty if it is.
pub fn ailments(host: &Host, services: &[(ServiceKind, SocketAddr)]) -> Vec<String> {
    let mut found: Vec<_> = host.accounts.halted().map(str::to_owned).into_iter().collect();
    let accounts = host.accounts.iter();
    found.extend(accounts.flat_map(|account| account.lost_places()).map(|lost| lost.to_string()));
    for (kind, address) in services {
        if let Err(error) = takes_connections(*address) {
            found.push(format!("{kind} service on {address}: {error}"));
        }
    }
    for mount in host.mounts.list() {
        if let Err(why) = check_mount(&mount.path) {
            found.push(format!("share {} on {}: {why}", mount.share, mount.path.display()));
        }
    }
    found
}

#[cfg(feature = "fuse")]
fn check_mount(path: &std::path::Path) -> Result<(), String> {
    crate::file::mount::mounts::check(path)
}

#[cfg(not(feature = "fuse"))]
fn check_mount(_: &std::path::Path) -> Result<(), String> {
    Ok(())
}

/// Makes a connection that asks for nothing. The kernel accepts it by itself; only a listener that
/// is served ends it.
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
