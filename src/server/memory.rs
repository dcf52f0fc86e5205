//! Data in memory: a tmpfs if this process may mount one, else a folder where the machine keeps
//! files in memory, else a temporary folder.
//!
//! Mount and folder are removed at the end. The remains of a killed server are removed by the next
//! start.

use std::env;
use std::ffi::CString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags};

use super::error::StartError;
use crate::disk::{DataRoot, HIDDEN};

/// The start of the name of every folder, and the source of every tmpfs that latchfs mounts.
const NAME: &str = "latchfs-memory-";

/// Where Linux keeps files in memory, for everybody.
const SHARED_MEMORY: &str = "/dev/shm";

/// Data in memory.
pub struct Memory {
    folder: PathBuf,
    data: PathBuf,
    /// It is a tmpfs of its own.
    mounted: bool,
    /// A limit was asked for, which only a tmpfs of its own has.
    unlimited: bool,
}

impl Memory {
    /// A folder in memory, of at most `limit` bytes where it is a tmpfs of its own.
    pub fn new(limit: Option<u64>) -> Result<Self, StartError> {
        let folder = make_folder(&env::temp_dir())?;
        let source = format!("{NAME}{}", std::process::id());
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let size = limit.map(|bytes| format!(",size={bytes}")).unwrap_or_default();
        let options = CString::new(format!("mode=0700{size}")).ok();
        if rustix::mount::mount(source.as_str(), &folder, "tmpfs", flags, options.as_deref())
            .is_ok()
        {
            return Ok(Self::at(folder, true));
        }
        let mut memory = match make_folder(&shared_memory()) {
            Ok(shared) => {
                fs::remove_dir(&folder)
                    .map_err(StartError::system(folder.display().to_string()))?;
                Self::at(shared, false)
            }
            // Some containers have no /dev/shm, or one that cannot be written.
            Err(_) => Self::at(folder, false),
        };
        memory.unlimited = limit.is_some();
        Ok(memory)
    }

    /// Removes what killed servers have left.
    pub fn sweep() {
        clear_mounts();
        for base in [shared_memory(), env::temp_dir()] {
            clear_folders(&base);
        }
    }

    fn at(folder: PathBuf, mounted: bool) -> Self {
        let data = folder.join("data");
        Self { folder, data, mounted, unlimited: false }
    }

    /// The data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The note for the user, if there is one.
    pub fn note(&self) -> Option<String> {
        let note = "the limit of memory is not enforced: a tmpfs of its own needs root";
        self.unlimited.then(|| note.to_owned())
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

fn make_folder(base: &Path) -> Result<PathBuf, StartError> {
    let prefix = format!("{NAME}{}-", std::process::id());
    let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(base);
    let making = format!("making a folder in {}", base.display());
    Ok(folder.map_err(StartError::system(making))?.keep())
}

/// The user's own memory, if the session has one, else everybody's.
fn shared_memory() -> PathBuf {
    let own = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = own.filter(|path| path.is_absolute() && path.is_dir());
    own.unwrap_or_else(|| SHARED_MEMORY.into())
}

/// Unmounts what servers have left that are gone. A descriptor that a program still has keeps the
/// tmpfs busy, so it is detached: its memory is free when that descriptor is closed.
#[cfg(feature = "fuse")]
fn clear_mounts() {
    use crate::file::mount::mounts;

    for mount in mounts::all().into_iter().filter(|mount| mount.kind == "tmpfs") {
        let pid = mount.source.to_str().and_then(|source| source.strip_prefix(NAME));
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        if !is_alive(pid) && rustix::mount::unmount(&mount.path, UnmountFlags::DETACH).is_ok() {
            drop(fs::remove_dir(&mount.path));
        }
    }
}

fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Without mounts nobody reads the table of mounts.
#[cfg(not(feature = "fuse"))]
fn clear_mounts() {}

/// Removes folders of servers that are gone: the process has ended and the data is not locked. The
/// lock alone is not enough, since a server that starts has a folder before it has a lock.
fn clear_folders(base: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(NAME)) else { continue };
        let maker = rest.split('-').next().and_then(|pid| pid.parse::<u32>().ok());
        let ours = !maker.is_some_and(is_alive)
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
        let starting = at(&format!("latchfs-memory-{}-starting", std::process::id()));
        drop(DataRoot::open(&starting.join("data")).unwrap());
        // No process has this number: it is beyond the greatest one.
        let killed = at("latchfs-memory-4194305-killed");
        drop(DataRoot::open(&killed.join("data")).unwrap());
        let other = at("other");
        drop(DataRoot::open(&other.join("data")).unwrap());
        clear_folders(base.path());
        assert!(!left.exists() && !killed.exists());
        assert!(served.exists() && starting.exists() && other.exists());
    }
}
