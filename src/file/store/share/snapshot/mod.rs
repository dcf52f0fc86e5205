//! The snapshots of one share: a folder with one plain, complete directory tree for each.
//!
//! Decides names (the service's stamp), order, the limit, and that a snapshot is there as a whole
//! or not at all: it is built under a hidden name and renamed, and renamed to a hidden name before
//! it is removed. What a snapshot holds is decided in `build`; who may write to it, and what
//! metadata it has, is left to the callers.

pub(crate) mod build;
pub mod origin;
#[cfg(test)]
mod tests;

use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, RenameFlags};
use rustix::io::Errno;

use super::clone::{CloneError, CloneProgress, Control, Meter};
use crate::disk::error::{StoreError, doing};
use crate::disk::tree;
use crate::rules::{Timestamp, time};
use crate::sync::front_end;

/// Snapshots a share may have.
pub const SNAPSHOTS_MAX: usize = 200;
/// A snapshot being built.
const NEW: &str = ".new-";
/// Names of hard-linked files, while a snapshot is being built.
const LINKS: &str = ".links-";
/// A snapshot being removed.
const OLD: &str = ".old-";

/// The name of a snapshot: the moment it was taken, to 100 ns.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SnapshotName(String);

impl SnapshotName {
    /// Reads a stamp, which must be spelled in full: `2026-01-02T03:04:05.0000000Z`.
    pub fn parse(text: &str) -> Option<Self> {
        let name = Self::of(time::parse_iso(text)?);
        (name.0 == text).then_some(name)
    }

    /// The moment it was taken.
    pub fn taken(&self) -> Timestamp {
        time::parse_iso(&self.0).expect("a name is made from a moment or checked against one")
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn of(moment: Timestamp) -> Self {
        Self(time::iso(moment))
    }
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The progress callback said so.
    #[error("the snapshot was cancelled")]
    Cancelled,
    /// The share has as many as it may have.
    #[error("the share has {SNAPSHOTS_MAX} snapshots, the most it may have; delete one first")]
    TooMany,
    /// The snapshots lie within the tree to be copied, which would never end.
    #[error("the snapshot folder {0} lies within the share")]
    Nested(PathBuf),
    /// A file or directory of the share could not be copied.
    #[error("/{}: {source}", path.display())]
    Entry {
        /// Its path from the root of the share.
        path: PathBuf,
        source: StoreError,
    },
    /// The snapshot folder itself.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SnapshotError {
    fn at(path: &Path, error: CloneError) -> Self {
        match error {
            CloneError::Cancelled => Self::Cancelled,
            CloneError::Store(source) => Self::Entry { path: path.to_owned(), source },
        }
    }
}

/// The snapshots of a share.
#[derive(Clone, Debug)]
pub struct Snapshots {
    dir: PathBuf,
}

impl Snapshots {
    /// Those in the folder `dir`, which is made with the first one.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Removes what a crash left half built or half removed. For the start of a server only: it
    /// would take the ground from under a snapshot that is being made.
    pub fn sweep(&self) -> Result<(), StoreError> {
        let hidden = |name: &String| [NEW, LINKS, OLD].iter().any(|mark| name.starts_with(mark));
        let mut leftovers = tree::names(&self.dir)?;
        leftovers.retain(hidden);
        if leftovers.is_empty() {
            return Ok(());
        }
        let dir = tree::open_root(&self.dir)?;
        leftovers.iter().try_for_each(|name| tree::remove(&dir, name))
    }

    /// Copies the tree at `share_root` as it is now. The name is the stamp of `now`, or the next
    /// free one. `progress` is asked between steps whether to go on.
    pub fn create(
        &self,
        share_root: &Path,
        now: Timestamp,
        progress: &mut dyn FnMut(CloneProgress) -> Control,
    ) -> Result<SnapshotName, SnapshotError> {
        let source = tree::open_root(share_root)?;
        if lies_within(&self.dir, share_root)? {
            return Err(SnapshotError::Nested(self.dir.clone()));
        }
        make_folder(&self.dir)?;
        let dir = tree::open_root(&self.dir)?;
        let name = self.claim(&dir, now)?;
        let made = self.check_limit().and_then(|()| build_in(&dir, source, &name, progress));
        let links = tree::remove(&dir, &format!("{LINKS}{name}"));
        if made.is_err() {
            // The first error is the one to tell; the next start sweeps what stays.
            let _ = tree::remove(&dir, &format!("{NEW}{name}"));
        }
        made?;
        links?;
        Ok(name)
    }

    /// All complete snapshots, oldest first.
    pub fn list(&self) -> Result<Vec<SnapshotName>, StoreError> {
        let names = tree::names(&self.dir)?;
        let mut found: Vec<_> = names.iter().filter_map(|n| SnapshotName::parse(n)).collect();
        found.sort();
        Ok(found)
    }

    /// The root of a snapshot's tree: an ordinary share directory, to be opened read-only.
    pub fn path(&self, name: &SnapshotName) -> PathBuf {
        self.dir.join(name.as_str())
    }

    /// Removes a snapshot; it is gone from the list at once.
    pub fn delete(&self, name: &SnapshotName) -> Result<(), StoreError> {
        let dir = tree::open_root(&self.dir)?;
        let aside = format!("{OLD}{name}");
        // A removal that failed before may have left the hidden name taken.
        tree::remove(&dir, &aside)?;
        rustix::fs::renameat(&dir, name.as_str(), &dir, &aside)
            .map_err(doing("removing a snapshot"))?;
        tree::remove(&dir, &aside)
    }

    /// Takes the first free stamp from `now` on, by making the folder it is built in.
    fn claim(&self, dir: &OwnedFd, now: Timestamp) -> Result<SnapshotName, StoreError> {
        // Each taken stamp is a snapshot, done or being made: there are never more than this.
        let tries = i64::try_from(2 * SNAPSHOTS_MAX).unwrap_or(i64::MAX);
        for tick in 0..=tries {
            let moment = now.0.saturating_add(tick * time::TICK_NANOS);
            let name = SnapshotName::of(Timestamp(moment));
            match rustix::fs::mkdirat(dir, format!("{NEW}{name}"), Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(doing("making a snapshot")(errno)),
            }
            // Looked at after the claim, so that no other can have renamed onto it since.
            if !self.path(&name).exists() {
                return Ok(name);
            }
            tree::remove(dir, &format!("{NEW}{name}"))?;
        }
        Err(StoreError::AlreadyExists)
    }

    /// Counts those being made too, our own included, so that two at a time cannot pass the limit.
    fn check_limit(&self) -> Result<(), SnapshotError> {
        let counts = |name: &&String| name.starts_with(NEW) || SnapshotName::parse(name).is_some();
        let taken = tree::names(&self.dir)?.iter().filter(counts).count();
        if taken > SNAPSHOTS_MAX {
            return Err(SnapshotError::TooMany);
        }
        Ok(())
    }
}

/// Builds the claimed snapshot `name` and makes it visible.
fn build_in(
    dir: &OwnedFd,
    source: OwnedFd,
    name: &SnapshotName,
    progress: &mut dyn FnMut(CloneProgress) -> Control,
) -> Result<(), SnapshotError> {
    let (new, links) = (format!("{NEW}{name}"), format!("{LINKS}{name}"));
    rustix::fs::mkdirat(dir, &links, Mode::RWXU).map_err(doing("making a snapshot"))?;
    let trees = build::Trees {
        source,
        target: tree::descend(dir, Path::new(&new)).map_err(doing("making a snapshot"))?,
        links: tree::descend(dir, Path::new(&links)).map_err(doing("making a snapshot"))?,
        origins: true,
    };
    build::copy_tree(&trees, &mut Meter::new(progress))?;
    // The bytes before the name, or a power cut could leave a name with half the bytes.
    front_end::assert_may_block("the flush of a snapshot");
    rustix::fs::syncfs(dir).map_err(doing("writing a snapshot"))?;
    rustix::fs::renameat_with(dir, &new, dir, name.as_str(), RenameFlags::NOREPLACE)
        .or_else(|errno| match errno {
            // The file system has no such flag; the claim keeps the name free all the same.
            Errno::INVAL => rustix::fs::renameat(dir, &new, dir, name.as_str()),
            errno => Err(errno),
        })
        .and_then(|()| rustix::fs::fsync(dir))
        .map_err(|errno| StoreError::from_errno("naming a snapshot", errno).into())
}

/// For the owner alone: a file's mode in the share may rely on a directory above it.
fn make_folder(dir: &Path) -> Result<(), StoreError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
        .create(dir)
        .map_err(|source| StoreError::Io { what: "making the snapshot folder", source })
}

/// True if `inner`, which need not exist yet, is the existing directory `outer` or below it.
pub(crate) fn lies_within(inner: &Path, outer: &Path) -> Result<bool, StoreError> {
    let failed = |source| StoreError::Io { what: "resolving a path", source };
    let inner = std::path::absolute(inner).map_err(failed)?;
    let there = inner.ancestors().find(|path| path.exists());
    let there = there.unwrap_or(Path::new("/")).canonicalize();
    Ok(there.map_err(failed)?.starts_with(outer.canonicalize().map_err(failed)?))
}
