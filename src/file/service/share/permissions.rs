//! Security descriptors of a share, by key: written, drafted for a request, looked up.
//!
//! Decides how long a descriptor stays: one that a refused request wrote is taken back. What a
//! descriptor may say, and its key, are decided in [`crate::file::service::shares`].

use std::collections::BTreeMap;

use super::Share;
use crate::disk::{Drawer, Durability, StoreError};
use crate::file::service::shares::{
    FileServiceResult, SecurityDescriptor, ShareDenial, inherited_permission_key,
};
use crate::sync::{Mutex, MutexGuard};

/// How many descriptors may share a hash.
const COLLISIONS_MAX: u32 = 64;

/// Descriptors that requests under way have written, by key, with the number of those requests.
/// A request that is refused takes its descriptor back, unless another one uses it too.
#[derive(Debug, Default)]
pub(super) struct Drafts(Mutex<BTreeMap<String, usize>>);

/// A descriptor written for a request under way. Dropped, it is taken back; kept, it stays.
#[must_use]
pub struct DraftPermission<'a> {
    share: &'a Share,
    key: String,
    /// It was not there before: nobody but requests under way can refer to it.
    fresh: bool,
}

impl DraftPermission<'_> {
    /// The key that files refer to it by.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The request was carried out: the descriptor stays.
    pub fn keep(mut self) {
        if std::mem::take(&mut self.fresh) {
            self.share.drafts.lock().remove(&self.key);
        }
    }
}

impl Drop for DraftPermission<'_> {
    fn drop(&mut self) {
        if self.fresh {
            self.share.take_back(&self.key);
        }
    }
}

impl Drafts {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().expect("nothing panics while descriptors are drafted")
    }
}

impl Share {
    /// Writes a descriptor for a request that may still be refused. The record of a file must
    /// never name a key that is not on the disk, so the descriptor goes first.
    pub fn draft_permission(
        &self,
        permission: &SecurityDescriptor,
    ) -> FileServiceResult<DraftPermission<'_>> {
        permission.check()?;
        let mut drafts = self.drafts.lock();
        let (key, new) = self.write_permission(permission)?;
        // Kept for good already, or drafted by another request too.
        let fresh = new || drafts.contains_key(&key);
        if fresh {
            *drafts.entry(key.clone()).or_default() += 1;
        }
        Ok(DraftPermission { share: self, key, fresh })
    }

    /// Removes a draft whose last request was refused.
    fn take_back(&self, key: &str) {
        let mut drafts = self.drafts.lock();
        // Gone from the map: another request has kept it.
        let Some(users) = drafts.get_mut(key) else { return };
        *users -= 1;
        if *users > 0 {
            return;
        }
        drafts.remove(key);
        let removed = self.state.remove(Drawer::Permissions, key, Durability::Cached);
        if let Err(error) = removed {
            log::warn!("permission {key} of a refused request stays: {error}");
        }
    }

    /// Keeps a descriptor; its key. One that is kept already has the key it had.
    pub fn keep_permission(&self, permission: &SecurityDescriptor) -> FileServiceResult<String> {
        permission.check()?;
        let mut drafts = self.drafts.lock();
        let (key, _) = self.write_permission(permission)?;
        drafts.remove(&key);
        Ok(key)
    }

    /// The key of a descriptor, and whether it had to be written.
    fn write_permission(
        &self,
        permission: &SecurityDescriptor,
    ) -> FileServiceResult<(String, bool)> {
        for attempt in 0..COLLISIONS_MAX {
            let key = permission.key(attempt);
            match self.state.get::<SecurityDescriptor>(Drawer::Permissions, &key)? {
                Some(kept) if kept == *permission => return Ok((key, false)),
                // Another text with the same hash.
                Some(_) => {}
                None => {
                    let synced = Durability::Synced;
                    self.state.put(Drawer::Permissions, &key, permission, synced)?;
                    return Ok((key, true));
                }
            }
        }
        Err(StoreError::AlreadyExists.into())
    }

    /// The descriptor of a key.
    pub fn permission(&self, key: &str) -> FileServiceResult<SecurityDescriptor> {
        match self.state.get(Drawer::Permissions, key) {
            Ok(Some(permission)) => Ok(permission),
            Ok(None) if key == inherited_permission_key() => Ok(SecurityDescriptor::inherited()),
            Ok(None) | Err(StoreError::NameTooLong) => {
                Err(ShareDenial::FileInvalidPermissionKey.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}
