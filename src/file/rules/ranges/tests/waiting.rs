//! Requests that wait.

use super::super::{Ticket, TooManyWaiters, WAITERS_MAX};
use super::{A, B, C, Exclusive, RangeLock, RangeTable, Shared, fcntl, range, smb};

/// A table with these locks held, and these requests waiting under tickets 0, 1, ...
fn table(held: &[RangeLock], waiting: &[RangeLock]) -> RangeTable {
    let mut table = RangeTable::default();
    for lock in held {
        table.locks.lock(*lock).expect("the locks of a test are granted");
    }
    for (number, request) in (0..).zip(waiting) {
        assert!(table.locks.clone().lock(*request).is_err(), "has to wait");
        table.waiters.wait(Ticket(number), *request).unwrap();
    }
    table
}

fn granted(table: &mut RangeTable) -> Vec<u64> {
    table.grant().iter().map(|(ticket, _)| ticket.0).collect()
}

#[test]
fn a_file_without_locks_costs_a_pointer() {
    assert_eq!(size_of::<Option<Box<RangeTable>>>(), size_of::<usize>());
    assert!(RangeTable::default().is_empty());
}

#[test]
fn a_cancelled_request_gets_nothing() {
    let mut table = table(&[smb(A, 0, 4, Exclusive)], &[smb(B, 0, 4, Exclusive)]); // br29
    assert!(table.waiters.cancel(Ticket(0)));
    assert!(!table.waiters.cancel(Ticket(0)));
    table.locks.unlock(A, range(0, 4)).unwrap();
    assert!(table.grant().is_empty());
    assert!(table.is_empty());
}

#[test]
fn a_granted_request_can_no_longer_be_cancelled() {
    let mut table = table(&[smb(A, 0, 4, Exclusive)], &[smb(B, 0, 4, Exclusive)]);
    table.locks.release_taken_through(A);
    table.grant();
    assert!(!table.waiters.cancel(Ticket(0)));
    assert_eq!(table.locks.len(), 1);
}

#[test]
fn closing_the_waiter_ends_its_requests_only() {
    let waiting = [smb(B, 0, 4, Exclusive), smb(C, 0, 4, Shared), smb(B, 1, 1, Shared)];
    let mut table = table(&[smb(A, 0, 4, Exclusive)], &waiting); // br30
    assert_eq!(table.waiters.drop_handle(B), [Ticket(0), Ticket(2)]);
    assert_eq!(table.waiters.len(), 1);
    table.locks.release_taken_through(A);
    assert_eq!(granted(&mut table), [1]);
}

#[test]
fn requests_are_granted_in_order_of_arrival_and_pass_those_still_stuck() {
    let waiting = [
        smb(B, 0, 10, Exclusive),
        smb(C, 0, 5, Exclusive),
        smb(B, 4, 1, Shared),
        smb(C, 6, 1, Shared),
    ];
    let mut table = table(&[smb(A, 0, 9, Exclusive), smb(A, 9, 1, Shared)], &waiting);
    table.locks.unlock(A, range(0, 9)).unwrap();
    assert_eq!(granted(&mut table), [1, 3]);
    assert_eq!(table.waiters.len(), 2);
}

#[test]
fn a_granted_fcntl_lock_that_weakens_its_owner_lets_an_earlier_request_through() {
    let (p, q) = (11, 12);
    let held = [fcntl(p, 0, 4, Exclusive), fcntl(A.0, 5, 9, Exclusive)];
    let waiting = [fcntl(q, 0, 4, Shared), fcntl(p, 0, 9, Shared)];
    let mut table = table(&held, &waiting);
    table.locks.release_posix(A.0);
    assert_eq!(granted(&mut table), [1, 0]);
}

#[test]
fn the_queue_takes_its_bound_and_not_one_more() {
    let mut table = table(&[smb(A, 0, 4, Exclusive)], &[]);
    for number in 0..WAITERS_MAX as u64 {
        table.waiters.wait(Ticket(number), smb(B, 0, 4, Shared)).unwrap();
    }
    let one_more = table.waiters.wait(Ticket(u64::MAX), smb(C, 0, 4, Shared));
    assert_eq!(one_more, Err(TooManyWaiters));
    assert!(table.waiters.cancel(Ticket(5)));
    assert!(table.waiters.wait(Ticket(u64::MAX), smb(C, 0, 4, Shared)).is_ok());
    table.locks.release_taken_through(A);
    let order = granted(&mut table);
    assert_eq!(order.len(), WAITERS_MAX);
    assert_eq!(order.last(), Some(&u64::MAX));
}
