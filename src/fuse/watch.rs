//! Carries forced closes and changes made through REST over to the mount.
//!
//! With passthrough the kernel reads and writes without asking latchfs, so removing a handle from
//! the table does not stop its descriptor. The descriptor is cut off through its inode: the name is
//! looked up again and answered with the same node and a higher generation, at which the kernel
//! drops every descriptor of the old inode; each of them fails with `EIO` from then on. A single
//! descriptor cannot be selected: all of the file end together, and the engine is told which. A
//! mapping that was made before can still store. The same is done to all files before a mount is
//! detached from programs that use it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::nodes::{ROOT, Stale};
use super::open_files::OpenFile;
use super::opens::forget_name;
use super::state::State;
use crate::core::smb::{Access, SharePath};
use crate::core::{FileId, HandleId};
use crate::engine::file::shares::Follower;
use crate::engine::file::{Change, ClosedHandle, Handle, Result, Share};

/// How long a forced close waits for the kernel to drop the descriptors.
const CUT_MAX: Duration = Duration::from_secs(1);

/// How long cutting off everything may take before the mount goes.
const CUT_ALL_MAX: Duration = Duration::from_secs(5);

/// Starts listening. The share may outlive the mount: then nothing is done. The follower that is
/// returned must live as long as the mount.
pub fn watch(state: &Arc<State>, mounted_on: PathBuf) -> Result<Arc<dyn Follower>> {
    listen(state, &state.share(), mounted_on.clone())?;
    let watch: Arc<dyn Follower> = Arc::new(Watch { mount: Arc::downgrade(state), mounted_on });
    state.followed().follow(Arc::downgrade(&watch));
    Ok(watch)
}

/// Follows the mounted share.
struct Watch {
    mount: Weak<State>,
    mounted_on: PathBuf,
}

impl Follower for Watch {
    fn coming(&self, next: &Arc<Share>) {
        let Some(state) = self.mount.upgrade() else { return };
        if let Err(error) = listen(&state, next, self.mounted_on.clone()) {
            log::error!("{}: {error}", self.mounted_on.display());
        }
    }

    /// The kernel forgets all names, and programs find those of the new share. What they have open
    /// was closed by force before: their descriptors answer `EIO`, their directories `ESTALE`.
    fn replaced(&self, now: &Arc<Share>) {
        let Some(state) = self.mount.upgrade() else { return };
        let root = match now.stat(&SharePath::root()) {
            Ok(root) => root.id,
            Err(error) => return log::error!("{}: {error}", self.mounted_on.display()),
        };
        let names = state.nodes.replaced(root);
        // Those of the new share, opened just now, stay.
        let is_closed = |handle: &Handle| now.path_of(handle).is_err();
        state.files.drop_if(is_closed);
        state.dirs.drop_if(is_closed);
        state.backings.let_go_all();
        state.notices.attributes(ROOT);
        for name in &names {
            state.notices.attributes(name.node);
            state.notices.name_now(name);
        }
        state.park.nudge();
    }
}

/// Listens to the changes and the forced closes of `share`.
fn listen(state: &Arc<State>, share: &Arc<Share>, mounted_on: PathBuf) -> Result<()> {
    let mount = Arc::downgrade(state);
    share.on_change(move |change| {
        let Some(state) = mount.upgrade() else { return };
        match change {
            Change::Name(path) => forget_name(&state, path),
            Change::Attributes(path) => {
                state.notices.attributes_of(&state.nodes.spellings(path));
            }
            Change::Released => state.park.nudge(),
            Change::Answered => state.notices.wait_for_names(),
        }
    });
    let mount = Arc::downgrade(state);
    // Not on `state.share()`: that is still the one before while its successor is announced.
    share.on_force_close(move |closed| {
        mount.upgrade().map_or_else(Vec::new, |state| {
            state.count_cut();
            cut_off(&state, closed, &mounted_on)
        })
    })
}

/// Cuts the descriptor of a handle of ours off, and says which others end with it.
fn cut_off(state: &State, closed: &ClosedHandle, mounted_on: &Path) -> Vec<HandleId> {
    // A handle that cannot write changes nothing; without passthrough its next use fails here.
    // That is a matter of this open: later ones may go another way.
    let passes_through = |file: Arc<OpenFile>| file.backing.is_some();
    let cuts = state.files.get(closed.id.0).is_some_and(passes_through);
    // While the share ends, reads must end too: the file is not the share's any more.
    if !cuts || !(closed.with_share || closed.access.contains(Access::W)) {
        return Vec::new();
    }
    let opens = state.files.of_file(closed.file);
    let others = opens.iter().map(|open| open.handle.id()).filter(|id| *id != closed.id).collect();
    cut_off_file(state, closed.file, mounted_on);
    others
}

/// Before the mount goes away under programs that use it: none of their descriptors can write to
/// a backing file afterwards, as the kernel would let it. Says how many files were cut off.
pub fn cut_off_all(state: &State, mounted_on: &Path) -> usize {
    let writes = |open: &OpenFile| open.backing.is_some() && open.access.contains(Access::W);
    let files: BTreeSet<FileId> = state
        .files
        .all()
        .iter()
        .filter(|open| writes(open))
        .map(|open| open.handle.file())
        .collect();
    let end = Instant::now() + CUT_ALL_MAX;
    for (done, file) in files.iter().enumerate() {
        if Instant::now() >= end {
            log::error!(
                "{} files can still be written by those who have them open",
                files.len() - done
            );
            return done;
        }
        cut_off_file(state, *file, mounted_on);
    }
    files.len()
}

fn cut_off_file(state: &State, file: FileId, mounted_on: &Path) {
    for name in &state.nodes.cut_off(file) {
        state.notices.name_now(name);
        look_up(state, name, mounted_on);
    }
}

/// Has the kernel look a name up, on a thread that may wait for our own answer.
fn look_up(state: &State, name: &Stale, mounted_on: &Path) {
    let (Some(path), Some(aside)) = (state.nodes.path(name.node), state.aside.get()) else {
        return;
    };
    let path = mounted_on.join(path.as_str());
    let asked = path.clone();
    let seen = aside.ask(CUT_MAX, move || {
        // The answer itself does not matter: an old inode is dropped when it is looked up.
        let _ = rustix::fs::lstat(&asked);
    });
    if seen.is_none() {
        log::error!("{}: the kernel did not let go of its descriptors", path.display());
    }
}
