//! Mounting and unmounting, and the remains of a mount whose server died.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuser::{BackgroundSession, Config, Session, SessionACL};
use rustix::thread::CapabilitySet;

use super::MountOptions;
use super::attach::{Attachment, Detach, detach};
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
    /// Without root another program must mount, and it is not there.
    #[error("mounting without root needs fusermount3 ({0}): install fuse3")]
    NoHelper(io::Error),
    /// That program would not.
    #[error("{0}")]
    Helper(String),
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
        let attachment = Attachment {
            source: mounts::source(share.name(), options.control.as_deref()),
            read_only: options.read_only,
            allow_other: options.allow_other,
        };
        let device = attachment.attach(path)?;
        let state = Arc::new(State::new(share, options, Arc::new(client), root));
        match serve(&state, device, path) {
            Ok(session) => Ok(Self { path: path.to_owned(), state, session: Some(session) }),
            Err(error) => {
                // What went wrong before is the news.
                let _ = detach(path, Detach::Lazily);
                Err(error)
            }
        }
    }

    /// What this process may not do and a mount of root's could, in a line.
    pub fn lacks(&self) -> Option<&'static str> {
        let lacks = self.state.options.passthrough && !may_administer();
        lacks.then_some("no kernel passthrough without root: reads and writes go through latchfs")
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The share behind it.
    pub fn share(&self) -> &Arc<Share> {
        &self.state.share
    }

    /// True once the kernel has let go of it, by whomever it was unmounted.
    pub fn has_ended(&self) -> bool {
        self.state.has_ended()
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
        // What may be mounted there after its end is not ours.
        let detached = if self.has_ended() { Ok(()) } else { detach(&self.path, Detach::Unused) };
        match detached {
            Ok(()) => {}
            Err(error) => match error.raw_os_error() {
                // Somebody else has unmounted it.
                Some(libc::EINVAL | libc::ENOENT) => {}
                Some(libc::EBUSY) => {
                    let users = users_of(&self.path).join(", ");
                    return Err(MountError::Busy { path: self.path.clone(), users });
                }
                _ => return Err(MountError::System { path: self.path.clone(), source: error }),
            },
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
            && let Err(error) = detach(&self.path, Detach::Lazily)
        {
            log::warn!("{}: {error}", self.path.display());
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

/// Answers the kernel from now on.
fn serve(
    state: &Arc<State>,
    device: OwnedFd,
    path: &Path,
) -> Result<BackgroundSession, MountError> {
    let fail = |source| MountError::System { path: path.to_owned(), source };
    let options = &state.options;
    let mut config = Config::default();
    config.n_threads = Some(options.workers.max(1));
    let acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    let driver = Driver(Arc::clone(state));
    let session = Session::from_fd(driver, device, acl, config).map_err(fail)?;
    let session = session.spawn().map_err(fail)?;
    state.notices.start(session.notifier(), Arc::clone(&state.backings)).map_err(fail)?;
    state.park.start().map_err(fail)?;
    super::watch::watch(state, path.to_owned())?;
    Ok(session)
}

/// Mounting by ourselves, and registering a backing file with the kernel, take the right to
/// administer it.
pub fn may_administer() -> bool {
    let mine = rustix::thread::capabilities(None);
    mine.is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
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
    detach(path, Detach::Lazily)
        .map_err(|source| MountError::System { path: path.to_owned(), source })
}

fn is_mounted(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    mounts::all().iter().any(|mount| mount.path == path)
}
