//! Syncs files to the disk, in one place: tests record the order, and no event loop may wait for
//! one. What has to be synced before what is decided by the stores.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::sync::front_end::assert_may_block;

/// Puts the bytes of a file on the disk.
pub(crate) fn data(file: &File, path: &Path) -> io::Result<()> {
    assert_may_block("a flush");
    log::trace!("sync {}", path.display());
    #[cfg(test)]
    watch::tell(path);
    file.sync_data()
}

/// Puts the names in a folder on the disk.
pub(crate) fn names(folder: &File, path: &Path) -> io::Result<()> {
    assert_may_block("the flush of a folder");
    log::trace!("sync {}", path.display());
    #[cfg(test)]
    watch::tell(path);
    folder.sync_all()
}

/// A recorder of syncs, for tests.
#[cfg(test)]
pub(crate) mod watch {
    use std::path::{Path, PathBuf};
    use std::sync::{Arc, Mutex, PoisonError};

    type Told = Arc<dyn Fn(&Path) + Send + Sync>;

    static WATCHERS: Mutex<Vec<(PathBuf, Told)>> = Mutex::new(Vec::new());

    /// From now on `told` is called before each sync below `folder`.
    pub(crate) fn below(folder: &Path, told: impl Fn(&Path) + Send + Sync + 'static) {
        let mut watchers = WATCHERS.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.push((folder.to_owned(), Arc::new(told)));
    }

    pub(super) fn tell(path: &Path) {
        let watchers = WATCHERS.lock().unwrap_or_else(PoisonError::into_inner);
        let found = watchers.iter().find(|(folder, _)| path.starts_with(folder));
        let told = found.map(|(_, told)| Arc::clone(told));
        drop(watchers);
        if let Some(told) = told {
            told(path);
        }
    }
}
