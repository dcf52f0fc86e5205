//! Random steps on the table and on the slow reference at once. A failure names seed and step;
//! `LATCHFS_TEST_SEED=n` runs another seed.

use super::super::{ByteRange, LockConflict, LockOwner, RangeLock, Ticket};
use super::reference::{BYTES, Entry, OWNERS, Reference, Who};
use super::{HandleId, RangeTable};

const STEPS: u32 = 300_000;
const HANDLES: u64 = 4;
/// Beyond this many locks a handle is closed first, so that a step stays cheap.
const LOCKS_MAX: usize = 40;
/// The most locks in runs where requests wait: with many locks hardly any would ever be granted.
const LOCKS_MAX_WAITING: usize = 8;
/// Requests that wait at a time.
const WAITING_MAX: usize = 4;
/// A run with fewer late grants than this has not tested waiting.
const GRANTED_LATE_MIN: usize = 5_000;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Offset and length within [`BYTES`], zero length included.
fn narrow(random: &mut Random) -> (u64, u64) {
    let offset = random.below(BYTES);
    (offset, random.below((BYTES - offset).min(9) + 1))
}

/// Offsets and lengths around the powers of two, up to the end of the space.
fn wide(random: &mut Random) -> (u64, u64) {
    let mut around_a_power = || {
        let power = 1u64.checked_shl(u32::try_from(random.below(66)).expect("small"));
        let near = random.below(7);
        power.unwrap_or(u64::MAX).saturating_add(near).saturating_sub(3)
    };
    let offset = around_a_power();
    let length = around_a_power();
    match random.below(4) {
        0 => (offset, random.below(4)),
        1 => (random.below(20), length.min(u64::MAX - 19)),
        _ => (offset, length.min(u64::MAX - offset)),
    }
}

struct World {
    table: RangeTable,
    reference: Reference,
    random: Random,
    place: fn(&mut Random) -> (u64, u64),
    /// SMB steps, `fcntl` steps.
    flavours: (bool, bool),
    waiting: bool,
    tickets: u64,
    granted_late: usize,
}

impl World {
    fn run(name: &str, default_seed: u64, mut world: Self) {
        let given = std::env::var("LATCHFS_TEST_SEED").ok();
        let seed = given.map_or(default_seed, |text| text.parse().expect("a number"));
        println!("{name}: seed {seed}");
        world.random = Random(seed);
        for step in 0..STEPS {
            let agreed = world.step(step);
            assert!(agreed.is_ok(), "seed {seed}, step {step}: {}", agreed.unwrap_err());
        }
        assert!(
            !world.waiting || world.granted_late >= GRANTED_LATE_MIN,
            "only {} waits were granted",
            world.granted_late
        );
    }

    fn new(place: fn(&mut Random) -> (u64, u64), flavours: (bool, bool), waiting: bool) -> Self {
        Self {
            table: RangeTable::default(),
            reference: Reference::default(),
            random: Random(0),
            place,
            flavours,
            waiting,
            tickets: 0,
            granted_late: 0,
        }
    }

    fn step(&mut self, step: u32) -> Result<(), String> {
        let crowd = if self.waiting { LOCKS_MAX_WAITING } else { LOCKS_MAX };
        if self.table.locks.len() > crowd {
            let handle = self.random.below(HANDLES);
            self.release_taken_through(handle)?;
        }
        match self.random.below(100) {
            0..45 => self.lock()?,
            45..65 => self.unlock()?,
            65..96 => return self.io(),
            96..98 => self.cancel()?,
            _ => self.release()?,
        }
        if self.waiting {
            self.grant()?;
        }
        if step.is_multiple_of(16) {
            self.compare_tables()?;
        }
        Ok(())
    }

    fn who(&mut self) -> Who {
        let posix = match self.flavours {
            (true, true) => self.random.below(2) == 0,
            (smb, _) => !smb,
        };
        if posix {
            Who::Posix(self.random.below(OWNERS))
        } else {
            Who::Handle(self.random.below(HANDLES))
        }
    }

    /// A place `who` can name: `fcntl` knows no range without bytes.
    fn place(&mut self, who: Who) -> (ByteRange, u128, u128) {
        let (offset, mut length) = (self.place)(&mut self.random);
        if matches!(who, Who::Posix(_)) {
            length = length.max(1);
        }
        let range = ByteRange::new(offset, length).expect("made to fit");
        (range, u128::from(offset), u128::from(offset) + u128::from(length))
    }

    fn lock(&mut self) -> Result<(), String> {
        let who = self.who();
        let (range, start, end) = self.place(who);
        let handle = match who {
            Who::Handle(handle) => handle,
            // Mostly the owner's own open, now and then another.
            Who::Posix(owner) => (owner + self.random.below(8) / 7) % HANDLES,
        };
        let exclusive = self.random.below(3) == 0;
        let asked = Entry { who, handle, start, end, exclusive };
        let lock = RangeLock {
            range,
            kind: asked.kind(),
            owner: owner(who),
            handle: HandleId(handle),
            pid: 0,
        };
        if let Who::Posix(owner) = who {
            let told = self.table.locks.posix_test(owner, lock.kind, range);
            same("posix_test", told.is_none(), self.reference.allows_lock(&asked))?;
        }
        let answer = self.table.locks.lock(lock);
        if let Err(conflict) = answer {
            let held = entry(&conflict.holder);
            same("a holder in the way", Reference::stops_lock(&held, &asked), true)?;
        }
        let granted = self.reference.lock(asked);
        same(&format!("{asked:?}"), answer.is_ok(), granted)?;
        if !granted && self.waiting && self.reference.waiting() < WAITING_MAX {
            self.tickets += 1;
            self.reference.wait(self.tickets, asked);
            let room = self.table.waiters.wait(Ticket(self.tickets), lock);
            same("room to wait", room, Ok(()))?;
        }
        Ok(())
    }

    fn unlock(&mut self) -> Result<(), String> {
        let who = self.who();
        let (mut range, mut start, mut end) = self.place(who);
        match who {
            Who::Handle(handle) => {
                // A blind guess seldom matches, so mostly name a lock that exists.
                let count = self.table.locks.len() as u64;
                if count > 0 && self.random.below(4) > 0 {
                    let nth = usize::try_from(self.random.below(count)).expect("small");
                    let lock = self.table.locks.iter().nth(nth).expect("below the count");
                    range = lock.range;
                    (start, end) = (entry(lock).start, entry(lock).end);
                }
                let got = self.table.locks.unlock(HandleId(handle), range);
                let got = got.ok().map(|lock| entry(&lock).exclusive);
                same("unlock", got, self.reference.unlock(handle, start, end))
            }
            Who::Posix(owner) => {
                let got = self.table.locks.posix_unlock(owner, range);
                same("posix unlock", got, self.reference.posix_unlock(owner, start, end))
            }
        }
    }

    fn io(&mut self) -> Result<(), String> {
        let known = self.random.below(5) > 0;
        let who = self.who();
        // Zero bytes are a fair read for anyone.
        let (range, start, end) = self.place(Who::Handle(0));
        let who = known.then_some(who);
        let write = self.random.below(2) == 0;
        let locks = &self.table.locks;
        let got: Result<(), LockConflict> = if write {
            locks.check_write(who.map(owner), range)
        } else {
            locks.check_read(who.map(owner), range)
        };
        if let Err(conflict) = got {
            let held = entry(&conflict.holder);
            let real = Reference::stops_io(&held, who, write, start, end);
            same("a holder in the way of I/O", real, true)?;
        }
        let expected = self.reference.allows_io(who, write, start, end);
        same(&format!("{who:?} write {write} at {range}"), got.is_ok(), expected)
    }

    fn release(&mut self) -> Result<(), String> {
        let handle = self.random.below(HANDLES);
        let locks = &mut self.table.locks;
        if self.random.below(3) == 0 {
            let got = locks.release_posix(handle);
            let expected = self.reference.posix_unlock(handle, 0, u128::from(BYTES));
            same("release_posix", got, expected)
        } else {
            self.release_taken_through(handle)
        }
    }

    fn release_taken_through(&mut self, handle: u64) -> Result<(), String> {
        let got = self.table.waiters.drop_handle(HandleId(handle));
        let got: Vec<_> = got.iter().map(|ticket| ticket.0).collect();
        same("dropped waiters", got, self.reference.drop_handle(handle))?;
        let got = self.table.locks.release_taken_through(HandleId(handle));
        same("release_taken_through", got, self.reference.release_taken_through(handle))
    }

    /// Cancels one of the latest tickets, which may wait or have had its answer.
    fn cancel(&mut self) -> Result<(), String> {
        let ticket = self.tickets.saturating_sub(self.random.below(8));
        let got = self.table.waiters.cancel(Ticket(ticket));
        same("cancel", got, self.reference.cancel(ticket))
    }

    fn grant(&mut self) -> Result<(), String> {
        let granted = self.table.grant();
        self.granted_late += granted.len();
        let got: Vec<_> = granted.iter().map(|(ticket, _)| ticket.0).collect();
        same("granted waiters", got, self.reference.grant())
    }

    fn compare_tables(&self) -> Result<(), String> {
        let mut got: Vec<_> = self.table.locks.iter().map(entry).collect();
        let mut expected = self.reference.entries();
        got.sort_unstable();
        expected.sort_unstable();
        same("the locks held", got, expected)
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Result<(), String> {
    match (got, expected) {
        (got, expected) if got == expected => Ok(()),
        (got, expected) => Err(format!("{what}: got {got:?}, expected {expected:?}")),
    }
}

fn owner(who: Who) -> LockOwner {
    match who {
        Who::Handle(handle) => LockOwner::Handle(HandleId(handle)),
        Who::Posix(owner) => LockOwner::Posix(owner),
    }
}

fn entry(lock: &RangeLock) -> Entry {
    let start = u128::from(lock.range.start());
    Entry {
        who: match lock.owner {
            LockOwner::Handle(handle) => Who::Handle(handle.0),
            LockOwner::Posix(owner) => Who::Posix(owner),
        },
        handle: lock.handle.0,
        start,
        end: start + lock.range.length(),
        exclusive: lock.kind == super::Exclusive,
    }
}

#[test]
fn smb_locks_agree_with_a_list_searched_whole() {
    World::run("smb", 1, World::new(narrow, (true, false), false));
}

#[test]
fn smb_locks_of_every_length_agree_with_a_list_searched_whole() {
    World::run("smb, wide", 2, World::new(wide, (true, false), false));
}

#[test]
fn fcntl_locks_agree_with_one_cell_per_byte() {
    World::run("fcntl", 3, World::new(narrow, (false, true), false));
}

#[test]
fn both_flavours_and_waiting_requests_agree_with_the_reference() {
    World::run("mixed", 4, World::new(narrow, (true, true), true));
}
