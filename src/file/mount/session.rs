//! Mounting and unmounting. The remains of a mount whose server died are in [`super::attach`].

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fuser::{BackgroundSession, Config, Session, SessionACL};
use rustix::thread::CapabilitySet;

use super::MountOptions;
use super::aside::Aside;
use super::attach::{self, Attachment, Detach, abort, detach, is_dead};
use super::driver::Driver;
use super::mounts::{self, Among, users_of};
use super::state::State;
use crate::file::rules::{ShareMode, SharePath};
use crate::file::service::shares::Followed;
use crate::file::service::{FileError, Share};
use crate::rules::Client;

/// Why a share could not be mounted or unmounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// There is no such directory.
    #[error("the mount point {0} is not a directory: create it first")]
    NoDirectory(PathBuf),
    /// It has entries that the mount would hide.
    #[error(
        "the mount point {0} is not empty: choose an empty directory, or move away what programs \
         wrote there while no server ran"
    )]
    NotEmpty(PathBuf),
    /// Something is mounted there.
    #[error(
        "something is mounted on {0} already: unmount it first, or choose another directory with \
         --mount-dir"
    )]
    Taken(PathBuf),
    /// The kernel offers no FUSE.
    #[error(
        "/dev/fuse cannot be opened ({0}): load the fuse module, or pass it into the container"
    )]
    NoFuse(io::Error),
    /// Root without the right to mount, as in a container.
    #[error(
        "root may not mount here: CAP_SYS_ADMIN is missing; run the container with --cap-add \
         SYS_ADMIN"
    )]
    NoRight,
    /// Without root another program must mount, and it is not there.
    #[error("mounting without root needs fusermount3 ({0}): install fuse3")]
    NoHelper(io::Error),
    /// That program would not.
    #[error("{0}")]
    Helper(String),
    /// Programs still use it.
    #[error("{path} is in use by {users}: close them, or unmount lazily")]
    Busy {
        path: PathBuf,
        /// Who, by name and pid.
        users: String,
    },
    /// Something else is mounted on top of it or below it.
    #[error("something else is mounted on {by}: unmount that before {path}")]
    Covered {
        path: PathBuf,
        /// Where the other mount is.
        by: PathBuf,
    },
    /// Anything else the system said.
    #[error("mounting on {path}: {source}")]
    System {
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The share could not be looked at.
    #[error(transparent)]
    Share(#[from] FileError),
}

/// A share that is mounted. Unmounted when dropped.
pub struct Mount {
    path: PathBuf,
    /// The mount point as the table of mounts has it.
    resolved: PathBuf,
    /// The number of its FUSE connection.
    device: u32,
    state: Arc<State>,
    session: Option<BackgroundSession>,
}

/// How long releases that are on their way may take before a mount counts as in use.
const RELEASES_MAX: Duration = Duration::from_millis(500);

/// How long the workers of a mount that is gone may take to see it. Past that another mount
/// namespace has a copy of the mount, and the connection is aborted.
const END_MAX: Duration = Duration::from_secs(1);

impl Mount {
    /// Mounts a share that no other takes the place of on a directory, which must be empty.
    pub fn start(
        share: Arc<Share>,
        path: &Path,
        options: MountOptions,
    ) -> Result<Self, MountError> {
        Self::follow(Followed::alone(share), path, options)
    }

    /// Mounts the share of a name on a directory, which must be empty. The mount goes on with the
    /// share that takes its place.
    pub fn follow(
        followed: Arc<Followed>,
        path: &Path,
        options: MountOptions,
    ) -> Result<Self, MountError> {
        let share = followed.share();
        let dead = is_dead(path)?;
        if !dead {
            check_place(path)?;
        }
        let client = Client { session: 1, name: format!("mount {}", path.display()) };
        let root = share.stat(&SharePath::root())?.id;
        let system = |source| MountError::System { path: path.to_owned(), source };
        let resolved = path.canonicalize().map_err(system)?;
        let attachment = Attachment {
            source: mounts::source(
                options.account.as_deref(),
                share.name(),
                options.control.as_deref(),
            ),
            read_only: options.read_only,
            allow_other: options.allow_other,
        };
        let replaced = if dead { attach::replace(&resolved, &attachment)? } else { None };
        let fuse = if let Some(fuse) = replaced {
            fuse
        } else {
            // Where a dead mount was taken away, the directory is seen only now.
            check_place(path)?;
            attachment.attach(path)?
        };
        let mut mounts = mounts::all();
        mounts.retain(|mount| mount.path == resolved);
        let device = mounts.last().map_or(0, |mount| mount.device);
        let state = State::new(followed, options, Arc::new(client), root).map_err(system);
        let served = state.and_then(|state| {
            let state = Arc::new(state);
            Ok((serve(&state, fuse, path)?, state))
        });
        match served {
            Ok((session, state)) => {
                let (path, session) = (path.to_owned(), Some(session));
                Ok(Self { path, resolved, device, state, session })
            }
            Err(error) => {
                // What went wrong before is the news.
                let _ = detach(path, Detach::Lazily);
                Err(error)
            }
        }
    }

    /// The privilege that this process lacks and a mount by root has, in a line.
    pub fn lacks(&self) -> Option<&'static str> {
        let lacks = self.state.options.passthrough && !may_administer();
        lacks.then_some("no kernel passthrough without root: reads and writes go through latchfs")
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The share behind it.
    pub fn share(&self) -> Arc<Share> {
        self.state.share()
    }

    /// True once the kernel has ended the mount, also if another program unmounted it.
    pub fn has_ended(&self) -> bool {
        self.state.has_ended()
    }

    /// From now on the process tree of `pid` opens with that share mode.
    pub fn start_run(&self, run: u64, pid: u32, share: ShareMode) {
        self.state.policy.start_run(run, pid, share);
    }

    /// That tree's policy ends.
    pub fn end_run(&self, run: u64) {
        self.state.policy.end_run(run);
    }

    /// Unmounts; while programs use it, says which.
    pub fn unmount(&mut self) -> Result<(), MountError> {
        if self.session.is_none() {
            return Ok(());
        }
        // What may be mounted there after its end is not ours.
        if !self.has_ended() {
            self.detach_unused()?;
        }
        self.end();
        Ok(())
    }

    fn detach_unused(&self) -> Result<(), MountError> {
        let path = self.path.clone();
        match mounts::among(&self.resolved, self.device) {
            // Somebody else has unmounted it.
            Among::Gone => return Ok(()),
            Among::Under(by) => return Err(MountError::Covered { path, by }),
            Among::Alone => {}
        }
        // A program in another mount namespace does not keep this one from being unmounted.
        if !wait_until(RELEASES_MAX, || self.state.files.is_empty()) {
            return Err(self.busy());
        }
        match detach(&self.path, Detach::Unused) {
            Ok(()) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINVAL | libc::ENOENT) => Ok(()),
                Some(libc::EBUSY) => Err(self.busy()),
                _ => Err(MountError::System { path, source: error }),
            },
        }
    }

    fn busy(&self) -> MountError {
        let mut users = users_of(&self.path).join(", ");
        if users.is_empty() {
            "a process of another mount namespace".clone_into(&mut users);
        }
        MountError::Busy { path: self.path.clone(), users }
    }

    /// Unmounts from the name space at once. Programs that use it are cut off: whatever they have
    /// open for writing answers with errors from now on.
    pub fn unmount_lazily(&mut self) {
        if self.session.is_none() {
            return;
        }
        if !self.has_ended() {
            super::watch::cut_off_all(&self.state, &self.path);
            match mounts::among(&self.resolved, self.device) {
                Among::Gone => {}
                Among::Alone => {
                    if let Err(error) = detach(&self.path, Detach::Lazily) {
                        log::warn!("{}: {error}", self.path.display());
                    }
                }
                Among::Under(by) => log::warn!(
                    "{} stays mounted without a server, because something else is mounted on {}: \
                     unmount both",
                    self.path.display(),
                    by.display()
                ),
            }
            self.abort();
        }
        self.end();
    }

    /// Waits for the workers, which see that the kernel has let go. Where it has not, because the
    /// mount is still there elsewhere, the connection is aborted. Never waits for long.
    fn end(&mut self) {
        let Some(session) = self.session.take() else { return };
        if !wait_until(END_MAX, || self.has_ended()) {
            self.abort();
        }
        if !wait_until(END_MAX, || self.has_ended()) {
            log::warn!("{}: its threads end with this process", self.path.display());
            return;
        }
        if let Err(error) = session.join() {
            log::warn!("{}: {error}", self.path.display());
        }
    }

    fn abort(&self) {
        if let Err(error) = abort(self.device) {
            // Where it cannot be done, it happens when this process ends.
            log::debug!("aborting the connection of {}: {error}", self.path.display());
        }
    }
}

/// Waits until it is true, for so long at most.
fn wait_until(patience: Duration, true_now: impl Fn() -> bool) -> bool {
    const TICK: Duration = Duration::from_millis(1);
    let end = Instant::now() + patience;
    while !true_now() {
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(TICK);
    }
    true
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
    let driver = Driver::new(Arc::clone(state));
    let session = Session::from_fd(driver, device, acl, config).map_err(fail)?;
    let session = session.spawn().map_err(fail)?;
    state.notices.start(session.notifier(), Arc::clone(&state.backings)).map_err(fail)?;
    state.park.start().map_err(fail)?;
    // Set once: a state has one mount.
    drop(state.aside.set(Aside::start().map_err(fail)?));
    drop(state.watch.set(super::watch::watch(state, path.to_owned())?));
    super::watch::prepare(state, path);
    Ok(session)
}

/// Mounting by ourselves, and registering a backing file with the kernel, take the right to
/// administer it.
pub fn may_administer() -> bool {
    let mine = rustix::thread::capabilities(None);
    mine.is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// True for root whose rights were cut down, as in a container: `fusermount3` cannot mount either.
pub fn is_bounded_root() -> bool {
    rustix::process::geteuid().is_root() && !may_administer()
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

fn is_mounted(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    mounts::all().iter().any(|mount| mount.path == path)
}
