//! File systems of different kinds for tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The temporary directory, and one in memory where there is such a place.
pub(crate) fn places() -> Vec<TempDir> {
    let mut places = vec![tempfile::tempdir().unwrap()];
    match tempfile::tempdir_in("/dev/shm") {
        Ok(place) => places.push(place),
        Err(error) => println!("SKIPPED: no directory in /dev/shm: {error}"),
    }
    places
}

/// A mounted ramfs: it has neither extended attributes nor `fallocate`. Unmounted when dropped.
pub(crate) struct Ramfs(TempDir);

impl Ramfs {
    /// None, and a line on the output, where this process may not mount.
    pub(crate) fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "ramfs", "latchfs-test"]).arg(dir.path());
        match mount.output() {
            Ok(output) if output.status.success() => Some(Self(dir)),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr).into_owned();
                println!("SKIPPED: no ramfs here: {why}");
                None
            }
            Err(error) => {
                println!("SKIPPED: no mount command: {error}");
                None
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Ramfs {
    fn drop(&mut self) {
        // Lazily, so that a descriptor of a failed test does not keep it.
        let status = Command::new("umount").arg("-l").arg(self.path()).status();
        if !status.is_ok_and(|status| status.success()) {
            println!("cannot unmount {}", self.path().display());
        }
    }
}

/// The names in a folder, sorted; none if there is no folder.
pub(crate) fn names_in(folder: PathBuf) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().into_string().unwrap()
    };
    let mut names: Vec<_> = entries.map(name).collect();
    names.sort_unstable();
    names
}
