//! Data in memory: a tmpfs of our own where this process may mount one, else a folder where the
//! machine keeps files in memory. Gone at the end either way; what a killed server has left is
//! cleared by the next one that keeps its data in memory.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, UnmountFlags};

use crate::fuse::mounts;
use crate::store::DataRoot;
use crate::store::root::HIDDEN;

/// Begins the name of every folder, and is what a tmpfs of ours is mounted from.
const NAME: &str = "latchfs-memory-";

/// Where Linux keeps files in memory, for everybody.
const SHARED_MEMORY: &str = "/dev/shm";

/// Data in memory.
pub struct Memory {
    folder: PathBuf,
    data: PathBuf,
    /// It is a tmpfs of its own.
    mounted: bool,
}

impl Memory {
    /// A place for it.
    pub fn new() -> Result<Self> {
        clear_mounts();
        let folder = make_folder(&env::temp_dir())?;
        let source = format!("{NAME}{}", std::process::id());
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        if rustix::mount::mount(source.as_str(), &folder, "tmpfs", flags, c"mode=0700").is_ok() {
            return Ok(Self::at(folder, true));
        }
        fs::remove_dir(&folder).with_context(|| folder.display().to_string())?;
        let base = shared_memory();
        clear_folders(&base);
        Ok(Self::at(make_folder(&base)?, false))
    }

    fn at(folder: PathBuf, mounted: bool) -> Self {
        let data = folder.join("data");
        Self { folder, data, mounted }
    }

    /// The data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Where it is, for people.
    pub fn words(&self) -> String {
        if self.mounted {
            return "in memory, on a tmpfs of its own; gone at the end".to_owned();
        }
        let folder = self.folder.display();
        format!("in {folder}, removed at the end (a tmpfs of its own needs root)")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let ended = if self.mounted {
            // A thread that has not ended yet may have a file open for a moment longer.
            rustix::mount::unmount(&self.folder, UnmountFlags::empty())
                .or_else(|_| rustix::mount::unmount(&self.folder, UnmountFlags::DETACH))
                .map_err(std::io::Error::from)
                .and_then(|()| fs::remove_dir(&self.folder))
        } else {
            fs::remove_dir_all(&self.folder)
        };
        if let Err(error) = ended {
            log::warn!("{}: {error}", self.folder.display());
        }
    }
}

fn make_folder(base: &Path) -> Result<PathBuf> {
    let folder = tempfile::Builder::new().prefix(NAME).tempdir_in(base);
    Ok(folder.with_context(|| format!("making a folder in {}", base.display()))?.keep())
}

/// The user's own memory, if the session has one, else everybody's.
fn shared_memory() -> PathBuf {
    let own = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = own.filter(|path| path.is_absolute() && path.is_dir());
    own.unwrap_or_else(|| SHARED_MEMORY.into())
}

/// Unmounts what servers have left that are gone. One in use is left alone by the kernel.
fn clear_mounts() {
    for mount in mounts::all().into_iter().filter(|mount| mount.kind == "tmpfs") {
        let pid = mount.source.to_str().and_then(|source| source.strip_prefix(NAME));
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        let dead = !Path::new("/proc").join(pid.to_string()).exists();
        if dead && rustix::mount::unmount(&mount.path, UnmountFlags::empty()).is_ok() {
            drop(fs::remove_dir(&mount.path));
        }
    }
}

/// Removes our own folders that nobody serves any more: a server locks its data.
fn clear_folders(base: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let ours = entry.file_name().as_encoded_bytes().starts_with(NAME.as_bytes())
            && entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
        let data = entry.path().join("data");
        if ours && data.join(HIDDEN).is_dir() && DataRoot::reset(&data).is_ok() {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_ours_that_nobody_serves_are_cleared() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        let left = at("latchfs-memory-left");
        drop(DataRoot::open(&left.join("data")).unwrap());
        let served = at("latchfs-memory-served");
        let _live = DataRoot::open(&served.join("data")).unwrap();
        let starting = at("latchfs-memory-starting");
        fs::create_dir(&starting).unwrap();
        let other = at("other");
        drop(DataRoot::open(&other.join("data")).unwrap());
        clear_folders(base.path());
        assert!(!left.exists());
        assert!(served.exists() && starting.exists() && other.exists());
    }
}
