//! A request that goes on from `received` is decided at the time of its release: its answer is one
//! that it could get without the gate.

use std::thread;

use latchfs::bench::controls::Point;
use latchfs::rules::service::ServiceKind::Blob;

use super::lines::Known;
use crate::common::bench::Bench;
use crate::common::http::Got;

/// Stops a request at `received`, has the others done, and lets the request go on; its answer.
fn between(
    bench: &Bench,
    operation: &str,
    known: &Known,
    request: &str,
    others: impl FnOnce(),
) -> Got {
    let gate = bench.gate_once(operation, None, Point::Received);
    let request = known.read(request);
    thread::scope(|scope| {
        let asked = scope.spawn(|| request.send(bench));
        gate.wait(1);
        others();
        gate.release();
        asked.join().unwrap()
    })
}

#[test]
fn a_blob_that_was_written_meanwhile_no_longer_fits_the_condition() {
    let bench = Bench::start();
    let mut known = Known::new(&bench);
    let put = "PUT blob /box/a x-ms-blob-type=BlockBlob";
    known.prepare(&bench, &["PUT blob /box?restype=container", &format!("{put} < 1 => etag")]);
    let others = || known.clone().prepare(&bench, &[&format!("{put} if-match={{etag}} < 2")]);
    let got = between(&bench, "Put Blob", &known, &format!("{put} if-match={{etag}} < 3"), others);
    got.refused(412, "ConditionNotMet");
    assert_eq!(bench.ask(Blob, "GET", "/box/a", &[], b"").is(200).text(), "2");
}

#[test]
fn a_lease_that_runs_out_meanwhile_is_lost() {
    let bench = Bench::start();
    let mut known = Known::new(&bench);
    let lease = "11111111-2222-3333-4444-555555555555";
    let acquire = format!(
        "PUT blob /box/a?comp=lease x-ms-lease-action=acquire x-ms-lease-duration=15 \
         x-ms-proposed-lease-id={lease}"
    );
    let put = format!("PUT blob /box/a x-ms-blob-type=BlockBlob x-ms-lease-id={lease} < 2");
    let create = "PUT blob /box/a x-ms-blob-type=BlockBlob < 1";
    known.prepare(&bench, &["PUT blob /box?restype=container", create, &acquire]);
    let got = between(&bench, "Put Blob", &known, &put, || bench.advance(16));
    got.refused(412, "LeaseLost");
}

#[test]
fn an_entity_that_was_merged_meanwhile_has_another_etag() {
    let bench = Bench::start();
    let mut known = Known::new(&bench);
    let json = "content-type=application/json";
    let entity = "/Rows(PartitionKey='p',RowKey='r')";
    known.prepare(
        &bench,
        &[
            &format!("POST table /Tables {json} < {{\"TableName\":\"Rows\"}}"),
            &format!("PUT table {entity} {json} < {{\"A\":1}} => etag"),
        ],
    );
    let update = format!("PUT table {entity} {json} if-match={{etag}} < {{\"A\":2}}");
    let merge = format!("PATCH table {entity} {json} < {{\"A\":3}}");
    let others = || known.clone().prepare(&bench, &[&merge]);
    let got = between(&bench, "Update Entity", &known, &update, others).is(412);
    assert!(got.text().contains("UpdateConditionNotSatisfied"), "{}", got.text());
}

#[test]
fn a_message_that_was_deleted_meanwhile_is_not_there() {
    let bench = Bench::start();
    let mut known = Known::new(&bench);
    let message = "<QueueMessage><MessageText>x</MessageText></QueueMessage>";
    let post = format!("POST queue /jobs/messages < {message} => MessageId,PopReceipt");
    known.prepare(&bench, &["PUT queue /jobs", &post]);
    let delete = "DELETE queue /jobs/messages/{MessageId}?popreceipt={PopReceipt}";
    let others = || known.clone().prepare(&bench, &[delete]);
    between(&bench, "Delete Message", &known, delete, others).refused(404, "MessageNotFound");
}

#[test]
fn a_file_that_was_leased_meanwhile_cannot_be_written() {
    let bench = Bench::start();
    let mut known = Known::new(&bench);
    known.prepare(&bench, &["PUT file /docs/a x-ms-type=file x-ms-content-length=3"]);
    let write = "PUT file /docs/a?comp=range x-ms-write=update x-ms-range=bytes=0-2 < abc";
    let lease = "PUT file /docs/a?comp=lease x-ms-lease-action=acquire x-ms-lease-duration=-1";
    let others = || known.clone().prepare(&bench, &[lease]);
    between(&bench, "Put Range", &known, write, others).refused(412, "LeaseIdMissing");
}

#[test]
fn a_message_that_was_handed_out_meanwhile_is_not_handed_out_again() {
    let bench = Bench::start();
    let mut known = Known::new(&bench);
    let message = "<QueueMessage><MessageText>x</MessageText></QueueMessage>";
    let post = format!("POST queue /jobs/messages < {message}");
    known.prepare(&bench, &["PUT queue /jobs", &post]);
    let get = "GET queue /jobs/messages";
    let count = |got: &Got| got.text().matches("<MessageId>").count();
    let others = || assert_eq!(count(&known.read(get).send(&bench).is(200)), 1);
    let got = between(&bench, "Get Messages", &known, get, others).is(200);
    assert_eq!(count(&got), 0, "{}", got.text());
}
