//! Random operations with time passing, on the service and on the reference: every answer equal.
//!
//! The seed is printed: `LATCHFS_TEST_SEED` repeats a run. `LATCHFS_FULL` makes it ten times as
//! long.

use std::env;

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::reference::{No, Reference, Seen};
use super::*;
use crate::queue::rules::TimeToLive;

/// Receipts that are remembered, to be tried again when they are stale.
const RECEIPTS_MAX: usize = 200;
const QUEUES: [&str; 3] = ["one", "two", "three"];

struct Run {
    world: World,
    reference: Reference,
    random: TestRng,
    /// Queue, ID and receipt of answers.
    held: Vec<(String, String, String)>,
}

fn refused<T>(answer: QueueResult<T>) -> Result<T, No> {
    answer.map_err(|error| match error {
        QueueError::Denied(QueueDenial::QueueNotFound(_)) => No::Queue,
        QueueError::Denied(QueueDenial::MessageNotFound(_)) => No::Message,
        QueueError::Denied(QueueDenial::PopReceiptMismatch(_)) => No::Receipt,
        other => panic!("{other}"),
    })
}

fn seen(shown: &[Shown]) -> Vec<Seen> {
    let seen = shown.iter().map(|Shown { message, text }| {
        (message.id.to_string(), text.clone(), message.dequeue_count)
    });
    seen.collect()
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let (world, reference) = (World::new(), Reference::default());
        Self { world, reference, random, held: Vec::new() }
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.random.next_u32() % bound
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        let at = self.below(u32::try_from(of.len()).unwrap());
        of[at as usize]
    }

    fn clock(&self) -> i64 {
        Tick::of(self.world.clock.now()).0
    }

    fn hold(&mut self, queue: &str, message: &Message) {
        if self.held.len() == RECEIPTS_MAX {
            let at = self.below(100) as usize;
            self.held.swap_remove(at);
        }
        let (id, receipt) = (message.id.to_string(), message.receipt().to_string());
        self.held.push((queue.to_owned(), id, receipt));
    }

    /// A receipt that was given out some time, now and then for another queue or another message.
    fn some_receipt(&mut self) -> (String, String, String) {
        if self.held.is_empty() {
            return (QUEUES[0].to_owned(), "no-id".to_owned(), String::new());
        }
        let many = u32::try_from(self.held.len()).unwrap();
        let newest = self.below(many.min(8));
        let at = if self.below(2) == 0 { many - 1 - newest } else { self.below(many) };
        let (mut queue, id, mut receipt) = self.held[at as usize].clone();
        match self.below(20) {
            0 => self.pick(&QUEUES).clone_into(&mut queue),
            1 => receipt = self.held[self.random.next_u32() as usize % self.held.len()].2.clone(),
            2 => "garbage".clone_into(&mut receipt),
            _ => {}
        }
        (queue, id, receipt)
    }

    fn step(&mut self) {
        let queue = self.pick(&QUEUES);
        match self.below(100) {
            0..25 => self.put(queue),
            25..50 => self.get(queue),
            50..58 => self.peek(queue),
            58..70 => self.update(),
            70..86 => self.delete(),
            86..88 => self.count(queue),
            88 => self.create_and_clear(queue),
            89 => self.delete_queue(queue),
            90 if self.below(20) == 0 => self.world.restart(),
            90 => self.world.service().memory.bell.ring(),
            _ => self.pass_time(),
        }
    }

    fn pass_time(&mut self) {
        let millis = self.pick(&[0, 1, 400, 1_000, 1_000, 5_000, 29_999, 30_000, 3_600_000]);
        self.world.clock.advance(Duration::from_millis(millis));
    }

    fn put(&mut self, queue: &str) {
        let hidden = self.pick(&[0, 0, 0, 1, 7]);
        let lives = self.pick(&[None, Some(604_800), Some(8), Some(30)]);
        let time_to_live = lives.map_or(TimeToLive::Forever, TimeToLive::Seconds);
        let text = format!("text {}", self.below(1_000_000));
        let expected = self.reference.put(self.clock(), queue, &text, (hidden, lives));
        let times = PutTimes { visibility: hidden, time_to_live };
        let answer = refused(self.world.put_with(queue, &text, times));
        assert_eq!(answer.as_ref().map(|put| put.visible_at.0).map_err(|no| *no), expected);
        if let Ok(put) = answer {
            self.reference.name_last(queue, &put.id.to_string(), &put.receipt().to_string());
            self.hold(queue, &put);
        }
    }

    fn get(&mut self, queue: &str) {
        let (most, hidden) = (self.pick(&[1, 1, 2, 32]), self.pick(&[1, 5, 30, 604_800]));
        let expected = self.reference.get(self.clock(), queue, most as usize, hidden);
        let answer = refused(self.world.get(queue, most, hidden));
        assert_eq!(answer.as_deref().map(seen).map_err(|no| *no), expected);
        for Shown { message, .. } in answer.unwrap_or_default() {
            let (id, receipt) = (message.id.to_string(), message.receipt().to_string());
            assert!(!self.held.iter().any(|(_, _, old)| *old == receipt), "a receipt came again");
            self.reference.renew(queue, &id, &receipt);
            self.hold(queue, &message);
        }
    }

    fn peek(&mut self, queue: &str) {
        let most = self.pick(&[1, 5, 32]);
        let expected = self.reference.peek(self.clock(), queue, most as usize);
        let answer = refused(self.world.peek(queue, most));
        assert_eq!(answer.as_deref().map(seen).map_err(|no| *no), expected);
    }

    fn update(&mut self) {
        let (queue, id, receipt) = self.some_receipt();
        let hidden = self.pick(&[0, 1, 30]);
        let text = (self.below(2) == 0).then(|| format!("updated {}", self.below(1_000_000)));
        let with = (hidden, text.as_deref());
        let expected = self.reference.update(self.clock(), &queue, (&id, &receipt), with);
        let context = self.world.context();
        let service = self.world.service();
        let answer = service.update_message(&context, &queue, &id, &receipt, (hidden, text));
        let answer = refused(self.world.wait(answer));
        assert_eq!(answer.as_ref().map(|new| new.visible_at.0).map_err(|no| *no), expected);
        if let Ok(new) = answer {
            self.reference.renew(&queue, &id, &new.receipt().to_string());
            self.hold(&queue, &new);
        }
    }

    fn delete(&mut self) {
        let (queue, id, receipt) = self.some_receipt();
        let expected = self.reference.delete(self.clock(), &queue, (&id, &receipt));
        let context = self.world.context();
        let answer = self.world.service().delete_message(&context, &queue, &id, &receipt);
        assert_eq!(refused(self.world.wait(answer)), expected);
    }

    fn count(&mut self, queue: &str) {
        let expected = self.reference.count(self.clock(), queue);
        let context = self.world.context();
        let answer = self.world.service().queue_info(&context, queue);
        let answer = refused(answer);
        assert_eq!(answer.map(|info| usize::try_from(info.messages).unwrap()), expected);
    }

    fn create_and_clear(&mut self, queue: &str) {
        let fresh = self.reference.create(self.clock(), queue);
        let context = self.world.context();
        let made = self.world.service().create_queue(&context, queue, Metadata::default());
        let made = self.world.wait(made).unwrap();
        assert_eq!(made, if fresh { Created::New } else { Created::Existed });
        if self.below(3) == 0 {
            let expected = self.reference.clear(self.clock(), queue);
            let answer = self.world.service().clear_messages(&context, queue);
            assert_eq!(refused(self.world.wait(answer)), expected);
        }
        let list = self.world.service().list_queues(&context, &QueueList::default());
        let names = list.unwrap().queues.into_iter().map(|(name, _)| name);
        assert_eq!(names.collect::<Vec<_>>(), self.reference.names());
    }

    /// Rarely, so that queues get long.
    fn delete_queue(&mut self, queue: &str) {
        if self.below(5) > 0 {
            return;
        }
        let expected = self.reference.delete_queue(self.clock(), queue);
        let context = self.world.context();
        let answer = self.world.service().delete_queue(&context, queue);
        assert_eq!(refused(self.world.wait(answer)), expected);
    }
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

#[test]
fn random_operations_with_time_passing_answer_as_the_reference_does() {
    let full = env::var_os("LATCHFS_FULL").is_some();
    // A new seed each time only where nobody waits for the answer: a run that fails must fail
    // again.
    let fresh = || u64::from_le_bytes(crate::sync::random::bytes());
    let seed = number("LATCHFS_TEST_SEED").unwrap_or_else(|| if full { fresh() } else { 1 });
    let steps = if full { 100_000 } else { 10_000 };
    println!("queues: LATCHFS_TEST_SEED={seed}, {steps} steps");
    let mut run = Run::new(seed);
    for queue in QUEUES {
        run.create_and_clear(queue);
    }
    for _ in 0..steps {
        run.step();
    }
}
