//! A request that waits at a gate holds no latch, and waits no longer than the gate's limit.

use std::thread;
use std::time::{Duration, Instant};

use latchfs::bench::controls::Point;

use super::lines::Known;
use crate::common::bench::Bench;

const POINTS: [Point; 2] = [Point::Received, Point::Committed];

/// An operation; what its service needs; a request, its status if it is done, and if it is decided
/// after the requests of another client on the same object, which follow.
type Case =
    (&'static str, &'static [&'static str], &'static str, (u16, u16), &'static [&'static str]);

const CASES: &[Case] = &[
    (
        "Put Blob",
        &["PUT blob /box?restype=container", "PUT blob /box/a x-ms-blob-type=BlockBlob < 1"],
        "PUT blob /box/a x-ms-blob-type=BlockBlob < 2",
        (201, 201),
        &[
            "GET blob /box/a",
            "PUT blob /box/a?comp=metadata x-ms-meta-a=1",
            "PUT blob /box/a?comp=snapshot",
            "DELETE blob /box/a x-ms-delete-snapshots=include",
        ],
    ),
    (
        "Put Range",
        &["PUT file /docs/a x-ms-type=file x-ms-content-length=3"],
        "PUT file /docs/a?comp=range x-ms-write=update x-ms-range=bytes=0-2 < abc",
        (201, 404),
        &[
            "GET file /docs/a",
            "PUT file /docs/a?comp=range x-ms-write=clear x-ms-range=bytes=0-2",
            "PUT file /docs/b?comp=rename x-ms-file-rename-source={file}/docs/a",
            "DELETE file /docs/b",
        ],
    ),
    (
        "Put Message",
        &["PUT queue /jobs"],
        "POST queue /jobs/messages < <QueueMessage><MessageText>x</MessageText></QueueMessage>",
        (201, 404),
        &["GET queue /jobs/messages", "DELETE queue /jobs/messages", "DELETE queue /jobs"],
    ),
    (
        "Insert Or Replace Entity",
        &[
            r#"POST table /Tables content-type=application/json < {"TableName":"Rows"}"#,
            "PUT table /Rows(PartitionKey='p',RowKey='r') content-type=application/json < {}",
        ],
        "PUT table /Rows(PartitionKey='p',RowKey='r') content-type=application/json < {}",
        (204, 404),
        &[
            "GET table /Rows(PartitionKey='p',RowKey='r')",
            "DELETE table /Rows(PartitionKey='p',RowKey='r') if-match=*",
            "DELETE table /Tables('Rows')",
        ],
    ),
];

#[test]
fn others_read_write_and_delete_the_object_of_a_request_that_waits() {
    for (operation, before, request, (done, late), others) in CASES {
        for point in POINTS {
            let bench = Bench::start();
            let mut known = Known::new(&bench);
            known.prepare(&bench, before);
            let gate = bench.gate_once(operation, None, point);
            let request = known.read(request);
            thread::scope(|scope| {
                let asked = scope.spawn(|| request.send(&bench));
                gate.wait(1);
                known.prepare(&bench, others);
                assert!(!asked.is_finished(), "{operation} at {point:?} still waits");
                gate.release();
                let status = asked.join().unwrap().status;
                // Done before the others came if it stopped at `committed`, and after them if not.
                let expected = if point == Point::Committed { *done } else { *late };
                assert_eq!(status, expected, "{operation} at {point:?}");
            });
        }
    }
}

#[test]
fn a_request_goes_on_by_itself_when_the_limit_of_its_gate_is_over() {
    let limit = Duration::from_millis(50);
    for (operation, before, request, ..) in CASES {
        for point in POINTS {
            let bench = Bench::start();
            let mut known = Known::new(&bench);
            known.prepare(&bench, before);
            let gate = bench.gate_for(operation, point, limit);
            let began = Instant::now();
            let status = known.read(request).send(&bench).status;
            assert!(status < 300 && gate.stopped() == 1, "{operation} at {point:?}: {status}");
            assert!(began.elapsed() >= limit && gate.waiting() == 0);
        }
    }
}
