//! The mount's requests that other handles can refuse.
//!
//! Each answers `None` while only handles that are being released refuse it: nothing was done or
//! noted, and the mount asks again after the next change ([`super::share`], `releases`). The
//! operations themselves are in `opens/` and `names/`.

use std::os::fd::OwnedFd;

use super::error::{FileError, Result};
use super::names::exchange::Below;
use super::names::rename::{Rename, RenameRules};
use super::opens::io::BeforeResize;
use super::share::{Attempt, Target};
use super::{Handle, OpenedFile, PosixOpen, Share, Unlinked};
use crate::file::rules::create::OpenRequest;
use crate::file::rules::file_ranges::RangeUse;
use crate::file::rules::ranges::{ByteRange, LockKind, LockOwner, RangeLock};
use crate::file::rules::{Access, Denial, ShareMode, SharePath};
use crate::file::store::share::FoundFile;
use crate::rules::Context;

/// What a momentary open with D that shares everything asks for.
const REMOVES: (Access, ShareMode) = (Access::D, ShareMode::RWD);

/// Whether opens keep a name, as on a real share, or not, as POSIX programs expect
/// (`--unlink=posix`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameRules {
    Nt,
    Posix,
}

/// How `renameat2(2)` moves a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoveHow {
    NoReplace,
    Replace,
    Exchange,
}

impl Share {
    /// `open(2)`. The refusal of an open by a name that the kernel may look up again is not noted
    /// if there is no such file.
    pub fn mount_open(
        &self,
        attempt: Attempt,
        cx: &Context,
        path: &SharePath,
        request: &OpenRequest,
        posix: PosixOpen,
    ) -> Option<Result<OpenedFile>> {
        let answer = self.open_unnoted(cx, path, request, posix);
        if posix.by_lost_name && matches!(answer, Err(FileError::Denied(Denial::NotFound))) {
            return Some(answer);
        }
        let wants = (request.rights.access(), request.share);
        let told = ("open", path, cx.owner());
        self.final_answer(attempt, told, (Target::Names(&[path]), wants), answer)
    }

    /// A lookup. It waits while the name is delete pending and goes with the releases.
    pub fn mount_lookup(&self, attempt: Attempt, path: &SharePath) -> Option<Result<FoundFile>> {
        let waits = attempt == Attempt::Repeatable && self.is_on_its_way_out(path);
        (!waits).then(|| self.lookup(path))
    }

    /// `unlink(2)` and `rmdir(2)`.
    pub fn mount_remove(
        &self,
        attempt: Attempt,
        cx: &Context,
        path: &SharePath,
        (directory, rules): (bool, NameRules),
    ) -> Option<Result<Unlinked>> {
        let answer = self.delete_name(cx, path, directory, (rules, attempt)).transpose()?;
        let told = (if directory { "rmdir" } else { "unlink" }, path, cx.owner());
        self.final_answer(attempt, told, (Target::Names(&[path]), REMOVES), answer)
    }

    /// `renameat2(2)`. `moved` is called once the names have moved on the disk, before others can
    /// look for them there.
    pub fn mount_rename(
        &self,
        attempt: Attempt,
        cx: &Context,
        (from, to): (&SharePath, &SharePath),
        (how, rules): (MoveHow, NameRules),
        moved: &dyn Fn(),
    ) -> Option<Result<()>> {
        let (operation, answer) = match how {
            MoveHow::Exchange => {
                let below = if rules == NameRules::Posix { Below::Moves } else { Below::Stays };
                ("exchange", self.exchange_found(from, to, below, moved))
            }
            MoveHow::NoReplace | MoveHow::Replace => {
                let replace = how == MoveHow::Replace;
                let rules = match rules {
                    NameRules::Nt => RenameRules::Mount,
                    NameRules::Posix => RenameRules::Posix,
                };
                let rename = Rename { to, replace, rules };
                let renamed = self.rename_found(rename, || Ok(self.find(from)?), moved);
                ("rename", renamed.map(drop))
            }
        };
        // Only the target of a rename is refused because it is open at all.
        let refused = match &answer {
            Err(FileError::Denied(Denial::Open(_))) => to,
            _ => from,
        };
        let told = (operation, from, cx.owner());
        self.final_answer(attempt, told, (Target::Names(&[refused]), REMOVES), answer)
    }

    /// `truncate(2)` by name: a momentary open with W that shares everything.
    pub fn mount_truncate(
        &self,
        attempt: Attempt,
        cx: &Context,
        path: &SharePath,
        size: u64,
        before: BeforeResize<'_>,
    ) -> Option<Result<()>> {
        let answer = self.truncate_unnoted(path, size, before);
        let told = ("truncate", path, cx.owner());
        let wants = (Access::W, ShareMode::RWD);
        self.final_answer(attempt, told, (Target::Names(&[path]), wants), answer)
    }

    /// Changes the share mode of an open. Returns the one that it had.
    pub fn mount_set_share(
        &self,
        attempt: Attempt,
        cx: &Context,
        handle: &Handle,
        share: ShareMode,
    ) -> Option<Result<ShareMode>> {
        let (had, path) =
            match self.describe(handle).and_then(|had| Ok((had, self.path_of(handle)?))) {
                Ok(seen) => seen,
                Err(error) => return Some(Err(error)),
            };
        let answer = self.set_share_unnoted(cx, handle, share).map(|()| had.share);
        let told = ("set share mode", &path, cx.owner());
        self.final_answer(attempt, told, (Target::Beside(handle), (had.access, share)), answer)
    }

    /// Marks the name of an open for deletion, or takes the mark away, though the open lacks the
    /// DELETE right: a momentary open with D is checked beside it. Returns the name.
    pub fn mount_mark(
        &self,
        attempt: Attempt,
        cx: &Context,
        handle: &Handle,
        delete: bool,
    ) -> Option<Result<SharePath>> {
        let path = match self.path_of(handle) {
            Ok(path) => path,
            Err(error) => return Some(Err(error)),
        };
        let answer = self.mark_of_file(cx, handle, delete).map(|()| path.clone());
        let told = ("delete", &path, cx.owner());
        self.final_answer(attempt, told, (Target::Open(handle), REMOVES), answer)
    }

    /// Takes an `fcntl` lock at once (`F_SETLK`). Locks of open file descriptions go with the
    /// release, not with the close.
    pub fn mount_lock(
        &self,
        attempt: Attempt,
        handle: &Handle,
        lock: RangeLock,
    ) -> Option<Result<()>> {
        let answer = self.posix_lock_unnoted(handle, lock);
        if let Ok(Err(refused)) = &answer
            && self.lock_passes_soon(attempt, handle, &refused.denial)
        {
            return None;
        }
        Some(answer.and_then(|answer| self.note_lock(answer)))
    }

    /// The lock that would refuse an `fcntl` lock (`F_GETLK`).
    pub fn mount_test_lock(
        &self,
        attempt: Attempt,
        handle: &Handle,
        (owner, kind, range): (u64, LockKind, ByteRange),
    ) -> Option<Result<Option<RangeLock>>> {
        let found = self.posix_test(handle, owner, kind, range);
        if let Ok(Some(lock)) = &found {
            let refused = Denial::LockNotGranted { lock: *lock, holder: None };
            if self.lock_passes_soon(attempt, handle, &refused) {
                return None;
            }
        }
        Some(found)
    }

    /// Does `work` on the bytes of a range if `by` may use them in this way through the handle, in
    /// one step: no lock is granted meanwhile.
    pub fn mount_use_range<T>(
        &self,
        attempt: Attempt,
        (handle, fd): (&Handle, &OwnedFd),
        range: impl FnOnce() -> Result<ByteRange>,
        by: (Option<LockOwner>, RangeUse),
        work: impl FnOnce() -> Result<T>,
    ) -> Option<Result<T>> {
        let done = self.use_range((handle, fd), range, by, work);
        match &done {
            Err(FileError::Denied(refused)) if self.lock_passes_soon(attempt, handle, refused) => {
                None
            }
            _ => Some(done),
        }
    }

    fn lock_passes_soon(&self, attempt: Attempt, handle: &Handle, refused: &Denial) -> bool {
        let nothing = (Access::NONE, ShareMode::RWD);
        attempt == Attempt::Repeatable && self.passes_soon(refused, Target::Open(handle), nothing)
    }
}
