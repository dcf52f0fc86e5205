//! A share of its own in a temporary directory: where scripts play when no server runs.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::SystemClock;
use crate::file::service::{Share, ShareOptions};
use crate::journal::EventLog;

/// A share that is gone when it is dropped.
pub struct FreshShare {
    share: Share,
    root: PathBuf,
    /// Removes both folders when dropped.
    _folder: tempfile::TempDir,
}

impl FreshShare {
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("latchfs-play-").tempdir()?;
        let root = folder.path().join("share");
        fs::create_dir(&root)?;
        let share = Share::open_directory(
            "play",
            &root,
            &folder.path().join("state"),
            ShareOptions::default(),
            Arc::new(SystemClock),
            Arc::new(EventLog::default()),
        );
        let share = share.map_err(io::Error::other)?;
        Ok(Self { share, root, _folder: folder })
    }

    pub fn share(&self) -> &Share {
        &self.share
    }

    /// Empties it for the next group. Nothing may be open.
    pub fn clear(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}
