//! The shares of one account: a directory whose sub-directories are shares, and a state folder
//! beside it.
//!
//! ```text
//! <files>/<share>/             the share, a plain directory
//! <state>/shares/<share>/      its state
//! <state>/snapshots/<share>/   its snapshots
//! <state>/services/            state of the account's services
//! <state>/deleted/<share>@<version>/{share,state,snapshots,when}
//! ```
//!
//! Decides where things are, that one server alone serves a state folder and a share's directory
//! (in `claim`), how a share is deleted
//! and restored as a whole (in `deleted`), how a start fills a share (in `fill`), how all shares
//! are moved aside (in `aside`), and how they are copied to a saved state and back (in `saved`).
//! Where the two folders of an account are is decided by [`crate::disk::DataRoot`].

pub(crate) mod aside;
mod claim;
mod deleted;
mod fill;
pub(crate) mod saved;
mod single;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use claim::ShareClaim;
pub use deleted::DeletedShare;
pub use single::SingleShare;

use super::share::snapshot::{SnapshotError, Snapshots};
use crate::disk::data_root::{self, make_folder, make_private};
use crate::disk::error::StoreError;
use crate::disk::folder::{Durability, make_all};
use crate::disk::lock::{leave_note, lock_folder, lock_served};
use crate::disk::{DataRootError, HIDDEN, tree};
use crate::file::rules::name::is_share_name;
use crate::sync::front_end;

const SHARES: &str = "shares";
const SNAPSHOTS: &str = "snapshots";
const DELETED: &str = "deleted";
const SERVICES: &str = "services";

/// Errors of a data root, or of a share in it.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    #[error(transparent)]
    Data(#[from] DataRootError),
    /// No share could have that name.
    #[error("share name '{0}': expected 3 to 63 lower-case letters, digits and single hyphens")]
    ShareName(String),
    /// No deleted share could have that version.
    #[error("'{0}' is not a version of a deleted share: use 1 to 32 letters and digits")]
    Version(String),
    /// The state of a directory served as it is would be seen in it.
    #[error("the state folder {} lies within the share", .0.display())]
    StateInShare(PathBuf),
    /// A share, or what belongs to it, cannot be moved aside.
    #[error("{} cannot be moved: {why}", path.display())]
    Immovable {
        path: PathBuf,
        /// Why, and what to do.
        why: &'static str,
    },
    /// The data root would be copied into itself.
    #[error("the data directory lies within {}: choose another one", .0.display())]
    SourceHoldsRoot(PathBuf),
    /// A share could not be filled.
    #[error("filling a share: {0}")]
    Fill(SnapshotError),
    /// Neither `XDG_STATE_HOME` nor `HOME` says where state is kept.
    #[error("no home directory: say where to keep the share's state")]
    NoHome,
}

/// Attaches the path an error is about.
fn about(path: &Path) -> impl Fn(StoreError) -> RootError {
    move |error| data_root::about(path)(error).into()
}

/// Attaches path and step to an error of the standard library.
fn about_io(what: &'static str, path: &Path) -> impl Fn(std::io::Error) -> RootError {
    move |error| data_root::about_io(what, path)(error).into()
}

/// A directory of shares, held by this process alone for as long as the value lives.
#[derive(Debug)]
pub struct ShareRoot {
    root: PathBuf,
    state: PathBuf,
    /// Taken by operations that make, move or remove a share.
    changing: Mutex<()>,
    /// Directories already told about that are no shares.
    warned: Mutex<HashSet<String>>,
    _lock: OwnedFd,
}

impl ShareRoot {
    /// Opens the shares in `path`, made if missing, with their state in a hidden folder there.
    pub fn open(path: &Path) -> Result<Self, RootError> {
        Self::open_at(path, &path.join(HIDDEN))
    }

    /// Opens the shares in `files` with their state in `state`, both made if missing, and
    /// completes what a crash interrupted.
    pub fn open_at(files: &Path, state: &Path) -> Result<Self, RootError> {
        let making = about_io("making the directory of shares", files);
        make_all(files, &fs::DirBuilder::new()).map_err(&making)?;
        let root = files.canonicalize().map_err(&making)?;
        make_private(state)?;
        let state = state.canonicalize().map_err(about_io("making a state folder", state))?;
        let lock = lock_folder(&state, &root, &state)?;
        for folder in [SHARES, SNAPSHOTS, DELETED] {
            make_private(&state.join(folder))?;
        }
        let (changing, warned) = (Mutex::default(), Mutex::default());
        let this = Self { root, state, changing, warned, _lock: lock };
        this.sweep_deleted()?;
        this.finish_moves(|_| true)?;
        for name in names(&this.hidden(SNAPSHOTS))? {
            let folder = this.hidden(SNAPSHOTS).join(name);
            Snapshots::at(&folder).sweep().map_err(about(&folder))?;
        }
        Ok(this)
    }

    /// The names of all shares, in order. Directories with a name no share can have are left out,
    /// and told about in the log, once each.
    pub fn shares(&self) -> Result<Vec<String>, RootError> {
        let (mut shares, others): (Vec<_>, Vec<_>) = names(&self.root)?
            .into_iter()
            .filter(|name| name != HIDDEN && self.root.join(name).is_dir())
            .partition(|name| is_share_name(name));
        shares.sort();
        for name in others {
            if lock(&self.warned).insert(name.clone()) {
                log::warn!("{}: no share name, ignored", self.root.join(name).display());
            }
        }
        Ok(shares)
    }

    /// Makes an empty share. State and snapshots under its name, from a share whose directory was
    /// removed by hand, become its own again.
    pub fn create_share(&self, name: &str) -> Result<(), RootError> {
        self.create_share_for(name, Durability::Synced)
    }

    /// As [`ShareRoot::create_share`]; with [`Durability::Cached`] nothing is synced, for a
    /// replacement of all data, which is synced as a whole.
    pub fn create_share_for(&self, name: &str, durability: Durability) -> Result<(), RootError> {
        let path = self.share_path(name)?;
        let _changing = lock(&self.changing);
        // A deletion that failed half way must not lend its remains to the new share.
        self.finish_moves(|deleted| deleted.name == name)?;
        fs::create_dir(&path).map_err(about_io("making a share", &path))?;
        match durability {
            Durability::Synced => sync(&self.root),
            Durability::Cached => Ok(()),
        }
    }

    /// Where the share's directory is or would be.
    pub fn share_path(&self, name: &str) -> Result<PathBuf, RootError> {
        Ok(self.root.join(checked(name)?))
    }

    /// Where the share's state is kept; the folder may not be there yet.
    pub fn state_path(&self, name: &str) -> Result<PathBuf, RootError> {
        Ok(self.hidden(SHARES).join(checked(name)?))
    }

    /// Claims the directory of a share that is about to be served, for this server alone.
    pub fn claim(&self, name: &str) -> Result<Option<ShareClaim>, RootError> {
        ShareClaim::take(&self.share_path(name)?, &self.state)
    }

    pub fn snapshots(&self, name: &str) -> Result<Snapshots, RootError> {
        Ok(Snapshots::at(self.hidden(SNAPSHOTS).join(checked(name)?)))
    }

    /// Where the state of the account's services is kept.
    pub fn services_path(&self) -> PathBuf {
        self.hidden(SERVICES)
    }

    /// The state folder, for its owner alone.
    pub fn folder(&self) -> &Path {
        &self.state
    }

    fn hidden(&self, folder: &str) -> PathBuf {
        self.state.join(folder)
    }
}

fn checked(name: &str) -> Result<&str, RootError> {
    if is_share_name(name) { Ok(name) } else { Err(RootError::ShareName(name.to_owned())) }
}

fn names(path: &Path) -> Result<Vec<String>, RootError> {
    tree::names(path).map_err(about(path))
}

/// Makes renames in `folder` last.
fn sync(folder: &Path) -> Result<(), RootError> {
    front_end::assert_may_block("the flush of a directory");
    let dir = tree::open_root(folder).map_err(about(folder))?;
    rustix::fs::fsync(dir)
        .map_err(|errno| about(folder)(StoreError::from_errno("writing a directory", errno)))
}

/// Nothing behind these locks can be left half changed by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
