//! Messages and queues from their first request to their last.

use super::*;
use crate::queue::rules::{MessageId, TimeToLive};

fn times(visibility: u32, seconds: u64) -> PutTimes {
    PutTimes { visibility, time_to_live: TimeToLive::Seconds(seconds) }
}

#[test]
fn a_get_finds_what_stands_behind_many_expired_messages() {
    let world = World::new();
    world.create("queue");
    for _ in 0..600 {
        world.put_with("queue", "gone", times(0, 1)).unwrap();
    }
    world.put("queue", "kept");
    world.advance(2);
    assert_eq!(texts(&world.peek("queue", 32).unwrap()), ["kept"]);
    assert_eq!(texts(&world.get("queue", 32, 30).unwrap()), ["kept"]);
    assert_eq!(world.count("queue"), 1);
}

#[test]
fn q44_a_clock_that_is_set_back_keeps_order_and_receipts() {
    let world = World::new();
    world.create("queue");
    world.put("queue", "a");
    let first = world.get("queue", 1, 10).unwrap().remove(0).message;
    world.clock.set(Timestamp(START.0 - 3_600_000_000_000));
    world.put("queue", "b");
    let second = world.get("queue", 32, 10).unwrap();
    assert_eq!(texts(&second), ["b"]);
    assert!(second[0].message.visible_at >= first.visible_at);
    assert!(second[0].message.changed > first.changed);
    let updated = world.update("queue", &first, 10).unwrap();
    assert!(updated.changed > second[0].message.changed);
    assert!(is_mismatch(&world.delete("queue", &first)));
    // What is hidden comes back when the clock has caught up, never earlier.
    world.advance(3_609);
    assert_eq!(world.get("queue", 32, 10), Ok(vec![]));
    world.advance(1);
    assert_eq!(texts(&world.get("queue", 32, 10).unwrap()), ["a", "b"]);
}

#[test]
fn why_names_who_has_a_message_and_until_when() {
    let world = World::new();
    world.create("queue");
    let put = world.put("queue", "text");
    let id = put.id.to_string();
    let why = |id: &str| world.service().why(world.clock.now(), "queue", id);
    let standing = why(&id).unwrap();
    assert_eq!(standing.visibility, Visibility::VisibleSince(put.visible_at));
    assert_eq!(standing.message.holder, None);
    let context = world.request("consumer-7");
    let got = world.service().get_messages(&context, "queue", 1, 30);
    let got = world.wait(got).unwrap().remove(0).message;
    let standing = why(&id).unwrap();
    assert_eq!(standing.visibility, Visibility::HiddenUntil(got.visible_at));
    let holder = standing.message.holder.unwrap();
    let expected = (Some("consumer-7"), got.changed.timestamp());
    assert_eq!((holder.client_request.as_deref(), holder.when), expected);
    assert!(world.service().why(world.clock.now(), "none", &id).is_err());
    assert!(is_missing(&why("no-id")) && is_missing(&why(&MessageId::new(9, [0; 10]).to_string())));
    let (id, receipt) = (got.id.to_string(), got.receipt().to_string());
    let context = world.request("done");
    let deleted = world.service().delete_message(&context, "queue", &id, &receipt);
    world.wait(deleted).unwrap();
    let Err(QueueError::Denied(denial)) = why(&id) else { panic!("the message is gone") };
    assert_eq!(denial.requester().and_then(|by| by.client_request.as_deref()), Some("done"));
}

#[test]
fn a_get_of_an_empty_queue_commits_nothing() {
    let world = World::new();
    world.create("queue");
    world.put("queue", "text");
    world.get("queue", 1, 60).unwrap();
    let commits = || world.service().store.database().stats().commits;
    let before = commits();
    for _ in 0..10 {
        assert_eq!(world.get("queue", 32, 60), Ok(vec![]));
        assert_eq!(world.peek("queue", 32), Ok(vec![]));
    }
    assert_eq!(commits(), before);
}

#[test]
fn the_sweeper_removes_a_great_many_rows_in_small_transactions() {
    let world = World::new();
    world.create("queue");
    for number in 0..600 {
        world.put_with("queue", &number.to_string(), times(0, 5)).unwrap();
    }
    world.advance(5);
    let before = world.service().store.database().stats().commits;
    world.swept();
    assert_eq!(world.service().store.database().stats().commits, before + 3);
    assert_eq!(world.count("queue"), 0);
}

#[test]
fn changes_of_messages_and_queues_are_remembered() {
    let world = World::new();
    world.create("queue");
    let put = world.put("queue", "text");
    world.put("queue", "another");
    let context = world.request("consumer-7");
    world.wait(world.service().get_messages(&context, "queue", 1, 30)).unwrap();
    let standing = world.service().why(world.clock.now(), "queue", &put.id.to_string()).unwrap();
    let told = |changes: &[Change]| -> Vec<_> {
        changes.iter().map(|change| change.by.operation.clone()).collect()
    };
    assert_eq!(told(&standing.changes), ["Get Messages", "Put Message"]);
    assert_eq!(standing.changes[0].by, standing.message.holder.unwrap());
    assert_eq!(standing.changes[0].by.client_request.as_deref(), Some("consumer-7"));
    let is_queue = |change: &Change| matches!(change.object, ObjectAddress::Queue(_));
    assert_eq!(told(&world.service().changes(is_queue)), ["Create Queue"]);
    // What was refused is no change.
    assert!(world.wait(world.service().delete_message(&context, "queue", "x", "y")).is_err());
    assert_eq!(world.service().changes(|_| true).len(), 4);
}

#[test]
fn a_look_does_not_wait_for_the_writer_when_all_open_connections_are_in_use() {
    let world = World::new();
    world.create("queue");
    world.put("queue", "text");
    let service = world.service();
    let context = world.context();
    let (send, answer) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let held = service.store.database().hold();
        let looked = service.store.read(|_| {
            service.store.read(|_| {
                scope.spawn(|| {
                    let peek = service.peek_messages(&context, "queue", 1);
                    send.send(peek).unwrap();
                });
                Ok::<_, DbError>(answer.recv_timeout(Duration::from_mins(1)))
            })
        });
        drop(held);
        assert_eq!(texts(&looked.unwrap().expect("an answer in time").unwrap()), ["text"]);
    });
}

#[test]
fn a_get_that_cannot_be_carried_out_is_no_empty_answer() {
    let world = World::new();
    world.create("queue");
    world.put("queue", "one");
    assert_eq!(world.get("queue", 1, 30).unwrap().len(), 1);
    // The next Get does not look whether anything is visible, and nothing is.
    std::fs::remove_file(world.folder.path().join("queue.db")).unwrap();
    let database = world.service().store.database();
    assert!(matches!(database.checkpoint(), Err(DbError::Gone { .. })));
    let got = world.get("queue", 1, 30);
    assert!(matches!(got, Err(QueueError::Store(DbError::Gone { .. }))), "{got:?}");
}
