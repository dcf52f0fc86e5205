//! Durability: the server is killed again and again while it is written to from both sides. What
//! it had acknowledged must be there after the next start, whole; what nobody can hold any more
//! must be gone.
//!
//! ```text
//!   slots    a file of numbered slots: what each may hold after a crash
//!   rest     writers through REST: bytes, metadata, files made and deleted
//!   mounted  writers on the mount: bytes, files made, renamed, removed
//!   shares   what belongs to a share as a whole
//!   holders  opens, locks and pending deletions of the dead server, and leases that outlive it
//! ```
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod holders;
mod mounted;
#[path = "../model/random.rs"]
#[allow(dead_code, reason = "the model's tests use the rest of it")]
mod random;
mod rest;
mod shares;
mod slots;

use std::thread;
use std::time::Duration;

use common::need;
use common::served::Served;
use random::{Random, seeds};

const WRITERS: usize = 3;

/// The shares that crashes leave are served too, but not mounted.
const ARGS: [&str; 3] = ["--loose", "--share", "share"];

/// How long there is traffic before the crash, in milliseconds.
const TRAFFIC_MS_MAX: usize = 150;

fn rounds() -> usize {
    if std::env::var_os("LATCHFS_FULL").is_some() { 200 } else { 20 }
}

#[test]
fn what_was_acknowledged_outlives_a_killed_server_and_what_it_held_does_not() {
    if !need::fuse() {
        return;
    }
    let seed = seeds(1)[0];
    let mut random = Random::new(seed);
    let mut served = Served::start(&ARGS);
    let mut rest: Vec<_> = (0..WRITERS).map(|n| rest::Writer::new(&served, n)).collect();
    let mut mounted: Vec<_> = (0..WRITERS).map(|n| mounted::Writer::new(&served, n)).collect();
    let mut shares = shares::Maker::default();
    for round in 0..rounds() {
        let holders = holders::Holders::new(&served, round);
        let (addr, mount) = (served.addr(), served.mount());
        thread::scope(|scope| {
            for writer in &mut rest {
                scope.spawn(move || writer.work(addr));
            }
            for writer in &mut mounted {
                let mount = &mount;
                scope.spawn(move || writer.work(mount));
            }
            scope.spawn(|| shares.work(addr, round));
            // The moment is the test's own choice, and not a wait for something.
            let traffic = u64::try_from(random.below(TRAFFIC_MS_MAX)).unwrap();
            thread::sleep(Duration::from_millis(traffic));
            served.crash();
        });
        served.restart(&ARGS);
        holders.check(&served);
        for writer in &mut rest {
            writer.check(&served);
        }
        for writer in &mut mounted {
            writer.check(&served);
        }
        shares.check(&served);
    }
    let written: u64 = rest.iter().map(|writer| writer.acknowledged).sum();
    let by_mount: u64 = mounted.iter().map(|writer| writer.acknowledged).sum();
    let shares = shares.acknowledged();
    println!("seed {seed}: {written} by REST, {by_mount} on the mount, {shares} of shares");
    assert!(written > 100 && by_mount > 100 && shares > 10, "little was written");
}
