//! What a restore must not do: have a receipt come a second time, or end what it did not restore.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::blob::rules::{BlobOperation, BlobType};
use crate::blob::service::{AccessConditions, BlobAt, CopyRequest};
use crate::clock::ClockChange;
use crate::queue::rules::PutTimes;
use crate::queue::service::NewMessage;
use crate::rules::copy_status::CopyStatus;

const NAME: &str = "saved";

impl Bench {
    /// Gets the one message of the queue. Returns its receipt.
    fn get_message(&self) -> String {
        let queue = self.accounts.first().queue().unwrap();
        let got = within(queue.get_messages(&self.cx(), NAME, 1, 60)).unwrap();
        got[0].message.receipt().to_string()
    }

    /// Begins to fetch a blob.
    fn begin_copy(&self, name: &str) {
        let blob = self.accounts.first().blob().unwrap();
        let request = CopyRequest { id: name.into(), source: "s".into(), ..Default::default() };
        let (cx, at, kind) = (self.cx(), BlobAt::new(NAME, name), BlobType::Block);
        within(blob.begin_copy(&cx, &at, AccessConditions::default(), kind, 5, request)).unwrap();
    }

    fn status_of_copy(&self, name: &str) -> Option<(CopyStatus, Option<String>)> {
        let blob = self.accounts.first().blob().unwrap();
        let (cx, at) = (self.cx(), BlobAt::new(NAME, name));
        let head = blob.properties(
            &cx,
            BlobOperation::BlobGetProperties,
            &at,
            &AccessConditions::default(),
        );
        let copy = head.ok()?.state.copy.clone().unwrap();
        Some((copy.status, copy.description))
    }
}

#[test]
fn no_receipt_comes_again_after_a_restart_and_a_restore() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let bench = Bench::open(&data);
    // The clock stands: only the counter makes a difference.
    bench.accounts.controls().clock.turn(ClockChange::Freeze).unwrap();
    bench.furnish(NAME);
    let new = NewMessage { text: "text".to_owned(), times: PutTimes::default() };
    within(bench.accounts.first().queue().unwrap().put_message(&bench.cx(), NAME, new)).unwrap();
    bench.states.save(NAME).unwrap();
    let first = bench.get_message();
    let after_a_kill = copy(&data);
    drop(bench);
    for data in [data, after_a_kill.path().join("data")] {
        let bench = Bench::open(&data);
        bench.states.restore(NAME).unwrap();
        assert_ne!(bench.get_message(), first);
    }
}

#[test]
fn a_restore_fails_the_copies_of_its_state_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::open(&folder.path().join("data"));
    bench.furnish(NAME);
    bench.begin_copy("restored");
    bench.states.save(NAME).unwrap();
    let restored = AtomicBool::new(false);
    let begun = std::thread::scope(|scope| {
        let copies = scope.spawn(|| {
            let mut begun = 0_u32;
            while !restored.load(Ordering::Relaxed) {
                bench.begin_copy(&begun.to_string());
                begun += 1;
            }
            begun
        });
        for _ in 0..10 {
            bench.states.restore(NAME).unwrap();
        }
        restored.store(true, Ordering::Relaxed);
        copies.join().unwrap()
    });
    let (status, why) = bench.status_of_copy("restored").unwrap();
    assert_eq!(status, CopyStatus::Failed);
    assert!(why.unwrap().contains("was saved"));
    for name in 0..begun {
        if let Some((status, why)) = bench.status_of_copy(&name.to_string()) {
            assert_eq!(status, CopyStatus::Pending, "copy {name} of {begun}: {why:?}");
        }
    }
}
