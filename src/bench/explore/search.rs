//! The search over orders: source-DPOR with sleep sets, a run at a time.
//!
//! Decides which order is run next, so that of all orders that differ only in steps that do not
//! conflict one is run. The first run goes on with the same client as long as that can. What
//! conflicts is decided in [`crate::rules::footprint`]; what is offered at a step, by the caller.
//!
//! A node is a step of the present order, with the choices that are still to be tried there. A
//! choice that was tried sleeps in the branches that are tried after it, until a step that
//! conflicts with it is done. A dropped answer and the clock are choices that no conflict between
//! clients brings up, so they are to be tried wherever they are offered: right after the step
//! itself, so that a client sleeps with all of its choices.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::token::Choice;
use crate::rules::footprint::{Footprint, Time};

/// How many times an order is repeated that the clients did not follow.
const TRIES: u32 = 3;

/// What can be done next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    pub choice: Choice,
    /// The operation and its object: the same in each run of the order.
    pub label: String,
    pub footprint: Footprint,
}

#[derive(Debug, Default)]
pub struct Search {
    /// The order that is run, as far as it is fixed.
    nodes: Vec<Node>,
    run: Run,
    is_exhausted: bool,
    /// How many times in a row the clients did not follow the order.
    tries: u32,
    /// How many times that was given up.
    pub divergences: u64,
    /// Branches and runs that could show nothing new.
    pub pruned: u64,
}

#[derive(Debug)]
struct Node {
    /// The label of each choice that was offered.
    offered: BTreeMap<Choice, String>,
    taken: Choice,
    todo: BTreeSet<Choice>,
    done: Vec<Choice>,
    sleep: BTreeSet<Choice>,
}

/// The run under way.
#[derive(Debug, Default)]
struct Run {
    events: Vec<(Option<Arc<str>>, Footprint)>,
    sleep: BTreeSet<Choice>,
    last: Option<Arc<str>>,
    /// The order is fixed no further: the run goes on as it comes.
    is_free: bool,
    diverged_at: Option<usize>,
}

/// The choice that follows without a reason for another: the same client goes on.
pub fn default_choice<'a>(
    offers: impl IntoIterator<Item = &'a Offer>,
    last: Option<&Arc<str>>,
) -> Option<&'a Offer> {
    let plain = |offer: &&Offer| matches!(offer.choice, Choice::Start(_) | Choice::Do(..));
    let offers: Vec<_> = offers.into_iter().collect();
    let same = offers.iter().copied().filter(plain).find(|it| it.choice.client() == last);
    same.or_else(|| offers.iter().copied().find(plain)).or_else(|| offers.first().copied())
}

impl Search {
    /// Begins the next run; false if there is none.
    pub fn begin(&mut self) -> bool {
        self.run = Run::default();
        !self.is_exhausted
    }

    /// What is done next of what is offered, which is something.
    pub fn choose(&mut self, offers: &[Offer]) -> Choice {
        let depth = self.run.events.len();
        if !self.run.is_free && depth == self.nodes.len() {
            self.grow(offers);
        }
        let node = self.nodes.get(depth).filter(|_| !self.run.is_free);
        let follows = |offer: &&Offer| {
            node.is_some_and(|node| {
                offer.choice == node.taken && node.offered.get(&node.taken) == Some(&offer.label)
            })
        };
        let found = offers.iter().find(follows);
        if node.is_some() && found.is_none() {
            self.run.diverged_at = Some(depth);
            self.run.is_free = true;
        }
        let taken = found.or_else(|| default_choice(offers, self.run.last.as_ref()));
        let taken = taken.expect("something is offered");
        if !self.run.is_free {
            self.take(offers, taken);
        }
        self.run.last = taken.choice.client().cloned();
        taken.choice.clone()
    }

    /// A new node: a choice that is awake. Without any, what follows was seen in other runs.
    fn grow(&mut self, offers: &[Offer]) {
        let Run { sleep, last, .. } = &self.run;
        let awake = offers.iter().filter(|offer| !sleep.contains(&offer.choice));
        let Some(first) = default_choice(awake, last.as_ref()) else {
            self.pruned += 1;
            self.run.is_free = true;
            return;
        };
        self.nodes.push(Node {
            offered: offers.iter().map(|it| (it.choice.clone(), it.label.clone())).collect(),
            taken: first.choice.clone(),
            todo: BTreeSet::new(),
            done: Vec::new(),
            sleep: sleep.clone(),
        });
    }

    fn take(&mut self, offers: &[Offer], taken: &Offer) {
        let node = &mut self.nodes[self.run.events.len()];
        // Once a lease is known, the clock is offered where it was not before.
        for offer in offers {
            node.offered.entry(offer.choice.clone()).or_insert_with(|| offer.label.clone());
        }
        let looks_at_time = taken.footprint.time == Some(Time::Reads);
        let beside = offers.iter().map(|offer| &offer.choice).filter(|choice| match choice {
            Choice::Advance(_) => looks_at_time,
            // Its dropped answer, and other requests of the client at the same time.
            other => other.client() == taken.choice.client(),
        });
        node.todo.extend(beside.filter(|choice| **choice != taken.choice).cloned());
        let sleeps = |offer: &&Offer| {
            let is_old = self.run.sleep.contains(&offer.choice);
            (is_old || node.done.contains(&offer.choice))
                && offer.choice.client() != taken.choice.client()
                && !offer.footprint.conflicts(&taken.footprint)
        };
        self.run.sleep = offers.iter().filter(sleeps).map(|it| it.choice.clone()).collect();
        self.run.events.push((taken.choice.client().cloned(), taken.footprint.clone()));
    }

    /// Ends the run: finds out what else is to be tried, and takes the next branch.
    pub fn end(&mut self) {
        let length = self.run.events.len();
        if self.run.diverged_at.is_none() && length < self.nodes.len() {
            self.run.diverged_at = Some(length);
        }
        if let Some(depth) = self.run.diverged_at {
            self.tries += 1;
            if self.tries >= TRIES {
                self.divergences += 1;
                self.tries = 0;
                // Another way is taken from there, the one that the clients take.
                self.nodes.truncate(depth);
            }
            return;
        }
        self.tries = 0;
        self.find_races();
        self.next_branch();
    }

    fn next_branch(&mut self) {
        while let Some(node) = self.nodes.last_mut() {
            node.done.push(node.taken.clone());
            let before = node.todo.len();
            node.todo.retain(|choice| !node.done.contains(choice));
            let left = node.todo.len();
            node.todo.retain(|choice| !node.sleep.contains(choice));
            debug_assert!(before >= left);
            self.pruned += (left - node.todo.len()) as u64;
            // All choices of a client before those of another.
            let of_tried = |choice: &&Choice| {
                matches!(choice, Choice::Advance(_))
                    || node.done.iter().any(|done| done.client() == choice.client())
            };
            let next = node.todo.iter().find(of_tried).or_else(|| node.todo.first()).cloned();
            if let Some(next) = next {
                node.todo.remove(&next);
                node.taken = next;
                return;
            }
            self.nodes.pop();
        }
        self.is_exhausted = true;
    }

    /// Wherever two steps that follow each other conflict, the other order is to be tried.
    fn find_races(&mut self) {
        let events = &self.run.events;
        let depends = |one: usize, other: usize| {
            let ((by, footprint), (with, others)) = (&events[one], &events[other]);
            by == with || footprint.conflicts(others)
        };
        // `before[j][i]`: step i comes before step j in all orders that are the same as this one.
        let mut before: Vec<Vec<bool>> = Vec::new();
        let mut reversals = Vec::new();
        for later in 0..events.len() {
            let mut all = vec![false; later];
            for earlier in (0..later).rev() {
                if all[earlier] || !depends(earlier, later) {
                    continue;
                }
                // Nothing between them orders the two already.
                if events[earlier].0 != events[later].0 {
                    reversals.push((earlier, later));
                }
                all[earlier] = true;
                for (at, is_before) in before[earlier].iter().enumerate() {
                    all[at] |= is_before;
                }
            }
            before.push(all);
        }
        for (earlier, later) in reversals {
            let row: Vec<_> =
                (earlier + 1..=later).filter(|at| *at == later || !before[*at][earlier]).collect();
            let is_first = |at: usize| row.iter().all(|other| *other >= at || !before[at][*other]);
            let first: Vec<_> = row.iter().filter(|at| is_first(**at)).collect();
            let by = |at: usize| events[at].0.as_ref();
            let preferred = first.iter().find(|at| by(***at) == by(later)).or(first.first());
            let Some(preferred) = preferred.map(|at| by(**at)) else { continue };
            let node = &mut self.nodes[earlier];
            let tried = node.done.iter().chain(&node.todo).chain([&node.taken]);
            let clients: Vec<_> = tried.map(Choice::client).collect();
            if first.iter().any(|at| clients.contains(&by(**at))) {
                continue;
            }
            let mut wanted: Vec<_> =
                node.offered.keys().filter(|it| it.client() == preferred).cloned().collect();
            if wanted.is_empty() {
                // It could not go on there: any other may open the way.
                wanted = node.offered.keys().cloned().collect();
            }
            node.todo.extend(wanted.into_iter().filter(|choice| *choice != node.taken));
        }
    }
}
