//! What happens beside the mount and concerns it: forced closes, changes by REST.
//!
//! With passthrough the kernel does I/O on a descriptor without asking us, so that forgetting a
//! handle does not stop it. It is cut off by its inode: the name is looked up again and answered
//! with the same node and a higher generation, at which the kernel drops every descriptor of the
//! old inode; all of them get `EIO` at once (FUSE section 7). One of several cannot be singled
//! out: they end together, and the engine is told which. A mapping made before can still store.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use super::nodes::Stale;
use super::opens::forget_name;
use super::outside;
use super::state::{OpenFile, State};
use crate::core::{Access, HandleId};
use crate::engine::{Change, ClosedHandle, Result};

/// How long a forced close waits for the kernel to let go.
const CUT_MAX: Duration = Duration::from_secs(1);

/// Starts listening. The share may outlive the mount: then nothing is done.
pub fn watch(state: &Arc<State>, mounted_on: PathBuf) -> Result<()> {
    let mount = Arc::downgrade(state);
    state.share.on_change(move |change| {
        let Some(state) = mount.upgrade() else { return };
        match change {
            Change::Name(path) => forget_name(&state, path),
            Change::Attributes(path) => {
                state.notices.attributes_of(&state.nodes.spellings(path));
            }
            Change::Answered => state.notices.wait_for_names(),
        }
    });
    let mount = Arc::downgrade(state);
    state.share.on_force_close(move |closed| {
        mount.upgrade().map_or_else(Vec::new, |state| cut_off(&state, closed, &mounted_on))
    })
}

/// Cuts the descriptor of a handle of ours off, and says which others end with it.
fn cut_off(state: &State, closed: &ClosedHandle, mounted_on: &Path) -> Vec<HandleId> {
    // A handle that cannot write changes nothing; without passthrough its next use comes to us.
    // That is a matter of this open: later ones may go another way.
    let passes_through = |file: Arc<OpenFile>| file.backing.is_some();
    let cuts = state.file(closed.id.0).is_some_and(passes_through);
    if !cuts || !closed.access.contains(Access::W) {
        return Vec::new();
    }
    let others = state.handles_of(closed.file).into_iter().filter(|id| *id != closed.id).collect();
    for name in &state.nodes.cut_off(closed.file) {
        state.notices.name_now(name);
        look_up(state, name, mounted_on);
    }
    others
}

/// Has the kernel look a name up.
fn look_up(state: &State, name: &Stale, mounted_on: &Path) {
    let Some(path) = state.nodes.path(name.node) else { return };
    let path = mounted_on.join(path.as_str());
    match outside::ask(Command::new("test").arg("-e").arg(&path), CUT_MAX) {
        Ok(Some(_)) => {}
        Ok(None) => {
            log::error!("{}: the kernel did not let go of its descriptors", path.display());
        }
        Err(error) => {
            log::error!("{}: descriptors stay until it is looked up: {error}", path.display());
        }
    }
}
