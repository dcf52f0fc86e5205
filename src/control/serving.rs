//! What a server offers to its control socket. The mounts, the scripts and the end of the process
//! are not this module's: whoever puts the server together passes them in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::protocol::{Connection, StepAnswer};
use crate::core::{Denial, ShareMode};
use crate::engine::{Engine, EventLog, Share};

/// A mount of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MountedAt {
    /// Of which share.
    pub share: String,
    /// Where.
    pub path: PathBuf,
}

/// A refusal in the words of the two faces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spelled {
    /// REST's code.
    pub code: &'static str,
    /// The status that goes with it.
    pub status: u16,
    /// The mount's errno, by name.
    pub errno: &'static str,
}

/// A running server. Errors are texts that say what to do.
pub trait Serving: Send + Sync {
    /// All shares, by name.
    fn shares(&self) -> Vec<Arc<Share>>;

    /// The log of their events.
    fn events(&self) -> &EventLog;

    /// What the shares are as a whole.
    fn engine(&self) -> &Engine;

    /// How REST clients find it, if it listens.
    fn connection(&self) -> Option<Connection>;

    /// What the two faces call a refusal.
    fn spelled(&self, denial: &Denial) -> Spelled;

    /// All mounts.
    fn mounts(&self) -> Vec<MountedAt>;

    /// From now on the process tree of `pid` opens with that share mode, on one mount or on all.
    fn start_run(&self, pid: u32, share: ShareMode, mount: Option<&Path>) -> Result<(), String>;

    /// That tree's policy ends, on every mount.
    fn end_run(&self, pid: u32);

    /// Unmounts.
    fn unmount(&self, path: &Path, lazily: bool) -> Result<(), String>;

    /// Plays a script on a share until there are no more steps, and ends what it has opened.
    fn play(&self, share: &Share, trace: bool, steps: &mut dyn Steps) -> Result<(), String>;

    /// Has the server stop, soon.
    fn shut_down(&self);
}

/// The steps of a script, as they come.
pub trait Steps {
    /// The next one; none at the end.
    fn next_step(&mut self) -> Option<Map<String, Value>>;

    /// Answers the step that came last.
    fn answer(&mut self, answer: Result<StepAnswer, String>);
}
