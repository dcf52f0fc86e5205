//! Gates, for every operation that changes something: a request stops at `received` with nothing
//! changed, and one that is refused does not stop at `committed`.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use latchfs::bench::controls::Point;
use latchfs::server::SERVICES;

use super::lines::Known;
use crate::common::bench::{Bench, until};
use crate::common::http::Got;

/// An operation, requests that are carried out and refused, and how to see what the first changed.
#[derive(Default)]
pub struct Row {
    service: &'static str,
    pub operation: &'static str,
    pub before: Vec<&'static str>,
    pub request: (u16, &'static str),
    pub look: Option<&'static str>,
    refused: Option<(u16, &'static str)>,
}

pub fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let with_status = |text: &'static str| {
        let (status, request) = text.split_once(' ').unwrap();
        (status.parse().unwrap(), request)
    };
    for line in include_str!("operations.txt").lines() {
        let Some((mark, text)) = line.split_once(' ') else { continue };
        if mark == "=" {
            let (service, operation) = text.split_once(' ').unwrap();
            rows.push(Row { service, operation, ..Row::default() });
        }
        let Some(row) = rows.last_mut() else { continue };
        match mark {
            "." => row.before.push(text),
            ">" => row.request = with_status(text),
            "?" => row.look = Some(text),
            "!" => row.refused = Some(with_status(text)),
            _ => assert_eq!(mark, "=", "{line}"),
        }
    }
    rows
}

fn bench() -> Bench {
    Bench::with(|builder| {
        builder.with(|options| {
            // Copies stay pending, so that they can be aborted.
            options.listen.copy_delay = std::time::Duration::from_hours(1);
            options.blob.copy_delay = std::time::Duration::from_hours(1);
        })
    })
}

/// What is wrong with a row; all rows are tried before the test fails.
fn each_row(problem: impl Fn(&Bench, &Row, &Known) -> Option<String>) {
    let bench = bench();
    let mut problems = Vec::new();
    for row in rows() {
        let mut known = Known::new(&bench);
        known.prepare(&bench, &row.before);
        let found = problem(&bench, &row, &known);
        problems.extend(found.map(|problem| format!("{}: {problem}", row.operation)));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_request_stops_when_it_is_received_and_changes_nothing_before_it_goes_on() {
    each_row(|bench, row, known| {
        let look = || {
            let got = row.look.map(|look| known.read(look).send(bench));
            // An error says when it was answered.
            let body = |got: &Got| if got.status < 400 { got.text() } else { String::new() };
            got.map(|got| (got.status, got.header("etag").to_owned(), body(&got)))
        };
        let before = look();
        let gate = bench.gate(row.operation, None, Point::Received);
        let (status, request) = (row.request.0, known.read(row.request.1));
        let (seen, got) = thread::scope(|scope| {
            let asked = scope.spawn(|| request.send(bench));
            let stopped = || gate.waiting() == 1 || asked.is_finished();
            until("the request has stopped or is answered", stopped);
            let seen = (gate.waiting() == 1).then(look);
            if seen.is_some() {
                gate.release();
            }
            (seen, asked.join().unwrap())
        });
        let text = format!("{} {}", got.status, got.text());
        match seen {
            None => Some(format!("it did not stop: {text}")),
            Some(seen) if seen != before => Some(format!("it changed {before:?} to {seen:?}")),
            _ if got.status != status => Some(format!("its answer is {text}")),
            _ if row.look.is_some() && look() == before => Some("the look shows nothing".into()),
            _ => None,
        }
    });
}

#[test]
fn a_request_that_is_refused_does_not_stop_at_committed() {
    each_row(|bench, row, known| {
        let (status, refused) = row.refused?;
        let gate = bench.gate_for(row.operation, Point::Committed, Duration::from_millis(10));
        let got = known.read(refused).send(bench);
        // The refusal of a transaction stands inside an answer of its own.
        if gate.stopped() > 0 && status >= 300 {
            return Some(format!("it stopped: {} {}", got.status, got.text()));
        }
        (got.status != status).then(|| format!("its answer is {} {}", got.status, got.text()))
    });
}

/// Requests for these are routed as another operation, or not carried out at all; a batch changes
/// only what its parts change.
const WITHOUT_ROW: [&str; 9] = [
    "blob ContainerSubmitBatch",
    "blob ServiceSubmitBatch",
    "blob AppendBlobCreate",
    "blob PageBlobCreate",
    "blob PageBlobResize",
    "blob PageBlobUpdateSequenceNumber",
    "blob BlobSetExpiry",
    "blob ContainerRename",
    "blob PageBlobCopyIncremental",
];

#[test]
fn every_operation_that_changes_something_has_a_row() {
    let mut known = BTreeSet::new();
    for service in SERVICES {
        let changing = service.operations.iter().filter(|one| one.changes);
        known.extend(changing.map(|one| format!("{} {}", service.kind.label(), one.name)));
    }
    let rows = rows().into_iter().map(|row| format!("{} {}", row.service, row.operation));
    let rows: BTreeSet<_> = rows.chain(WITHOUT_ROW.map(str::to_owned)).collect();
    assert_eq!(known, rows);
}
