//! The rules of one file once more, as plainly as possible: a list of opens, a list of locks.
//!
//! Written from docs/semantics.md, without a look at `src/`. Every question walks all
//! opens or all locks; nothing is counted, indexed or kept.

use latchfs::file::rules::Denial;
use latchfs::file::rules::create::Disposition;
use latchfs::rules::LeaseDenial;

use super::demands::Needs;

pub const R: u8 = 1;
pub const W: u8 = 2;
pub const D: u8 = 4;

/// Why the reference refuses: the variant of the denial, and whose open or lock may be named.
#[derive(Debug, PartialEq, Eq)]
pub struct Why {
    pub variant: &'static str,
    pub culprits: Vec<u64>,
}

pub type Answer<T> = Result<T, Why>;

pub fn no<T>(variant: &'static str) -> Answer<T> {
    Err(Why { variant, culprits: Vec::new() })
}

fn blame<T>(variant: &'static str, culprits: Vec<u64>) -> Answer<T> {
    Err(Why { variant, culprits })
}

/// The name of a denial's variant; those that the models never meet have none.
pub fn variant(denial: &Denial) -> &'static str {
    match denial {
        Denial::SharingViolation { .. } => "SharingViolation",
        Denial::ParentShared { .. } => "ParentShared",
        Denial::Open(_) => "Open",
        Denial::Leased => "Leased",
        Denial::OpenBelow(_) => "OpenBelow",
        Denial::DeletePending(_) => "DeletePending",
        Denial::ParentDeletePending { .. } => "ParentDeletePending",
        Denial::RangeLocked { .. } => "RangeLocked",
        Denial::LockNotGranted { .. } => "LockNotGranted",
        Denial::RangeNotLocked => "RangeNotLocked",
        Denial::Lease(LeaseDenial::LeaseIdMissing(_)) => "LeaseIdMissing",
        Denial::Lease(LeaseDenial::LeaseIdMismatchWithOperation(_)) => "LeaseIdMismatch",
        Denial::Lease(LeaseDenial::LeaseNotPresentWithOperation(_)) => "LeaseNotPresent",
        Denial::Lease(LeaseDenial::LeaseLost(_)) => "LeaseLost",
        Denial::ReadOnly => "ReadOnly",
        Denial::CannotDelete => "CannotDelete",
        Denial::HiddenMismatch => "HiddenMismatch",
        Denial::AccessDenied => "AccessDenied",
        Denial::HandleClosed => "HandleClosed",
        Denial::NotFound => "NotFound",
        Denial::PathNotFound => "PathNotFound",
        Denial::NameTaken => "NameTaken",
        Denial::IsDirectory => "IsDirectory",
        Denial::NotDirectory => "NotDirectory",
        Denial::DirectoryNotEmpty => "DirectoryNotEmpty",
        Denial::InvalidParameter(_) => "InvalidParameter",
        Denial::NotOnDirectory => "NotOnDirectory",
        Denial::EndOfFile => "EndOfFile",
        Denial::CopyPending => "CopyPending",
        _ => "another",
    }
}

/// Does the answer of the code under test agree with the reference's?
pub fn agree<T: PartialEq + std::fmt::Debug>(
    got: Result<T, Denial>,
    expected: Answer<T>,
) -> Result<(), String> {
    match (got, expected) {
        (Ok(got), Ok(expected)) if got == expected => Ok(()),
        (Err(denial), Err(why)) if variant(&denial) == why.variant => {
            let named = denial.holder().map(|holder| holder.handle.0);
            match named {
                Some(id) if !why.culprits.contains(&id) => {
                    Err(format!("blames handle {id}, may blame {:?}", why.culprits))
                }
                None if !why.culprits.is_empty() => Err(format!("{denial:?} names nobody")),
                _ => Ok(()),
            }
        }
        (got, expected) => Err(format!("got {got:?}, expected {expected:?}")),
    }
}

/// What an open asked for, in letters.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "an open has that many switches")]
pub struct Asked {
    pub access: u8,
    pub share: u8,
    /// The right to delete and rename, and the right to write anywhere.
    pub may_delete: bool,
    pub may_overwrite: bool,
    pub disposition: Disposition,
    pub delete_on_close: bool,
    pub directory: bool,
    pub non_directory: bool,
    /// It names the hidden attribute.
    pub hidden: bool,
}

/// What the disk says of the file.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "yes or no is what the disk says")]
pub struct Facts {
    pub directory: bool,
    pub read_only: bool,
    pub hidden: bool,
    pub not_empty: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Opened {
    pub id: u64,
    pub asked: Asked,
    pub name: usize,
    pub flushed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Locked {
    pub handle: u64,
    pub start: u64,
    pub length: u64,
    pub exclusive: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Lease {
    #[default]
    Available,
    Leased(u8),
    Broken(u8),
}

/// How an open ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    pub marked: bool,
    pub remove: bool,
    pub name: usize,
}

#[derive(Default, Debug)]
pub struct Rules {
    pub opens: Vec<Opened>,
    pub pending: Vec<usize>,
    pub locks: Vec<Locked>,
    pub lease: Lease,
    pub facts: Facts,
}

/// Neither tolerates what the other does.
pub fn exclude(one: (u8, u8), other: (u8, u8)) -> bool {
    let (access1, share1) = one;
    let (access2, share2) = other;
    access1 != 0 && access2 != 0 && (access2 & !share1 != 0 || access1 & !share2 != 0)
}

/// The ranges have a byte in common; one without bytes must lie inside the other.
fn meet(one: (u64, u64), other: (u64, u64)) -> bool {
    let (start1, end1) = (u128::from(one.0), u128::from(one.0) + u128::from(one.1));
    let (start2, end2) = (u128::from(other.0), u128::from(other.0) + u128::from(other.1));
    match (one.1, other.1) {
        (0, 0) => false,
        (0, _) => start2 < start1 && start1 < end2,
        (_, 0) => start1 < start2 && start2 < end1,
        _ => start1 < end2 && start2 < end1,
    }
}

impl Rules {
    pub fn get(&self, id: u64) -> Answer<&Opened> {
        self.opens.iter().find(|open| open.id == id).map_or(no("HandleClosed"), Ok)
    }

    fn of_name(&self, name: usize) -> Vec<u64> {
        self.opens.iter().filter(|open| open.name == name).map(|open| open.id).collect()
    }

    pub fn check_pending(&self, name: usize) -> Answer<()> {
        if self.pending.contains(&name) {
            return blame("DeletePending", self.of_name(name));
        }
        Ok(())
    }

    pub fn check_share(&self, access: u8, share: u8, but: Option<u64>) -> Answer<()> {
        let against = |open: &&Opened| {
            Some(open.id) != but && exclude((access, share), (open.asked.access, open.asked.share))
        };
        let culprits: Vec<_> = self.opens.iter().filter(against).map(|open| open.id).collect();
        if culprits.is_empty() { Ok(()) } else { blame("SharingViolation", culprits) }
    }

    pub fn check_lease(&self, access: u8) -> Answer<()> {
        match self.lease {
            Lease::Leased(_) if access & (W | D) != 0 => no("Leased"),
            _ => Ok(()),
        }
    }

    pub fn check_nobody(&self) -> Answer<()> {
        if self.opens.is_empty() {
            return Ok(());
        }
        blame("Open", self.opens.iter().map(|open| open.id).collect())
    }

    /// In the order of the checks of an open. The file exists.
    pub fn check_open(&self, asked: &Asked, name: usize) -> Answer<()> {
        check_options(asked)?;
        check_existing(asked, self.facts)?;
        self.check_pending(name)?;
        let access = implied(asked);
        if self.facts.read_only {
            if !self.facts.directory && access & W != 0 {
                return no("ReadOnly");
            }
            if asked.delete_on_close {
                return no("CannotDelete");
            }
        }
        let overwrites =
            matches!(asked.disposition, Disposition::Overwrite | Disposition::OverwriteIf);
        if overwrites && self.facts.hidden && !asked.hidden {
            return no("HiddenMismatch");
        }
        self.check_lease(access)?;
        self.check_share(access, asked.share, None)
    }

    pub fn open(&mut self, id: u64, asked: Asked, name: usize) {
        self.opens.push(Opened { id, asked, name, flushed: false });
    }

    /// The mark of delete-on-close appears at the close, the name goes with the last.
    pub fn close(&mut self, id: u64, forced: bool) -> Answer<Ended> {
        let open = *self.get(id)?;
        self.opens.retain(|other| other.id != id);
        self.locks.retain(|lock| lock.handle != id);
        let was_pending = self.pending.contains(&open.name);
        let marks = open.asked.delete_on_close && !forced && !self.facts.not_empty;
        let last = self.of_name(open.name).is_empty();
        let pending = was_pending || marks;
        self.pending.retain(|name| *name != open.name);
        if pending && !last {
            self.pending.push(open.name);
        }
        let marked = marks && !was_pending && !last;
        Ok(Ended { marked, remove: last && pending, name: open.name })
    }

    /// Says whether anything changed.
    pub fn set_disposition(&mut self, id: u64, delete: bool) -> Answer<bool> {
        let open = *self.get(id)?;
        if !open.asked.may_delete {
            return no("AccessDenied");
        }
        let was = self.pending.contains(&open.name);
        if delete && !was {
            self.check_deletable()?;
            self.pending.push(open.name);
        }
        if !delete {
            self.pending.retain(|name| *name != open.name);
        }
        Ok(was != delete)
    }

    pub fn check_deletable(&self) -> Answer<()> {
        if self.facts.read_only {
            return no("CannotDelete");
        }
        if self.facts.not_empty { no("DirectoryNotEmpty") } else { Ok(()) }
    }

    pub fn mark(&mut self, name: usize) -> bool {
        let in_use = !self.of_name(name).is_empty();
        if in_use && !self.pending.contains(&name) {
            self.pending.push(name);
        }
        in_use
    }

    pub fn undelete(&mut self, name: usize) -> bool {
        let was = self.pending.contains(&name);
        self.pending.retain(|pending| *pending != name);
        was
    }

    pub fn check_rename(&self, id: u64) -> Answer<()> {
        let open = self.get(id)?;
        if !open.asked.may_delete {
            return no("AccessDenied");
        }
        self.check_pending(open.name)
    }

    pub fn moved(&mut self, from: usize, to: usize) {
        for open in self.opens.iter_mut().filter(|open| open.name == from) {
            open.name = to;
        }
        for name in self.pending.iter_mut().filter(|name| **name == from) {
            *name = to;
        }
    }

    pub fn set_share(&mut self, id: u64, share: u8) -> Answer<()> {
        let access = self.get(id)?.asked.access;
        self.check_share(access, share, Some(id))?;
        for open in self.opens.iter_mut().filter(|open| open.id == id) {
            open.asked.share = share;
        }
        Ok(())
    }

    /// All or none, in the order given.
    pub fn lock(&mut self, id: u64, wanted: &[(u64, u64, bool)]) -> Answer<()> {
        let access = self.get(id)?.asked.access;
        if self.facts.directory {
            return no("NotOnDirectory");
        }
        if access & (R | W) == 0 {
            return no("AccessDenied");
        }
        let before = self.locks.len();
        for &(start, length, exclusive) in wanted {
            let in_the_way = self.locks.iter().filter(|lock| {
                meet((lock.start, lock.length), (start, length))
                    && (exclusive || (lock.exclusive && lock.handle != id))
            });
            let culprits: Vec<_> = in_the_way.map(|lock| lock.handle).collect();
            if !culprits.is_empty() {
                self.locks.truncate(before);
                return blame("LockNotGranted", culprits);
            }
            self.locks.push(Locked { handle: id, start, length, exclusive });
        }
        Ok(())
    }

    /// Exactly that range, the exclusive one first, up to the first miss.
    pub fn unlock(&mut self, id: u64, ranges: &[(u64, u64)]) -> Answer<()> {
        self.get(id)?;
        for &(start, length) in ranges {
            let of_kind = |exclusive| Locked { handle: id, start, length, exclusive };
            let place = self.locks.iter().position(|lock| *lock == of_kind(true));
            let place =
                place.or_else(|| self.locks.iter().position(|lock| *lock == of_kind(false)));
            match place {
                Some(place) => drop(self.locks.remove(place)),
                None => return no("RangeNotLocked"),
            }
        }
        Ok(())
    }

    pub fn check_io(&self, id: u64, range: (u64, u64), write: bool) -> Answer<()> {
        let access = self.get(id)?.asked.access;
        if self.facts.directory {
            return no("NotOnDirectory");
        }
        if access & if write { W } else { R } == 0 {
            return no("AccessDenied");
        }
        self.check_range(Some(id), range, write)
    }

    fn check_range(&self, by: Option<u64>, range: (u64, u64), write: bool) -> Answer<()> {
        let stops = |lock: &&Locked| {
            let own = Some(lock.handle) == by;
            let held = if lock.exclusive { !own } else { write };
            range.1 > 0 && meet((lock.start, lock.length), range) && held
        };
        let culprits: Vec<_> = self.locks.iter().filter(stops).map(|lock| lock.handle).collect();
        if culprits.is_empty() { Ok(()) } else { blame("RangeLocked", culprits) }
    }

    /// In this order: pending, lease, copy, read-only, share modes, byte ranges.
    pub fn check_operation(&self, needs: &Needs, at: &Request) -> Answer<()> {
        if needs.live {
            self.check_pending(at.name)?;
        }
        self.check_lease_id(needs, at.lease_id)?;
        if needs.no_copy && at.copy_pending {
            return no("CopyPending");
        }
        if needs.writable && self.facts.read_only {
            return no("ReadOnly");
        }
        self.check_share(needs.access, needs.share, None)?;
        if needs.nobody {
            self.check_nobody()?;
        }
        if needs.unlocked && !self.locks.is_empty() {
            return blame("RangeLocked", self.locks.iter().map(|lock| lock.handle).collect());
        }
        if needs.readable_range { self.check_range(None, at.range, false) } else { Ok(()) }
    }

    /// The table of lease actions by state.
    fn check_lease_id(&self, needs: &Needs, sent: Option<u8>) -> Answer<()> {
        if !needs.lease_matters {
            return Ok(());
        }
        match (self.lease, sent) {
            (Lease::Leased(_), None) if needs.lease_guards => no("LeaseIdMissing"),
            (_, None) => Ok(()),
            (Lease::Leased(held), Some(sent)) if held == sent => Ok(()),
            (Lease::Leased(_), Some(_)) => no("LeaseIdMismatch"),
            (Lease::Broken(held), Some(sent)) if held == sent => no("LeaseLost"),
            (_, Some(_)) => no("LeaseNotPresent"),
        }
    }

    /// Nothing is left to remember.
    pub fn is_idle(&self) -> bool {
        self.opens.is_empty() && self.locks.is_empty() && self.lease == Lease::Available
    }
}

/// A REST request as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub name: usize,
    pub lease_id: Option<u8>,
    pub copy_pending: bool,
    pub range: (u64, u64),
}

/// Overwriting implies W, superseding W and D.
fn implied(asked: &Asked) -> u8 {
    asked.access
        | match asked.disposition {
            Disposition::Overwrite | Disposition::OverwriteIf => W,
            Disposition::Supersede => W | D,
            _ => 0,
        }
}

fn empties(disposition: Disposition) -> bool {
    use Disposition::{Overwrite, OverwriteIf, Supersede};
    matches!(disposition, Overwrite | OverwriteIf | Supersede)
}

/// Refused before anything is looked up.
pub fn check_options(asked: &Asked) -> Answer<()> {
    let bad = (asked.delete_on_close && !asked.may_delete)
        || (asked.directory && asked.non_directory)
        || (asked.directory && empties(asked.disposition));
    if bad { no("InvalidParameter") } else { Ok(()) }
}

/// Refused by the name and its type alone.
pub fn check_existing(asked: &Asked, facts: Facts) -> Answer<()> {
    if asked.disposition == Disposition::Create {
        return no("NameTaken");
    }
    match (facts.directory, asked.directory, asked.non_directory) {
        (true, _, true) => no("IsDirectory"),
        (false, true, _) => no("NotDirectory"),
        (true, ..) if empties(asked.disposition) => no("InvalidParameter"),
        _ => Ok(()),
    }
}
