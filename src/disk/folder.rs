//! A folder of small files, each replaced whole or not at all.
//!
//! Decides how a file is replaced (written beside, then renamed over) and what a crash leaves
//! behind (a temporary file, removed at the next start). The content of the files is decided by the
//! callers: the state folder's drawers, and the sidecars of records.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::error::{StoreError, failing};
use crate::sync::front_end;

/// How much an acknowledged change survives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// The death of this process: it is in the page cache.
    Cached,
    /// A power cut too: file and folder are flushed.
    Synced,
}

/// No name a caller writes begins like this.
const TEMPORARY: &str = ".tmp-";

/// The time in which a folder may be used: it begins with a replacement of all data, which is
/// synced as a whole, and ends with the next one, when the path leads to another folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tenure(Arc<RwLock<TenurePhase>>);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum TenurePhase {
    /// Nothing is synced: that is done for all data at once.
    Coming,
    #[default]
    Ours,
    Over,
}

impl Tenure {
    /// Of folders that are synced by others until [`Tenure::begin`].
    pub(crate) fn coming() -> Self {
        Self(Arc::new(RwLock::new(TenurePhase::Coming)))
    }

    /// From now on writes are synced as they ask for.
    pub(crate) fn begin(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = TenurePhase::Ours;
    }

    /// Waits for writes under way. From then on nothing is written in the folders.
    pub(crate) fn end(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = TenurePhase::Over;
    }

    fn read(&self) -> RwLockReadGuard<'_, TenurePhase> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a write, as long as the guard lives. The thread that has the guard must not ask for
    /// another one: the lock lets no second reader in while [`Tenure::end`] waits for the first.
    fn check(&self) -> Result<RwLockReadGuard<'_, TenurePhase>, StoreError> {
        let phase = self.read();
        if *phase == TenurePhase::Over {
            let source = io::Error::from(rustix::io::Errno::AGAIN);
            return Err(StoreError::Io { what: "writing the state of a replaced share", source });
        }
        Ok(phase)
    }
}

impl TenurePhase {
    /// The durability of a write that asks for `wanted`.
    fn durability(self, wanted: Durability) -> Durability {
        match self {
            Self::Coming => Durability::Cached,
            Self::Ours | Self::Over => wanted,
        }
    }
}

/// One folder; made when the first file is written.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    temporaries: AtomicU64,
    tenure: Tenure,
}

impl Folder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self::within(path, Tenure::default())
    }

    /// A folder that is not written any more when `tenure` ends.
    pub(crate) fn within(path: PathBuf, tenure: Tenure) -> Self {
        Self { path, temporaries: AtomicU64::new(0), tenure }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder, open to its owner alone, if it is missing.
    pub(crate) fn create(&self, durability: Durability) -> Result<(), StoreError> {
        let phase = self.tenure.read();
        self.make(phase.durability(durability))
    }

    /// As [`Folder::create`], by a caller that has the tenure's guard.
    fn make(&self, durability: Durability) -> Result<(), StoreError> {
        if self.path.is_dir() {
            return Ok(());
        }
        let what = "making a state folder";
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&self.path).map_err(failing(what))?;
        match self.path.parent() {
            Some(parent) if durability == Durability::Synced && parent != Path::new("") => {
                flush(parent).map_err(failing(what))
            }
            _ => Ok(()),
        }
    }

    /// Removes what a crash left half written. Nobody else may be writing here.
    pub(crate) fn sweep(&self) -> Result<(), StoreError> {
        for name in self.entries()? {
            if name.starts_with(TEMPORARY) {
                fs::remove_file(self.path.join(name))
                    .map_err(failing("sweeping a state folder"))?;
            }
        }
        Ok(())
    }

    /// Replaces the file `name`, or makes it.
    pub(crate) fn write(
        &self,
        name: &str,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<(), StoreError> {
        let tenure = self.tenure.check()?;
        let durability = tenure.durability(durability);
        let number = self.temporaries.fetch_add(1, Ordering::Relaxed);
        let temporary = self.path.join(format!("{TEMPORARY}{number}"));
        let done = self
            .fill(&temporary, bytes, durability)
            .and_then(|()| self.take_place(&temporary, name, durability));
        if done.is_err() {
            // The error that led here is the one to report; the next start sweeps what stays.
            let _ = fs::remove_file(&temporary);
        }
        done
    }

    fn fill(&self, path: &Path, bytes: &[u8], durability: Durability) -> Result<(), StoreError> {
        let open = || {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            options.open(path)
        };
        let file = match open() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.make(durability)?;
                open()
            }
            other => other,
        }
        .map_err(failing("making a state file"))?;
        file.write_all_at(bytes, 0)
            .and_then(|()| match durability {
                Durability::Cached => Ok(()),
                Durability::Synced => {
                    front_end::assert_may_block("a state file's flush");
                    file.sync_all()
                }
            })
            .map_err(failing("writing a state file"))
    }

    fn take_place(&self, from: &Path, name: &str, how: Durability) -> Result<(), StoreError> {
        fs::rename(from, self.path.join(name)).map_err(failing("replacing a state file"))?;
        self.settle(how)
    }

    /// Overwrites the beginning of the file `name` in place, for want of room to write it anew.
    /// `bytes` must lie within one block, so that a crash leaves all of them or none.
    pub(crate) fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        front_end::assert_may_block("a state file's flush");
        let _tenure = self.tenure.check()?;
        let what = "overwriting a state file";
        let file =
            OpenOptions::new().write(true).open(self.path.join(name)).map_err(failing(what))?;
        file.write_all_at(bytes, 0).and_then(|()| file.sync_all()).map_err(failing(what))
    }

    /// Bytes of the file `name`, if there is one.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        match fs::read(self.path.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            other => other.map(Some).map_err(failing("reading a state file")),
        }
    }

    /// Removes the file `name`; false if there was none.
    pub(crate) fn remove(&self, name: &str, durability: Durability) -> Result<bool, StoreError> {
        let tenure = self.tenure.check()?;
        let durability = tenure.durability(durability);
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            other => {
                other.map_err(failing("removing a state file"))?;
                self.settle(durability).map(|()| true)
            }
        }
    }

    /// Names of the files, sorted, without temporary ones.
    pub(crate) fn names(&self) -> Result<Vec<String>, StoreError> {
        let mut names = self.entries()?;
        names.retain(|name| !name.starts_with(TEMPORARY));
        names.sort_unstable();
        Ok(names)
    }

    fn entries(&self) -> Result<Vec<String>, StoreError> {
        let what = failing("listing a state folder");
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(&what)?,
        };
        entries
            .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<_>>()
            .map_err(what)
    }

    fn settle(&self, durability: Durability) -> Result<(), StoreError> {
        match durability {
            Durability::Cached => Ok(()),
            Durability::Synced => flush(&self.path).map_err(failing("flushing a state folder")),
        }
    }
}

/// Makes a folder and the missing ones above it, as `builder` says, and puts their names on the
/// disk.
pub(crate) fn make_all(path: &Path, builder: &DirBuilder) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let above = match path.parent() {
        Some(above) if above != Path::new("") => above,
        _ => Path::new("."),
    };
    make_all(above, builder)?;
    match builder.create(path) {
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
        made => made?,
    }
    flush(above)
}

fn flush(folder: &Path) -> io::Result<()> {
    front_end::assert_may_block("a state folder's flush");
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    fn folder() -> (tempfile::TempDir, Folder) {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::new(root.path().join("a/b"));
        (root, folder)
    }

    #[test]
    fn a_folder_appears_with_its_first_file_and_is_private() {
        let (_root, folder) = folder();
        assert_eq!(folder.read("x").unwrap(), None);
        assert!(folder.names().unwrap().is_empty());
        assert!(!folder.remove("x", Durability::Synced).unwrap());
        assert!(!folder.path().exists());

        folder.write("x", b"one", Durability::Cached).unwrap();
        folder.write("x", b"two", Durability::Synced).unwrap();
        assert_eq!(folder.read("x").unwrap().unwrap(), b"two");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(folder.path()), 0o700);
        assert_eq!(mode(&folder.path().join("x")), 0o600);
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_temporary_one() {
        let (_root, folder) = folder();
        folder.write("x", b"one", Durability::Cached).unwrap();
        fs::create_dir(folder.path().join("taken")).unwrap();
        let refused = folder.write("taken", b"two", Durability::Cached);
        assert!(matches!(refused, Err(StoreError::IsADirectory)), "{refused:?}");
        assert_eq!(folder.entries().unwrap().len(), 2);
        assert_eq!(folder.read("x").unwrap().unwrap(), b"one");
    }

    #[test]
    fn nothing_is_written_after_the_end_of_a_tenure() {
        let (root, tenure) = (tempfile::tempdir().unwrap(), Tenure::default());
        let folder = Folder::within(root.path().join("a"), tenure.clone());
        folder.write("x", b"one", Durability::Cached).unwrap();
        tenure.end();
        assert!(folder.write("x", b"two", Durability::Cached).is_err());
        assert!(folder.overwrite("x", b"two").is_err());
        assert!(folder.remove("x", Durability::Cached).is_err());
        assert_eq!(folder.read("x").unwrap().unwrap(), b"one");
        assert_eq!(folder.entries().unwrap(), ["x"]);
    }

    #[test]
    fn the_first_write_into_a_missing_folder_ends_while_the_end_of_the_tenure_waits_for_it() {
        let (root, tenure) = (tempfile::tempdir().unwrap(), Tenure::default());
        let folder = Folder::within(root.path().join("a"), tenure.clone());
        let writing = tenure.check().unwrap();
        let ending = thread::spawn({
            let tenure = tenure.clone();
            move || tenure.end()
        });
        let deadline = Instant::now() + Duration::from_secs(20);
        while tenure.0.try_read().is_ok() {
            assert!(Instant::now() < deadline, "nobody waits for the write");
            thread::yield_now();
        }
        let (done, is_done) = mpsc::channel();
        let filling = thread::spawn(move || {
            let filled = folder.fill(&folder.path().join("x"), b"one", Durability::Synced);
            done.send(filled).unwrap();
        });
        let filled = is_done.recv_timeout(Duration::from_secs(20));
        drop(writing);
        filled.expect("the write waits for the end of the tenure").unwrap();
        filling.join().unwrap();
        ending.join().unwrap();
    }

    #[test]
    fn a_sweep_removes_temporary_files_only() {
        let (_root, folder) = folder();
        folder.write("x", b"one", Durability::Cached).unwrap();
        fs::write(folder.path().join(".tmp-0"), b"tw").unwrap();
        assert_eq!(folder.names().unwrap(), ["x"]);
        folder.sweep().unwrap();
        assert_eq!(folder.entries().unwrap(), ["x"]);
    }
}
