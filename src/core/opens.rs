//! The opens of one file: who holds what since when.
//!
//! The first open lies in the file's state itself, since most files have one; the second brings a
//! slab and counters, so that opening, closing and refusing cost the same with two opens or a
//! hundred thousand. Whether an open may be added is decided in [`super::share`] and
//! [`super::create`].

use super::id::{HandleId, Owner, Timestamp};
use super::share::{Cause, Clash, ShareCounts};
use super::{Access, Rights, ShareMode};

/// One open of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Its identity.
    pub id: HandleId,
    /// Who holds it.
    pub owner: Owner,
    /// What it may do.
    pub rights: Rights,
    /// What it tolerates.
    pub share: ShareMode,
    /// The link is marked when this open closes (SMB-RULES section 2, right column).
    pub delete_on_close: bool,
    /// Its last descriptor was seen closing; the release is on its way.
    pub flushed: bool,
    /// It is open on a directory.
    pub directory: bool,
    /// Number of the link it was opened by, in [`super::links::Links`].
    pub link: u32,
    /// When it was granted.
    pub since: Timestamp,
}

impl Open {
    /// The part of its rights that counts in the share check.
    pub fn access(&self) -> Access {
        self.rights.access()
    }

    /// What others are told of it.
    pub fn holder(&self) -> Holder {
        Holder {
            handle: self.id,
            owner: self.owner.clone(),
            access: self.access(),
            share: self.share,
            since: self.since,
        }
    }
}

/// Who stands in the way: the part of an open that a refusal names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The open's identity: `latchfs close-handle` and Force Close Handles take it.
    pub handle: HandleId,
    /// Who holds it.
    pub owner: Owner,
    /// What it may do.
    pub access: Access,
    /// What it tolerates.
    pub share: ShareMode,
    /// Since when.
    pub since: Timestamp,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { handle, owner, access, share, .. } = self;
        write!(f, "{owner}, handle {handle}, access {access}, share {share}")
    }
}

/// Where an open lies: 0 is the first's place, the others are in the slab.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Slot(u32);

#[derive(Clone, Debug)]
enum Entry {
    Used(Open),
    Free { next: Option<u32> },
}

/// All opens of one file.
#[derive(Clone, Debug, Default)]
pub struct Opens {
    first: Option<Open>,
    /// Made with the second open, and kept until the file is forgotten.
    more: Option<Box<More>>,
}

#[derive(Clone, Debug, Default)]
struct More {
    /// Slots from 1 on.
    entries: Vec<Entry>,
    free: Option<u32>,
    /// Used entries.
    live: u32,
    /// Of all opens, the first included.
    counts: ShareCounts,
    /// For each cause the open that was in the way last time, looked at first: repeated refusals
    /// stay cheap however many opens there are.
    suspects: [u32; Cause::COUNT],
}

impl Opens {
    /// Adds an open and says where it lies.
    pub fn insert(&mut self, open: Open) -> Slot {
        if let Some(more) = &mut self.more {
            more.counts.add(open.access(), open.share);
        }
        match &self.first {
            None => {
                self.first = Some(open);
                Slot(0)
            }
            Some(first) => {
                let more = self.more.get_or_insert_with(|| {
                    let mut more = Box::<More>::default();
                    more.counts.add(first.access(), first.share);
                    more.counts.add(open.access(), open.share);
                    more
                });
                more.insert(open)
            }
        }
    }

    /// Takes an open out, if that very open still lies there.
    pub fn remove(&mut self, slot: Slot, id: HandleId) -> Option<Open> {
        self.get(slot, id)?;
        let open = match slot.0 {
            0 => self.first.take(),
            _ => self.more.as_mut().and_then(|more| more.remove(slot)),
        }?;
        if let Some(more) = &mut self.more {
            more.counts.remove(open.access(), open.share);
        }
        Some(open)
    }

    /// The open at a slot, if it is still the one of that identity.
    pub fn get(&self, slot: Slot, id: HandleId) -> Option<&Open> {
        self.at(slot).filter(|open| open.id == id)
    }

    fn at(&self, slot: Slot) -> Option<&Open> {
        match slot.0 {
            0 => self.first.as_ref(),
            n => match self.more.as_ref()?.entries.get(n as usize - 1) {
                Some(Entry::Used(open)) => Some(open),
                _ => None,
            },
        }
    }

    fn at_mut(&mut self, slot: Slot, id: HandleId) -> Option<&mut Open> {
        let open = match slot.0 {
            0 => self.first.as_mut(),
            n => match self.more.as_mut()?.entries.get_mut(n as usize - 1) {
                Some(Entry::Used(open)) => Some(open),
                _ => None,
            },
        };
        open.filter(|open| open.id == id)
    }

    /// Remembers that the holder's last descriptor was closed; says whether the open is there.
    pub fn set_flushed(&mut self, slot: Slot, id: HandleId) -> bool {
        self.at_mut(slot, id).map(|open| open.flushed = true).is_some()
    }

    /// Finds an open by its identity alone.
    pub fn find(&self, id: HandleId) -> Option<(Slot, &Open)> {
        self.iter().find(|(_, open)| open.id == id)
    }

    /// All opens, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &Open)> {
        let entries = self.more.iter().flat_map(|more| &more.entries);
        let more = (1..).zip(entries).filter_map(|(index, entry)| match entry {
            Entry::Used(open) => Some((Slot(index), open)),
            Entry::Free { .. } => None,
        });
        self.first.iter().map(|open| (Slot(0), open)).chain(more)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.as_ref().map_or(0, |more| more.live as usize)
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.first.is_none() && self.more.as_ref().is_none_or(|more| more.live == 0)
    }

    /// Why `(access, share)` cannot be opened beside these; nothing if it can.
    fn cause(&self, access: Access, share: ShareMode) -> Option<Cause> {
        if let Some(more) = &self.more {
            return more.counts.cause(access, share);
        }
        let mut alone = ShareCounts::default();
        let first = self.first.as_ref()?;
        alone.add(first.access(), first.share);
        alone.cause(access, share)
    }

    /// May `(access, share)` be opened beside these? If not: which half of the rule refuses, and
    /// an open that is in the way.
    pub fn check(&mut self, access: Access, share: ShareMode) -> Result<(), (Clash, &Open)> {
        let Some(cause) = self.cause(access, share) else { return Ok(()) };
        let is_it = |open: &Open| cause.is(open.access(), open.share);
        let suspect = Slot(self.more.as_ref().map_or(0, |more| more.suspects[cause.index()]));
        let slot = match self.at(suspect) {
            Some(open) if is_it(open) => suspect,
            _ => self.iter().find(|(_, open)| is_it(open)).expect("it was counted").0,
        };
        if let Some(more) = &mut self.more {
            more.suspects[cause.index()] = slot.0;
        }
        Err((cause.clash, self.at(slot).expect("found above")))
    }

    /// Changes what an open tolerates, if every other open could have been granted beside it so;
    /// none if the open is gone.
    pub fn set_share(
        &mut self,
        slot: Slot,
        id: HandleId,
        share: ShareMode,
    ) -> Option<Result<(), (Clash, &Open)>> {
        let open = self.get(slot, id)?;
        let (access, before) = (open.access(), open.share);
        if let Some(more) = &mut self.more {
            more.counts.remove(access, before);
            let cause = more.counts.cause(access, share);
            more.counts.add(access, if cause.is_none() { share } else { before });
            if let Some(cause) = cause {
                let mut others = self.iter().map(|(_, open)| open).filter(|open| open.id != id);
                let other = others.find(|open| cause.is(open.access(), open.share));
                return Some(Err((cause.clash, other.expect("it was counted"))));
            }
        }
        self.at_mut(slot, id)?.share = share;
        Some(Ok(()))
    }
}

impl More {
    fn insert(&mut self, open: Open) -> Slot {
        self.live += 1;
        let Some(index) = self.free else {
            self.entries.push(Entry::Used(open));
            let slot = u32::try_from(self.entries.len()).expect("opens of a file are limited");
            return Slot(slot);
        };
        let entry = &mut self.entries[index as usize];
        let Entry::Free { next } = *entry else { unreachable!("the free list holds free entries") };
        self.free = next;
        *entry = Entry::Used(open);
        Slot(index + 1)
    }

    fn remove(&mut self, slot: Slot) -> Option<Open> {
        let index = slot.0.checked_sub(1)?;
        let entry = self.entries.get_mut(index as usize)?;
        let Entry::Used(open) = std::mem::replace(entry, Entry::Free { next: self.free }) else {
            unreachable!("a slot is looked at before it is emptied")
        };
        self.free = Some(index);
        self.live -= 1;
        Some(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::open;

    #[test]
    fn a_slot_is_reused_but_answers_only_for_its_own_handle() {
        let mut opens = Opens::default();
        for kept in 0..2 {
            let first = opens.insert(open(10 + kept, Access::R, ShareMode::RWD));
            assert_eq!(opens.remove(first, HandleId(10 + kept)).unwrap().id, HandleId(10 + kept));
            let second = opens.insert(open(20 + kept, Access::R, ShareMode::RWD));
            assert_eq!(first, second);
            assert!(opens.get(first, HandleId(10 + kept)).is_none());
            assert!(opens.remove(first, HandleId(10 + kept)).is_none());
            assert_eq!(opens.iter().count(), opens.len());
            assert!(opens.find(HandleId(20 + kept)).is_some());
        }
        assert_eq!(opens.len(), 2);
    }

    #[test]
    fn the_open_in_the_way_is_found_again_after_it_moved_and_gone_after_it_closed() {
        let mut opens = Opens::default();
        for id in 0..10 {
            opens.insert(open(id, Access::R, ShareMode::RWD));
        }
        let blocker = opens.insert(open(77, Access::R, ShareMode::R));
        let blames = |opens: &mut Opens, access| {
            opens.check(access, ShareMode::RWD).err().map(|(_, open)| open.id)
        };
        for _ in 0..3 {
            assert_eq!(blames(&mut opens, Access::W), Some(HandleId(77)));
        }
        assert_eq!(blames(&mut opens, Access::R), None);
        let other = opens.insert(open(78, Access::R, ShareMode::RW));
        assert_eq!(blames(&mut opens, Access::D), Some(HandleId(77)));
        opens.remove(blocker, HandleId(77));
        assert_eq!(blames(&mut opens, Access::W), None);
        assert_eq!(blames(&mut opens, Access::D), Some(HandleId(78)));
        opens.remove(other, HandleId(78));
        assert_eq!(blames(&mut opens, Access::D), None);
    }

    #[test]
    fn an_open_is_small_and_the_first_one_brings_nothing_with_it() {
        assert_eq!(size_of::<Open>(), 64);
        assert_eq!(size_of::<Opens>(), 72);
    }
}
