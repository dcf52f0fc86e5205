//! The running servers of this user, so that a command finds the only one wherever it is run.
//!
//! A file each in a folder of the user's own; it holds the path of the control socket. A file whose
//! server is gone is passed over, and removed.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::control::Client;

/// The entry of a running server. Removed when dropped.
pub struct Entry(PathBuf);

impl Drop for Entry {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
        // The folder too, if this was the last server.
        drop(self.0.parent().map(fs::remove_dir));
    }
}

/// Enters a server; none where that is not possible, since it is only a convenience.
pub fn enter(control: &Path) -> Option<Entry> {
    let entered = folder().and_then(|folder| {
        let file = folder.join(std::process::id().to_string());
        fs::write(&file, control.as_os_str().as_encoded_bytes())?;
        Ok(Entry(file))
    });
    entered.inspect_err(|error| log::debug!("the list of servers: {error}")).ok()
}

/// The control sockets of the servers that run.
pub fn running() -> Vec<PathBuf> {
    let Ok(folder) = folder() else { return Vec::new() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sockets = entries.filter_map(|entry| {
        let control = PathBuf::from(fs::read_to_string(entry.path()).ok()?);
        if Client::connect(&control).is_err() {
            drop(fs::remove_file(entry.path()));
            return None;
        }
        Some(control)
    });
    sockets.collect()
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
