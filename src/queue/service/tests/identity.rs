//! Which messages are a queue's, over clears, deletions and resets, and the numbers of messages.

use std::path::Path;

use super::*;
use crate::db::counted::RowsPart;
use crate::disk::part::{NextData, Part as _};

/// Replaces all queues by those saved in a folder, or by none.
fn replace(world: &World, saved: Option<&Path>) {
    let clock: Arc<dyn TimeSource> = Arc::<ManualClock>::clone(&world.clock);
    let next = NextData { saved, scrap: Path::new(""), now: clock.now() };
    let part = RowsPart::of(world.service(), &clock);
    let mut held = part.hold().unwrap();
    held.prepare(&next).unwrap();
    held.replace(&next).unwrap();
    held.resume(&next).unwrap();
}

#[test]
fn a_reset_leaves_no_queue_to_put_to() {
    let world = World::new();
    world.create("queue");
    world.put("queue", "old");
    replace(&world, None);
    assert!(world.put_with("queue", "none", PutTimes::default()).is_err());
}

#[test]
fn numbers_of_messages_rise_over_deletions_restarts_and_restored_states() {
    let mut world = World::new();
    let saved = tempfile::tempdir().unwrap();
    world.create("queue");
    let numbers = |world: &World| world.put("queue", "text").id.seq();
    let first = numbers(&world);
    let second = world.put("queue", "text");
    world.delete("queue", &second).unwrap();
    assert_eq!(numbers(&world), first + 2, "the number of a deleted message is not given again");
    {
        let clock: Arc<dyn TimeSource> = Arc::<ManualClock>::clone(&world.clock);
        let part = RowsPart::of(world.service(), &clock);
        let mut save = part.save(saved.path()).unwrap();
        save.begin().unwrap();
        save.release();
        assert_eq!(save.finish().unwrap(), ["queue.db"]);
    }
    world.wait(world.service().clear_messages(&world.context(), "queue")).unwrap();
    world.swept();
    world.restart();
    // The rows say 0 now, and the saved ones 3.
    numbers(&world);
    replace(&world, Some(saved.path()));
    assert_eq!(world.peek("queue", 32).unwrap().len(), 2);
    assert_eq!(numbers(&world), first + 3);
    assert_eq!(world.peek("queue", 32).unwrap().len(), 3);
}
