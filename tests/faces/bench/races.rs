//! The races of docs/reproduce.md, each reproduced every time, and each with its cure.
//!
//! Twenty rounds as a rule, a thousand with `LATCHFS_FULL`. The Python clients do the same in
//! tests/world/clients/races.

use std::thread;

use latchfs::bench::controls::{FaultAction, Frequency, Point};
use latchfs::file::rules::{Access, ShareMode};
use latchfs::rules::service::ServiceKind::{Blob, File, Queue};
use latchfs::server::HoldOptions;

use crate::common::bench::{Bench, Gate};
use crate::common::http::{Got, Kept};

const BLOCK: (&str, &str) = ("x-ms-blob-type", "BlockBlob");
const APPEND: (&str, &str) = ("x-ms-blob-type", "AppendBlob");
const LEASE: &str = "11111111-2222-3333-4444-555555555555";

/// Plays a race on a new object, again and again.
fn every_time(play: impl Fn(&Bench, &str)) {
    let bench = Bench::start();
    bench.ask(Blob, "PUT", "/box?restype=container", &[], b"").is(201);
    let rounds = if std::env::var_os("LATCHFS_FULL").is_some() { 1_000 } else { 20 };
    for round in 0..rounds {
        play(&bench, &format!("object{round}"));
    }
}

fn put(bench: &Bench, name: &str, headers: &[(&str, &str)], body: &str) -> Got {
    let headers = [&[BLOCK], headers].concat();
    bench.ask(Blob, "PUT", &format!("/box/{name}"), &headers, body.as_bytes())
}

fn get(bench: &Bench, name: &str) -> Got {
    bench.ask(Blob, "GET", &format!("/box/{name}"), &[], b"")
}

/// A gate that keeps two writers of a blob until both have come.
fn gate_for_two(bench: &Bench, name: &str) -> Gate {
    bench.gate_times("Put Blob", Some(&format!("box/{name}")), Point::Received, 2)
}

/// Has two clients do the same at once; both have read before either writes.
fn at_once<T: Send>(gate: &Gate, client: impl Fn() -> T + Sync) -> [T; 2] {
    thread::scope(|scope| {
        let both = [scope.spawn(&client), scope.spawn(&client)];
        gate.wait(2);
        gate.release();
        gate.release();
        both.map(|one| one.join().unwrap())
    })
}

/// Reads a counter, adds one, and writes it.
fn count_up(bench: &Bench, name: &str, guarded: bool) {
    loop {
        let read = get(bench, name).is(200);
        let next = (read.text().parse::<u32>().unwrap() + 1).to_string();
        let guard = [("if-match", read.header("etag"))];
        let got = put(bench, name, if guarded { &guard } else { &[] }, &next);
        match got.status {
            201 => return,
            // Another client came between: read again.
            status => assert_eq!((status, guarded), (412, true)),
        }
    }
}

#[test]
fn two_read_modify_writes_lose_an_update_every_time() {
    every_time(|bench, name| {
        put(bench, name, &[], "1").is(201);
        at_once(&gate_for_two(bench, name), || count_up(bench, name, false));
        assert_eq!(get(bench, name).text(), "2", "two were added, one is lost");
    });
}

#[test]
fn with_the_etag_as_a_condition_no_update_is_lost() {
    every_time(|bench, name| {
        put(bench, name, &[], "1").is(201);
        at_once(&gate_for_two(bench, name), || count_up(bench, name, true));
        assert_eq!(get(bench, name).text(), "3");
    });
}

#[test]
fn two_creators_that_look_first_both_create() {
    every_time(|bench, name| {
        let create = || get(bench, name).status == 404 && put(bench, name, &[], "x").status == 201;
        assert_eq!(at_once(&gate_for_two(bench, name), create), [true; 2]);
    });
}

#[test]
fn of_two_creators_under_a_condition_one_creates() {
    every_time(|bench, name| {
        let create = || put(bench, name, &[("if-none-match", "*")], "x").status;
        let mut got = at_once(&gate_for_two(bench, name), create);
        got.sort_unstable();
        assert_eq!(got, [201, 409]);
    });
}

/// Two clients take turns by a lease of 15 seconds. The first one writes so slowly that the second
/// has leased, written and released meanwhile. The answer to the slow write.
fn slow_writer(bench: &Bench, name: &str, leased: &str, headers: &[(&str, &str)]) -> Got {
    put(bench, leased, &[], "first").is(201);
    let lease = |headers: &[(&str, &str)], status| {
        bench.ask(Blob, "PUT", &format!("/box/{leased}?comp=lease"), headers, b"").is(status);
    };
    let acquire = |id| {
        let (action, duration) = ("x-ms-lease-action", "x-ms-lease-duration");
        lease(&[(action, "acquire"), (duration, "15"), ("x-ms-proposed-lease-id", id)], 201);
    };
    acquire(LEASE);
    let gate = bench.gate_once("Put Blob", Some(&format!("box/{name}")), Point::Received);
    thread::scope(|scope| {
        let slow = scope.spawn(|| put(bench, name, headers, "slow"));
        gate.wait(1);
        bench.advance(16);
        let other = "22222222-3333-4444-5555-666666666666";
        acquire(other);
        let own = [("x-ms-lease-id", other)];
        put(bench, name, if name == leased { &own } else { &[] }, "other").is(201);
        lease(&[("x-ms-lease-action", "release"), own[0]], 200);
        gate.release();
        slow.join().unwrap()
    })
}

#[test]
fn a_writer_that_only_believes_in_its_lease_overwrites_its_successor() {
    every_time(|bench, name| {
        slow_writer(bench, name, &format!("{name}.lock"), &[]).is(201);
        assert_eq!(get(bench, name).text(), "slow", "the work of the other is lost");
    });
}

#[test]
fn a_writer_that_names_its_lease_is_refused_once_it_ran_out() {
    every_time(|bench, name| {
        slow_writer(bench, name, name, &[("x-ms-lease-id", LEASE)]).is(412);
        assert_eq!(get(bench, name).text(), "other");
    });
}

/// Appends a line to a log, again if the answer is lost.
fn append(bench: &Bench, name: &str, at: Option<&str>) -> Got {
    let headers: Vec<_> = at.map(|at| ("x-ms-blob-condition-appendpos", at)).into_iter().collect();
    let target = format!("/box/{name}?comp=appendblock");
    let send = || Kept::connect(bench.addr(Blob)).unwrap().ask("PUT", &target, &headers, b"line");
    send().or_else(|_| send()).unwrap()
}

fn lose_the_answer(bench: &Bench, name: &str) {
    bench.ask(Blob, "PUT", &format!("/box/{name}"), &[APPEND], b"").is(201);
    let path = format!("box/{name}");
    bench.fault("Append Block", Some(&path), FaultAction::DropAfter, Frequency::Times(1));
}

#[test]
fn a_retry_after_a_lost_acknowledgement_is_done_twice() {
    every_time(|bench, name| {
        lose_the_answer(bench, name);
        append(bench, name, None).is(201);
        assert_eq!(get(bench, name).text(), "lineline");
        bench.controls().faults.remove(None);
    });
}

#[test]
fn a_retry_that_says_where_it_belongs_is_done_once() {
    every_time(|bench, name| {
        lose_the_answer(bench, name);
        append(bench, name, Some("0")).refused(412, "AppendPositionConditionNotMet");
        assert_eq!(get(bench, name).text(), "line", "it was done, and is not done again");
        bench.controls().faults.remove(None);
    });
}

/// A message with its ID and receipt, if there is one to take.
fn take(bench: &Bench, queue: &str) -> Option<(String, String)> {
    let target = format!("/{queue}/messages?visibilitytimeout=30");
    let text = bench.ask(Queue, "GET", &target, &[], b"").is(200).text();
    let part = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once('<')?.0.to_owned())
    };
    Some((part("MessageId")?, part("PopReceipt")?))
}

fn a_message(bench: &Bench, queue: &str) -> (String, String) {
    bench.ask(Queue, "PUT", &format!("/{queue}"), &[], b"").is(201);
    let text = b"<QueueMessage><MessageText>pay 10</MessageText></QueueMessage>";
    bench.ask(Queue, "POST", &format!("/{queue}/messages"), &[], text).is(201);
    take(bench, queue).unwrap()
}

#[test]
fn a_message_whose_time_ran_out_is_handed_out_twice() {
    every_time(|bench, queue| {
        let (id, receipt) = a_message(bench, queue);
        assert_eq!(take(bench, queue), None);
        bench.advance(31);
        let again = take(bench, queue).unwrap();
        assert_eq!(again.0, id, "another consumer has the same message");
        let delete = format!("/{queue}/messages/{id}?popreceipt={receipt}");
        let got = bench.ask(Queue, "DELETE", &delete, &[], b"");
        assert_eq!(got.status, 400, "the receipt of the first is over: {}", got.text());
    });
}

#[test]
fn a_consumer_that_asks_for_more_time_in_time_keeps_its_message() {
    every_time(|bench, queue| {
        let (id, receipt) = a_message(bench, queue);
        bench.advance(20);
        let more = format!("/{queue}/messages/{id}?popreceipt={receipt}&visibilitytimeout=30");
        let receipt = bench.ask(Queue, "PUT", &more, &[], b"").is(204);
        let receipt = receipt.header("x-ms-popreceipt");
        bench.advance(20);
        assert_eq!(take(bench, queue), None, "40 seconds later nobody else has it");
        let delete = format!("/{queue}/messages/{id}?popreceipt={receipt}");
        bench.ask(Queue, "DELETE", &delete, &[], b"").is(204);
    });
}

/// A file that a reader has open, with this share mode.
fn reader(bench: &Bench, name: &str, share_mode: ShareMode) -> latchfs::server::Hold {
    let create = [("x-ms-type", "file"), ("x-ms-content-length", "5")];
    bench.ask(File, "PUT", &format!("/docs/{name}"), &create, b"").is(201);
    bench.hold(&HoldOptions { share_mode, ..HoldOptions::new("docs", name) }).unwrap()
}

/// Deletes a file as a program on Windows does: by an open that deletes it when it is closed.
fn delete(bench: &Bench, name: &str) -> bool {
    let (access, share_mode) = (Access::D, ShareMode::RWD);
    let options = HoldOptions::new("docs", name);
    let options = HoldOptions { access, share_mode, delete_on_close: true, ..options };
    bench.hold(&options).is_ok()
}

#[test]
fn a_file_that_is_deleted_while_it_is_open_can_be_opened_by_nobody_else() {
    every_time(|bench, name| {
        let open = reader(bench, name, ShareMode::RWD);
        assert!(delete(bench, name));
        let target = format!("/docs/{name}");
        let got = bench.ask(File, "GET", &target, &[], b"");
        assert_eq!((got.status, got.code()), (409, "SMBDeletePending"), "{}", got.text());
        assert!(!open.was_closed(), "the reader still has it");
        drop(open);
        assert_eq!(bench.ask(File, "GET", &target, &[], b"").status, 404, "gone with the last");
    });
}

#[test]
fn a_reader_that_shares_no_deletion_keeps_its_file() {
    every_time(|bench, name| {
        let open = reader(bench, name, ShareMode::RW);
        assert!(!delete(bench, name), "refused while the reader has it open");
        bench.ask(File, "GET", &format!("/docs/{name}"), &[], b"").is(200);
        drop(open);
        assert!(delete(bench, name));
        bench.ask(File, "GET", &format!("/docs/{name}"), &[], b"").is(404);
    });
}
