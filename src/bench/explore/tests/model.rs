//! A store in a few lines, random programs of clients on it, and all that they can come to.
//!
//! The programs are run under every order, and under the orders that the search picks: the answers
//! and the data at the end must be the same sets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::*;

/// A row of the dependence relation, to be left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Row {
    Delete,
    List,
    Lease,
    Head,
    Entity,
    Queue,
    Clock,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Get(usize),
    Head(usize),
    Put(usize),
    /// With the version that the client saw last; without one, if the blob is not there.
    Cas(usize),
    Delete(usize),
    List,
    /// Again and again until it is had.
    Acquire(usize),
    Release(usize),
    PutLeased(usize),
    Replace(usize),
    Merge(usize),
    Query,
    PutMessage,
    GetMessage,
    DeleteMessage,
}

pub const OPS: [fn(usize) -> Op; 15] = [
    Op::Get,
    Op::Head,
    Op::Put,
    Op::Cas,
    Op::Delete,
    |_| Op::List,
    Op::Acquire,
    Op::Release,
    Op::PutLeased,
    Op::Replace,
    Op::Merge,
    |_| Op::Query,
    |_| Op::PutMessage,
    |_| Op::GetMessage,
    |_| Op::DeleteMessage,
];

/// What each client does.
pub type Program = Vec<Vec<Op>>;

/// What came of a run: the answers of each client, and the data.
pub type Outcome = (Vec<Vec<String>>, String);

/// Who wrote it: a client and its number of steps. No counter: it would tell orders apart.
type Version = (usize, usize);

#[derive(Debug, Default)]
struct Store {
    blobs: BTreeMap<usize, Version>,
    leases: BTreeMap<usize, (usize, u64)>,
    entities: BTreeMap<usize, BTreeSet<Version>>,
    messages: Vec<(Version, u64)>,
    now: u64,
}

#[derive(Debug, Default)]
struct Client {
    at: usize,
    steps: usize,
    seen: BTreeMap<usize, Version>,
    message: Option<Version>,
    answers: Vec<String>,
}

/// How long a lease and a message that was given out last.
const LASTS: u64 = 10_000;

pub struct World<'a> {
    program: &'a Program,
    without: Option<Row>,
    store: Store,
    clients: Vec<Client>,
}

pub fn names(count: usize) -> Vec<Arc<str>> {
    ["A", "B", "C"][..count].iter().copied().map(Arc::from).collect()
}

impl<'a> World<'a> {
    pub fn new(program: &'a Program, without: Option<Row>) -> Self {
        let mut store = Store::default();
        store.blobs.insert(0, (9, 0));
        store.entities.insert(0, BTreeSet::new());
        store.messages.push(((9, 1), 0));
        let clients = program.iter().map(|_| Client::default()).collect();
        Self { program, without, store, clients }
    }

    /// The next step of each client that has one.
    pub fn ready(&self) -> Vec<(Choice, Step)> {
        let names = names(self.program.len());
        let step = |(number, name): (usize, &Arc<str>)| {
            let client = &self.clients[number];
            let op = *self.program[number].get(client.at)?;
            let step = Step {
                operation: format!("{op:?}"),
                object: String::new(),
                fingerprint: client.at as u64,
                footprint: self.footprint(number, op),
                can_drop: true,
            };
            Some((Choice::Do(Arc::clone(name), 1), step))
        };
        names.iter().enumerate().filter_map(step).collect()
    }

    fn footprint(&self, by: usize, op: Op) -> Footprint {
        let blob = |name: usize| Resource::new(["blobs".to_owned(), name.to_string()]);
        let lease = |name| blob(name).below("lease");
        let entity = |name: usize| Resource::new(["table".to_owned(), name.to_string()]);
        let queue = || Resource::new(["queue"]);
        let message = |(client, step)| queue().below(format!("{client}.{step}"));
        let none: [Resource; 0] = [];
        let lacks = |row| self.without == Some(row);
        let footprint = match op {
            Op::Head(_) if lacks(Row::Head) => Footprint::default(),
            Op::Get(name) | Op::Head(name) => Footprint::of([blob(name).below("content")], none),
            Op::Put(name) | Op::Cas(name) | Op::PutLeased(name) => {
                Footprint::of([lease(name)], [blob(name).below("content")])
                    .timed(Time::ReadsIfLeased)
            }
            Op::Delete(_) if lacks(Row::Delete) => Footprint::default(),
            Op::Delete(name) => Footprint::of([], [blob(name)]).timed(Time::ReadsIfLeased),
            Op::List if lacks(Row::List) => Footprint::default(),
            Op::List => Footprint::of([Resource::new(["blobs"])], none),
            Op::Acquire(_) | Op::Release(_) if lacks(Row::Lease) => Footprint::default(),
            Op::Acquire(name) => {
                Footprint::of([blob(name).below("content")], [lease(name)]).timed(Time::Leases)
            }
            Op::Release(name) => Footprint::of([], [lease(name)]).timed(Time::Leases),
            Op::Replace(_) | Op::Merge(_) if lacks(Row::Entity) => Footprint::default(),
            Op::Replace(name) | Op::Merge(name) => Footprint::of(none, [entity(name)]),
            Op::Query => Footprint::of([Resource::new(["table"])], none),
            Op::PutMessage | Op::GetMessage if lacks(Row::Queue) => Footprint::default(),
            Op::PutMessage | Op::GetMessage => Footprint::of(none, [queue()]).timed(Time::Reads),
            Op::DeleteMessage => {
                let known = self.clients[by].message;
                Footprint::of(none, known.map(message)).timed(Time::Reads)
            }
        };
        if lacks(Row::Clock) { Footprint { time: None, ..footprint } } else { footprint }
    }

    /// Does a step. The status of its answer, if there is one.
    pub fn step(&mut self, choice: &Choice) -> Option<u16> {
        let Some(name) = choice.client() else {
            let Choice::Advance(ms) = choice else { unreachable!("the clock alone has no client") };
            self.store.now += ms;
            return None;
        };
        let by = names(3).iter().position(|one| one == name).unwrap();
        let op = self.program[by][self.clients[by].at];
        self.clients[by].steps += 1;
        let (status, text) = self.carry_out(by, op);
        let client = &mut self.clients[by];
        if choice.is_drop() {
            // The client repeats the request.
            client.answers.push("lost".to_owned());
            return None;
        }
        let polls = matches!(op, Op::Acquire(_)) && status == 409;
        // How often it asked is no difference.
        if !polls {
            client.answers.push(format!("{op:?} {status} {text}"));
            client.at += 1;
        }
        Some(status)
    }

    fn carry_out(&mut self, by: usize, op: Op) -> (u16, String) {
        let Store { blobs, leases, entities, messages, now } = &mut self.store;
        let now = *now;
        let client = &mut self.clients[by];
        let version = (by, client.steps);
        let is_leased = |leases: &BTreeMap<usize, (usize, u64)>, name: usize| {
            leases.get(&name).is_some_and(|(_, until)| *until > now)
        };
        let ok = |text: String| (200, text);
        let refused = |status: u16| (status, String::new());
        match op {
            Op::Get(name) | Op::Head(name) => match blobs.get(&name) {
                None => refused(404),
                Some(found) => {
                    client.seen.insert(name, *found);
                    ok(format!("{found:?}"))
                }
            },
            Op::PutLeased(name) => match leases.get(&name) {
                Some((holder, until)) if *holder == by && *until > now => {
                    blobs.insert(name, version);
                    ok(String::new())
                }
                _ => refused(412),
            },
            Op::Put(name) | Op::Cas(name) | Op::Delete(name) if is_leased(leases, name) => {
                refused(412)
            }
            Op::Cas(name) if blobs.get(&name) != client.seen.get(&name) => refused(412),
            Op::Put(name) | Op::Cas(name) => {
                blobs.insert(name, version);
                client.seen.insert(name, version);
                ok(String::new())
            }
            Op::Delete(name) => match blobs.remove(&name) {
                None => refused(404),
                Some(_) => ok(String::new()),
            },
            Op::List => ok(format!("{:?}", blobs.keys())),
            Op::Acquire(name) if !blobs.contains_key(&name) => refused(404),
            Op::Acquire(name) if is_leased(leases, name) && leases[&name].0 != by => refused(409),
            Op::Acquire(name) => {
                leases.insert(name, (by, now + LASTS));
                ok(String::new())
            }
            Op::Release(name) => match leases.get(&name) {
                Some((holder, _)) if *holder == by => {
                    leases.remove(&name);
                    ok(String::new())
                }
                _ => refused(409),
            },
            Op::Replace(name) => {
                entities.insert(name, BTreeSet::from([version]));
                ok(String::new())
            }
            Op::Merge(name) => match entities.get_mut(&name) {
                None => refused(404),
                Some(properties) => {
                    properties.insert(version);
                    ok(String::new())
                }
            },
            Op::Query => ok(format!("{entities:?}")),
            Op::PutMessage => {
                messages.push((version, now));
                ok(String::new())
            }
            Op::GetMessage => match messages.iter_mut().find(|(_, visible)| *visible <= now) {
                None => refused(204),
                Some((message, visible)) => {
                    *visible = now + LASTS;
                    client.message = Some(*message);
                    ok(format!("{message:?}"))
                }
            },
            Op::DeleteMessage => {
                let before = messages.len();
                messages.retain(|(message, _)| Some(*message) != client.message);
                if messages.len() < before { ok(String::new()) } else { refused(404) }
            }
        }
    }

    pub fn outcome(self) -> Outcome {
        let Store { blobs, entities, messages, .. } = self.store;
        let messages: Vec<_> = messages.into_iter().map(|(message, _)| message).collect();
        let data = format!("{blobs:?} {entities:?} {messages:?}");
        (self.clients.into_iter().map(|client| client.answers).collect(), data)
    }
}
