//! The state of one file: its opens, the names in use, its byte-range locks, its lease.
//!
//! A value with a sequence number. Each operation is a deterministic step from (state, request)
//! to (state, answer); what must then happen on disk is part of the answer. `file/service` keeps
//! one of these per file in use, under that file's lock.
//!
//! Opening, closing and deleting are decided here; byte ranges in `file_ranges.rs`, REST's
//! momentary opens in [`super::momentary`].

use super::create::{CreateAction, ExistingFile, OpenRequest};
use super::links::Links;
use super::opens::{FileOpens, Open, OpenSlot};
use super::ranges::RangeTable;
use super::share::Clash;
use super::{Access, Denial, Rights, ShareMode, SharePath};
use crate::rules::id::{HandleId, Owner, Timestamp};
use crate::rules::lease::FileLease;

/// The most opens one file may have at a time. The service allows 2,000 per file; a test that
/// looks for a leak wants to see it before memory runs out, and benches want more.
pub const OPENS_PER_FILE_MAX: usize = 1 << 20;

/// The momentary open of the directory of a new name, as part of a rename: W, sharing R and W.
pub const RENAMES_INTO: (Access, ShareMode) = (Access::W, ShareMode::RW);

/// The state of one file in use. A file that is not in use has none.
#[derive(Clone, Debug, Default)]
pub struct FileState {
    /// Raised by every change.
    pub seq: u64,
    opens: FileOpens,
    links: Links,
    /// Most files have neither: one pointer each.
    pub(crate) ranges: Option<Box<RangeTable>>,
    lease: Option<Box<FileLease>>,
}

/// To whom an open is given, and when.
#[derive(Clone, Debug)]
pub struct OpenGrant {
    /// The identity it gets.
    pub id: HandleId,
    pub owner: Owner,
    pub now: Timestamp,
}

/// How an open ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// By its holder, or with its holder.
    Closed {
        /// The file is a directory that has entries.
        not_empty: bool,
    },
    /// By Force Close Handles. A delete-on-close that has not marked the link yet never will.
    Forced,
}

/// The consequences of the end of an open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The open that ended.
    pub open: Open,
    /// The name it was opened by.
    pub path: SharePath,
    /// The link became delete pending just now, and others still hold it.
    pub marked: bool,
    /// This name is to be removed from the disk, now.
    pub remove: bool,
}

/// The facts on disk that can refuse the deletion of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeleteFacts {
    /// It has the read-only attribute.
    pub read_only: bool,
    /// It is a directory with entries, pending ones included.
    pub not_empty: bool,
}

impl FileState {
    /// Opens the existing file behind `path`, or refuses. For a file just made, `action` is
    /// [`CreateAction::Created`] and nothing can refuse.
    pub fn open(
        &mut self,
        request: &OpenRequest,
        action: CreateAction,
        target: &ExistingFile,
        path: &SharePath,
        grant: OpenGrant,
    ) -> Result<OpenSlot, Denial> {
        if action != CreateAction::Created {
            self.check_not_pending(path)?;
            request.check_attributes(action, target)?;
            self.check_access(request.checked_access(action), request.share)?;
        }
        if self.opens.len() >= OPENS_PER_FILE_MAX {
            return Err(Denial::TooManyHandles);
        }
        let OpenGrant { id, owner, now } = grant;
        let open = Open {
            id,
            owner,
            rights: request.rights.specific(),
            share: request.share,
            delete_on_close: request.options.delete_on_close,
            flushed: 0,
            directory: target.directory,
            link: self.links.enter(path),
            since: now,
        };
        self.seq += 1;
        Ok(self.opens.insert(open))
    }

    /// Opens the file once more by the name that another open came by, also if that name was taken
    /// away since, or refuses.
    pub fn open_again(
        &mut self,
        (slot, id): (OpenSlot, HandleId),
        request: &OpenRequest,
        grant: OpenGrant,
    ) -> Result<OpenSlot, Denial> {
        let other = self.opens.get(slot, id).ok_or(Denial::HandleClosed)?;
        let (link, directory) = (other.link, other.directory);
        if self.links.get(link).pending {
            return Err(Denial::DeletePending(Box::new(other.holder())));
        }
        self.check_access(request.checked_access(CreateAction::Opened), request.share)?;
        if self.opens.len() >= OPENS_PER_FILE_MAX {
            return Err(Denial::TooManyHandles);
        }
        self.links.enter_again(link);
        let open = Open {
            id: grant.id,
            owner: grant.owner,
            rights: request.rights.specific(),
            share: request.share,
            delete_on_close: false,
            flushed: 0,
            directory,
            link,
            since: grant.now,
        };
        self.seq += 1;
        Ok(self.opens.insert(open))
    }

    /// Refuses while the name is delete pending; this wins over a sharing violation (dp64).
    pub fn check_not_pending(&self, path: &SharePath) -> Result<(), Denial> {
        match self.pending_holder(path) {
            Some(holder) => Err(Denial::DeletePending(Box::new(holder))),
            None => Ok(()),
        }
    }

    /// An open that keeps the pending name alive; none if the name is not pending.
    pub fn pending_holder(&self, path: &SharePath) -> Option<super::Holder> {
        let (number, link) = self.links.by_path(path)?;
        if !link.pending {
            return None;
        }
        self.opens.iter().find(|(_, open)| open.link == number).map(|(_, open)| open.holder())
    }

    /// May `(access, share)` be opened beside the opens and the lease there are?
    pub fn check_access(&mut self, access: Access, share: ShareMode) -> Result<(), Denial> {
        if self.is_leased() && access.intersects(Access::W | Access::D) {
            return Err(Denial::Leased);
        }
        self.check_share(access, share)
    }

    /// The share check alone, for the holder of the lease, through REST.
    pub fn check_share(&mut self, access: Access, share: ShareMode) -> Result<(), Denial> {
        self.opens.check(access, share).map_err(violation)
    }

    /// May a rename give an entry of this directory a new name? The rename opens the directory for
    /// a moment, with [`RENAMES_INTO`].
    pub fn check_renamed_into(&mut self) -> Result<(), Denial> {
        let (access, share) = RENAMES_INTO;
        self.opens.check(access, share).map_err(|(clash, open)| Denial::ParentShared {
            clash,
            holder: Box::new(open.holder()),
        })
    }

    /// Refuses if anybody has the file open, by any name and with any access.
    pub fn check_nobody(&self) -> Result<(), Denial> {
        match self.opens.iter().next() {
            Some((_, open)) => Err(Denial::Open(Box::new(open.holder()))),
            None => Ok(()),
        }
    }

    /// Changes what an open tolerates; refused if another open would not have been granted
    /// beside it (the mount's ioctl).
    pub fn set_share(
        &mut self,
        slot: OpenSlot,
        id: HandleId,
        share: ShareMode,
    ) -> Result<(), Denial> {
        self.opens.set_share(slot, id, share).ok_or(Denial::HandleClosed)?.map_err(violation)?;
        self.seq += 1;
        Ok(())
    }

    pub fn close(&mut self, slot: OpenSlot, id: HandleId, how: Ending) -> Result<Closed, Denial> {
        let open = self.opens.remove(slot, id).ok_or(Denial::HandleClosed)?;
        self.seq += 1;
        // The mark of delete-on-close appears when that very open closes, not while it is open
        // (dp03, dp16); a directory that has entries is not marked (MS-FSA 2.1.5.5, dp31).
        let marks = open.delete_on_close && how == Ending::Closed { not_empty: false };
        let link = self.links.get_mut(open.link);
        let marked = marks && !link.pending;
        link.pending |= marks;
        let path = link.path.clone();
        let gone = self.links.leave(open.link);
        let remove = gone.is_some_and(|link| link.pending && !link.gone);
        Ok(Closed { open, path, marked: marked && !remove, remove })
    }

    /// May this open set or clear the delete-pending mark? Says whether the mark would change.
    pub fn check_disposition(
        &self,
        slot: OpenSlot,
        id: HandleId,
        delete: bool,
        facts: DeleteFacts,
    ) -> Result<bool, Denial> {
        let open = self.opens.get(slot, id).ok_or(Denial::HandleClosed)?;
        if !open.rights.contains(Rights::DELETE) {
            return Err(Denial::AccessDenied); // dp05
        }
        let pending = self.links.get(open.link).pending;
        if delete && !pending {
            facts.check()?;
        }
        Ok(pending != delete)
    }

    /// Sets or clears the delete-pending mark through an open. Says whether the mark changed.
    pub fn set_disposition(
        &mut self,
        slot: OpenSlot,
        id: HandleId,
        delete: bool,
        facts: DeleteFacts,
    ) -> Result<bool, Denial> {
        let changes = self.check_disposition(slot, id, delete, facts)?;
        let link = self.opens.get(slot, id).ok_or(Denial::HandleClosed)?.link;
        self.links.get_mut(link).pending = delete;
        self.seq += u64::from(changes);
        Ok(changes)
    }

    /// True if the file is open by that name.
    pub fn is_open_by(&self, path: &SharePath) -> bool {
        self.links.by_path(path).is_some()
    }

    /// Marks a name that has opens; false if it has none and can be removed at once.
    pub fn mark(&mut self, path: &SharePath) -> bool {
        let Some((number, _)) = self.links.by_path(path) else { return false };
        self.links.get_mut(number).pending = true;
        self.seq += 1;
        true
    }

    /// Takes the mark of a name away without a handle (`latchfs undelete`). Says whether there
    /// was one.
    pub fn undelete(&mut self, path: &SharePath) -> bool {
        let Some((number, link)) = self.links.by_path(path) else { return false };
        let pending = link.pending;
        self.links.get_mut(number).pending = false;
        self.seq += u64::from(pending);
        pending
    }

    /// May this open rename the file? It needs DELETE; every other opener then shares it
    /// (di17, di19). A pending file is not renamed away from its mark (our rule, dp19, dp20).
    pub fn check_rename(&self, slot: OpenSlot, id: HandleId) -> Result<(), Denial> {
        let open = self.opens.get(slot, id).ok_or(Denial::HandleClosed)?;
        if !open.rights.contains(Rights::DELETE) {
            return Err(Denial::AccessDenied);
        }
        self.check_not_pending(&self.links.get(open.link).path)
    }

    /// The name `from` is `to` now: opens and marks follow (dp22, di31).
    pub fn moved(&mut self, from: &SharePath, to: &SharePath) {
        let link = self.links.by_path(from).map(|(number, _)| number);
        if let Some(number) = link {
            self.links.get_mut(number).path = to.clone();
            self.seq += 1;
        }
    }

    /// The directory `from` is `to` now: the names below it follow, where opens do not keep a
    /// directory from moving.
    pub fn moved_below(&mut self, from: &SharePath, to: &SharePath) {
        for (_, link) in self.links.iter_mut().filter(|(_, link)| link.path.is_below(from)) {
            if let Some(path) = link.path.rebased(from, to) {
                link.path = path;
                self.seq += 1;
            }
        }
    }

    /// The directories `one` and `other` changed places: the names below each follow it.
    pub fn exchanged_below(&mut self, one: &SharePath, other: &SharePath) {
        for (_, link) in self.links.iter_mut() {
            let (from, to) = if link.path.is_below(one) { (one, other) } else { (other, one) };
            if link.path.is_below(from)
                && let Some(path) = link.path.rebased(from, to)
            {
                link.path = path;
                self.seq += 1;
            }
        }
    }

    /// The name was taken away from under its opens, as POSIX does: they go on without one. False
    /// if it has none.
    pub fn detach(&mut self, path: &SharePath) -> bool {
        let Some((number, _)) = self.links.by_path(path) else { return false };
        let link = self.links.get_mut(number);
        (link.gone, link.pending) = (true, false);
        self.seq += 1;
        true
    }

    /// The open of a slot, with the name it was opened by.
    pub fn get(&self, slot: OpenSlot, id: HandleId) -> Result<(&Open, &SharePath), Denial> {
        let open = self.opens.get(slot, id).ok_or(Denial::HandleClosed)?;
        Ok((open, &self.links.get(open.link).path))
    }

    /// True if it is a directory; known while it has opens.
    pub fn is_directory(&self) -> bool {
        self.opens.iter().next().is_some_and(|(_, open)| open.directory)
    }

    /// True if the name this open came by was taken away from under it.
    pub fn has_lost_its_name(&self, open: &Open) -> bool {
        self.links.get(open.link).gone
    }

    /// True if the name this open came by is delete pending.
    pub fn is_pending(&self, open: &Open) -> bool {
        self.links.get(open.link).pending
    }

    /// Remembers that a descriptor of the holder was closed: the release may follow.
    pub fn set_flushed(
        &mut self,
        slot: OpenSlot,
        id: HandleId,
        now: Timestamp,
    ) -> Result<(), Denial> {
        if self.opens.set_flushed(slot, id, now) { Ok(()) } else { Err(Denial::HandleClosed) }
    }

    /// False if no open was flushed just now, at once however many there are.
    pub fn may_be_flushed(&self, now: Timestamp) -> bool {
        self.opens.may_be_flushed(now)
    }

    /// True if every open in the way of `(access, share)` was flushed just now, or is gone: its
    /// release is on its way, and asking again soon may find the file free.
    pub fn all_in_the_way_flushed(&self, access: Access, share: ShareMode, now: Timestamp) -> bool {
        self.opens.all_in_the_way_flushed(access, share, now)
    }

    /// All opens with the names they came by.
    pub fn opens(&self) -> impl Iterator<Item = (OpenSlot, &Open, &SharePath)> {
        self.opens.iter().map(|(slot, open)| (slot, open, &self.links.get(open.link).path))
    }

    /// How many opens there are.
    pub fn open_count(&self) -> usize {
        self.opens.len()
    }

    /// The names in use and whether each is delete pending.
    pub fn names(&self) -> impl Iterator<Item = (&SharePath, bool)> {
        self.links.iter().map(|(_, link)| (&link.path, link.pending))
    }

    /// Finds an open by its identity.
    pub fn find(&self, id: HandleId) -> Option<OpenSlot> {
        self.opens.find(id).map(|(slot, _)| slot)
    }

    /// The lease; a file that was never leased is available.
    pub fn lease(&self) -> FileLease {
        self.lease.as_deref().copied().unwrap_or_default()
    }

    pub fn set_lease(&mut self, lease: FileLease) {
        self.lease = (lease != FileLease::default()).then(|| Box::new(lease));
        self.seq += 1;
    }

    fn is_leased(&self) -> bool {
        matches!(self.lease.as_deref(), Some(FileLease::Leased(_)))
    }

    /// True if there is nothing to remember: the entry can go.
    pub fn is_idle(&self) -> bool {
        self.opens.is_empty() && self.lease.is_none() && self.ranges.is_none()
    }
}

fn violation((clash, open): (Clash, &Open)) -> Denial {
    Denial::SharingViolation { clash, holder: Box::new(open.holder()) }
}

impl DeleteFacts {
    /// May a file be deleted of which the disk says this (dp23, dp30, dr16)?
    pub fn check(self) -> Result<(), Denial> {
        if self.read_only {
            return Err(Denial::CannotDelete);
        }
        if self.not_empty {
            return Err(Denial::DirectoryNotEmpty);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::open;
    use super::*;

    /// Which shares of an open of a directory let a rename into it pass, by the access of that
    /// open: written out, in the order none, R, W, RW, D, RD, WD, RWD.
    const LETS_RENAMES_IN: [(Access, [bool; 8]); 8] = {
        const ALL: [bool; 8] = [true; 8];
        const NO: [bool; 8] = [false; 8];
        const SHARES_W: [bool; 8] = [false, false, true, true, false, false, true, true];
        [
            (Access::NONE, ALL),
            (Access::R, SHARES_W),
            (Access::W, SHARES_W),
            (Access::RW, SHARES_W),
            (Access::D, NO),
            (Access::from_bits(5), NO),
            (Access::from_bits(6), NO),
            (Access::RWD, NO),
        ]
    };

    #[test]
    fn a_rename_is_a_momentary_open_of_the_directory_of_the_new_name() {
        for (access, lets) in LETS_RENAMES_IN {
            for (share, lets) in ShareMode::ALL.into_iter().zip(lets) {
                let mut directory = FileState::default();
                directory.opens.insert(open(7, access, share));
                match directory.check_renamed_into() {
                    Ok(()) => assert!(lets, "{access} sharing {share}"),
                    Err(Denial::ParentShared { holder, .. }) => {
                        assert!(!lets && holder.handle == HandleId(7), "{access} sharing {share}");
                    }
                    Err(other) => panic!("{access} sharing {share}: {other}"),
                }
            }
        }
        assert_eq!(FileState::default().check_renamed_into(), Ok(()));
    }
}
