//! Where shares are mounted: where the user says, else in ./latchfs-mnt, which is made for it and
//! taken away at the end.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::MOUNT_DIR;
use crate::cli::locate::real_path;

/// What to mount where. Directories that were made for it go when this is dropped.
#[derive(Debug, Default)]
pub struct Places {
    /// Share and directory.
    pub list: Vec<(String, PathBuf)>,
    /// The user named them: there must be a mount, or no start.
    pub asked: bool,
    made: Vec<PathBuf>,
}

impl Places {
    /// Those the user named.
    pub fn named<'a>(named: impl IntoIterator<Item = &'a (String, PathBuf)>) -> Result<Self> {
        let named = named.into_iter().map(|(name, path)| Ok((name.clone(), real_path(path)?)));
        Ok(Self { list: named.collect::<Result<_>>()?, asked: true, made: Vec::new() })
    }

    /// Those that nobody named: one for each share.
    pub fn by_default(shares: &BTreeSet<String>) -> Result<Self> {
        let mut places = Self::default();
        let base = Path::new(MOUNT_DIR);
        places.make(base)?;
        for name in shares {
            let path = if shares.len() > 1 { base.join(name) } else { base.to_owned() };
            places.make(&path)?;
            places.list.push((name.clone(), real_path(&path)?));
        }
        Ok(places)
    }

    fn make(&mut self, path: &Path) -> Result<()> {
        let made = make_place(path).with_context(|| {
            format!("the mount point {} (--mount NAME=DIR names another)", path.display())
        })?;
        if made {
            // Absolute: it is removed wherever this process is by then.
            self.made.push(real_path(path)?);
        }
        Ok(())
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        for path in self.made.iter().rev() {
            if let Err(error) = fs::remove_dir(path) {
                log::debug!("{}: {error}", path.display());
            }
        }
    }
}

/// Makes a mount point; false if it is there. One with a dead mount on it is, though it cannot be
/// looked at.
fn make_place(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => fs::create_dir(path).map(|()| true),
        _ => Ok(false),
    }
}
