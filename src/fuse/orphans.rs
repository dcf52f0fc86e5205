//! Files and directories that lost their name while they were open, where the mount is POSIX's: a
//! descriptor of each is kept, since no path leads to them any more.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use super::UnlinkMode;
use super::state::State;
use crate::core::{FileId, SharePath};
use crate::engine::OpenFor;

/// The kept descriptors.
#[derive(Debug, Default)]
pub struct Orphans(Mutex<HashMap<FileId, Arc<OwnedFd>>>);

const POISON: &str = "descriptors are only kept and dropped";

impl Orphans {
    /// The descriptor of a file without a name.
    pub fn get(&self, file: FileId) -> Option<Arc<OwnedFd>> {
        self.0.lock().expect(POISON).get(&file).cloned()
    }

    /// Its last open is gone.
    pub fn forget(&self, file: FileId) {
        self.0.lock().expect(POISON).remove(&file);
    }
}

impl State {
    /// A name is about to be taken away from under its opens: if the mount has any of the file,
    /// they go on through a descriptor kept here.
    pub fn before_loss(&self, path: &SharePath) {
        if self.options.unlink != UnlinkMode::Posix {
            return;
        }
        let Ok(found) = self.share.lookup(path) else { return };
        if !self.has_open(found.stat.id) {
            return;
        }
        let opened = self
            .share
            .backing(&found.path, OpenFor::Write)
            .or_else(|_| self.share.backing(&found.path, OpenFor::Read));
        match opened {
            Ok(fd) => {
                self.orphans.0.lock().expect(POISON).insert(found.stat.id, Arc::new(fd));
            }
            Err(error) => log::warn!("{path}: unlinked while open, and not kept: {error}"),
        }
    }

    /// The descriptor of a dead node's file, if the file lost its name while it was open.
    pub fn orphan(&self, node: u64) -> Option<Arc<OwnedFd>> {
        if self.options.unlink != UnlinkMode::Posix || self.nodes.path(node).is_some() {
            return None;
        }
        self.orphans.get(self.nodes.file(node)?)
    }
}
