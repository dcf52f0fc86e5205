//! Carries forced closes and changes made through REST over to the mount.
//!
//! With passthrough the kernel reads and writes without asking latchfs, so removing a handle from
//! the table does not stop its descriptor. The descriptor is cut off through its inode, which the
//! kernel drops ([`super::cut`]); every descriptor of it fails with `EIO` from then on. A single
//! descriptor cannot be selected: all of the file end together, and the engine is told which, or
//! that the kernel could not be reached. A mapping that was made before can still store. The same
//! is done to all files before a mount is detached from programs that use it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::cut;
use super::nodes::{ROOT, Stale};
use super::open_files::OpenFile;
use super::opens::forget_name;
use super::state::State;
use crate::file::rules::{Access, SharePath};
use crate::file::service::shares::Follower;
use crate::file::service::{
    ChangeNotice, ClosedHandle, FileError, Handle, Result, Share, StoreError,
};
use crate::rules::HandleId;

/// How long a forced close waits for the kernel to drop the descriptors, after it has waited for a
/// creation under way.
const CUT_MAX: Duration = Duration::from_secs(3);

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
            ChangeNotice::Name(path) => forget_name(&state, path),
            ChangeNotice::Attributes(path) => {
                state.notices.attributes_of(&state.nodes.spellings(path));
            }
            ChangeNotice::Released => state.park.nudge(),
            ChangeNotice::Answered => state.notices.wait_for_names(),
        }
    });
    let mount = Arc::downgrade(state);
    // Not on `state.share()`: that is still the one before while its successor is announced.
    share.on_force_close(move |closed| {
        let Some(state) = mount.upgrade() else { return Ok(Vec::new()) };
        state.count_cut();
        cut_off(&state, closed, &mounted_on)
    })
}

/// Ends the descriptor of a handle of this mount, and returns the handles that end with it.
fn cut_off(state: &State, closed: &ClosedHandle, mounted_on: &Path) -> Result<Vec<HandleId>> {
    // A handle that cannot write changes nothing; without passthrough its next use fails here.
    // That is a matter of this open: later ones may go another way.
    let passes_through = |file: Arc<OpenFile>| file.backing.is_some();
    let cuts = state.files.get(closed.id.0).is_some_and(passes_through);
    // While the share ends, reads must end too: the file is not the share's any more.
    if !cuts || !(closed.with_share || closed.access.contains(Access::W)) {
        return Ok(Vec::new());
    }
    let opens = state.files.of_file(closed.file);
    if cut_off_opens(state, &opens, mounted_on, CUT_MAX) > 0 {
        let source = io::Error::other("the kernel was not seen to drop them, and they still write");
        return Err(FileError::Store(StoreError::Io {
            what: "cutting its descriptors off",
            source,
        }));
    }
    Ok(opens.iter().map(|open| open.handle.id()).filter(|id| *id != closed.id).collect())
}

/// Before the mount goes away under programs that use it: none of their descriptors can write to
/// a backing file afterwards, as the kernel would let it.
pub fn cut_off_all(state: &State, mounted_on: &Path) {
    state.set_ending();
    let mut writers = state.files.all();
    writers.retain(|open| open.can_write_unseen());
    let left = cut_off_opens(state, &writers, mounted_on, CUT_ALL_MAX);
    if left > 0 {
        log::error!("{left} files can still be written by those who have them open");
    }
}

/// Cuts the descriptors of these opens off, and all others of the same nodes. Returns how many
/// nodes were not seen to be.
fn cut_off_opens(
    state: &State,
    opens: &[Arc<OpenFile>],
    mounted_on: &Path,
    patience: Duration,
) -> usize {
    if opens.is_empty() {
        return 0;
    }
    // The answer to a creation may not have reached the kernel's tables: it would bring back the
    // generation that it was given. The program holds the lock of the directory until it has, and
    // to forget a name takes that lock.
    let created = opens.iter().filter(|open| open.by_create);
    let names: Vec<Stale> = created.filter_map(|open| state.nodes.last_name(open.node)).collect();
    if !names.is_empty() {
        state.notices.names(names);
        state.notices.wait_for_names();
    }
    cut::cut_off(state, opens.iter().map(|open| open.node).collect(), mounted_on, patience)
}

/// Has the kernel learn how descriptors are cut off.
pub fn prepare(state: &State, mounted_on: &Path) {
    cut::prepare(state, mounted_on, CUT_MAX);
}
