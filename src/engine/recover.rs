//! What a start finds: deletions that were promised and not carried out, leases still held.
//!
//! Opens and locks died with their process. A name whose deletion had been acknowledged is
//! deleted now, if it still is that file (DESIGN section 4, "Death of the daemon").

use serde::{Deserialize, Serialize};

use super::error::{Error, Result};
use super::share::{PendingEntry, Share};
use crate::core::FileId;
use crate::core::lease::FileLease;
use crate::store::{Drawer, Durability, Entries, Kind, StoreError};

/// A lease as it is kept on disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct LeaseEntry {
    id: FileId,
    lease: FileLease,
}

impl Share {
    pub(super) fn recover(&self) -> Result<()> {
        self.finish_deletions()?;
        self.load_leases()
    }

    fn finish_deletions(&self) -> Result<()> {
        let Entries { good, damaged } = self.disk_state.all::<PendingEntry>(Drawer::Pending)?;
        for name in damaged {
            log::warn!("share {}: pending entry {name} is damaged and left alone", self.name());
        }
        for (key, PendingEntry { id, path }) in good {
            let removed = match self.dir.stat(&path) {
                Ok(stat) if stat.id == id && stat.kind == Kind::Directory => {
                    self.dir.remove_dir(&path, id)
                }
                Ok(stat) if stat.id == id => self.dir.remove_file(&path, id),
                _ => Ok(()),
            };
            match removed {
                Ok(()) => self.records.forget(id)?,
                Err(StoreError::NotEmpty) => {
                    log::warn!("{path}: its deletion was promised, but it has entries: kept");
                }
                Err(error) => return Err(error.into()),
            }
            self.disk_state.remove(Drawer::Pending, &key, Durability::Cached)?;
        }
        Ok(())
    }

    fn load_leases(&self) -> Result<()> {
        let Entries { good, damaged } = self.disk_state.all::<LeaseEntry>(Drawer::Leases)?;
        for name in damaged {
            log::warn!("share {}: lease entry {name} is damaged and left alone", self.name());
        }
        for (_, LeaseEntry { id, lease }) in good {
            self.table.with(id, |_, latched| latched.state.set_lease(lease));
        }
        Ok(())
    }

    /// Keeps a file's lease beyond this process. Its inode is not touched: lease operations
    /// change neither `ETag` nor Last-Modified (LOCKING 4.1).
    pub(super) fn remember_lease(&self, id: FileId, lease: FileLease) -> Result<()> {
        if lease == FileLease::default() {
            return self.forget_lease(id);
        }
        let entry = LeaseEntry { id, lease };
        let kept = self.disk_state.put(Drawer::Leases, &lease_key(id), &entry, Durability::Synced);
        kept.map_err(Error::Store)
    }

    pub(super) fn forget_lease(&self, id: FileId) -> Result<()> {
        let removed = self.disk_state.remove(Drawer::Leases, &lease_key(id), Durability::Synced);
        removed.map(drop).map_err(Error::Store)
    }
}

fn lease_key(id: FileId) -> String {
    format!("{}-{}", id.ino, id.born)
}
