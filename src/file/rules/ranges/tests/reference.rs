//! The rules once more, as slowly and plainly as possible: SMB locks in a list that is always
//! searched whole, `fcntl` locks as one cell per owner and byte.

use std::collections::BTreeMap;

use super::{Exclusive, LockKind, Shared};

/// `fcntl` locks of the reference lie within this many bytes.
pub const BYTES: u64 = 32;
/// `fcntl` lock owners are 0, 1, ... below this.
pub const OWNERS: u64 = 4;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Who {
    Handle(u64),
    Posix(u64),
}

/// A lock from `start` up to `end`, which is not part of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Entry {
    pub who: Who,
    pub handle: u64,
    pub start: u128,
    pub end: u128,
    pub exclusive: bool,
}

impl Entry {
    pub fn kind(&self) -> LockKind {
        if self.exclusive { Exclusive } else { Shared }
    }

    fn meets(&self, start: u128, end: u128) -> bool {
        if start == end {
            return self.start < start && start < self.end;
        }
        if self.start == self.end {
            return start < self.start && self.start < end;
        }
        self.start.max(start) < self.end.min(end)
    }
}

#[derive(Default)]
pub struct Reference {
    smb: Vec<Entry>,
    /// The lock of an owner on a byte: exclusive or not, and through which handle.
    cells: BTreeMap<(u64, u128), (bool, u64)>,
    waiting: Vec<(u64, Entry)>,
}

impl Reference {
    /// All locks; neighbouring cells that are alike are one.
    pub fn entries(&self) -> Vec<Entry> {
        let mut all = self.smb.clone();
        for (&(owner, byte), &(exclusive, handle)) in &self.cells {
            let cell =
                Entry { who: Who::Posix(owner), handle, start: byte, end: byte + 1, exclusive };
            match all.last_mut() {
                Some(run) if cell == (Entry { start: run.end, end: run.end + 1, ..*run }) => {
                    run.end += 1;
                }
                _ => all.push(cell),
            }
        }
        all
    }

    /// True if `held` keeps `asked` from being granted.
    pub fn stops_lock(held: &Entry, asked: &Entry) -> bool {
        let own = held.who == asked.who;
        held.meets(asked.start, asked.end)
            && match asked.who {
                Who::Handle(_) => asked.exclusive || (held.exclusive && !own),
                Who::Posix(_) => !own && (asked.exclusive || held.exclusive),
            }
    }

    /// True if `held` keeps `who` from reading or writing there.
    pub fn stops_io(held: &Entry, who: Option<Who>, write: bool, start: u128, end: u128) -> bool {
        let own = Some(held.who) == who;
        start != end
            && held.meets(start, end)
            && match (held.who, held.exclusive) {
                (Who::Posix(_), _) if own => false,
                (_, true) => !own,
                (_, false) => write,
            }
    }

    pub fn allows_io(&self, who: Option<Who>, write: bool, start: u128, end: u128) -> bool {
        let all = self.entries();
        !all.iter().any(|held| Self::stops_io(held, who, write, start, end))
    }

    pub fn allows_lock(&self, asked: &Entry) -> bool {
        !self.entries().iter().any(|held| Self::stops_lock(held, asked))
    }

    pub fn lock(&mut self, asked: Entry) -> bool {
        let granted = self.allows_lock(&asked);
        if granted {
            match asked.who {
                Who::Handle(_) => self.smb.push(asked),
                Who::Posix(owner) => {
                    for byte in asked.start..asked.end {
                        self.cells.insert((owner, byte), (asked.exclusive, asked.handle));
                    }
                }
            }
        }
        granted
    }

    /// Gives back what was unlocked: exclusive or not.
    pub fn unlock(&mut self, handle: u64, start: u128, end: u128) -> Option<bool> {
        let fits = |exclusive| {
            self.smb.iter().position(|lock| {
                let place = (lock.handle, lock.start, lock.end, lock.exclusive);
                place == (handle, start, end, exclusive)
            })
        };
        let place = fits(true).or_else(|| fits(false))?;
        Some(self.smb.remove(place).exclusive)
    }

    pub fn posix_unlock(&mut self, owner: u64, start: u128, end: u128) -> bool {
        let before = self.cells.len();
        self.cells.retain(|&(whose, byte), _| whose != owner || byte < start || byte >= end);
        self.cells.len() != before
    }

    pub fn release_taken_through(&mut self, handle: u64) -> bool {
        let before = self.smb.len() + self.cells.len();
        self.smb.retain(|lock| lock.handle != handle);
        self.cells.retain(|_, (_, through)| *through != handle);
        self.smb.len() + self.cells.len() != before
    }

    pub fn wait(&mut self, ticket: u64, asked: Entry) {
        self.waiting.push((ticket, asked));
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn cancel(&mut self, ticket: u64) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(waiting, _)| *waiting != ticket);
        self.waiting.len() != before
    }

    pub fn drop_handle(&mut self, handle: u64) -> Vec<u64> {
        let gone = self.waiting.iter().filter(|(_, asked)| asked.handle == handle);
        let gone = gone.map(|(ticket, _)| *ticket).collect();
        self.waiting.retain(|(_, asked)| asked.handle != handle);
        gone
    }

    /// Offers each waiting request the lock in turn, round after round until a round is in vain.
    pub fn grant(&mut self) -> Vec<u64> {
        let mut granted = Vec::new();
        loop {
            let before = granted.len();
            for (ticket, asked) in std::mem::take(&mut self.waiting) {
                if self.lock(asked) {
                    granted.push(ticket);
                } else {
                    self.waiting.push((ticket, asked));
                }
            }
            if granted.len() == before {
                return granted;
            }
        }
    }
}
