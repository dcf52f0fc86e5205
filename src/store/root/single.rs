//! One existing directory served as a share, unchanged, with its state elsewhere.
//!
//! Decides where that state is kept unless the user says: under the user's state directory, in a
//! folder whose name follows from the directory's real path. A directory that is moved or renamed
//! thus starts with fresh state.

use std::env;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{ACCOUNT, RootError, about, about_io, lock_folder, make_folder};
use crate::store::snapshot::{Snapshots, lies_within};

/// A directory served as it is, its state held by this process alone for as long as the value
/// lives.
#[derive(Debug)]
pub struct SingleShare {
    path: PathBuf,
    state: PathBuf,
    _lock: OwnedFd,
}

impl SingleShare {
    /// Serves the existing directory `path`, with its state in `state` or in the default place.
    pub fn open(path: &Path, state: Option<&Path>) -> Result<Self, RootError> {
        let path = path.canonicalize().map_err(about_io("opening the share", path))?;
        super::tree::open_root(&path).map_err(about(&path))?;
        let state = match state {
            Some(state) => state.to_owned(),
            None => default_state(&path, env::var_os("XDG_STATE_HOME"), env::var_os("HOME"))?,
        };
        if lies_within(&state, &path).map_err(about(&state))? {
            return Err(RootError::StateInShare(state));
        }
        make_folder(&state)?;
        let lock = lock_folder(&state, &path)?;
        let this = Self { path, state, _lock: lock };
        let snapshots = this.snapshots();
        snapshots.sweep().map_err(about(&this.state))?;
        Ok(this)
    }

    /// The directory.
    pub fn share_path(&self) -> &Path {
        &self.path
    }

    /// Where the share's state is kept; the folder may not be there yet.
    pub fn state_path(&self) -> PathBuf {
        self.state.join("share")
    }

    /// Where state is kept that is not the share's.
    pub fn account_path(&self) -> PathBuf {
        self.state.join(ACCOUNT)
    }

    /// The folder of ours that goes with it.
    pub fn folder(&self) -> &Path {
        &self.state
    }

    /// The share's snapshots.
    pub fn snapshots(&self) -> Snapshots {
        Snapshots::at(self.state.join("snapshots"))
    }
}

/// `latchfs/<name>` under the state directory of the user. A relative `XDG_STATE_HOME` counts as
/// unset, as its specification has it.
pub(super) fn default_state(
    share: &Path,
    xdg_state_home: Option<OsString>,
    home: Option<OsString>,
) -> Result<PathBuf, RootError> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let base = xdg_state_home
        .map(PathBuf::from)
        .filter(absolute)
        .or_else(|| {
            let home = home.map(PathBuf::from).filter(absolute)?;
            Some(home.join(".local/state"))
        })
        .ok_or(RootError::NoHome)?;
    Ok(base.join("latchfs").join(stable_name(share)))
}

/// The directory's own name, for people, and a hash of its whole path, to tell apart directories
/// of the same name.
fn stable_name(share: &Path) -> String {
    let name = share.file_name().unwrap_or_default().to_string_lossy();
    let plain = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let name: String = name.chars().filter(plain).take(32).collect();
    format!("{name}-{:016x}", fnv1a(share.as_os_str().as_bytes()))
}

/// FNV-1a: the standard library's hash may change with the compiler, and the name must not.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
