//! Mounts in a latchfs that was built without them.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use crate::api::{KnownOperation, MountRow};
use crate::file::rules::ShareMode;
use crate::server::Accounts;
use crate::server::error::StartError;
use crate::server::mount_points::MountPoints;
use crate::server::options::ServerOptions;
use crate::server::running::Stop;

const NONE: &str = "this latchfs was built without mounts; build it with --features fuse";

/// No mounts.
#[derive(Default)]
pub struct Mounts {
    /// Why nothing is mounted, where that was not asked for.
    pub why_none: Option<String>,
}

impl Mounts {
    /// Refuses mounts that were asked for.
    pub fn start(
        _: &Arc<Accounts>,
        _: &Path,
        places: &MountPoints,
        _: &ServerOptions,
        _: &Sender<Stop>,
    ) -> Result<Self, StartError> {
        if places.required && !places.list.is_empty() {
            return Err(StartError::Mount(NONE.to_owned()));
        }
        let why_none = (!places.list.is_empty()).then(|| NONE.to_owned());
        Ok(Self { why_none })
    }

    /// The mounts: none.
    pub fn list(&self) -> Vec<MountRow> {
        Vec::new()
    }

    /// The calls that gates and faults can name: none.
    pub fn operations(&self) -> Vec<KnownOperation> {
        Vec::new()
    }

    /// The privileges that mounts lack: none.
    pub fn lacks(&self) -> Option<String> {
        None
    }

    /// Refuses.
    pub fn start_run(&self, _: u64, _: u32, _: ShareMode, _: Option<&Path>) -> Result<(), String> {
        Err(NONE.to_owned())
    }

    /// Does nothing.
    pub fn end_run(&self, _: u64) {}

    /// Refuses.
    pub fn unmount(&self, _: &Path, _: bool) -> Result<bool, String> {
        Err(NONE.to_owned())
    }

    /// True: there is no mount that could have ended.
    pub fn forget_ended(&self) -> bool {
        true
    }

    /// Does nothing.
    pub fn unmount_all(&self) {}
}
