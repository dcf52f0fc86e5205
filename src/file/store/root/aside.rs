//! All shares of an account moved aside at once, so that others can take their places.
//!
//! Decides what belongs to the shares: their directories, and every part of the state folder that
//! says something of them. What comes in their place, and the order of steps that a crash may
//! interrupt, is decided in `bench/states`.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, StatxAttributes, StatxFlags, access, statx};

use super::{
    DELETED, RootError, SERVICES, SHARES, SNAPSHOTS, ShareRoot, about, about_io, lock,
    make_private, names,
};
use crate::disk::error::StoreError;
use crate::disk::folder::Durability;
use crate::disk::state::{keep_epoch_in, last_epoch_in};
use crate::disk::steps::step;

/// The folders of an account that hold the state of its shares beside the shares' directories.
pub(super) const STATE_PARTS: [&str; 4] = [SHARES, SNAPSHOTS, DELETED, SERVICES];

/// Where the directories of shares go in the folder that takes them.
pub(super) const FILES: &str = "files";

impl ShareRoot {
    /// Does all of [`ShareRoot::set_aside`] and [`ShareRoot::put_in_place`] that can be done while
    /// the shares, which are closed, stay where they are: makes folders, and refuses what cannot be
    /// moved. Epochs of handles go on above those of all these shares.
    pub fn prepare_replacing(&self, aside: &Path, next: &Path) -> Result<(), RootError> {
        let _changing = lock(&self.changing);
        keep_epoch_in(&self.state, self.last_epoch()?, Durability::Cached)
            .map_err(about(&self.state))?;
        make_private(&aside.join(FILES))?;
        for part in [SHARES, SNAPSHOTS, DELETED] {
            make_private(&next.join(part))?;
        }
        let shares = self.shares()?.into_iter().map(|share| self.root.join(share));
        let parts = STATE_PARTS.into_iter().map(|part| self.hidden(part));
        let mount = DirectoryMount::at(aside)?.mount;
        for path in [self.root.clone(), self.state.clone()].into_iter().chain(shares).chain(parts) {
            if path.exists() {
                DirectoryMount::at(&path)?.check_movable(&path, mount)?;
            }
        }
        Ok(())
    }

    /// Moves all shares with their state, snapshots, deleted shares and the properties of services
    /// into the folder `aside`. Nothing is synced.
    pub fn set_aside(&self, aside: &Path) -> Result<(), RootError> {
        let _changing = lock(&self.changing);
        let files = aside.join(FILES);
        for share in self.shares()? {
            move_into(&self.root.join(&share), &files.join(&share))?;
            step();
        }
        for part in STATE_PARTS {
            move_into(&self.hidden(part), &aside.join(part))?;
            step();
        }
        Ok(())
    }

    /// Puts shares with all that belongs to them in their places, which [`ShareRoot::set_aside`]
    /// has emptied. `from` has the form of a folder that took shares. Nothing is synced.
    pub fn put_in_place(&self, from: &Path) -> Result<(), RootError> {
        let _changing = lock(&self.changing);
        let files = from.join(FILES);
        for share in names(&files)? {
            move_into(&files.join(&share), &self.root.join(&share))?;
            step();
        }
        for part in STATE_PARTS {
            move_into(&from.join(part), &self.hidden(part))?;
            step();
        }
        Ok(())
    }

    /// The highest epoch of handles of any share, also of one that is gone.
    pub fn last_epoch(&self) -> Result<u32, RootError> {
        let mut last = self.epoch_floor()?;
        let shares = self.hidden(SHARES);
        let deleted = self.hidden(DELETED);
        let states = names(&shares)?.into_iter().map(|name| shares.join(name));
        let gone = names(&deleted)?.into_iter().map(|name| deleted.join(name).join("state"));
        for state in states.chain(gone) {
            // A damaged number keeps its share from being opened, and is told there.
            last = last.max(last_epoch_in(&state).unwrap_or(0));
        }
        Ok(last)
    }

    /// Has [`ShareRoot::epoch_floor`] return this epoch or a higher one from now on.
    pub fn raise_epoch_floor(&self, epoch: u32) -> Result<(), RootError> {
        let _changing = lock(&self.changing);
        if self.epoch_floor()? >= epoch {
            return Ok(());
        }
        keep_epoch_in(&self.state, epoch, Durability::Cached).map_err(about(&self.state))
    }

    /// The highest epoch of handles of shares that were deleted or moved aside. A damaged number
    /// counts as none, since each share has its own: it must not keep the account from being
    /// served.
    pub fn epoch_floor(&self) -> Result<u32, RootError> {
        match last_epoch_in(&self.state) {
            Err(error @ StoreError::Damaged { .. }) => {
                log::error!("handle numbers of deleted shares may come again: {error}");
                Ok(0)
            }
            floor => floor.map_err(about(&self.state)),
        }
    }
}

/// What decides whether a directory can be moved.
struct DirectoryMount {
    mount: u64,
    attributes: StatxAttributes,
}

impl DirectoryMount {
    fn at(path: &Path) -> Result<Self, RootError> {
        let seen = statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS | StatxFlags::MNT_ID);
        let seen =
            seen.map_err(|errno| about(path)(StoreError::from_errno("looking at", errno)))?;
        let device = u64::from(seen.stx_dev_major) << 32 | u64::from(seen.stx_dev_minor);
        let known = StatxFlags::from_bits_retain(seen.stx_mask).contains(StatxFlags::MNT_ID);
        let mount = if known { seen.stx_mnt_id } else { device };
        Ok(Self { mount, attributes: seen.stx_attributes })
    }

    /// Refuses a directory that `rename(2)` would not move within `mount`.
    fn check_movable(&self, path: &Path, mount: u64) -> Result<(), RootError> {
        let fixed = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
        let why = if self.mount != mount {
            "it is a mount point, or on another file system than the server's folder: unmount it"
        } else if self.attributes.intersects(fixed) {
            "it is immutable or append-only: see chattr(1)"
        } else if access(path, Access::WRITE_OK).is_err() {
            "the server may not write to it: see chmod(1)"
        } else {
            return Ok(());
        };
        Err(RootError::Immovable { path: path.to_owned(), why })
    }
}

/// Nothing to move is no error: an account may have no such part yet.
pub(super) fn move_into(from: &Path, to: &Path) -> Result<(), RootError> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(about_io("moving a share aside", from)(error))
        }
        _ => Ok(()),
    }
}
