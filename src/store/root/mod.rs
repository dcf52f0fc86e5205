//! The data root: a directory whose sub-directories are shares, with a hidden folder for the rest.
//!
//! ```text
//! <root>/<share>/                     the share, a plain directory
//! <root>/.latchfs/shares/<share>/     its state
//! <root>/.latchfs/snapshots/<share>/  its snapshots
//! <root>/.latchfs/account/            state that is no share's
//! <root>/.latchfs/deleted/<share>@<version>/{share,state,snapshots,when}
//! ```
//!
//! Decides where things are, that one server alone serves a root, how a share is deleted and
//! restored as a whole (in `deleted`), and what a start may put in or throw away (in `fill`). What
//! is in a state folder is left to its owner.
//!
//! Sources: DESIGN "Data on disk"; FILEREST section 5 (shares, undelete), section 8 (names).

mod deleted;
mod fill;
mod single;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

pub use deleted::DeletedShare;
pub use single::SingleShare;

use super::error::StoreError;
use super::snapshot::{SnapshotError, Snapshots};
use super::tree;

/// The folder of ours in a data root. No share can have this name.
pub const HIDDEN: &str = ".latchfs";
const SHARES: &str = "shares";
const SNAPSHOTS: &str = "snapshots";
const DELETED: &str = "deleted";
const ACCOUNT: &str = "account";

/// What is wrong with a data root or a share in it.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// Another process holds the root.
    #[error("{} is served by another latchfs: stop it, or choose another directory", .0.display())]
    Served(PathBuf),
    /// No share could have that name.
    #[error(
        "'{0}' is no share name: 3 to 63 lower-case letters, digits and single hyphens between them"
    )]
    ShareName(String),
    /// No deleted share could have that version.
    #[error("'{0}' is no version of a deleted share: 1 to 32 letters and digits")]
    Version(String),
    /// The state of a directory served as it is would be seen in it.
    #[error("the state folder {} lies within the share", .0.display())]
    StateInShare(PathBuf),
    /// Only what latchfs made is thrown away.
    #[error(
        "{} is not empty and no data directory of latchfs: it is not reset. Choose another, or \
         empty it yourself", .0.display()
    )]
    NotOurs(PathBuf),
    /// The data root would be copied into itself.
    #[error("the data directory lies within {}: choose another one", .0.display())]
    SourceHoldsRoot(PathBuf),
    /// A share could not be filled.
    #[error("filling a share: {0}")]
    Fill(SnapshotError),
    /// Neither `XDG_STATE_HOME` nor `HOME` says where state is kept.
    #[error("no home directory: say where to keep the share's state")]
    NoHome,
    /// The store said no.
    #[error("{}: {source}", path.display())]
    Store {
        /// About what.
        path: PathBuf,
        /// What it said.
        source: StoreError,
    },
}

/// Attaches the path an error is about.
fn about(path: &Path) -> impl Fn(StoreError) -> RootError {
    move |source| RootError::Store { path: path.to_owned(), source }
}

/// The same for an error of the standard library.
fn about_io(what: &'static str, path: &Path) -> impl Fn(std::io::Error) -> RootError {
    move |error| {
        about(path)(match Errno::from_io_error(&error) {
            Some(errno) => StoreError::from_errno(what, errno),
            None => StoreError::Io { what, source: error },
        })
    }
}

/// A directory of shares, held by this process alone for as long as the value lives.
#[derive(Debug)]
pub struct DataRoot {
    root: PathBuf,
    /// Taken by operations that make, move or remove a share.
    changing: Mutex<()>,
    /// Directories already told about that are no shares.
    warned: Mutex<HashSet<String>>,
    _lock: OwnedFd,
}

impl DataRoot {
    /// Opens the root at `path`, made if missing, and completes what a crash interrupted.
    pub fn open(path: &Path) -> Result<Self, RootError> {
        let making = about_io("making the data root", path);
        fs::create_dir_all(path).map_err(&making)?;
        let root = path.canonicalize().map_err(&making)?;
        let hidden = root.join(HIDDEN);
        make_private(&hidden)?;
        let lock = lock_folder(&hidden, &root)?;
        for folder in [SHARES, SNAPSHOTS, DELETED] {
            make_private(&hidden.join(folder))?;
        }
        let this = Self { root, changing: Mutex::default(), warned: Mutex::default(), _lock: lock };
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
        let path = self.share_path(name)?;
        let _changing = lock(&self.changing);
        // A deletion that failed half way must not lend its remains to the new share.
        self.finish_moves(|deleted| deleted.name == name)?;
        fs::create_dir(&path).map_err(about_io("making a share", &path))?;
        sync(&self.root)
    }

    /// Where the share's directory is or would be.
    pub fn share_path(&self, name: &str) -> Result<PathBuf, RootError> {
        Ok(self.root.join(checked(name)?))
    }

    /// Where the share's state is kept; the folder may not be there yet.
    pub fn state_path(&self, name: &str) -> Result<PathBuf, RootError> {
        Ok(self.hidden(SHARES).join(checked(name)?))
    }

    /// The share's snapshots.
    pub fn snapshots(&self, name: &str) -> Result<Snapshots, RootError> {
        Ok(Snapshots::at(self.hidden(SNAPSHOTS).join(checked(name)?)))
    }

    /// Where state is kept that is no share's.
    pub fn account_path(&self) -> PathBuf {
        self.hidden(ACCOUNT)
    }

    /// The folder of ours in it, for its owner alone.
    pub fn folder(&self) -> PathBuf {
        self.root.join(HIDDEN)
    }

    fn hidden(&self, folder: &str) -> PathBuf {
        self.folder().join(folder)
    }
}

/// True for a name a share may have: 3 to 63 lower-case letters, digits and hyphens, each hyphen
/// between two others (FILEREST section 8).
pub fn is_share_name(name: &str) -> bool {
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (3..=63).contains(&name.len())
        && name.split('-').all(|part| !part.is_empty() && part.bytes().all(letters))
}

fn checked(name: &str) -> Result<&str, RootError> {
    if is_share_name(name) { Ok(name) } else { Err(RootError::ShareName(name.to_owned())) }
}

fn names(path: &Path) -> Result<Vec<String>, RootError> {
    tree::names(path).map_err(about(path))
}

/// Makes a folder for the owner alone; an existing one is left as it is.
fn make_folder(path: &Path) -> Result<(), RootError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    let made = builder.create(path);
    made.map_err(about_io("making a state folder", path))
}

/// The same for a folder that is ours by its name: others' rights to it are taken away.
fn make_private(path: &Path) -> Result<(), RootError> {
    make_folder(path)?;
    let failed = about_io("making a state folder", path);
    let mode = fs::metadata(path).map_err(&failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(&failed)?;
    }
    Ok(())
}

/// Locks `folder` for this process alone; `served` is what the user knows it by.
fn lock_folder(folder: &Path, served: &Path) -> Result<OwnedFd, RootError> {
    let lock = tree::open_root(folder).map_err(about(folder))?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(Errno::WOULDBLOCK) => Err(RootError::Served(served.to_owned())),
        Err(errno) => Err(about(folder)(StoreError::from_errno("locking", errno))),
    }
}

/// Makes renames in `folder` last.
fn sync(folder: &Path) -> Result<(), RootError> {
    let dir = tree::open_root(folder).map_err(about(folder))?;
    rustix::fs::fsync(dir)
        .map_err(|errno| about(folder)(StoreError::from_errno("writing a directory", errno)))
}

/// Nothing behind these locks can be left half changed by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
