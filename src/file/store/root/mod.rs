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
//! Decides where things are, that one server alone serves a state folder, how a share is deleted
//! and restored as a whole (in `deleted`), how a start fills a share (in `fill`), and how all
//! shares are moved aside (in `aside`). Where the two folders of an account are is decided by
//! [`crate::disk::DataRoot`].

pub(crate) mod aside;
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
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

pub use aside::Layout;
pub use deleted::DeletedShare;
pub(crate) use deleted::deleted_at;
pub use single::SingleShare;

use super::share::snapshot::{SnapshotError, Snapshots};
use super::share::tree;
use crate::disk::data_root::OldLayout;
use crate::disk::error::StoreError;
use crate::disk::folder::{Durability, make_all};
use crate::file::rules::name::is_share_name;
use crate::sync::front_end;

/// The name of our folder in a data directory. No share and no account can have this name.
pub const HIDDEN: &str = ".latchfs";
pub(crate) const SHARES: &str = "shares";
pub(crate) const SNAPSHOTS: &str = "snapshots";
pub(crate) const DELETED: &str = "deleted";
pub(crate) const SERVICES: &str = "services";

/// Errors of a data root, or of a share in it.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// Another process holds the root.
    #[error("{} is served by another latchfs: stop it, or choose another directory", .0.display())]
    Served(PathBuf),
    /// No share could have that name.
    #[error("share name '{0}': expected 3 to 63 lower-case letters, digits and single hyphens")]
    ShareName(String),
    /// No deleted share could have that version.
    #[error("'{0}' is not a version of a deleted share: use 1 to 32 letters and digits")]
    Version(String),
    /// The state of a directory served as it is would be seen in it.
    #[error("the state folder {} lies within the share", .0.display())]
    StateInShare(PathBuf),
    /// The data directory was made by latchfs 0.1, which had one account.
    #[error("{}", .0.message())]
    OldLayout(OldLayout),
    /// The data directory was made by a newer latchfs.
    #[error(
        "{} has data format {found}; this latchfs knows format {known}. Use a newer latchfs, or \
         another --data", path.display()
    )]
    NewerFormat {
        path: PathBuf,
        /// The format it says it has.
        found: u32,
        /// The newest format that this program knows.
        known: u32,
    },
    /// The file with the format of the data directory cannot be understood.
    #[error(
        "{} is damaged: it holds no data format. Remove it if this latchfs or an older one made \
         the data directory, or choose another --data", .0.display()
    )]
    DamagedFormat(PathBuf),
    /// The data directory lies in the data of another one.
    #[error(
        "{} lies in the data directory {}: choose another --data", path.display(), data.display()
    )]
    Nested {
        path: PathBuf,
        /// The one that it lies in.
        data: PathBuf,
    },
    /// Only what latchfs made is thrown away.
    #[error(
        "{} is not a latchfs data directory, so --reset does not empty it: choose another, or \
         empty it yourself", .0.display()
    )]
    NotOurs(PathBuf),
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
    /// The store said no.
    #[error("{}: {source}", path.display())]
    Store {
        path: PathBuf,
        /// The error of the store.
        source: StoreError,
    },
}

/// Attaches the path an error is about.
pub(crate) fn about(path: &Path) -> impl Fn(StoreError) -> RootError {
    move |source| RootError::Store { path: path.to_owned(), source }
}

/// Attaches path and step to an error of the standard library.
pub(crate) fn about_io(what: &'static str, path: &Path) -> impl Fn(std::io::Error) -> RootError {
    move |error| {
        about(path)(match Errno::from_io_error(&error) {
            Some(errno) => StoreError::from_errno(what, errno),
            None => StoreError::Io { what, source: error },
        })
    }
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
        let lock = lock_folder(&state, &root)?;
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

/// Makes a folder for the owner alone; an existing one is left as it is.
fn make_folder(path: &Path) -> Result<(), RootError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    let made = builder.create(path);
    made.map_err(about_io("making a state folder", path))
}

/// Makes a folder that is latchfs's own by its name: an existing one is closed to other users.
pub(crate) fn make_private(path: &Path) -> Result<(), RootError> {
    make_folder(path)?;
    let failed = about_io("making a state folder", path);
    let mode = fs::metadata(path).map_err(&failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(&failed)?;
    }
    Ok(())
}

/// How long a lock is waited for. A server that just stopped may have started a program, which
/// has all descriptors until its exec.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// Locks `folder` for this process alone; `served` is what the user knows it by.
pub(crate) fn lock_folder(folder: &Path, served: &Path) -> Result<OwnedFd, RootError> {
    let lock = tree::open_root(folder).map_err(about(folder))?;
    let end = Instant::now() + LOCK_PATIENCE;
    loop {
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(Errno::WOULDBLOCK) if Instant::now() < end => {
                front_end::assert_may_block("the lock of a data directory");
                thread::sleep(Duration::from_millis(10));
            }
            Err(Errno::WOULDBLOCK) => return Err(RootError::Served(served.to_owned())),
            Err(errno) => return Err(about(folder)(StoreError::from_errno("locking", errno))),
        }
    }
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
