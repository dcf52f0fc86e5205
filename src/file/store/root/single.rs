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

use super::{
    RootError, SERVICES, about, about_io, leave_note, lock_folder, lock_served, make_folder,
};
use crate::disk::fnv1a;
use crate::file::store::share::snapshot::{Snapshots, lies_within};

/// A directory served as it is. The directory and its state are held by this process alone for as
/// long as the value lives.
#[derive(Debug)]
pub struct SingleShare {
    path: PathBuf,
    state: PathBuf,
    _lock: OwnedFd,
    /// On the directory itself; none where the file system has no such locks.
    _served: Option<OwnedFd>,
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
        // First, so that a start that is refused makes no folder.
        let served = lock_served(&path, &state)?;
        make_folder(&state)?;
        let lock = lock_folder(&state, &path, &state)?;
        leave_note(&state, &path);
        let this = Self { path, state, _lock: lock, _served: served };
        let snapshots = this.snapshots();
        snapshots.sweep().map_err(about(&this.state))?;
        Ok(this)
    }

    pub fn share_path(&self) -> &Path {
        &self.path
    }

    /// Where the share's state is kept; the folder may not be there yet.
    pub fn state_path(&self) -> PathBuf {
        self.state.join("share")
    }

    /// Where the state of the account's services is kept.
    pub fn services_path(&self) -> PathBuf {
        self.state.join(SERVICES)
    }

    /// The state folder of the directory.
    pub fn folder(&self) -> &Path {
        &self.state
    }

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
