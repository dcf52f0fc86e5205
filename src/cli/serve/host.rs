//! What one server serves: shares of a data directory and their mounts.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use anyhow::{Context, Result, anyhow};
use serde_json::{Map, Value};

use super::Stop;
use super::behaviour::Behaviour;
use super::data::share_names;
use super::listen::Listening;
use super::places::Places;
use crate::control::protocol::{Connection, StepAnswer};
use crate::control::{MountedAt, SOCKET_NAME, Serving, Spelled, Steps};
use crate::core::{Denial, ShareMode};
use crate::engine::{Engine, EventLog, Share};
use crate::fuse::{Mount, MountError, OnEnd, SpaceSource, errno_name};
use crate::play::{Group, Player, read_step};
use crate::rest::{ErrorNames, Refusal};

/// What is served.
pub struct Host {
    inside: Arc<Inside>,
    /// Why nothing is mounted, where that was not asked for.
    no_mount: Option<String>,
}

struct Inside {
    /// The server's own folder.
    folder: PathBuf,
    engine: Arc<Engine>,
    mounts: Mutex<Vec<Mount>>,
    connection: OnceLock<Connection>,
    /// How REST spells refusals.
    error_names: ErrorNames,
    stop: Sender<Stop>,
}

impl Host {
    /// Mounts the shares. If a mount fails, those before it are taken back; where none can be made
    /// here at all, that is an error only if the user asked for them.
    pub fn start(
        engine: Arc<Engine>,
        places: &Places,
        behaviour: &Behaviour,
        error_names: ErrorNames,
        stop: Sender<Stop>,
    ) -> Result<Self> {
        let folder = engine.folder().canonicalize().context("the state folder")?;
        let mut mounts = Vec::new();
        let mut no_mount = None;
        for (name, path) in &places.list {
            let mut options = behaviour.mount_options(folder.join(SOCKET_NAME));
            options.space = Some(space_of(&engine, name));
            options.on_end = Some(tell_end(&stop));
            match Mount::start(engine.share(name)?, path, options) {
                Ok(mount) => mounts.push(mount),
                Err(error) if !places.asked && is_impossible(&error) => {
                    no_mount = Some(cured(&error));
                    break;
                }
                Err(error) if is_impossible(&error) => {
                    return Err(anyhow!("{}; --no-mount serves REST only", cured(&error)));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let mounts = Mutex::new(mounts);
        let connection = OnceLock::new();
        let inside = Inside { folder, engine, mounts, connection, error_names, stop };
        Ok(Self { inside: Arc::new(inside), no_mount })
    }

    /// From now on it can tell how REST clients find it.
    pub fn listens(&self, listening: Option<&Listening>) {
        let told = listening.map(|listening| Connection {
            account: listening.account.name().to_owned(),
            key: listening.account.key().text().to_owned(),
            endpoint: listening.endpoint.clone(),
            connection_string: listening.connection_string.clone(),
        });
        if let Some(told) = told {
            self.inside.connection.get_or_init(|| told);
        }
    }

    /// As the control socket sees it.
    pub fn serving(&self) -> Arc<dyn Serving> {
        Arc::clone(&self.inside) as Arc<dyn Serving>
    }

    /// Where its control socket is.
    pub fn control(&self) -> PathBuf {
        self.inside.folder.join(SOCKET_NAME)
    }

    /// Where it writes in the background.
    pub fn log_file(&self) -> PathBuf {
        self.inside.folder.join("latchfs.log")
    }

    /// Shares and mount points.
    pub fn mounted(&self) -> Vec<(String, PathBuf)> {
        let mounts = self.inside.mounts();
        mounts.iter().map(|m| (m.share().name().to_string(), m.path().to_owned())).collect()
    }

    /// The first share by name.
    pub fn first_share(&self) -> String {
        let names = share_names(&self.inside.engine).unwrap_or_default();
        names.into_iter().next().unwrap_or_default()
    }

    /// What the user should know.
    pub fn notes(&self) -> Vec<String> {
        let no_mount = self.no_mount.as_ref().map(|why| format!("no mount, REST only: {why}"));
        // The same for all of them.
        let lacks = self.inside.mounts().first().and_then(Mount::lacks).map(str::to_owned);
        no_mount.into_iter().chain(lacks).collect()
    }

    /// Forgets mounts that have ended by themselves, or by `umount(8)`; false if none is left.
    pub fn forget_ended(&self) -> bool {
        let mut mounts = self.inside.mounts();
        mounts.retain(|mount| !mount.has_ended());
        !mounts.is_empty()
    }

    /// Unmounts all; a mount in use is named with its users, and detached.
    pub fn unmount_all(&self) {
        for mut mount in self.inside.mounts().drain(..) {
            if let Err(error) = mount.unmount() {
                if let MountError::Busy { path, users } = &error {
                    eprintln!("latchfs: {} is in use by {users}: detaching it", path.display());
                } else {
                    eprintln!("latchfs: {error}: detaching it");
                }
                mount.unmount_lazily();
            }
        }
    }
}

impl Inside {
    fn mounts(&self) -> MutexGuard<'_, Vec<Mount>> {
        self.mounts.lock().expect("the list of mounts is only added to and taken from")
    }
}

fn tell_end(stop: &Sender<Stop>) -> OnEnd {
    let stop = stop.clone();
    OnEnd::new(move || {
        // The receiver goes with the process.
        let _ = stop.send(Stop::MountEnded);
    })
}

fn space_of(engine: &Arc<Engine>, name: &str) -> SpaceSource {
    let (engine, name) = (Arc::downgrade(engine), name.to_owned());
    SpaceSource::new(move || engine.upgrade()?.space(&name).ok())
}

/// True if this process can mount nothing here, wherever.
fn is_impossible(error: &MountError) -> bool {
    matches!(error, MountError::NoFuse(_) | MountError::NoHelper(_) | MountError::Helper(_))
}

/// The error with what to do about it. The helper says what is wrong, and leaves the rest to us.
fn cured(error: &MountError) -> String {
    match error {
        MountError::Helper(said) if said.contains("/dev/fuse") => {
            format!("{said}: let this user open /dev/fuse (chmod 666), or run as root")
        }
        error => error.to_string(),
    }
}

impl Serving for Inside {
    fn shares(&self) -> Vec<Arc<Share>> {
        let names = share_names(&self.engine).unwrap_or_default();
        names.iter().filter_map(|name| self.engine.share(name).ok()).collect()
    }

    fn events(&self) -> &EventLog {
        &self.engine.options().events
    }

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn connection(&self) -> Option<Connection> {
        self.connection.get().cloned()
    }

    fn spelled(&self, denial: &Denial) -> Spelled {
        let Refusal { code, status, .. } = denial.clone().into();
        let (code, status) = (code.spelled(self.error_names), status.as_u16());
        Spelled { code, status, errno: errno_name(denial) }
    }

    fn mounts(&self) -> Vec<MountedAt> {
        let mounts = self.mounts();
        let row = |mount: &Mount| MountedAt {
            share: mount.share().name().to_string(),
            path: mount.path().to_owned(),
        };
        mounts.iter().map(row).collect()
    }

    fn start_run(&self, pid: u32, share: ShareMode, path: Option<&Path>) -> Result<(), String> {
        let mounts = self.mounts();
        let meant = mounts.iter().filter(|mount| path.is_none_or(|path| mount.path() == path));
        let meant: Vec<_> = meant.collect();
        if meant.is_empty() {
            return Err(no_mount(path));
        }
        for mount in meant {
            mount.start_run(pid, share);
        }
        Ok(())
    }

    fn end_run(&self, pid: u32) {
        self.mounts().iter().for_each(|mount| mount.end_run(pid));
    }

    fn unmount(&self, path: &Path, lazily: bool) -> Result<(), String> {
        let mut mounts = self.mounts();
        let Some(at) = mounts.iter().position(|mount| mount.path() == path) else {
            return Err(no_mount(Some(path)));
        };
        if lazily {
            mounts[at].unmount_lazily();
        } else {
            mounts[at].unmount().map_err(|error| error.to_string())?;
        }
        mounts.remove(at);
        if mounts.is_empty() {
            // The receiver goes with the process.
            let _ = self.stop.send(Stop::Unmounted);
        }
        Ok(())
    }

    fn play(&self, share: &Share, trace: bool, steps: &mut dyn Steps) -> Result<(), String> {
        let mut player = Player::new(share);
        let group = Group { id: String::new(), trace, steps: Vec::new() };
        player.start(&group).map_err(|error| error.to_string())?;
        while let Some(step) = steps.next_step() {
            steps.answer(play_step(&mut player, step));
        }
        player.finish().map_err(|error| error.to_string())
    }

    fn shut_down(&self) {
        let _ = self.stop.send(Stop::Asked);
    }
}

fn play_step(player: &mut Player<'_>, step: Map<String, Value>) -> Result<StepAnswer, String> {
    let (_, step) = read_step(1, step)?;
    let answer = player.step(&step.op);
    Ok(StepAnswer { status: answer.status.to_owned(), out: answer.out, why: answer.why })
}

fn no_mount(path: Option<&Path>) -> String {
    match path {
        Some(path) => format!("nothing of this server is mounted on {}", path.display()),
        None => "this server has nothing mounted".to_owned(),
    }
}
