//! What a start may do to a data root before anything is served: throw all of it away, or fill a
//! share from a directory.
//!
//! Decides what may be thrown away: shares and state of a root that has our folder in it, and
//! never what is neither. A share is filled as a whole or not at all, and only while it is empty.
//! How a tree is copied is a snapshot's affair.

use std::fs;
use std::path::Path;

use super::{DELETED, DataRoot, HIDDEN, RootError, SHARES, SNAPSHOTS, about, about_io, lock, sync};
use crate::core::Timestamp;
use crate::store::clone::{Control, Progress};
use crate::store::snapshot::{Snapshots, lies_within};
use crate::store::tree;

/// Where a share is put together before it has its place.
const FILLING: &str = "filling";

impl DataRoot {
    /// Removes all shares of the data root at `path`, with their state, snapshots and deleted
    /// predecessors. A directory without our folder is refused unless it is empty or missing.
    pub fn reset(path: &Path) -> Result<(), RootError> {
        if !path.exists() || is_empty(path)? {
            return Ok(());
        }
        let hidden = fs::symlink_metadata(path.join(HIDDEN));
        if !hidden.is_ok_and(|hidden| hidden.is_dir()) {
            return Err(RootError::NotOurs(path.to_owned()));
        }
        let root = Self::open(path)?;
        let shares = tree::open_root(&root.root).map_err(about(path))?;
        for name in root.shares()? {
            tree::remove(&shares, &name).map_err(about(&root.root.join(&name)))?;
        }
        let folder = tree::open_root(&root.folder()).map_err(about(path))?;
        for name in [SHARES, SNAPSHOTS, DELETED] {
            tree::remove(&folder, name).map_err(about(&root.hidden(name)))?;
        }
        Ok(())
    }

    /// Makes the share `name` a copy of the directory `source`, unless it has entries already:
    /// false then. For a root of which no share is open.
    pub fn fill_share(
        &self,
        name: &str,
        source: &Path,
        now: Timestamp,
        progress: &mut dyn FnMut(Progress) -> Control,
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
        let folder = tree::open_root(&self.folder()).map_err(about(&self.root))?;
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

    /// A folder, and where a data root would be in it.
    fn root() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        (folder, path)
    }

    fn go_on(_: Progress) -> Control {
        Control::Continue
    }

    #[test]
    fn a_reset_throws_shares_and_state_away_and_leaves_the_rest() {
        let (_folder, path) = root();
        let data = DataRoot::open(&path).unwrap();
        data.create_share("docs").unwrap();
        fs::write(path.join("docs/a.txt"), "hello").unwrap();
        fs::write(path.join("notes"), "not a share").unwrap();
        fs::create_dir(data.state_path("docs").unwrap()).unwrap();
        assert!(matches!(DataRoot::reset(&path), Err(RootError::Served(_))));
        drop(data);
        DataRoot::reset(&path).unwrap();
        let data = DataRoot::open(&path).unwrap();
        assert!(data.shares().unwrap().is_empty());
        assert!(!data.state_path("docs").unwrap().exists());
        assert!(path.join("notes").exists());
    }

    #[test]
    fn a_directory_that_is_not_ours_is_not_reset() {
        let folder = tempfile::tempdir().unwrap();
        DataRoot::reset(&folder.path().join("missing")).unwrap();
        DataRoot::reset(folder.path()).unwrap();
        let precious = folder.path().join("docs");
        fs::create_dir(&precious).unwrap();
        assert!(matches!(DataRoot::reset(folder.path()), Err(RootError::NotOurs(_))));
        assert!(precious.exists());
        // A link of that name does not make it ours.
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(HIDDEN)).unwrap();
        assert!(matches!(DataRoot::reset(folder.path()), Err(RootError::NotOurs(_))));
    }

    #[test]
    fn a_share_is_filled_once_and_as_a_whole() {
        let (_folder, path) = root();
        let source = tempfile::tempdir().unwrap();
        fs::create_dir(source.path().join("sub")).unwrap();
        fs::write(source.path().join("sub/a.txt"), "hello").unwrap();
        let data = DataRoot::open(&path).unwrap();
        let fill = |progress: &mut dyn FnMut(Progress) -> Control| {
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
        let data = DataRoot::open(&path).unwrap();
        let above = data.fill_share("docs", folder.path(), Timestamp(1), &mut go_on);
        assert!(matches!(above, Err(RootError::SourceHoldsRoot(_))));
        let missing = folder.path().join("missing");
        assert!(data.fill_share("docs", &missing, Timestamp(1), &mut go_on).is_err());
    }
}
