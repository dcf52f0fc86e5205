//! The opens of one file: who holds what since when.
//!
//! A slab, so that opening and closing cost the same with one open or a hundred thousand.
//! Whether an open may be added is decided in [`super::share`] and [`super::create`].

use super::id::{HandleId, Owner, Timestamp};
use super::share::clash;
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

/// Where an open lies in the slab.
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
    entries: Vec<Entry>,
    free: Option<u32>,
    live: u32,
    /// The open that was in the way last time, looked at first: repeated refusals stay cheap
    /// however many opens there are.
    suspect: u32,
}

impl Opens {
    /// Adds an open and says where it lies.
    pub fn insert(&mut self, open: Open) -> Slot {
        self.live += 1;
        let Some(index) = self.free else {
            if self.entries.is_empty() {
                // Most files are opened once: do not reserve for four.
                self.entries.reserve_exact(1);
            }
            let index = u32::try_from(self.entries.len()).expect("opens of a file are limited");
            self.entries.push(Entry::Used(open));
            return Slot(index);
        };
        let entry = &mut self.entries[index as usize];
        let Entry::Free { next } = *entry else { unreachable!("the free list holds free entries") };
        self.free = next;
        *entry = Entry::Used(open);
        Slot(index)
    }

    /// Takes an open out, if that very open still lies there.
    pub fn remove(&mut self, slot: Slot, id: HandleId) -> Option<Open> {
        self.get(slot, id)?;
        let free = Entry::Free { next: self.free };
        let Entry::Used(open) = std::mem::replace(&mut self.entries[slot.0 as usize], free) else {
            unreachable!("get() found it used")
        };
        self.free = Some(slot.0);
        self.live -= 1;
        Some(open)
    }

    /// The open at a slot, if it is still the one of that identity.
    pub fn get(&self, slot: Slot, id: HandleId) -> Option<&Open> {
        match self.entries.get(slot.0 as usize) {
            Some(Entry::Used(open)) if open.id == id => Some(open),
            _ => None,
        }
    }

    /// The same, to change it. The rights and share of an open are changed only together with
    /// the counters, by [`super::file::FileState`].
    pub(super) fn get_mut(&mut self, slot: Slot, id: HandleId) -> Option<&mut Open> {
        match self.entries.get_mut(slot.0 as usize) {
            Some(Entry::Used(open)) if open.id == id => Some(open),
            _ => None,
        }
    }

    /// Finds an open by its identity alone.
    pub fn find(&self, id: HandleId) -> Option<(Slot, &Open)> {
        self.iter().find(|(_, open)| open.id == id)
    }

    /// All opens, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &Open)> {
        self.entries.iter().zip(0..).filter_map(|(entry, index)| match entry {
            Entry::Used(open) => Some((Slot(index), open)),
            Entry::Free { .. } => None,
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.live as usize
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// The open that refuses `(access, share)`; none if the counters let it pass.
    pub fn in_the_way(&mut self, access: Access, share: ShareMode) -> Option<&Open> {
        let clashes = |open: &Open| clash(access, share, open.access(), open.share);
        let suspect = self.suspect as usize;
        let suspected = matches!(self.entries.get(suspect), Some(Entry::Used(o)) if clashes(o));
        if !suspected {
            let (Slot(index), _) = self.iter().find(|(_, open)| clashes(open))?;
            self.suspect = index;
        }
        match &self.entries[self.suspect as usize] {
            Entry::Used(open) => Some(open),
            Entry::Free { .. } => unreachable!("a clashing open is in use"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::open;

    #[test]
    fn a_slot_is_reused_but_answers_only_for_its_own_handle() {
        let mut opens = Opens::default();
        let first = opens.insert(open(1, Access::R, ShareMode::RWD));
        assert_eq!(opens.remove(first, HandleId(1)).unwrap().id, HandleId(1));
        let second = opens.insert(open(2, Access::R, ShareMode::RWD));
        assert_eq!(first, second);
        assert!(opens.get(first, HandleId(1)).is_none());
        assert!(opens.remove(first, HandleId(1)).is_none());
        assert_eq!(opens.len(), 1);
        assert!(opens.find(HandleId(2)).is_some());
    }

    #[test]
    fn the_open_in_the_way_is_found_again_after_it_moved_and_gone_after_it_closed() {
        let mut opens = Opens::default();
        for id in 0..10 {
            opens.insert(open(id, Access::R, ShareMode::RWD));
        }
        let blocker = opens.insert(open(77, Access::R, ShareMode::R));
        for _ in 0..3 {
            assert_eq!(
                opens.in_the_way(Access::W, ShareMode::RWD).map(|o| o.id),
                Some(HandleId(77))
            );
        }
        assert!(opens.in_the_way(Access::R, ShareMode::RWD).is_none());
        opens.remove(blocker, HandleId(77));
        assert!(opens.in_the_way(Access::W, ShareMode::RWD).is_none());
    }
}
