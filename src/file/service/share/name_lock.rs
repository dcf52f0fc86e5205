//! The name lock of a share, and whether the share can still be acted on.
//!
//! Everybody who looks names up shares the lock. Renaming a directory moves many names at once and
//! takes it alone; so do Delete Share, a reset and a restore.

use super::Share;
use crate::file::rules::Denial;
use crate::file::service::error::Result;
use crate::rules::Owner;
use crate::sync::front_end::assert_may_block;
use crate::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

const POISON: &str = "nothing panics under the name lock";

/// The name lock, as the report of waiting threads names it.
const LOCK: &str = "the name lock of a share";

pub(super) struct NameLock(RwLock<SharePhase>);

/// Whether the share can still be acted on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SharePhase {
    /// The share is served.
    Served,
    /// Delete Share is closing the handles. Names can be looked up, which is how the mount cuts
    /// descriptors off; nothing can be opened or changed.
    Closing,
    /// The share was deleted while a front end still had a reference to it.
    Deleted,
    /// As [`SharePhase::Closing`], for a share that a reset or a restore replaces.
    Replacing,
    /// Another share has the place of this one.
    Replaced,
}

impl SharePhase {
    /// Names can be looked up.
    fn is_there(self) -> bool {
        matches!(self, Self::Served | Self::Closing | Self::Replacing)
    }

    /// Why the share cannot be acted on.
    fn denial(self) -> Denial {
        match self {
            Self::Replacing | Self::Replaced => Denial::ShareReplaced,
            Self::Served | Self::Closing | Self::Deleted => Denial::ShareDeleted,
        }
    }
}

/// The name lock, shared.
pub(crate) struct NamesShared<'a>(
    #[expect(dead_code, reason = "it is held, not looked at")] RwLockReadGuard<'a, SharePhase>,
);

/// The name lock, alone.
pub(crate) struct NamesAlone<'a>(RwLockWriteGuard<'a, SharePhase>);

impl Default for NameLock {
    fn default() -> Self {
        Self(RwLock::new(SharePhase::Served))
    }
}

impl NameLock {
    fn shared(&self, allowed: impl FnOnce(SharePhase) -> bool) -> Result<NamesShared<'_>> {
        assert_may_block(LOCK);
        let names = self.0.read().expect(POISON);
        if allowed(*names) { Ok(NamesShared(names)) } else { Err(names.denial().into()) }
    }

    fn set(&self, phase: SharePhase) {
        *self.0.write().expect(POISON) = phase;
    }
}

impl Share {
    /// The name lock, shared: names may be looked up, and files acted on. Refused once Delete
    /// Share has begun: the folder may be another share's by now.
    pub(crate) fn names(&self) -> Result<NamesShared<'_>> {
        self.name_lock.shared(|phase| phase == SharePhase::Served)
    }

    /// The name lock, shared, to look names up and to act on nothing. Granted while Delete Share
    /// closes the handles.
    pub(crate) fn names_to_look(&self) -> Result<NamesShared<'_>> {
        self.name_lock.shared(SharePhase::is_there)
    }

    /// The name lock, shared, for the end of an open: that is refused in no phase.
    pub(crate) fn names_in_any_phase(&self) -> Result<NamesShared<'_>> {
        self.name_lock.shared(|_| true)
    }

    /// The name lock, exclusively: no other operation looks a name up meanwhile.
    pub(crate) fn names_alone(&self) -> Result<NamesAlone<'_>> {
        assert_may_block(LOCK);
        let names = self.name_lock.0.write().expect(POISON);
        if *names == SharePhase::Served {
            Ok(NamesAlone(names))
        } else {
            Err(names.denial().into())
        }
    }

    /// Deletes the share: waits for what is under way, refuses everything that comes later,
    /// closes the handles with no lock held, and has `take_away` move the directory. If that
    /// fails, the share is served again.
    pub(crate) fn delete_with<T, E>(
        &self,
        who: &Owner,
        take_away: impl FnOnce() -> std::result::Result<T, E>,
    ) -> Result<std::result::Result<T, E>> {
        *self.names_alone()?.0 = SharePhase::Closing;
        // No lock is held: a listener has the kernel look names up on the mount, and those
        // lookups come back to this share.
        self.close_all_handles(who);
        let mut names = self.name_lock.0.write().expect(POISON);
        let taken = take_away();
        *names = if taken.is_ok() { SharePhase::Deleted } else { SharePhase::Served };
        Ok(taken)
    }

    /// The share is about to be replaced: waits for what is under way, refuses everything that
    /// comes later, and closes the handles with no lock held.
    pub(crate) fn begin_replacing(&self, who: &Owner) -> Result<()> {
        *self.names_alone()?.0 = SharePhase::Replacing;
        self.close_all_handles(who);
        Ok(())
    }

    /// Another share has its place from now on. Nothing more is written beside its files: the
    /// state folder is the other's.
    pub(crate) fn end_replaced(&self) {
        self.name_lock.set(SharePhase::Replaced);
        self.state.end();
    }

    /// A deleted share was restored: it is served again.
    pub(crate) fn serve_again(&self) {
        self.name_lock.set(SharePhase::Served);
    }

    /// Refuses once Delete Share has begun. Does not wait: while a directory is being renamed,
    /// the share counts as served.
    pub(crate) fn check_served(&self) -> Result<()> {
        match self.name_lock.0.try_read() {
            Ok(phase) if *phase != SharePhase::Served => Err(phase.denial().into()),
            _ => Ok(()),
        }
    }
}
