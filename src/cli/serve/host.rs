//! What one server serves: shares of a data directory and their mounts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::{MOUNT_DIR, Serve, Stop, control_of};
use crate::cli::locate::real_path;
use crate::control::protocol::StepAnswer;
use crate::control::{MountedAt, Serving, Steps};
use crate::core::ShareMode;
use crate::engine::{Case, EventLog, Share, ShareOptions, SystemClock};
use crate::fuse::{Mount, MountError};
use crate::play::{Group, Player, read_step};
use crate::store::root::{DataRoot, HIDDEN};

/// The share that is made where there is none.
const FIRST_SHARE: &str = "share";

/// What is served.
pub struct Host {
    inside: Arc<Inside>,
}

struct Inside {
    data: PathBuf,
    shares: BTreeMap<String, Arc<Share>>,
    events: Arc<EventLog>,
    mounts: Mutex<Vec<Mount>>,
    stop: Sender<Stop>,
    /// Held for as long as the shares are served: no other server may have them.
    _root: DataRoot,
}

impl Host {
    /// Opens the shares and mounts them. If a mount fails, those before it are taken back.
    pub fn start(serve: &Serve, stop: Sender<Stop>) -> Result<Self> {
        let root = DataRoot::open(&serve.data)?;
        let data = serve.data.canonicalize().context("the data directory")?;
        let events = Arc::new(EventLog::default());
        let mut shares = BTreeMap::new();
        for name in names(serve, &root)? {
            let share = open_share(serve, &root, &name, Arc::clone(&events))?;
            shares.insert(name, Arc::new(share));
        }
        let options = serve.mount_options(control_of(&data));
        let mut mounts = Vec::new();
        for (name, path) in places(serve, &shares)? {
            let share = Arc::clone(&shares[&name]);
            let mount = Mount::start(share, &path, options.clone());
            mounts.push(mount.map_err(with_cure)?);
        }
        let mounts = Mutex::new(mounts);
        let inside = Inside { data, shares, events, mounts, stop, _root: root };
        Ok(Self { inside: Arc::new(inside) })
    }

    /// As the control socket sees it.
    pub fn serving(&self) -> Arc<dyn Serving> {
        Arc::clone(&self.inside) as Arc<dyn Serving>
    }

    /// Where its control socket is.
    pub fn control(&self) -> PathBuf {
        control_of(&self.inside.data)
    }

    /// Where it writes in the background.
    pub fn log_file(&self) -> PathBuf {
        self.inside.data.join(HIDDEN).join("latchfs.log")
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
        for name in self.inside.shares.keys() {
            lines.push(format!("Share {name}: data in {}", data.join(name).display()));
        }
        let mounted = self.mounted();
        for (name, path) in &mounted {
            lines.push(format!("Share {name}: mounted on {}", path.display()));
        }
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

/// The shares to serve: those named, else those there are, else the first one.
fn names(serve: &Serve, root: &DataRoot) -> Result<BTreeSet<String>> {
    let mounted = serve.mounts.iter().map(|(name, _)| name);
    let mut names: BTreeSet<String> = serve.shares.iter().chain(mounted).cloned().collect();
    if serve.shares.is_empty() && serve.mounts.is_empty() {
        names.extend(root.shares()?);
    }
    if names.is_empty() {
        names.insert(FIRST_SHARE.to_owned());
    }
    Ok(names)
}

fn open_share(serve: &Serve, root: &DataRoot, name: &str, events: Arc<EventLog>) -> Result<Share> {
    let path = root.share_path(name)?;
    if !path.is_dir() {
        root.create_share(name)?;
    }
    let case = if serve.case_sensitive { Case::Sensitive } else { Case::Insensitive };
    let options = ShareOptions { case, ..ShareOptions::default() };
    let state = root.state_path(name)?;
    Share::open_directory(name, &path, &state, options, Arc::new(SystemClock), events)
        .with_context(|| format!("share {name}"))
}

/// What to mount where. Only a place nobody named is made.
fn places(serve: &Serve, shares: &BTreeMap<String, Arc<Share>>) -> Result<Vec<(String, PathBuf)>> {
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
    shares.keys().map(place).collect()
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
        MountError::NoFuse(_) => anyhow::Error::from(error)
            .context("no mount can be made here (--no-mount does without)"),
        error => error.into(),
    }
}

impl Serving for Inside {
    fn shares(&self) -> Vec<Arc<Share>> {
        self.shares.values().cloned().collect()
    }

    fn events(&self) -> &EventLog {
        &self.events
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
