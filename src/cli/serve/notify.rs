//! Notifies systemd that the server is ready (`Type=notify`).

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends a line to `NOTIFY_SOCKET`, if there is one.
pub fn tell(line: &str) {
    let Some(name) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return };
    if let Err(error) = send(&name, line) {
        log::warn!("NOTIFY_SOCKET {}: {error}", name.display());
    }
}

/// A name that starts with `@` is an abstract one.
fn send(name: &OsStr, line: &str) -> io::Result<()> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(rest) => SocketAddr::from_abstract_name(rest)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(line.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abstract_socket_is_reached_too() {
        let name = format!("latchfs-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), "READY=1").unwrap();
        let mut text = [0; 32];
        let count = socket.recv(&mut text).unwrap();
        assert_eq!(&text[..count], b"READY=1");
    }
}
