//! Many messages, and many clients at once.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;

use latchfs::clock::TimeSource as _;
use latchfs::queue::rules::{PutTimes, TimeToLive};
use latchfs::queue::service::{NewMessage, QueueService};
use latchfs::rules::{Caller, Client, Context, Owner};

use super::fixture::{ACCOUNT, Fixture, messages, texts};
use crate::common::http::Kept;
use crate::common::random::steps;

/// Puts `many` messages without HTTP, each hidden for so many seconds.
fn fill(queue: &Fixture, many: usize, visibility: u32) {
    let accounts = queue.accounts.as_ref().unwrap();
    let service: &QueueService = accounts.get(ACCOUNT).unwrap().queue().unwrap();
    let client = Arc::new(Client { session: 1, name: "tests".to_owned() });
    let owner = Arc::new(Owner { client, pid: 0, program: None });
    let context = Context::new(queue.clock.now(), Caller::local(owner, ""));
    let times = PutTimes { visibility, time_to_live: TimeToLive::Forever };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for number in 0..many {
            let new = NewMessage { text: number.to_string(), times };
            service.put_message(&context, "queue", new).await.unwrap();
        }
    });
}

#[test]
fn q17_twenty_clients_get_each_message_once() {
    let queue = Fixture::new();
    let many = steps(10_000);
    fill(&queue, many, 0);
    let addr = queue.addr;
    let consumers = (0..20).map(|_| {
        thread::spawn(move || {
            let mut connection = Kept::connect(addr).unwrap();
            let target = "/queue/messages?numofmessages=32&visibilitytimeout=600";
            let mut got = Vec::new();
            loop {
                let page = messages(&connection.ask("GET", target, &[], b"").unwrap().is(200));
                if page.is_empty() {
                    return got;
                }
                got.extend(page.into_iter().map(|message| message.text));
            }
        })
    });
    let consumers: Vec<_> = consumers.collect();
    let got: Vec<_> = consumers.into_iter().flat_map(|one| one.join().unwrap()).collect();
    assert_eq!(got.len(), many);
    assert_eq!(got.into_iter().collect::<HashSet<_>>().len(), many);
}

#[test]
fn q33_hidden_messages_do_not_stand_in_the_way_of_a_visible_one() {
    let queue = Fixture::new();
    fill(&queue, steps(10_000), 600_000);
    queue.send("visible");
    assert_eq!(texts(&queue.take("?numofmessages=32")), ["visible"]);
    assert_eq!(queue.count(), u64::try_from(steps(10_000)).unwrap() + 1);
}

#[test]
fn q34_a_full_queue_is_deleted_and_made_again_empty() {
    let queue = Fixture::new();
    fill(&queue, steps(10_000), 0);
    queue.delete("/queue").is(204);
    let refused = queue.get("/queue/messages").refused(404, "QueueNotFound");
    assert!(refused.text().contains("the queue was deleted"), "{}", refused.text());
    queue.put("/queue", &[]).is(201);
    assert_eq!((queue.count(), queue.peek()), (0, vec![]));
    queue.send("new");
    assert_eq!(texts(&queue.take("?numofmessages=32")), ["new"]);
}
