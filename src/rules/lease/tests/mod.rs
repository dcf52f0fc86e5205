//! Leases: the state tables cell by cell, the numbered behaviours, and a random walk.

use super::{LeaseId, ShareLease};
use crate::rules::Timestamp;

mod tables;
mod text;
mod walk;

const A: LeaseId = id(0xA);
const B: LeaseId = id(0xB);
const C: LeaseId = id(0xC);
/// The ID that the service makes up where nothing is proposed.
const X: LeaseId = id(0xF);

const fn id(last: u8) -> LeaseId {
    LeaseId::from_random_bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last])
}

/// The moment that many milliseconds after a fixed start.
fn at_ms(millis: i64) -> Timestamp {
    Timestamp(1_700_000_000_000_000_000 + millis * 1_000_000)
}

fn at(seconds: i64) -> Timestamp {
    at_ms(seconds * 1000)
}

/// A share leased under A from second 0 on.
fn share_leased(duration: i64) -> ShareLease {
    let mut lease = ShareLease::default();
    lease.acquire(Some(duration), Some(A), X, at(0)).unwrap();
    lease
}
