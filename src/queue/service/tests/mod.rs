//! The service as a whole, with a clock that is turned by hand.

mod identity;
mod life;
mod model;
mod reference;

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::clock::ManualClock;
use crate::queue::rules::{Message, PutTimes, QueueDenial};
use crate::rules::{Caller, Client, Metadata, Owner};

/// When the clock of a test starts: 2026-01-05T10:00:00Z.
const START: Timestamp = Timestamp(1_767_607_200_000_000_000);

/// A service on a folder of its own.
struct World {
    service: Option<QueueService>,
    clock: Arc<ManualClock>,
    runtime: tokio::runtime::Runtime,
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(START));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut world = Self { service: None, clock, runtime, folder };
        world.restart();
        world
    }

    /// Closes the service and opens it again.
    fn restart(&mut self) {
        drop(self.service.take());
        let path = self.folder.path().join("queue.db");
        let clock: Arc<dyn TimeSource> = Arc::<ManualClock>::clone(&self.clock);
        self.service = Some(
            QueueService::open(&path, SyncMode::Normal, clock, AccountJournal::default()).unwrap(),
        );
    }

    fn service(&self) -> &QueueService {
        self.service.as_ref().unwrap()
    }

    fn context(&self) -> Context {
        self.request("request-1")
    }

    /// A request under this ID.
    fn request(&self, id: &str) -> Context {
        let client = Arc::new(Client { session: 1, name: "tests".to_owned() });
        let owner = Arc::new(Owner { client, pid: 0, program: None });
        let request_id = Some(Arc::from(id));
        let caller = Caller { request_id, ..Caller::local(owner, "") };
        Context::new(self.clock.now(), caller)
    }

    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    fn create(&self, queue: &str) {
        let context = self.context();
        let made = self.service().create_queue(&context, queue, Metadata::default());
        assert_eq!(self.wait(made), Ok(Created::New));
    }

    fn put(&self, queue: &str, text: &str) -> Message {
        self.put_with(queue, text, PutTimes::default()).unwrap()
    }

    fn put_with(&self, queue: &str, text: &str, times: PutTimes) -> QueueResult<Message> {
        let new = NewMessage { text: text.to_owned(), times };
        self.wait(self.service().put_message(&self.context(), queue, new))
    }

    fn get(&self, queue: &str, most: u32, visibility: u32) -> QueueResult<Vec<Shown>> {
        let context = self.context();
        self.wait(self.service().get_messages(&context, queue, most, visibility))
    }

    fn peek(&self, queue: &str, most: u32) -> QueueResult<Vec<Shown>> {
        self.service().peek_messages(&self.context(), queue, most)
    }

    fn update(&self, queue: &str, of: &Message, visibility: u32) -> QueueResult<Message> {
        let (id, receipt) = (of.id.to_string(), of.receipt().to_string());
        let context = self.context();
        let with = (visibility, None);
        self.wait(self.service().update_message(&context, queue, &id, &receipt, with))
    }

    fn delete(&self, queue: &str, of: &Message) -> QueueResult<()> {
        let (id, receipt) = (of.id.to_string(), of.receipt().to_string());
        self.wait(self.service().delete_message(&self.context(), queue, &id, &receipt))
    }

    fn count(&self, queue: &str) -> u64 {
        self.service().queue_info(&self.context(), queue).unwrap().messages
    }

    /// Waits until the sweeper has removed every row that it can.
    fn swept(&self) {
        let end = std::time::Instant::now() + Duration::from_secs(20);
        loop {
            self.service().memory.bell.ring();
            let now = self.service().memory.moment_of_look(self.clock.now());
            let left = self.service().store.read(|rows| {
                let expired = rows.next_expiry()?.is_some_and(|expiry| expiry <= now);
                Ok::<_, DbError>(expired || rows.has_gone()?)
            });
            if !left.unwrap() {
                return;
            }
            assert!(std::time::Instant::now() < end, "the sweeper left rows");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The texts of messages.
fn texts(shown: &[Shown]) -> Vec<&str> {
    shown.iter().map(|one| one.text.as_str()).collect()
}

fn is_mismatch<T: std::fmt::Debug>(answer: &QueueResult<T>) -> bool {
    matches!(answer, Err(QueueError::Denied(QueueDenial::PopReceiptMismatch(_))))
}

fn is_missing<T: std::fmt::Debug>(answer: &QueueResult<T>) -> bool {
    matches!(answer, Err(QueueError::Denied(QueueDenial::MessageNotFound(_))))
}
