//! The running servers of this user, so that a command finds the only one wherever it is run.
//!
//! A file each in a folder of the user's own: the path of the control socket and, if the data is in
//! memory, a NUL and the directory that the server was started in. A file whose server is gone is
//! passed over, and removed.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::api::is_served;

/// The entry of a running server. Removed when dropped.
pub struct RegistryEntry {
    file: PathBuf,
    content: Vec<u8>,
}

impl Drop for RegistryEntry {
    fn drop(&mut self) {
        // A server in another process namespace can have the same number and the same folder.
        if fs::read(&self.file).is_ok_and(|content| content == self.content) {
            drop(fs::remove_file(&self.file));
        }
        // The folder too, if this was the last server.
        drop(self.file.parent().map(fs::remove_dir));
    }
}

/// A server that runs.
pub struct RunningServer {
    pub control: PathBuf,
    /// Where it was started, if its data is in memory: no directory of the user's leads to it.
    pub started_in: Option<PathBuf>,
}

/// Enters a server; none where that is not possible, since it is only a convenience. Removes
/// the entries of servers that were killed, also of those that had the same socket.
pub fn enter(control: &Path, started_in: Option<&Path>) -> Option<RegistryEntry> {
    for (file, server) in entries() {
        if server.control == control || !is_served(&server.control) {
            drop(fs::remove_file(file));
        }
    }
    let entered = folder().and_then(|folder| {
        let file = folder.join(std::process::id().to_string());
        let mut content = control.as_os_str().as_bytes().to_vec();
        if let Some(directory) = started_in {
            content.push(0);
            content.extend(directory.as_os_str().as_bytes());
        }
        fs::write(&file, &content)?;
        Ok(RegistryEntry { file, content })
    });
    entered.inspect_err(|error| log::debug!("the list of servers: {error}")).ok()
}

/// The servers that run.
pub fn running() -> Vec<RunningServer> {
    let mut running: Vec<RunningServer> = Vec::new();
    for (file, server) in entries() {
        if !is_served(&server.control) {
            drop(fs::remove_file(file));
        } else if running.iter().all(|other| other.control != server.control) {
            running.push(server);
        }
    }
    running
}

/// All entries, each with its file.
fn entries() -> Vec<(PathBuf, RunningServer)> {
    let Ok(folder) = folder() else { return Vec::new() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let servers = entries.filter_map(|entry| {
        let content = fs::read(entry.path()).ok()?;
        let mut paths = content.split(|byte| *byte == 0).map(|path| OsStr::from_bytes(path).into());
        let server = RunningServer { control: paths.next()?, started_in: paths.next() };
        Some((entry.path(), server))
    });
    servers.collect()
}

/// The folder, made if missing, for its owner alone.
fn folder() -> io::Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = own.filter(|path| path.is_absolute() && path.is_dir());
    let folder = match own {
        Some(own) => own.join("latchfs"),
        None => std::env::temp_dir().join(format!("latchfs-{user}")),
    };
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let meta = fs::symlink_metadata(&folder)?;
    if !meta.is_dir() || meta.uid() != user || meta.mode() & 0o022 != 0 {
        return Err(io::Error::other(format!("{} is not this user's alone", folder.display())));
    }
    Ok(folder)
}
