//! What an operator is told of a disk without room.

use super::fixture::{Folder, text};
use crate::common::ground::Ground;
use crate::common::http::ask;
use crate::common::need;

#[test]
fn the_doctor_and_the_log_tell_of_a_disk_without_room() {
    if !need::root() {
        return;
    }
    let (folder, ground) = (Folder::new(), Ground::new("tmpfs", c"size=24m"));
    let data = ground.path().join("data");
    let data = data.to_str().unwrap();
    let doctor = text(&folder.run(&["doctor", "--no-mount", "--data", data]));
    assert!(doctor.contains("KiB of free space"), "{doctor}");
    let server =
        folder.start_with(&["serve", "--no-mount", "--no-auth"], &[("LATCHFS_DATA", data)]);
    let queue = folder.service("queue");
    ask(queue, "PUT", "/tasks", &[], b"").is(201);
    let body =
        format!("<QueueMessage><MessageText>{}</MessageText></QueueMessage>", "x".repeat(40_000));
    let put = || ask(queue, "POST", "/tasks/messages", &[], body.as_bytes()).status;
    assert!((0..10_000).any(|_| put() == 507), "the disk never gets full");
    for _ in 0..20 {
        put();
    }
    let warned = "requests that store something are refused until there is room";
    assert_eq!(server.log().matches(warned).count(), 1, "{}", server.log());
}
