//! The ready file: what scripts and tests need to know of a server that can be used.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::host::Host;
use super::listen::Listening;

/// What the file says: `pid`, `control`, `mounts` by share, and what REST clients need, if there
/// is a listener; `admin`, if there is that one.
pub fn told(host: &Host, listening: Option<&Listening>, admin: Option<&str>) -> Value {
    let mut mounts = Map::new();
    for (share, path) in host.mounted() {
        // Of a share that is mounted twice, the first.
        mounts.entry(share).or_insert_with(|| path.to_string_lossy().into());
    }
    let mut told = json!({
        "pid": std::process::id(),
        "control": host.control().to_string_lossy(),
        "mounts": mounts,
    });
    if let Some(listening) = listening {
        told["endpoint"] = listening.endpoint.clone().into();
        told["account"] = listening.account.name().into();
        told["key"] = listening.account.key().text().into();
        told["connection_string"] = listening.connection_string.clone().into();
        if let Some(file) = &listening.ca_file {
            told["ca_file"] = file.to_string_lossy().into();
        }
    }
    if let Some(admin) = admin {
        told["admin"] = admin.into();
    }
    told
}

/// Writes the file, for its owner alone: it holds the key.
pub fn write(path: &Path, told: &Value) -> io::Result<()> {
    write_whole(path, &format!("{told}\n"), 0o600)
}

/// Writes a file so that it is seen whole or not at all.
pub fn write_whole(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    file.persist(path)?;
    Ok(())
}
