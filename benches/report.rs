//! What the report takes: 100,000 rows of 20 clients on 20,000 blobs, how long they are looked at
//! and how much memory is remembered of them.
//!
//! `cargo bench --bench report`; `LATCHFS_ROWS=n` for another number.

use std::fs;
use std::time::Instant;

use latchfs::bench::report::{Engine, Level, ReportRow};
use latchfs::journal::ChangedObject;
use latchfs::journal::row::AnsweredRequest;
use latchfs::rules::Timestamp;
use latchfs::rules::address::ObjectAddress;
use latchfs::rules::service::ServiceKind;
use latchfs::rules::who::{ClientBy, Identity, Who};

/// What 100,000 rows may take.
const MILLISECONDS_MAX: u128 = 200;
const MEGABYTES_MAX: usize = 200;

const ROWS: usize = 100_000;
const CLIENTS: usize = 20;
/// What `statm` counts in.
const PAGE_BYTES: usize = 4096;

/// Bytes of this process in memory.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = text.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a number");
    pages * PAGE_BYTES
}

/// Each client reads a blob and writes it, with the `ETag` of the read or without.
fn row(number: usize) -> (usize, AnsweredRequest) {
    let (client, turn) = (number % CLIENTS, number / CLIENTS);
    let name = format!("{client}/orders-{}.json", turn / 5);
    let object = ObjectAddress::Blob { container: "box".into(), name: name.clone() };
    let etag = |version: usize| Some(format!("\"0x8DF45B35F{version:06X}\""));
    let mut row = AnsweredRequest::of(ServiceKind::Blob, Who::default());
    (row.path, row.status) = (format!("box/{name}"), Some(200));
    if turn.is_multiple_of(2) {
        row.operation = "Get Blob";
        row.given.etag_read = etag(turn);
    } else {
        row.operation = "Put Blob";
        row.asked.if_match = etag(turn - 1).filter(|_| turn.is_multiple_of(3));
        let (etag_before, etag_after) = (etag(turn - 1), etag(turn + 1));
        let (parts, guarded) = (None, None);
        let changed = ChangedObject { object, etag_before, etag_after, parts, guarded };
        row.given.changed.push(changed);
    }
    (client, row)
}

fn main() {
    // `cargo test --benches` only wants to see it run.
    let is_test = std::env::args().any(|word| word == "--test");
    let wanted = std::env::var("LATCHFS_ROWS").ok().and_then(|rows| rows.parse().ok());
    let count = if is_test { 1_000 } else { wanted.unwrap_or(ROWS) };
    let rows: Vec<_> = (0..count).map(row).collect();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| Identity { name: format!("worker-{number}").into(), by: ClientBy::Key })
        .collect();
    let mut engine = Engine::default();
    let (before, start) = (resident(), Instant::now());
    for (seq, (client, request)) in (1..).zip(&rows) {
        let object = format!("blob:{}", request.path);
        let (client, object) = (&clients[*client], &*object);
        engine.request(&ReportRow {
            seq,
            time: Timestamp(0),
            account: "one",
            client,
            request,
            object,
        });
    }
    let report = engine.report(None, Level::Info).expect("without a mark");
    let (took, bytes) = (start.elapsed(), resident() - before);
    assert_eq!(report.requests, count as u64);
    println!(
        "{count} rows, {} findings, incomplete: {}: {} ms (at most {MILLISECONDS_MAX}), \
         {} MB (at most {MEGABYTES_MAX})",
        report.findings.len(),
        report.incomplete,
        took.as_millis(),
        bytes >> 20
    );
}
