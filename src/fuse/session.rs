//! Mounting and unmounting, and the remains of a mount whose server died.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use rustix::mount::UnmountFlags;

use super::MountOptions;
use super::driver::Driver;
use super::mounts::{self, users_of};
use super::state::State;
use crate::core::{Client, ShareMode, SharePath};
use crate::engine::{Error, Share};

/// Why a share could not be mounted or unmounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// There is no such directory.
    #[error("the mount point {0} is not a directory: create it first")]
    NoDirectory(PathBuf),
    /// It has entries that the mount would hide.
    #[error("the mount point {0} is not empty: choose an empty directory")]
    NotEmpty(PathBuf),
    /// Something is mounted there.
    #[error("something is mounted on {0} already: unmount it first")]
    Taken(PathBuf),
    /// The kernel offers no FUSE.
    #[error(
        "/dev/fuse cannot be opened ({0}): load the fuse module, or pass it into the container"
    )]
    NoFuse(io::Error),
    /// Programs still use it.
    #[error("{path} is in use by {users}: close them, or unmount lazily")]
    Busy {
        /// The mount point.
        path: PathBuf,
        /// Who, by name and pid.
        users: String,
    },
    /// Anything else the system said.
    #[error("mounting on {path}: {source}")]
    System {
        /// The mount point.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The share could not be looked at.
    #[error(transparent)]
    Share(#[from] Error),
}

/// A share that is mounted. Unmounted when dropped.
pub struct Mount {
    path: PathBuf,
    state: Arc<State>,
    session: Option<BackgroundSession>,
}

impl Mount {
    /// Mounts the share on a directory, which must be empty.
    pub fn start(
        share: Arc<Share>,
        path: &Path,
        options: MountOptions,
    ) -> Result<Self, MountError> {
        clear_dead(path)?;
        check_place(path)?;
        let client = Client { session: 1, name: format!("mount {}", path.display()) };
        let root = share.stat(&SharePath::root())?.id;
        let config = config(&share, &options);
        let state = Arc::new(State::new(share, options, Arc::new(client), root));
        let fail = |source| MountError::System { path: path.to_owned(), source };
        let session = Session::new(Driver(Arc::clone(&state)), path, &config).map_err(fail)?;
        let session = session.spawn().map_err(fail)?;
        state.notices.start(session.notifier(), Arc::clone(&state.backings)).map_err(fail)?;
        state.park.start().map_err(fail)?;
        super::watch::watch(&state, path.to_owned())?;
        Ok(Self { path: path.to_owned(), state, session: Some(session) })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The share behind it.
    pub fn share(&self) -> &Arc<Share> {
        &self.state.share
    }

    /// From now on the process tree of `pid` opens with that share mode.
    pub fn start_run(&self, pid: u32, share: ShareMode) {
        self.state.policy.start_run(pid, share);
    }

    /// That tree's policy ends.
    pub fn end_run(&self, pid: u32) {
        self.state.policy.end_run(pid);
    }

    /// Unmounts; while programs use it, says which.
    pub fn unmount(&mut self) -> Result<(), MountError> {
        if self.session.is_none() {
            return Ok(());
        }
        match rustix::mount::unmount(&self.path, UnmountFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => {}
            Err(rustix::io::Errno::PERM) => unmount_as_user(&self.path)?,
            Err(rustix::io::Errno::BUSY) => {
                let users = users_of(&self.path).join(", ");
                return Err(MountError::Busy { path: self.path.clone(), users });
            }
            Err(errno) => {
                return Err(MountError::System { path: self.path.clone(), source: errno.into() });
            }
        }
        if let Some(session) = self.session.take() {
            // The kernel has let go: the workers have seen it and end by themselves.
            session
                .join()
                .map_err(|source| MountError::System { path: self.path.clone(), source })?;
        }
        Ok(())
    }

    /// Unmounts from the name space at once; programs that use it go on until they close.
    pub fn unmount_lazily(&mut self) {
        if self.session.take().is_some()
            && let Err(errno) = rustix::mount::unmount(&self.path, UnmountFlags::DETACH)
        {
            log::warn!("{}: {errno}", self.path.display());
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = self.unmount() {
            log::warn!("{error}; unmounting lazily");
            self.unmount_lazily();
        }
    }
}

fn config(share: &Share, options: &MountOptions) -> Config {
    let mut mount_options = vec![
        MountOption::FSName(mounts::source(share.name(), options.control.as_deref())),
        MountOption::Subtype("latchfs".into()),
        MountOption::NoSuid,
        MountOption::NoDev,
    ];
    mount_options.push(if options.read_only { MountOption::RO } else { MountOption::RW });
    if options.allow_other {
        mount_options.push(MountOption::DefaultPermissions);
    }
    let mut config = Config::default();
    config.mount_options = mount_options;
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(options.workers.max(1));
    config
}

fn check_place(path: &Path) -> Result<(), MountError> {
    if !path.is_dir() {
        return Err(MountError::NoDirectory(path.to_owned()));
    }
    if is_mounted(path) {
        return Err(MountError::Taken(path.to_owned()));
    }
    let mut entries = fs::read_dir(path)
        .map_err(|source| MountError::System { path: path.to_owned(), source })?;
    if entries.next().is_some() {
        return Err(MountError::NotEmpty(path.to_owned()));
    }
    fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").map_err(MountError::NoFuse)?;
    Ok(())
}

/// A mount whose server was killed answers `ENOTCONN` to everything: it is taken away.
pub fn clear_dead(path: &Path) -> Result<(), MountError> {
    let dead = fs::metadata(path).is_err_and(|error| error.raw_os_error() == Some(libc::ENOTCONN));
    if !dead {
        return Ok(());
    }
    let users = users_of(path);
    if !users.is_empty() {
        log::warn!(
            "{}: {} still hold descriptors of the dead mount and can write to its files",
            path.display(),
            users.join(", ")
        );
    }
    match rustix::mount::unmount(path, UnmountFlags::DETACH) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::PERM) => unmount_as_user(path),
        Err(errno) => Err(MountError::System { path: path.to_owned(), source: errno.into() }),
    }
}

/// Without privilege unmounting goes through the helper that mounted.
fn unmount_as_user(path: &Path) -> Result<(), MountError> {
    let status = std::process::Command::new("fusermount3").arg("-uz").arg("--").arg(path).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(MountError::Busy { path: path.to_owned(), users: users_of(path).join(", ") }),
        Err(source) => Err(MountError::System { path: path.to_owned(), source }),
    }
}

fn is_mounted(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    mounts::all().iter().any(|mount| mount.path == path)
}
