//! Durability: the server is killed again and again while it is written to from both sides. What
//! it had acknowledged must be there after the next start, whole; what nobody can hold any more
//! must be gone.
//!
//! ```text
//!   slots    a file of numbered slots: what each may hold after a crash
//!   rest     writers through REST: bytes, metadata, files made and deleted
//!   mounted  writers on the mount: bytes, files made, renamed, removed
//!   shares   what belongs to a share as a whole
//!   killed   a server of one service in a process of its own
//!   blobs    blobs, blocks, snapshots and leases of the Blob service
//!   queues   messages of the Queue service
//!   tables   transactions of the Table service
//!   disk     a disk that loses what was not synced
//!   power    blobs over power cuts
//!   holders  opens, locks and pending deletions of the dead server, and leases that outlive it
//! ```
mod blobs;
mod disk;
mod holders;
mod killed;
mod mounted;
mod power;
mod queues;
use crate::common::random;
mod rest;
mod services;
mod shares;
mod slots;
mod tables;

use std::thread;
use std::time::Duration;

use crate::common::need;
use crate::common::served::Served;
use random::{Random, seeds};

const WRITERS: usize = 3;

/// The shares that crashes leave are served too, but not mounted.
const ARGS: [&str; 3] = ["--no-auth", "--share", "share"];

/// How long there is traffic before the crash, in milliseconds.
const TRAFFIC_MS_MAX: usize = 150;

/// How many times the rounds there may be until enough was written.
const MORE_ROUNDS: usize = 10;

fn rounds() -> usize {
    if std::env::var_os("LATCHFS_FULL").is_some() { 200 } else { 20 }
}

#[test]
fn what_was_acknowledged_outlives_a_killed_server_and_what_it_held_does_not() {
    if !need::fuse() {
        return;
    }
    let _alone = crate::alone();
    let seed = seeds(1)[0];
    let mut random = Random::new(seed);
    let mut served = Served::start(&ARGS);
    let mut rest: Vec<_> = (0..WRITERS).map(|n| rest::Writer::new(&served, n)).collect();
    let mut mounted: Vec<_> = (0..WRITERS).map(|n| mounted::Writer::new(&served, n)).collect();
    let mut shares = shares::Maker::default();
    let enough = |written: [u64; 3]| written.iter().zip([100, 100, 10]).all(|(n, min)| *n > min);
    let mut written = [0; 3];
    // On a busy machine little is written in a round: then there are more rounds.
    for round in 0..rounds() * MORE_ROUNDS {
        if round >= rounds() && enough(written) {
            break;
        }
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
        written = [
            rest.iter().map(|writer| writer.acknowledged).sum(),
            mounted.iter().map(|writer| writer.acknowledged).sum(),
            shares.acknowledged() as u64,
        ];
    }
    let [by_rest, by_mount, of_shares] = written;
    println!("seed {seed}: {by_rest} by REST, {by_mount} on the mount, {of_shares} of shares");
    assert!(enough(written), "little was written");
}
