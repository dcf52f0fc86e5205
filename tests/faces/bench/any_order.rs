//! With random gates, faults and releases, every answer that clients saw is one that some order of
//! the same requests gives without gates.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use latchfs::bench::controls::{FaultAction, Frequency, NewFault, NewGate, Point};
use latchfs::clock::ClockChange;
use latchfs::rules::service::ServiceKind;

use super::models::{Blob, Client, Entity, Queue, Sent};
use super::order::{Done, can_happen};
use crate::common::bench::{Bench, LIMIT, pattern};
use crate::common::random::{Random, seeds, steps};

const CLIENTS: usize = 3;
const REQUESTS: usize = 4;

/// Sets gates and faults for the requests of a round.
fn set_up<M: Client>(bench: &Bench, random: &mut Random) {
    let controls = bench.controls();
    for _ in 0..=random.below(3) {
        let pattern = pattern(random.pick(M::OPERATIONS), None);
        let point = random.pick(&[Point::Received, Point::Committed]);
        let times = Some(u32::try_from(1 + random.below(4)).unwrap());
        let limit = random.pick(&[LIMIT, LIMIT, Duration::from_millis(2)]);
        controls.gates.add(NewGate { pattern, point, times, limit }).unwrap();
    }
    for _ in 0..random.below(3) {
        let pattern = pattern(random.pick(M::OPERATIONS), None);
        let answer = FaultAction::Answer { status: 503, code: "ServerBusy" };
        let delay = FaultAction::Delay(Duration::from_millis(1));
        let action = match random.below(4) {
            0 => answer,
            1 => delay,
            2 => FaultAction::DropBefore,
            _ => FaultAction::DropAfter,
        };
        let frequency = Frequency::Times(u32::try_from(1 + random.below(2)).unwrap());
        controls.faults.add(NewFault { pattern, action, frequency }).unwrap();
    }
}

/// Sends the requests of one client.
fn client<M: Client>(
    at: SocketAddr,
    object: &str,
    mut random: Random,
    numbers: std::ops::Range<usize>,
    ticks: &AtomicUsize,
) -> Vec<Done<M>>
where
    M::Answer: Clone,
{
    let (mut done, mut had) = (Vec::new(), Vec::new());
    for number in numbers {
        let ask = M::plan(&mut random, number, &had);
        let start = ticks.fetch_add(1, Ordering::SeqCst);
        let sent = M::send(at, object, &ask);
        let end = ticks.fetch_add(1, Ordering::SeqCst);
        let answer = match sent {
            Sent::Answered(answer) => {
                had.push(answer.clone());
                Some(answer)
            }
            Sent::Lost => None,
            Sent::Refused => continue,
        };
        done.push(Done { ask, answer, start, end });
    }
    done
}

/// Releases requests in a random order until all clients are done.
fn release(bench: &Bench, mut random: Random, over: &AtomicBool) {
    while !over.load(Ordering::SeqCst) {
        let waiting = bench.controls().gates.waiting();
        if !waiting.is_empty() && random.once_in(3) {
            let one = waiting[random.below(waiting.len())].id;
            bench.controls().gates.release(Some(one), None, None);
        }
        // A thread that spins would have the core that the server needs.
        thread::sleep(Duration::from_micros(100));
    }
}

fn rounds<M>(service: ServiceKind, prepare: impl Fn(&Bench, &str))
where
    M: Client + Default + Send,
    M::Ask: Send,
    M::Answer: Clone + Send,
{
    let bench = Bench::start();
    // What a test does not turn must not run out while a slow machine waits.
    bench.controls().clock.turn(ClockChange::Freeze).unwrap();
    let at = bench.addr(service);
    let mut stopped = 0;
    for seed in seeds(u64::try_from(steps(30)).unwrap()) {
        let object = format!("object{seed}");
        prepare(&bench, &object);
        let mut random = Random::new(seed);
        set_up::<M>(&bench, &mut random);
        let (ticks, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let seen = thread::scope(|scope| {
            let releasing = Random::new(random.next());
            scope.spawn(|| release(&bench, releasing, &over));
            let clients: Vec<_> = (0..CLIENTS)
                .map(|one| {
                    let (random, ticks) = (Random::new(random.next()), &ticks);
                    let numbers = 1 + one * REQUESTS..1 + (one + 1) * REQUESTS;
                    let object = object.as_str();
                    scope.spawn(move || client::<M>(at, object, random, numbers, ticks))
                })
                .collect();
            let seen: Vec<_> =
                clients.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            over.store(true, Ordering::SeqCst);
            seen.into_iter().flat_map(Result::unwrap).collect::<Vec<_>>()
        });
        stopped += bench.controls().gates.list().iter().map(|row| row.stopped).sum::<u64>();
        bench.controls().gates.remove(None);
        bench.controls().faults.remove(None);
        assert!(can_happen(&M::default(), &seen), "seed {seed}: no order gives {seen:#?}");
    }
    assert!(stopped > 0, "no request has stopped: the gates do nothing");
}

#[test]
fn what_clients_see_of_a_blob_can_happen_without_gates() {
    rounds::<Blob>(ServiceKind::Blob, |bench, _| {
        bench.ask(ServiceKind::Blob, "PUT", "/box?restype=container", &[], b"");
    });
}

#[test]
fn what_clients_see_of_an_entity_can_happen_without_gates() {
    rounds::<Entity>(ServiceKind::Table, |bench, _| {
        let json = [("content-type", "application/json")];
        bench.ask(ServiceKind::Table, "POST", "/Tables", &json, br#"{"TableName":"Rows"}"#);
    });
}

#[test]
fn what_clients_see_of_a_queue_can_happen_without_gates() {
    rounds::<Queue>(ServiceKind::Queue, |bench, queue| {
        bench.ask(ServiceKind::Queue, "PUT", &format!("/{queue}"), &[], b"").is(201);
    });
}
