//! Random programs on the real services: the orders that the search picks come to the same answers
//! and data as all orders.

use std::collections::BTreeSet;
use std::sync::Arc;

use latchfs::bench::explore::{Choice, Phase, Plan, PlanOptions, Step, Verdict};

use super::lines::Known;
use super::pairs::{Place, Pool, chosen, pools, said};
use crate::common::http::Got;
use crate::common::random::{Random, seeds, steps};

/// The requests of each client.
type Program = Vec<Vec<String>>;

/// What a run came to: the answers of each client, and the data.
type Outcome = Vec<String>;

/// A run: the next request of each client, what it knows, and its answers.
struct Running<'a> {
    place: &'a mut Place,
    program: &'a Program,
    clients: Vec<(Known, Vec<Got>)>,
}

impl<'a> Running<'a> {
    fn new(place: &'a mut Place, pool: &Pool, program: &'a Program) -> Self {
        place.begin(&pool.before, &[]);
        let clients = program.iter().map(|_| (place.known.clone(), Vec::new())).collect();
        Self { place, program, clients }
    }

    fn next_of(&self, client: usize) -> Option<&'a String> {
        self.program[client].get(self.clients[client].1.len())
    }

    fn ready(&mut self) -> Vec<(Choice, Step)> {
        let clients = self.program.len();
        let step = |client: usize| {
            let line = self.next_of(client)?;
            self.place.known = self.clients[client].0.clone();
            let (operation, footprint) = self.place.touched(line);
            let step = Step {
                operation: operation.title.to_owned(),
                object: line.clone(),
                fingerprint: self.clients[client].1.len() as u64,
                footprint,
                can_drop: false,
            };
            Some((Choice::Do(names(client), 1), step))
        };
        (0..clients).filter_map(step).collect()
    }

    /// Sends the next request of a client. The status of its answer.
    fn step(&mut self, client: usize) -> u16 {
        let line = self.next_of(client).expect("it has a request");
        self.place.known = self.clients[client].0.clone();
        let got = self.place.send(line);
        let status = got.status;
        self.clients[client].0 = self.place.known.clone();
        self.clients[client].1.push(got);
        status
    }

    fn outcome(self, pool: &Pool) -> Outcome {
        let data: Vec<_> = pool.looks.iter().map(|look| self.place.send(look)).collect();
        said(self.clients.iter().flat_map(|(_, answers)| answers).chain(&data))
    }
}

fn names(client: usize) -> Arc<str> {
    Arc::from(["A", "B", "C"][client])
}

/// What the program comes to in the orders that the search picks.
fn searched(place: &mut Place, pool: &Pool, program: &Program) -> (BTreeSet<Outcome>, u64) {
    let mut plan = Plan::new(PlanOptions {
        clients: (0..program.len()).map(names).collect(),
        budget: 1_000_000,
        drops: 0,
        advance: Vec::new(),
        max_steps: 60,
        seed: 1,
        replay: None,
    });
    let mut outcomes = BTreeSet::new();
    while plan.begin() == Phase::Explore {
        let mut run = Running::new(place, pool, program);
        loop {
            let ready = run.ready();
            if ready.is_empty() {
                break;
            }
            let choice = plan.choose(ready).expect("it goes on");
            let client = (0..program.len()).find(|at| Some(&names(*at)) == choice.client());
            let status = run.step(client.expect("a client"));
            plan.answered(&choice, Some(status));
        }
        outcomes.insert(run.outcome(pool));
        plan.end(Verdict::default());
    }
    assert!(plan.incomplete().is_empty(), "{program:?}: {:?}", plan.incomplete());
    (outcomes, plan.runs)
}

/// What the program comes to in all orders.
fn unpruned(place: &mut Place, pool: &Pool, program: &Program) -> (BTreeSet<Outcome>, u64) {
    let mut orders = vec![Vec::new()];
    for _ in 0..program.iter().map(Vec::len).sum() {
        let longer = |order: Vec<usize>| {
            let left = |client: &usize| {
                order.iter().filter(|at| *at == client).count() < program[*client].len()
            };
            let clients: Vec<_> = (0..program.len()).filter(left).collect();
            clients.into_iter().map(move |client| [&*order, &[client]].concat())
        };
        orders = orders.into_iter().flat_map(longer).collect();
    }
    let runs = orders.len() as u64;
    let outcome = |order: Vec<usize>| {
        let mut run = Running::new(place, pool, program);
        for client in order {
            run.step(client);
        }
        run.outcome(pool)
    };
    (orders.into_iter().map(outcome).collect(), runs)
}

#[test]
fn programs_come_to_the_same_in_the_orders_that_are_searched_as_in_all() {
    let mut place = Place::new();
    let pools = pools();
    let (mut few, mut all) = (0, 0);
    for seed in seeds(1) {
        let mut random = Random::new(seed);
        for number in 0..steps(30) {
            let pool = &pools[number % pools.len()];
            let longest = if random.once_in(4) { [2, 1, 1] } else { [3, 2, 0] };
            let clients = longest.iter().filter(|most| **most > 0);
            let program: Program = clients
                .map(|most| {
                    let of = 0..*most;
                    of.map(|_| chosen(random.pick(&pool.requests), &mut random)).collect()
                })
                .collect();
            let (found, runs) = searched(&mut place, pool, &program);
            let (wanted, orders) = unpruned(&mut place, pool, &program);
            let missed: Vec<_> = wanted.difference(&found).collect();
            assert!(missed.is_empty(), "{}: {program:#?} misses {missed:#?}", pool.service);
            (few, all) = (few + runs, all + orders);
        }
    }
    println!("{few} of {all} orders were run");
    assert!(few < all, "{few} of {all} orders were run");
}
