//! The place of the control socket, and its access check: only its owner and root may connect.
//!
//! Folder and socket are closed to other users, and the user ID of every peer is checked. The
//! socket is reached through a descriptor of the folder, because the path of a unix socket is at
//! most 107 bytes.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::file::service::proc_path;

/// The name of the socket in its folder.
pub const SOCKET_NAME: &str = "control.sock";

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Others could get at it.
    #[error("{} is open to other users: chmod 700 it", .0.display())]
    OpenFolder(PathBuf),
    /// A live server has it.
    #[error("another server listens on {}: stop it first", .0.display())]
    Taken(PathBuf),
    /// Anything else the system said.
    #[error("the control socket {}: {source}", path.display())]
    System {
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// The socket by a short name, for as long as the descriptor lives.
fn short_name(path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let missing = || io::Error::new(ErrorKind::InvalidInput, "not the path of a socket");
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = path.file_name().ok_or_else(missing)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(folder.unwrap_or(Path::new(".")), flags, Mode::empty())?;
    let short = PathBuf::from(proc_path(&fd)).join(name);
    Ok((fd, short))
}

/// Connects to the server of that socket.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let (_folder, short) = short_name(path)?;
    UnixStream::connect(short)
}

/// Whether a server listens there. Never waits: one that takes no connections for now, since it is
/// stopped by a signal, listens too.
pub fn is_served(path: &Path) -> bool {
    let connected = || -> rustix::io::Result<()> {
        let (_folder, short) = short_name(path).map_err(|_| Errno::NOENT)?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        net::connect(&socket, &SocketAddrUnix::new(short)?)
    };
    matches!(connected(), Ok(()) | Err(Errno::AGAIN))
}

/// Listens there, in place of a server that died.
pub fn listen(path: &Path) -> Result<UnixListener, SocketError> {
    let system = |source| SocketError::System { path: path.to_owned(), source };
    let (folder, short) = short_name(path).map_err(system)?;
    let mode = fs::metadata(proc_path(&folder)).map_err(system)?;
    if mode.permissions().mode() & 0o077 != 0 {
        let folder = path.parent().unwrap_or(path);
        return Err(SocketError::OpenFolder(folder.to_owned()));
    }
    match UnixStream::connect(&short) {
        Ok(_) => return Err(SocketError::Taken(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(&short).map_err(system)?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(system(error)),
    }
    let listener = UnixListener::bind(&short).map_err(system)?;
    fs::set_permissions(&short, fs::Permissions::from_mode(0o600)).map_err(system)?;
    Ok(listener)
}

/// True if a peer with user id `peer` may ask a server that runs as `own`.
pub fn may_enter(peer: u32, own: u32) -> bool {
    peer == own || peer == 0
}

/// The peer of a connection: user and process id.
pub fn peer(stream: impl std::os::fd::AsFd) -> io::Result<(u32, u32)> {
    let peer = net::sockopt::socket_peercred(stream)?;
    let pid = u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or(0);
    Ok((peer.uid.as_raw(), pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_and_root_may_enter() {
        assert!(may_enter(1000, 1000) && may_enter(0, 1000) && may_enter(0, 0));
        assert!(!may_enter(1001, 1000) && !may_enter(1000, 0));
    }

    #[test]
    fn a_folder_that_others_may_enter_gets_no_socket() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o750)).unwrap();
        let refused = listen(&folder.path().join(SOCKET_NAME)).unwrap_err();
        assert!(matches!(refused, SocketError::OpenFolder(_)), "{refused}");
    }

    #[test]
    fn a_live_server_keeps_its_socket_and_a_dead_one_loses_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let path = folder.path().join(SOCKET_NAME);
        let live = listen(&path).unwrap();
        assert!(matches!(listen(&path), Err(SocketError::Taken(_))));
        drop(live);
        assert!(path.exists());
        let _next = listen(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(connect(&path).is_ok());
    }

    #[test]
    fn a_server_that_takes_no_more_connections_is_there_and_keeps_nobody_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SOCKET_NAME);
        assert!(!is_served(&path));
        let socket = net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        assert!(!is_served(&path), "nobody listens");
        net::listen(&socket, 0).unwrap();
        let _waiting = connect(&path).unwrap();
        assert!(is_served(&path), "its queue of one is full");
        drop(socket);
        assert!(!is_served(&path));
    }

    #[test]
    fn a_path_longer_than_a_socket_name_may_be_will_do() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(200));
        fs::create_dir(&deep).unwrap();
        fs::set_permissions(&deep, fs::Permissions::from_mode(0o700)).unwrap();
        let path = deep.join(SOCKET_NAME);
        let _listener = listen(&path).unwrap();
        connect(&path).unwrap();
    }
}
