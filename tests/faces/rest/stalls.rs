//! A request that has to wait keeps nobody else waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use latchfs::http::limits::Limits;

use crate::common::http::Kept;
use crate::rest::fixture::Fixture;

/// A round may be spoilt by others on the machine; not all of them.
const ROUNDS: usize = 20;

#[test]
fn a_request_that_waits_for_a_release_does_not_stop_others_on_its_thread() {
    let fixture = Fixture::with_limits(Limits { workers: 1, ..Limits::default() });
    fixture.upload("closing", b"bytes");
    fixture.upload("free", b"bytes");
    let handle = fixture.open("closing", "rw", "none");
    fixture.share().set_flushed(&handle).unwrap();
    let connect = || Kept::connect(fixture.server.addr()).unwrap();
    let mut kept = connect();
    let mut ask = |target: &str| {
        let begun = Instant::now();
        let got = kept.ask("GET", target, &[], b"").unwrap();
        (got.status, begun.elapsed())
    };
    let spoilt = (0..ROUNDS).all(|_| {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let slow = scope.spawn(|| {
                let begun = Instant::now();
                let got = connect().ask("GET", "/docs/closing", &[], b"").unwrap();
                done.store(true, Ordering::Release);
                got.refused(409, "SharingViolation");
                begun.elapsed()
            });
            let mut longest = Duration::ZERO;
            while !done.load(Ordering::Acquire) {
                let (status, took) = ask("/docs/free");
                assert_eq!(status, 200);
                longest = longest.max(took);
            }
            longest > slow.join().unwrap() / 2
        })
    });
    assert!(!spoilt, "whoever shares the thread waits as long");
}
