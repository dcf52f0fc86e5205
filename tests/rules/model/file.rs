//! Random steps on the state of one file (`core::file::FileState`), each compared with the rules
//! as [`super::rules`] has them: grants, refusals, who is blamed, and what is left afterwards.

use latchfs::file::rules::create::{CreateAction, Disposition, ExistingFile, OpenRequest, Options};
use latchfs::file::rules::file::{DeleteFacts, Ending, FileState, OpenGrant};
use latchfs::file::rules::momentary::Circumstances;
use latchfs::file::rules::opens::OpenSlot;
use latchfs::file::rules::ranges::{ByteRange, LockKind};
use latchfs::file::rules::{Access, Attributes, FileOperation, Rights, ShareMode, SharePath};
use latchfs::rules::{FileLease, HandleId, LeaseId, Owner, Timestamp};

use super::demands::needs;
use super::random::{History, Random, seeds, steps};
use super::rules::{Asked, D, Ended, Facts, Lease, R, Request, Rules, W, agree, no};
use crate::common::asking::{owner, path};

const SEEDS: u64 = 8;
const STEPS: usize = 1_200_000;
const OPENS_MAX: usize = 7;
const LOCKS_MAX: usize = 12;
/// The time of every step: the clock stands still.
const NOW: Timestamp = Timestamp(0);
const NAMES: [&str; 4] = ["a", "b", "d/a", "d/c"];

/// Rights with the letters they count as, and whether they grant delete and write.
const RIGHTS: [(Rights, u8, bool, bool); 13] = [
    (Rights::READ_DATA, R, false, false),
    (Rights::WRITE_DATA, W, false, true),
    (Rights::APPEND_DATA, W, false, false),
    (Rights::EXECUTE, R, false, false),
    (Rights::DELETE, D, true, false),
    (Rights::READ_ATTRIBUTES, 0, false, false),
    (Rights::WRITE_ATTRIBUTES, 0, false, false),
    (Rights::SYNCHRONIZE, 0, false, false),
    (Rights::READ_CONTROL, 0, false, false),
    (Rights::GENERIC_READ, R, false, false),
    (Rights::GENERIC_WRITE, W, false, true),
    (Rights::GENERIC_EXECUTE, R, false, false),
    (Rights::MAXIMUM_ALLOWED, R | W | D, true, true),
];

/// One step. Handles are numbers in the list of live ones; the one past it is a closed one.
#[derive(Clone, Copy, Debug)]
enum Op {
    Open { asked: Asked, rights: Rights, name: usize },
    Close { handle: usize, forced: bool },
    Dispose { handle: usize, delete: bool },
    Mark { name: usize },
    Undelete { name: usize },
    Rename { handle: usize, to: usize },
    SetShare { handle: usize, share: u8 },
    Lock { handle: usize, wanted: [(u64, u64, bool); 2], count: usize },
    Unlock { handle: usize, ranges: [(u64, u64); 2], count: usize },
    Io { handle: usize, range: (u64, u64), write: bool },
    Resize { handle: usize },
    Flush { handle: usize },
    Flushed { access: u8, share: u8 },
    SetLease { lease: Lease },
    Rest { operation: FileOperation, request: Request },
    SetFacts { facts: Facts },
}

struct World {
    state: FileState,
    rules: Rules,
    paths: Vec<SharePath>,
    owner: Owner,
    handles: Vec<(OpenSlot, HandleId)>,
    closed: (OpenSlot, HandleId),
    next: u64,
    granted: usize,
    refused: usize,
}

fn an_open(random: &mut Random) -> Op {
    let (mut rights, mut access, mut may_delete, mut may_overwrite) =
        (Rights::default(), 0, false, false);
    for _ in 0..=random.below(3) {
        let (right, letters, delete, overwrite) = random.pick(&RIGHTS);
        rights |= right;
        access |= letters;
        may_delete |= delete;
        may_overwrite |= overwrite;
    }
    // Half of them share everything, or hardly a second open would be granted.
    let share = if random.once_in(2) { R | W | D } else { letters(random) };
    let disposition =
        if random.once_in(3) { random.pick(&Disposition::ALL) } else { Disposition::Open };
    let asked = Asked {
        access,
        share,
        may_delete,
        may_overwrite,
        disposition,
        delete_on_close: random.once_in(5),
        directory: random.once_in(12),
        non_directory: random.once_in(12),
        hidden: random.once_in(4),
    };
    Op::Open { asked, rights, name: random.below(NAMES.len()) }
}

fn letters(random: &mut Random) -> u8 {
    u8::try_from(random.below(8)).expect("three bits")
}

fn a_range(random: &mut Random) -> (u64, u64) {
    let near_the_end = random.once_in(16);
    let (start, length) = (random.next() % 12, random.next() % 5);
    if near_the_end { (u64::MAX - 12 + start, length.min(12 - start)) } else { (start, length) }
}

fn a_lease(random: &mut Random) -> Lease {
    let id = 1 + u8::try_from(random.below(2)).expect("small");
    random.pick(&[Lease::Available, Lease::Available, Lease::Leased(id), Lease::Broken(id)])
}

fn some_facts(random: &mut Random, directory: bool) -> Facts {
    Facts {
        directory,
        read_only: random.once_in(4),
        hidden: random.once_in(4),
        not_empty: directory && random.once_in(3),
    }
}

fn lease_id(number: u8) -> LeaseId {
    LeaseId::from_random_bytes([number; 16])
}

fn byte_range((start, length): (u64, u64)) -> ByteRange {
    ByteRange::new(start, length).expect("made to fit")
}

fn access(letters: u8) -> Access {
    Access::from_bits(letters)
}

fn share(letters: u8) -> ShareMode {
    ShareMode::from_bits(letters)
}

impl World {
    fn new(directory: bool) -> Self {
        Self {
            state: FileState::default(),
            rules: Rules { facts: Facts { directory, ..Facts::default() }, ..Rules::default() },
            paths: NAMES.map(path).to_vec(),
            owner: owner("model"),
            handles: Vec::new(),
            closed: FileState::default()
                .open(
                    &OpenRequest::plain(Access::R, ShareMode::RWD),
                    CreateAction::Created,
                    &ExistingFile { directory, attributes: Attributes::default() },
                    &path("a"),
                    OpenGrant { id: HandleId(0), owner: owner("nobody"), now: NOW },
                )
                .map(|slot| (slot, HandleId(0)))
                .expect("a first open is granted"),
            next: 1,
            granted: 0,
            refused: 0,
        }
    }

    fn step(&self, random: &mut Random) -> Op {
        let full = self.handles.len() >= OPENS_MAX || self.rules.locks.len() >= LOCKS_MAX;
        let handle = random.below(self.handles.len() + 1);
        let name = random.below(NAMES.len());
        match random.below(100) {
            _ if full && random.once_in(2) => Op::Close { handle, forced: random.once_in(4) },
            0..26 => an_open(random),
            26..40 => Op::Close { handle, forced: random.once_in(4) },
            40..48 => Op::Dispose { handle, delete: random.once_in(2) },
            48..50 => Op::Mark { name },
            50..53 => Op::Undelete { name },
            53..57 => Op::Rename { handle, to: name },
            57..61 => Op::SetShare { handle, share: letters(random) },
            61..69 => {
                let mut a_lock = || {
                    let (start, length) = a_range(random);
                    (start, length, random.once_in(2))
                };
                let wanted = [a_lock(), a_lock()];
                Op::Lock { handle, wanted, count: 1 + random.below(2) }
            }
            69..75 => {
                let ranges = [self.locked_range(random), self.locked_range(random)];
                Op::Unlock { handle, ranges, count: 1 + random.below(2) }
            }
            75..81 => Op::Io { handle, range: a_range(random), write: random.once_in(2) },
            81..83 => Op::Resize { handle },
            83..84 => Op::Flush { handle },
            84..86 => Op::Flushed { access: letters(random), share: letters(random) },
            86..89 => Op::SetLease { lease: a_lease(random) },
            89..98 => {
                let id = 1 + u8::try_from(random.below(2)).expect("small");
                let request = Request {
                    name,
                    lease_id: random.once_in(3).then_some(id),
                    copy_pending: random.once_in(5),
                    range: a_range(random),
                };
                Op::Rest { operation: random.pick(&FileOperation::ALL), request }
            }
            _ => Op::SetFacts { facts: some_facts(random, self.rules.facts.directory) },
        }
    }

    /// Mostly one that is locked: a range at random hardly ever is.
    fn locked_range(&self, random: &mut Random) -> (u64, u64) {
        if self.rules.locks.is_empty() || random.once_in(4) {
            return a_range(random);
        }
        let lock = random.pick(&self.rules.locks);
        (lock.start, lock.length)
    }

    fn handle(&self, number: usize) -> (OpenSlot, HandleId) {
        self.handles.get(number).copied().unwrap_or(self.closed)
    }

    fn facts(&self) -> DeleteFacts {
        let Facts { read_only, not_empty, .. } = self.rules.facts;
        DeleteFacts { read_only, not_empty }
    }

    fn apply(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Open { asked, rights, name } => self.open(asked, rights, name),
            Op::Close { handle, forced } => self.close(handle, forced),
            Op::Dispose { handle, delete } => {
                let (slot, id) = self.handle(handle);
                let got = self.state.set_disposition(slot, id, delete, self.facts());
                agree(got, self.rules.set_disposition(id.0, delete))
            }
            Op::Mark { name } => same(&self.state.mark(&self.paths[name]), &self.rules.mark(name)),
            Op::Undelete { name } => {
                same(&self.state.undelete(&self.paths[name]), &self.rules.undelete(name))
            }
            Op::Rename { handle, to } => self.rename(handle, to),
            Op::SetShare { handle, share: letters } => {
                let (slot, id) = self.handle(handle);
                let got = self.state.set_share(slot, id, share(letters));
                agree(got, self.rules.set_share(id.0, letters))
            }
            Op::SetLease { lease } => {
                self.state.set_lease(match lease {
                    Lease::Available => FileLease::Available,
                    Lease::Leased(id) => FileLease::Leased(lease_id(id)),
                    Lease::Broken(id) => FileLease::Broken(lease_id(id)),
                });
                self.rules.lease = lease;
                Ok(())
            }
            Op::Rest { operation, request } => self.rest(operation, request),
            Op::SetFacts { facts } => {
                self.rules.facts = facts;
                Ok(())
            }
            ranges => self.apply_ranges(ranges),
        }
    }

    fn apply_ranges(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Lock { handle, wanted, count } => {
                let (slot, id) = self.handle(handle);
                let asked = wanted.map(|(start, length, exclusive)| {
                    let kind = if exclusive { LockKind::Exclusive } else { LockKind::Shared };
                    (byte_range((start, length)), kind)
                });
                let got = self.state.lock(slot, id, &asked[..count]);
                agree(got, self.rules.lock(id.0, &wanted[..count]))
            }
            Op::Unlock { handle, ranges, count } => {
                let (slot, id) = self.handle(handle);
                let got = self.state.unlock(slot, id, &ranges.map(byte_range)[..count]);
                agree(got, self.rules.unlock(id.0, &ranges[..count]))
            }
            Op::Io { handle, range, write } => {
                let (slot, id) = self.handle(handle);
                let got = if write {
                    self.state.check_write(slot, id, byte_range(range))
                } else {
                    self.state.check_read(slot, id, byte_range(range))
                };
                agree(got, self.rules.check_io(id.0, range, write))
            }
            Op::Resize { handle } => {
                let (slot, id) = self.handle(handle);
                let expected = self.rules.get(id.0).and_then(|open| {
                    if open.asked.may_overwrite { Ok(()) } else { no("AccessDenied") }
                });
                agree(self.state.check_resize(slot, id), expected)
            }
            Op::Flush { handle } => {
                let (slot, id) = self.handle(handle);
                let open = self.rules.opens.iter_mut().find(|open| open.id == id.0);
                let expected = open.map_or(no("HandleClosed"), |open| {
                    open.flushed = true;
                    Ok(())
                });
                agree(self.state.set_flushed(slot, id, NOW), expected)
            }
            Op::Flushed { access: letters, share: tolerated } => {
                let (access, share) = (access(letters), share(tolerated));
                let got = self.state.all_in_the_way_flushed(access, share, NOW);
                let culprits = self.rules.check_share(letters, tolerated, None).err();
                let flushed = |id: &u64| self.rules.get(*id).is_ok_and(|open| open.flushed);
                same(&got, &culprits.is_none_or(|why| why.culprits.iter().all(flushed)))
            }
            other => unreachable!("{other:?} has to do with no range"),
        }
    }

    fn open(&mut self, asked: Asked, rights: Rights, name: usize) -> Result<(), String> {
        let Facts { directory, read_only, hidden, .. } = self.rules.facts;
        let mut attributes = Attributes::default();
        if read_only {
            attributes.insert(Attributes::READ_ONLY);
        }
        if hidden {
            attributes.insert(Attributes::HIDDEN);
        }
        let request = OpenRequest {
            rights,
            share: share(asked.share),
            disposition: asked.disposition,
            options: Options {
                delete_on_close: asked.delete_on_close,
                directory: asked.directory,
                non_directory: asked.non_directory,
            },
            attributes: if asked.hidden { Attributes::HIDDEN } else { Attributes::default() },
        };
        let target = ExistingFile { directory, attributes };
        let id = HandleId(self.next);
        self.next += 1;
        let grant = OpenGrant { id, owner: self.owner.clone(), now: NOW };
        let granted = request.check_options().and_then(|()| request.on_existing(&target)).and_then(
            |action| self.state.open(&request, action, &target, &self.paths[name], grant),
        );
        let expected = self.rules.check_open(&asked, name);
        if let Ok(slot) = granted {
            self.handles.push((slot, id));
            self.granted += 1;
        } else {
            self.refused += 1;
        }
        if expected.is_ok() {
            self.rules.open(id.0, asked, name);
        }
        agree(granted.map(|_| ()), expected)
    }

    fn close(&mut self, handle: usize, forced: bool) -> Result<(), String> {
        let (slot, id) = self.handle(handle);
        let not_empty = self.rules.facts.not_empty;
        let how = if forced { Ending::Forced } else { Ending::Closed { not_empty } };
        let got = self.state.close(slot, id, how);
        let waiting = self.state.release_ranges(id);
        if !waiting.is_empty() {
            return Err("nobody waits for a lock".into());
        }
        if handle < self.handles.len() {
            self.closed = self.handles.swap_remove(handle);
        }
        let name = |path: &SharePath| {
            self.paths.iter().position(|known| known == path).expect("a path of the model")
        };
        let got = got.map(|closed| Ended {
            marked: closed.marked,
            remove: closed.remove,
            name: name(&closed.path),
        });
        agree(got, self.rules.close(id.0, forced))
    }

    /// Moves the name the handle came by, if the rules let it and the new one is free.
    fn rename(&mut self, handle: usize, to: usize) -> Result<(), String> {
        let (slot, id) = self.handle(handle);
        let got = self.state.check_rename(slot, id);
        let allowed = got.is_ok();
        agree(got, self.rules.check_rename(id.0))?;
        let Ok(from) = self.rules.get(id.0).map(|open| open.name) else { return Ok(()) };
        if allowed && self.rules.opens.iter().all(|open| open.name != to) {
            self.state.moved(&self.paths[from], &self.paths[to]);
            self.rules.moved(from, to);
        }
        Ok(())
    }

    fn rest(&mut self, operation: FileOperation, request: Request) -> Result<(), String> {
        let circumstances = Circumstances {
            path: &self.paths[request.name],
            lease_id: request.lease_id.map(lease_id),
            copy_pending: request.copy_pending,
            read_only: self.rules.facts.read_only,
            range: Some(byte_range(request.range)),
        };
        let got = self.state.check_operation(operation, &circumstances);
        agree(got, self.rules.check_operation(&needs(operation), &request))
    }

    /// What can be seen of the state is what the rules remember.
    fn compare(&self) -> Result<(), String> {
        let Self { state, rules, .. } = self;
        same(&state.open_count(), &rules.opens.len())?;
        same(&state.is_idle(), &rules.is_idle())?;
        same(&state.locks().count(), &rules.locks.len())?;
        let mut names = 0;
        for (path, pending) in state.names() {
            let name = self.paths.iter().position(|known| known == path);
            let name = name.ok_or_else(|| format!("{path} is none of ours"))?;
            let used = rules.opens.iter().any(|open| open.name == name);
            same(&(path, true, pending), &(path, used, rules.pending.contains(&name)))?;
            names |= 1 << name;
        }
        let used = rules.opens.iter().fold(0, |names, open| names | (1 << open.name));
        same(&names, &used)
    }
}

fn same<T: PartialEq + std::fmt::Debug>(got: &T, expected: &T) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("got {got:?}, expected {expected:?}")) }
}

fn run(seed: u64, steps: usize) -> World {
    let mut random = Random::new(seed);
    // Every fourth file is a directory.
    let mut world = World::new(seed.is_multiple_of(4));
    let mut history = History::new();
    for step in 0..steps {
        let op = world.step(&mut random);
        history.note(step, op);
        let answer = world.apply(op).and_then(|()| world.compare());
        history.hold(seed, step, answer);
    }
    world
}

#[test]
fn the_state_of_a_file_answers_as_the_rules_do_at_every_step() {
    let seeds = seeds(SEEDS);
    let each = steps(STEPS) / seeds.len();
    for seed in seeds {
        let World { granted, refused, .. } = run(seed, each);
        println!("seed {seed}: {each} steps, {granted} opens granted, {refused} refused");
        assert!(granted > each / 50 && refused > each / 50, "the run tested little");
    }
}
