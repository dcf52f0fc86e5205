//! Rows on disk: found by index, counted right, swept in small steps.

use tempfile::TempDir;

use super::*;
use crate::db::SyncMode;
use crate::queue::rules::{Message, MessageId, PutTimes, Tick, TimeToLive};
use crate::rules::Metadata;

struct World {
    store: QueueStore,
    _folder: TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = QueueStore::open(&folder.path().join("queue.db"), SyncMode::Normal).unwrap();
        Self { store, _folder: folder }
    }

    fn write<T: Send + 'static>(
        &self,
        change: impl FnMut(&QueueRows<'_>) -> Result<T, DbError> + Send + 'static,
    ) -> T {
        self.store.delete(change).unwrap()
    }

    fn queue(&self, name: &'static str) -> QueueId {
        self.write(move |rows| {
            rows.insert_queue(name, Tick(0), &Metadata::default())?;
            Ok(rows.queue_id(name)?.unwrap())
        })
    }

    /// Puts `many` messages at moment 0 that live for so many seconds.
    fn fill(&self, queue: QueueId, many: usize, seconds: u64) {
        let time_to_live = TimeToLive::Seconds(seconds);
        let times = PutTimes { visibility: 0, time_to_live };
        self.write(move |rows| {
            for _ in 0..many {
                let id = MessageId::new(rows.last_seq()? + 1, [1; 10]);
                rows.insert_message(queue, &Message::put(id, times, Tick(0), Tick(0)), "text")?;
            }
            Ok(())
        });
    }

    fn rows_of(&self, table: &str) -> i64 {
        let text = format!("SELECT count(*) FROM {table}");
        self.write(move |rows| Ok(rows.0.query_row(&text, [], |row| row.get(0))?))
    }
}

#[test]
fn the_head_of_a_queue_and_expired_messages_are_found_by_index_and_never_sorted() {
    let world = World::new();
    for (text, index) in [
        (
            "SELECT id FROM message INDEXED BY due WHERE qid = 1 AND visible_at <= 5 \
          ORDER BY visible_at, seq",
            "due",
        ),
        ("SELECT count(*) FROM message INDEXED BY expiry WHERE expires <= 5 AND qid = 1", "expiry"),
        (
            "SELECT seq FROM message INDEXED BY expiry WHERE expires <= 5 ORDER BY expires LIMIT 3",
            "expiry",
        ),
        ("SELECT min(expires) FROM message INDEXED BY expiry WHERE expires IS NOT NULL", "expiry"),
        ("SELECT max(seq) FROM message", ""),
    ] {
        let plan = world.write(move |rows| {
            let mut query = rows.0.prepare(&format!("EXPLAIN QUERY PLAN {text}"))?;
            let lines = query.query_map([], |row| row.get::<_, String>(3))?;
            Ok(lines.collect::<Result<Vec<_>, _>>()?.join("; "))
        });
        assert!(plan.starts_with("SEARCH message") && plan.contains(index), "{text}: {plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{text}: {plan}");
    }
}

#[test]
fn the_count_leaves_out_what_is_expired_and_not_yet_swept() {
    let world = World::new();
    let (queue, other) = (world.queue("queue"), world.queue("other"));
    world.fill(queue, 3, 10);
    world.fill(queue, 2, 20);
    world.fill(other, 7, 10);
    let count = |seconds| world.write(move |rows| rows.count(queue, Tick(0).after(seconds)));
    assert_eq!((count(9), count(10), count(20)), (5, 2, 0));
    assert_eq!(world.write(|rows| rows.sweep_expired(Tick(0).after(10), 4)), 4);
    assert_eq!((count(10), count(20)), (2, 0));
    assert_eq!(world.write(|rows| rows.sweep_expired(Tick(0).after(10), 100)), 6);
    assert_eq!((count(10), world.rows_of("text")), (2, 2));
}

#[test]
fn q32_q34_a_queue_is_cleared_and_deleted_without_touching_its_messages() {
    let world = World::new();
    let queue = world.queue("queue");
    world.fill(queue, 10, 100);
    world.write(move |rows| rows.clear_queue("queue", queue));
    let fresh = world.write(|rows| Ok(rows.queue_id("queue")?.unwrap()));
    assert_ne!(fresh, queue);
    assert_eq!(world.write(move |rows| rows.count(fresh, Tick(0))), 0);
    assert_eq!(world.rows_of("message"), 10);
    world.fill(fresh, 5, 100);
    world.write(move |rows| rows.delete_queue("queue", fresh));
    assert_eq!(world.rows_of("gone"), 2);
    // The identity of what is not swept yet is not given out again.
    let third = world.queue("queue");
    assert!(third != queue && third != fresh);
    assert_eq!(world.write(move |rows| rows.count(third, Tick(0))), 0);
}

#[test]
fn dropped_rows_are_swept_in_steps_and_forgotten_last() {
    let world = World::new();
    let (queue, kept) = (world.queue("queue"), world.queue("kept"));
    world.fill(queue, 10, 100);
    world.fill(kept, 1, 100);
    world.write(move |rows| rows.delete_queue("queue", queue));
    for left in [7, 4, 1] {
        assert_eq!(world.write(|rows| rows.sweep_gone(3)), 3);
        assert_eq!((world.rows_of("message"), world.rows_of("gone")), (left + 1, 1));
    }
    assert_eq!(world.write(|rows| rows.sweep_gone(3)), 1);
    assert_eq!((world.rows_of("message"), world.rows_of("gone")), (1, 0));
    assert_eq!(world.rows_of("text"), 1);
    assert_eq!(world.write(move |rows| rows.count(kept, Tick(0))), 1);
}

#[test]
fn the_head_passes_over_expired_messages_and_gives_up_after_some() {
    let world = World::new();
    let queue = world.queue("queue");
    world.fill(queue, 5, 10);
    world.fill(queue, 4, 20);
    let now = Tick(0).after(10);
    let head = world.write(move |rows| rows.head(queue, now, 2, 5));
    assert_eq!((head.visible.len(), head.expired.len(), head.cut), (2, 5, false));
    assert_eq!(head.visible[0].id.seq(), 6);
    let head = world.write(move |rows| rows.head(queue, now, 2, 4));
    assert_eq!((head.visible.len(), head.expired.len(), head.cut), (0, 4, true));
    assert!(world.write(move |rows| rows.has_visible(queue, now, 5)));
    let later = Tick(0).after(20);
    assert!(!world.write(move |rows| rows.has_visible(queue, later, 9)));
    assert!(world.write(move |rows| rows.has_visible(queue, later, 8)), "it may have one behind");
}

#[test]
fn an_id_with_other_random_bits_finds_no_message() {
    let world = World::new();
    let (queue, other) = (world.queue("queue"), world.queue("other"));
    world.fill(queue, 1, 10);
    let found = |id, queue| world.write(move |rows| rows.message(queue, id)).is_some();
    assert!(found(MessageId::new(1, [1; 10]), queue));
    assert!(!found(MessageId::new(1, [2; 10]), queue));
    assert!(!found(MessageId::new(2, [1; 10]), queue));
    assert!(!found(MessageId::new(1, [1; 10]), other));
}
