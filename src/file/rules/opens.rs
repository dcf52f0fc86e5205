//! The opens of one file, with owner, access, share mode and time of each.
//!
//! The first open is stored in the file's state itself, since most files have one. The second
//! allocates a slab and counters, so that opening, closing and refusing cost the same with two
//! opens and with a hundred thousand. Whether an open may be added is decided in [`super::share`]
//! and [`super::create`].

use super::share::{Cause, Clash, ShareCounts, clash};
use super::{Access, Holder, Rights, ShareMode};
use crate::rules::id::{HandleId, Owner, Timestamp};

/// One open of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    pub id: HandleId,
    pub owner: Owner,
    pub rights: Rights,
    pub share: ShareMode,
    /// The link is marked when this open closes (delete-on-close).
    pub delete_on_close: bool,
    /// When a descriptor of it was last seen closing: milliseconds since the grant, plus one; 0
    /// if none was. The highest bit says that an earlier one was seen too. In 32 bits, since an
    /// open costs memory a million times.
    pub flushed: u32,
    /// It is open on a directory.
    pub directory: bool,
    /// Number of the link it was opened by, in [`super::links::Links`].
    pub link: u32,
    /// When it was granted.
    pub since: Timestamp,
}

/// How long a flush counts as the announcement of a release. The kernel sends the release right
/// after the last descriptor closes; one that does not come in that time is none: the holder
/// closed a copy (a child process does at its start) and goes on.
pub const FLUSH_COUNTS_NANOS: i64 = 500_000_000;

/// The same of an open that has outlived a flush: several processes have its descriptor, as the
/// children of a shell have those of the shell, and each that ends flushes once more.
pub const REPEATED_FLUSH_COUNTS_NANOS: i64 = 50_000_000;

/// A flush that comes so long after the one before counts as a first one: what closed its copy then
/// has ended.
const REPEATED_MILLIS: u32 = 10_000;

/// The bit of [`Open::flushed`] that says that it is not the first.
const REPEATED: u32 = 1 << 31;

const MILLISECOND_NANOS: i64 = 1_000_000;

impl Open {
    /// True if a descriptor of it was closed just now: its release may be on its way.
    pub fn is_flushed(&self, now: Timestamp) -> bool {
        let Some(millis) = (self.flushed & !REPEATED).checked_sub(1) else { return false };
        let is_repeated = self.flushed & REPEATED != 0;
        let counts = if is_repeated { REPEATED_FLUSH_COUNTS_NANOS } else { FLUSH_COUNTS_NANOS };
        let at = self.since.0.saturating_add(i64::from(millis) * MILLISECOND_NANOS);
        // Rounded down to a millisecond above; a clock that was set back ends the wait.
        (0..=counts).contains(&now.0.saturating_sub(at))
    }

    fn set_flushed(&mut self, now: Timestamp) {
        let millis = now.0.saturating_sub(self.since.0).max(0) / MILLISECOND_NANOS;
        let millis = u32::try_from(millis).unwrap_or(u32::MAX).min(REPEATED - 2);
        let last = (self.flushed & !REPEATED).checked_sub(1);
        let is_repeated = last.is_some_and(|last| millis.saturating_sub(last) < REPEATED_MILLIS);
        let repeated = if is_repeated { REPEATED } else { 0 };
        self.flushed = (millis + 1) | repeated;
    }

    /// The part of its rights that counts in the share check.
    pub fn access(&self) -> Access {
        self.rights.access()
    }

    /// The description of this open in a refusal.
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

/// The place of an open: 0 is that of the first one, the others are in the slab.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct OpenSlot(u32);

#[derive(Clone, Debug)]
enum SlabEntry {
    Used(Open),
    Free { next: Option<u32> },
}

/// All opens of one file.
#[derive(Clone, Debug, Default)]
pub struct FileOpens {
    first: Option<Open>,
    /// Made with the second open, and kept until the file is forgotten.
    more: Option<Box<More>>,
}

#[derive(Clone, Debug, Default)]
struct More {
    /// Slots from 1 on.
    entries: Vec<SlabEntry>,
    free: Option<u32>,
    live: u32,
    /// Of all opens, the first included.
    counts: ShareCounts,
    /// The last time that any of the opens was flushed.
    last_flush: Timestamp,
    /// For each cause the open that was in the way last time, looked at first: repeated refusals
    /// stay cheap however many opens there are.
    suspects: [u32; Cause::COUNT],
}

impl FileOpens {
    /// Adds an open and returns its place.
    pub fn insert(&mut self, open: Open) -> OpenSlot {
        if let Some(more) = &mut self.more {
            more.counts.add(open.access(), open.share);
        }
        match &self.first {
            None => {
                self.first = Some(open);
                OpenSlot(0)
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

    /// Removes an open, if the place still holds that open.
    pub fn remove(&mut self, slot: OpenSlot, id: HandleId) -> Option<Open> {
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
    pub fn get(&self, slot: OpenSlot, id: HandleId) -> Option<&Open> {
        self.at(slot).filter(|open| open.id == id)
    }

    fn at(&self, slot: OpenSlot) -> Option<&Open> {
        match slot.0 {
            0 => self.first.as_ref(),
            n => match self.more.as_ref()?.entries.get(n as usize - 1) {
                Some(SlabEntry::Used(open)) => Some(open),
                _ => None,
            },
        }
    }

    fn at_mut(&mut self, slot: OpenSlot, id: HandleId) -> Option<&mut Open> {
        let open = match slot.0 {
            0 => self.first.as_mut(),
            n => match self.more.as_mut()?.entries.get_mut(n as usize - 1) {
                Some(SlabEntry::Used(open)) => Some(open),
                _ => None,
            },
        };
        open.filter(|open| open.id == id)
    }

    /// Remembers that a descriptor of the holder was closed; says whether the open is there.
    pub fn set_flushed(&mut self, slot: OpenSlot, id: HandleId, now: Timestamp) -> bool {
        let found = self.at_mut(slot, id).map(|open| open.set_flushed(now)).is_some();
        if found && let Some(more) = &mut self.more {
            more.last_flush = now;
        }
        found
    }

    /// False if no open was flushed just now. Takes the same time however many there are.
    pub fn may_be_flushed(&self, now: Timestamp) -> bool {
        let first = self.first.as_ref().is_some_and(|open| open.is_flushed(now));
        let age = |more: &More| now.0.saturating_sub(more.last_flush.0);
        first || self.more.as_ref().is_some_and(|more| age(more).abs() <= FLUSH_COUNTS_NANOS)
    }

    /// True if every open in the way of `(access, share)` was flushed just now, or none is in the
    /// way. Looks at all opens only while one of them was flushed.
    pub fn all_in_the_way_flushed(&self, access: Access, share: ShareMode, now: Timestamp) -> bool {
        let stays =
            |open: &Open| !open.is_flushed(now) && clash(access, share, open.access(), open.share);
        self.cause(access, share).is_none()
            || self.may_be_flushed(now) && !self.iter().any(|(_, open)| stays(open))
    }

    /// Finds an open by its identity alone.
    pub fn find(&self, id: HandleId) -> Option<(OpenSlot, &Open)> {
        self.iter().find(|(_, open)| open.id == id)
    }

    /// All opens, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (OpenSlot, &Open)> {
        let entries = self.more.iter().flat_map(|more| &more.entries);
        let more = (1..).zip(entries).filter_map(|(index, entry)| match entry {
            SlabEntry::Used(open) => Some((OpenSlot(index), open)),
            SlabEntry::Free { .. } => None,
        });
        self.first.iter().map(|open| (OpenSlot(0), open)).chain(more)
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
        let suspect = OpenSlot(self.more.as_ref().map_or(0, |more| more.suspects[cause.index()]));
        let slot = match self.at(suspect) {
            Some(open) if is_it(open) => suspect,
            _ => self.iter().find(|(_, open)| is_it(open)).expect("it was counted").0,
        };
        if let Some(more) = &mut self.more {
            more.suspects[cause.index()] = slot.0;
        }
        Err((cause.clash, self.at(slot).expect("found above")))
    }

    /// Changes the share mode of an open, if no other open conflicts with the new one; `None` if
    /// the open is gone.
    pub fn set_share(
        &mut self,
        slot: OpenSlot,
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
    fn insert(&mut self, open: Open) -> OpenSlot {
        self.live += 1;
        let Some(index) = self.free else {
            self.entries.push(SlabEntry::Used(open));
            let slot = u32::try_from(self.entries.len()).expect("opens of a file are limited");
            return OpenSlot(slot);
        };
        let entry = &mut self.entries[index as usize];
        let SlabEntry::Free { next } = *entry else {
            unreachable!("the free list holds free entries")
        };
        self.free = next;
        *entry = SlabEntry::Used(open);
        OpenSlot(index + 1)
    }

    fn remove(&mut self, slot: OpenSlot) -> Option<Open> {
        let index = slot.0.checked_sub(1)?;
        let entry = self.entries.get_mut(index as usize)?;
        let SlabEntry::Used(open) = std::mem::replace(entry, SlabEntry::Free { next: self.free })
        else {
            unreachable!("a slot is looked at before it is emptied")
        };
        self.free = Some(index);
        self.live -= 1;
        Some(open)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::open;
    use super::*;

    #[test]
    fn a_slot_is_reused_but_answers_only_for_its_own_handle() {
        let mut opens = FileOpens::default();
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
        let mut opens = FileOpens::default();
        for id in 0..10 {
            opens.insert(open(id, Access::R, ShareMode::RWD));
        }
        let blocker = opens.insert(open(77, Access::R, ShareMode::R));
        let blames = |opens: &mut FileOpens, access| {
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
    fn a_first_flush_counts_for_half_a_second_and_further_ones_for_a_tenth_of_that() {
        let at = |millis: i64| Timestamp(1_000_000_000 + millis * MILLISECOND_NANOS);
        for others in [0, 10] {
            let mut opens = FileOpens::default();
            let slot = opens.insert(open(1, Access::R, ShareMode::NONE));
            for other in 0..others {
                opens.insert(open(10 + other, Access::NONE, ShareMode::RWD));
            }
            let free = |opens: &FileOpens, now| {
                opens.all_in_the_way_flushed(Access::R, ShareMode::RWD, now)
            };
            assert!(!free(&opens, at(0)), "{others} others");
            assert!(opens.set_flushed(slot, HandleId(1), at(5)));
            assert!(free(&opens, at(5)) && free(&opens, at(505)), "{others} others");
            assert!(!free(&opens, at(507)) && !free(&opens, at(0)), "{others} others");
            // It has outlived the first flush: another process has its descriptor too.
            assert!(opens.set_flushed(slot, HandleId(1), at(600)));
            assert!(free(&opens, at(650)) && !free(&opens, at(652)), "{others} others");
            // That process has ended since.
            assert!(opens.set_flushed(slot, HandleId(1), at(20_000)));
            assert!(free(&opens, at(20_400)), "{others} others");
            opens.remove(slot, HandleId(1));
            assert!(free(&opens, at(22_000)), "{others} others");
        }
    }

    #[test]
    fn an_open_is_small_and_the_first_one_brings_nothing_with_it() {
        assert_eq!(size_of::<Open>(), 64);
        assert_eq!(size_of::<FileOpens>(), 72);
    }
}
