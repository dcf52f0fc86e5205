//! All shares of an account moved aside at once, so that others can take their places.
//!
//! Decides what belongs to the shares: their directories, and every part of the state folder that
//! says something of them. What comes in their place, and the order of steps that a crash may
//! interrupt, is decided in `engine/states`.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::{DELETED, RootError, SERVICES, SHARES, SNAPSHOTS, ShareRoot};
use super::{about, about_io, lock, make_private, names};
use crate::store::folder::Durability;
use crate::store::saved::steps::step;
use crate::store::state::{keep_epoch_in, last_epoch_in};

/// Where the shares of an account are, with what belongs to them.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// The directories of shares.
    pub files: &'a Path,
    /// The folder with the parts of [`STATE_PARTS`].
    pub state: &'a Path,
}

/// The folders of an account that hold the state of its shares beside the shares' directories.
pub(in crate::store) const STATE_PARTS: [&str; 4] = [SHARES, SNAPSHOTS, DELETED, SERVICES];

/// Where the directories of shares go in the folder that takes them.
pub(in crate::store) const FILES: &str = "files";

impl ShareRoot {
    /// Moves all shares with their state, snapshots, deleted shares and the properties of services
    /// into the folder `aside`, made if missing, which must be on the same file system. Epochs of
    /// handles go on above those of all these shares. Nothing is synced.
    pub fn set_aside(&self, aside: &Path) -> Result<(), RootError> {
        let _changing = lock(&self.changing);
        keep_epoch_in(&self.state, self.last_epoch()?, Durability::Cached)
            .map_err(about(&self.state))?;
        let files = aside.join(FILES);
        make_private(&files)?;
        for share in self.shares()? {
            move_into(&self.root.join(&share), &files.join(&share))?;
            step();
        }
        for part in STATE_PARTS {
            move_into(&self.hidden(part), &aside.join(part))?;
            step();
        }
        for part in [SHARES, SNAPSHOTS, DELETED] {
            make_private(&self.hidden(part))?;
        }
        Ok(())
    }

    /// Where the shares are, for a copy.
    pub fn layout(&self) -> Layout<'_> {
        Layout { files: &self.root, state: &self.state }
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
            let (new, place) = (from.join(part), self.hidden(part));
            if new.is_dir() {
                match fs::remove_dir(&place) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        return Err(about_io("replacing a folder", &place)(error));
                    }
                    _ => move_into(&new, &place)?,
                }
                step();
            }
        }
        Ok(())
    }

    /// The highest epoch of handles of any share, also of one that is gone.
    pub fn last_epoch(&self) -> Result<u32, RootError> {
        let mut last = last_epoch_in(&self.state).map_err(about(&self.state))?;
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

    /// The highest epoch of handles of the shares that were moved aside.
    pub fn epoch_floor(&self) -> Result<u32, RootError> {
        last_epoch_in(&self.state).map_err(about(&self.state))
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
