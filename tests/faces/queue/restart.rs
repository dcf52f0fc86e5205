//! What is there after a restart. After kill -9 it is the same: see the durability tests.

use super::fixture::{Fixture, texts};

#[test]
fn q35_everything_that_was_answered_is_there_after_a_restart() {
    let mut queue = Fixture::new();
    for text in ["deleted", "hidden", "visible"] {
        queue.send(text);
    }
    let deleted = queue.take_one("?visibilitytimeout=600");
    let hidden = queue.take_one("?visibilitytimeout=600");
    queue.remove(&deleted.id, &deleted.receipt).is(204);
    queue.put("/queue?comp=metadata", &[("x-ms-meta-Kept", "Yes")]).is(204);
    queue.restart();
    assert_eq!((queue.count(), texts(&queue.peek())), (2, vec!["visible"]));
    let kept = queue.get("/queue?comp=metadata").is(200);
    assert!(kept.spelled.iter().any(|name| name == "x-ms-meta-Kept"));
    queue.remove(&deleted.id, &deleted.receipt).refused(404, "MessageNotFound");
    queue.advance(600);
    let again = queue.take("?numofmessages=32");
    assert_eq!(texts(&again), ["visible", "hidden"]);
    assert_eq!(again[1].count, "2");
    queue.remove(&hidden.id, &hidden.receipt).refused(400, "PopReceiptMismatch");
}
