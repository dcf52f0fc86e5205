//! The ready file: what scripts and tests need to know of a server that can be used. And systemd's
//! notice of it (`Type=notify`).

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::{env, fs, io};

use serde_json::{Map, Value, json};

use crate::rules::service::ServiceKind;
use crate::server::Server;
use crate::server::files::write_whole;

/// The file's content: `pid`, `control`, `mounts` by share; `account`, `key`,
/// `connection_string`, `endpoints` by service and `endpoint` (that of File) if a service listens;
/// `admin`, if there is an admin address, and `admin_token`, if clients need one there; `identity`,
/// if programs get tokens there; `notes`, if there is something to know, such as why nothing is
/// mounted.
pub fn content(server: &Server) -> Value {
    let mut mounts = Map::new();
    let first = server.accounts().first().name();
    for mount in server.mounts() {
        let share = if mount.account == **first {
            mount.share
        } else {
            format!("{}/{}", mount.account, mount.share)
        };
        // Of a share that is mounted twice, the first.
        mounts.entry(share).or_insert_with(|| mount.path.to_string_lossy().into());
    }
    let mut content = json!({
        "pid": std::process::id(),
        "control": server.control().to_string_lossy(),
        "mounts": mounts,
    });
    if server.listens() {
        let account = &server.credentials()[0];
        content["account"] = account.name().into();
        content["key"] = account.key().text().into();
        content["connection_string"] = server.connection_string().into();
        for (kind, endpoint) in server.endpoints() {
            if kind == ServiceKind::File {
                content["endpoint"] = endpoint.clone().into();
            }
            content["endpoints"][kind.label()] = endpoint.into();
        }
        if let Some(smb) = server.smb() {
            content["endpoints"]["smb"] = smb.into();
        }
        if let Some(file) = server.ca_file() {
            content["ca_file"] = file.to_string_lossy().into();
        }
    }
    if let Some(admin) = server.admin() {
        content["admin"] = admin.into();
    }
    if let Some(token) = server.admin_token() {
        content["admin_token"] = token.into();
    }
    if let Some(identity) = server.identity() {
        content["identity"] = json!(identity);
    }
    if !server.notes().is_empty() {
        content["notes"] = server.notes().into();
    }
    content
}

/// Removes the file, unless another server has written its own there since.
pub fn remove(path: &Path) {
    let content = fs::read(path).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    if content.is_some_and(|content| content["pid"] == std::process::id()) {
        drop(fs::remove_file(path));
    }
}

/// Writes the file, for its owner alone: it holds the key.
pub fn write(path: &Path, content: &Value) -> io::Result<()> {
    write_whole(path, &format!("{content}\n"), 0o600)
}

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
