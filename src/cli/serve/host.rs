//! What one server serves: shares of a data directory and their mounts.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::{MOUNT_DIR, Serve, Stop, control_of};
use crate::cli::locate::real_path;
use crate::control::protocol::{Connection, StepAnswer};
use crate::control::{MountedAt, Serving, Steps};
use crate::core::ShareMode;
use crate::engine::account::{ListOptions, NewShare};
use crate::engine::{Case, Engine, EngineOptions, EventLog, Share, ShareOptions};
use crate::fuse::{Mount, MountError, SpaceSource};
use crate::play::{Group, Player, read_step};
use crate::store::root::HIDDEN;

/// The share that is made where there is none.
const FIRST_SHARE: &str = "share";

/// What is served.
pub struct Host {
    inside: Arc<Inside>,
}

struct Inside {
    data: PathBuf,
    engine: Arc<Engine>,
    mounts: Mutex<Vec<Mount>>,
    stop: Sender<Stop>,
}

impl Host {
    /// Opens the shares and mounts them. If a mount fails, those before it are taken back.
    pub fn start(serve: &Serve, stop: Sender<Stop>) -> Result<Self> {
        let engine = Arc::new(open_engine(serve)?);
        let data = serve.data.canonicalize().context("the data directory")?;
        let names = make_shares(serve, &engine)?;
        let mut mounts = Vec::new();
        for (name, path) in places(serve, &names)? {
            let mut options = serve.mount_options(control_of(&data));
            options.space = Some(space_of(&engine, &name));
            let mount = Mount::start(engine.share(&name)?, &path, options);
            mounts.push(mount.map_err(with_cure)?);
        }
        let mounts = Mutex::new(mounts);
        let inside = Inside { data, engine, mounts, stop };
        Ok(Self { inside: Arc::new(inside) })
    }

    /// The shares.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.inside.engine
    }

    /// As the control socket sees it.
    pub fn serving(&self) -> Arc<dyn Serving> {
        Arc::clone(&self.inside) as Arc<dyn Serving>
    }

    /// Where its control socket is.
    pub fn control(&self) -> PathBuf {
        control_of(&self.inside.data)
    }

    /// Where it keeps what is no file of a share.
    pub fn state(&self) -> PathBuf {
        self.inside.data.join(HIDDEN)
    }

    /// Where it writes in the background.
    pub fn log_file(&self) -> PathBuf {
        self.state().join("latchfs.log")
    }

    /// Shares and mount points.
    pub fn mounted(&self) -> Vec<(String, PathBuf)> {
        let mounts = self.inside.mounts();
        mounts.iter().map(|m| (m.share().name().to_string(), m.path().to_owned())).collect()
    }

    /// What to tell the user.
    pub fn summary(&self) -> String {
        let data = &self.inside.data;
        let mut lines = Vec::new();
        for name in share_names(&self.inside.engine) {
            lines.push(format!("Share {name}: data in {}", data.join(&name).display()));
        }
        let mounted = self.mounted();
        for (name, path) in &mounted {
            lines.push(format!("Share {name}: mounted on {}", path.display()));
        }
        // The same for all of them.
        let lacks = self.inside.mounts().first().and_then(Mount::lacks);
        lines.extend(lacks.map(|lacks| format!("Note: {lacks}")));
        if let Some((_, path)) = mounted.first() {
            let file = path.join("a.txt");
            let file = file.display();
            lines.push("Try a conflict:".to_owned());
            lines.push(format!("  echo hello > {file}"));
            lines.push(format!("  latchfs hold {file} --share none --for 30s &"));
            lines.push(format!("  cat {file}"));
            lines.push(format!("  latchfs why {file}"));
        }
        lines.join("\n") + "\n"
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

fn open_engine(serve: &Serve) -> Result<Engine> {
    let case = if serve.case_sensitive { Case::Sensitive } else { Case::Insensitive };
    let share = ShareOptions { case, ..ShareOptions::default() };
    Ok(Engine::open(&serve.data, EngineOptions { share, ..EngineOptions::default() })?)
}

/// The shares to mount: those named, which are made, else those there are, else a first one.
fn make_shares(serve: &Serve, engine: &Engine) -> Result<BTreeSet<String>> {
    let there = share_names(engine);
    let mounted = serve.mounts.iter().map(|(name, _)| name);
    let mut names: BTreeSet<String> = serve.shares.iter().chain(mounted).cloned().collect();
    if names.is_empty() {
        names.extend(there.iter().cloned());
    }
    if names.is_empty() {
        names.insert(FIRST_SHARE.to_owned());
    }
    for name in names.iter().filter(|name| !there.contains(*name)) {
        engine.create_share(name, NewShare::default()).with_context(|| format!("share {name}"))?;
    }
    Ok(names)
}

/// All shares, page by page.
fn share_names(engine: &Engine) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut marker = None;
    loop {
        let options = ListOptions { marker: marker.as_deref(), ..ListOptions::default() };
        // Its own markers are good: only those lists are asked for that it gives itself.
        let Ok(page) = engine.list_shares(&options) else { return names };
        names.extend(page.shares.into_iter().map(|share| share.name.to_string()));
        marker = page.next;
        if marker.is_none() {
            return names;
        }
    }
}

fn space_of(engine: &Arc<Engine>, name: &str) -> SpaceSource {
    let (engine, name) = (Arc::downgrade(engine), name.to_owned());
    SpaceSource::new(move || engine.upgrade()?.space(&name).ok())
}

/// What to mount where. Only a place nobody named is made.
fn places(serve: &Serve, shares: &BTreeSet<String>) -> Result<Vec<(String, PathBuf)>> {
    if serve.no_mount {
        return Ok(Vec::new());
    }
    if !serve.mounts.is_empty() {
        let named = serve.mounts.iter().map(|(name, path)| Ok((name.clone(), real_path(path)?)));
        return named.collect();
    }
    let several = shares.len() > 1;
    let place = |name: &String| {
        let base = Path::new(MOUNT_DIR);
        let path = if several { base.join(name) } else { base.to_owned() };
        make_place(&path).with_context(|| format!("making {}", path.display()))?;
        Ok((name.clone(), real_path(&path)?))
    };
    shares.iter().map(place).collect()
}

/// Makes a mount point. One with a dead mount on it is there, though it cannot be looked at.
fn make_place(path: &Path) -> std::io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => fs::create_dir_all(path),
        _ => Ok(()),
    }
}

fn with_cure(error: MountError) -> anyhow::Error {
    match error {
        MountError::NoFuse(_) | MountError::NoHelper(_) | MountError::Helper(_) => {
            anyhow::Error::from(error)
                .context("no mount can be made here (--no-mount does without)")
        }
        error => error.into(),
    }
}

impl Serving for Inside {
    fn shares(&self) -> Vec<Arc<Share>> {
        let names = share_names(&self.engine);
        names.iter().filter_map(|name| self.engine.share(name).ok()).collect()
    }

    fn events(&self) -> &EventLog {
        &self.engine.options().events
    }

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn connection(&self) -> Option<Connection> {
        None
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
