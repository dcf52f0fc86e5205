//! Mounts through FUSE.

use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::api::{KnownOperation, MountRow, SOCKET_NAME};
use crate::file::mount::{
    Mount, MountCall, MountControls, MountError, MountOptions, OnEnd, SpaceSource,
};
use crate::file::rules::ShareMode;
use crate::file::service::FileService;
use crate::rules::service::ServiceKind;
use crate::server::Accounts;
use crate::server::error::StartError;
use crate::server::mount_points::MountPoints;
use crate::server::options::ServerOptions;
use crate::server::running::Stop;

/// The mounts of a server.
#[derive(Default)]
pub struct Mounts {
    /// Each with its account.
    list: Mutex<Vec<(String, Mount)>>,
    /// Why nothing is mounted, where that was not asked for.
    pub why_none: Option<String>,
    /// Whether the kernel may write to the backing files itself.
    passthrough: bool,
}

impl Mounts {
    /// Mounts the shares. If a mount fails, those before it are ended. Where this process can make
    /// no mount at all, that is an error only if the mounts are required.
    pub fn start(
        accounts: &Arc<Accounts>,
        folder: &Path,
        places: &MountPoints,
        options: &ServerOptions,
        stop: &Sender<Stop>,
    ) -> Result<Self, StartError> {
        let mut list = Vec::new();
        let mut why_none = None;
        for place in &places.list {
            let first = accounts.first();
            let account = match &place.account {
                Some(name) => accounts.get(name).expect("the names of accounts were checked"),
                None => first,
            };
            let other = (account.name() != first.name()).then(|| account.name().to_string());
            let mount_options = MountOptions {
                control: Some(folder.join(SOCKET_NAME)),
                account: other,
                space: Some(space_of(account.file(), &place.share)),
                on_end: Some(tell_end(stop)),
                controls: Some(MountControls {
                    controls: Arc::clone(accounts.controls()),
                    account: Arc::clone(account.name()),
                }),
                ..options.mount.clone()
            };
            let share = account.file().follow(&place.share);
            let share =
                share.map_err(|source| StartError::Share { name: place.share.clone(), source })?;
            match Mount::follow(share, &place.path, mount_options) {
                Ok(mount) => list.push((account.name().to_string(), mount)),
                Err(error) if !places.required && is_impossible(&error) => {
                    why_none = Some(cured(&error));
                    break;
                }
                Err(error) if is_impossible(&error) => {
                    let message = format!("{}; --no-mount serves REST only", cured(&error));
                    return Err(StartError::Mount(message));
                }
                Err(error) => return Err(StartError::Mount(error.to_string())),
            }
        }
        Ok(Self { list: Mutex::new(list), why_none, passthrough: options.mount.passthrough })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(String, Mount)>> {
        // A call that panicked must not keep the others mounted at the end.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mounts.
    pub fn list(&self) -> Vec<MountRow> {
        let row = |(account, mount): &(String, Mount)| MountRow {
            account: account.clone(),
            share: mount.share().name().to_string(),
            path: mount.path().to_owned(),
        };
        self.lock().iter().map(row).collect()
    }

    /// The calls that gates and faults can name; none without a mount.
    pub fn operations(&self) -> Vec<KnownOperation> {
        if self.lock().is_empty() {
            return Vec::new();
        }
        let met = |call: &MountCall| *call != MountCall::Write || !self.passthrough;
        let known = |call: MountCall| {
            let (name, can_stop) = (call.name(), call.can_stop());
            KnownOperation { service: ServiceKind::File, name, can_stop }
        };
        MountCall::ALL.into_iter().filter(met).map(known).collect()
    }

    /// The privilege that this process lacks and a mount by root has; the same for all mounts.
    pub fn lacks(&self) -> Option<String> {
        self.lock().first().and_then(|(_, mount)| mount.lacks()).map(str::to_owned)
    }

    /// From now on the process tree of `pid` opens with that share mode, on one mount or on all.
    pub fn start_run(
        &self,
        run: u64,
        pid: u32,
        share: ShareMode,
        path: Option<&Path>,
    ) -> Result<(), String> {
        let mounts = self.lock();
        let meant = mounts.iter().filter(|(_, mount)| path.is_none_or(|path| mount.path() == path));
        let meant: Vec<_> = meant.collect();
        if meant.is_empty() {
            return Err(no_mount(path));
        }
        for (_, mount) in meant {
            mount.start_run(run, pid, share);
        }
        Ok(())
    }

    /// Ends that, on every mount.
    pub fn end_run(&self, run: u64) {
        self.lock().iter().for_each(|(_, mount)| mount.end_run(run));
    }

    /// Unmounts; true if that was the last one.
    pub fn unmount(&self, path: &Path, lazily: bool) -> Result<bool, String> {
        let mut mounts = self.lock();
        let Some(at) = mounts.iter().position(|(_, mount)| mount.path() == path) else {
            return Err(no_mount(Some(path)));
        };
        if lazily {
            mounts[at].1.unmount_lazily();
        } else {
            mounts[at].1.unmount().map_err(|error| error.to_string())?;
        }
        mounts.remove(at);
        Ok(mounts.is_empty())
    }

    /// Forgets mounts that have ended by themselves, or by `umount(8)`; false if none is left.
    pub fn forget_ended(&self) -> bool {
        let mut mounts = self.lock();
        mounts.retain(|(_, mount)| !mount.has_ended());
        !mounts.is_empty()
    }

    /// Unmounts all; a mount in use is named with its users, and detached.
    pub fn unmount_all(&self) {
        for (_, mut mount) in self.lock().drain(..) {
            if let Err(error) = mount.unmount() {
                match &error {
                    MountError::Busy { path, users } => {
                        log::warn!("{} is in use by {users}: detaching it", path.display());
                    }
                    error => log::warn!("{error}: detaching it"),
                }
                mount.unmount_lazily();
            }
        }
    }
}

fn tell_end(stop: &Sender<Stop>) -> OnEnd {
    let stop = stop.clone();
    Arc::new(move || {
        // The receiver goes with the server.
        let _ = stop.send(Stop::MountEnded);
    })
}

fn space_of(file: &Arc<FileService>, name: &str) -> SpaceSource {
    let (file, name) = (Arc::downgrade(file), name.to_owned());
    Arc::new(move || file.upgrade()?.space(&name).ok())
}

/// True if this process can make no mount on this machine, wherever.
fn is_impossible(error: &MountError) -> bool {
    use MountError::{Helper, NoFuse, NoHelper, NoRight};
    matches!(error, NoFuse(_) | NoHelper(_) | NoRight | Helper(_))
}

/// The error with what to do about it. The helper says only what is wrong.
fn cured(error: &MountError) -> String {
    match error {
        MountError::Helper(said) if said.contains("/dev/fuse") => {
            format!("{said}: let this user open /dev/fuse (chmod 666), or run as root")
        }
        error => error.to_string(),
    }
}

fn no_mount(path: Option<&Path>) -> String {
    match path {
        Some(path) => format!("nothing of this server is mounted on {}", path.display()),
        None => "this server has nothing mounted".to_owned(),
    }
}
