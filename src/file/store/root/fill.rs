//! Filling a share from a directory, before anything is served.
//!
//! Decides that a share is filled as a whole or not at all, and only while it is empty. How a tree
//! is copied is decided in [`crate::file::store::share::snapshot`].

use std::fs;
use std::path::Path;

use super::{RootError, ShareRoot, about, about_io, lock, sync};
use crate::disk::tree;
use crate::file::store::share::clone::{CloneProgress, Control};
use crate::file::store::share::snapshot::{Snapshots, lies_within};
use crate::rules::Timestamp;

/// Where a share is put together before it has its place.
const FILLING: &str = "filling";

impl ShareRoot {
    /// Makes the share `name` a copy of the directory `source`, unless it has entries already:
    /// false then. For a root of which no share is open.
    pub fn fill_share(
        &self,
        name: &str,
        source: &Path,
        now: Timestamp,
        progress: &mut dyn FnMut(CloneProgress) -> Control,
    ) -> Result<bool, RootError> {
        let path = self.share_path(name)?;
        let _changing = lock(&self.changing);
        if path.exists() && !is_empty(&path)? {
            return Ok(false);
        }
        tree::open_root(source).map_err(about(source))?;
        if lies_within(&self.root, source).map_err(about(source))? {
            return Err(RootError::SourceHoldsRoot(source.to_owned()));
        }
        let folder = tree::open_root(self.folder()).map_err(about(&self.root))?;
        let clear = || tree::remove(&folder, FILLING).map_err(about(&self.hidden(FILLING)));
        // What a start that was cut short has left.
        clear()?;
        let copies = Snapshots::at(self.hidden(FILLING));
        let copy = copies.create(source, now, progress).map_err(|error| {
            // The first error is the one to tell.
            let _ = clear();
            RootError::Fill(error)
        })?;
        // Onto an empty directory, or where there is none yet.
        fs::rename(copies.path(&copy), &path).map_err(about_io("filling a share", &path))?;
        clear()?;
        sync(&self.root)?;
        Ok(true)
    }
}

fn is_empty(path: &Path) -> Result<bool, RootError> {
    let mut entries = fs::read_dir(path).map_err(about_io("looking into a directory", path))?;
    Ok(entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::HIDDEN;

    /// A folder, and where a data root would be in it.
    fn root() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        (folder, path)
    }

    fn go_on(_: CloneProgress) -> Control {
        Control::Continue
    }

    #[test]
    fn a_share_is_filled_once_and_as_a_whole() {
        let (_folder, path) = root();
        let source = tempfile::tempdir().unwrap();
        fs::create_dir(source.path().join("sub")).unwrap();
        fs::write(source.path().join("sub/a.txt"), "hello").unwrap();
        let data = ShareRoot::open(&path).unwrap();
        let fill = |progress: &mut dyn FnMut(CloneProgress) -> Control| {
            data.fill_share("docs", source.path(), Timestamp(1), progress)
        };
        assert!(matches!(fill(&mut |_| Control::Cancel), Err(RootError::Fill(_))));
        assert!(data.shares().unwrap().is_empty());
        assert!(!path.join(HIDDEN).join(FILLING).exists());
        assert!(fill(&mut go_on).unwrap());
        assert_eq!(fs::read_to_string(path.join("docs/sub/a.txt")).unwrap(), "hello");
        fs::write(path.join("docs/sub/a.txt"), "changed").unwrap();
        assert!(!fill(&mut go_on).unwrap());
        assert_eq!(fs::read_to_string(path.join("docs/sub/a.txt")).unwrap(), "changed");
        assert!(!path.join(HIDDEN).join(FILLING).exists());
    }

    #[test]
    fn a_share_is_not_filled_from_what_holds_it_or_from_nothing() {
        let (folder, path) = root();
        let data = ShareRoot::open(&path).unwrap();
        let above = data.fill_share("docs", folder.path(), Timestamp(1), &mut go_on);
        assert!(matches!(above, Err(RootError::SourceHoldsRoot(_))));
        let missing = folder.path().join("missing");
        assert!(data.fill_share("docs", &missing, Timestamp(1), &mut go_on).is_err());
    }
}
