//! Copies within the account, held back or not, and from elsewhere.

use super::*;
use crate::rules::copy_status::CopyStatus;

const COPY: BlobOperation = BlobOperation::BlobStartCopyFromURL;

fn copy(bench: &Bench, from: &BlobAt, to: &str, asked: AccessConditions) -> BlobResult<CopiedBlob> {
    let from = CopyFrom::Here { at: from.clone(), asked: SourceAsked::default() };
    let request = CopyRequest { id: "id1".into(), source: "http://s".into(), ..Default::default() };
    within(bench.service.copy_blob(&bench.cx(), COPY, &at(to), asked, from, request))
}

/// The end of a copy is a matter of the time alone: nobody has to read the blob first.
#[test]
fn a_copy_that_was_held_back_ends_whatever_is_asked_next() {
    let delay = Duration::from_secs(10);
    let mut bench = Bench::with(BlobOptions { copy_delay: delay, ..BlobOptions::default() });
    bench.put("from", b"bytes");
    for name in ["written", "leased", "listed", "copied", "deleted"] {
        copy(&bench, &at("from"), name, AccessConditions::default()).unwrap();
    }
    let listed = || {
        let page = bench.service.list_blobs(&bench.cx(), "c", &everything()).unwrap();
        let found = page.items.into_iter().find_map(|item| match item {
            BlobListItem::Blob(blob) if blob.name == "listed" => Some(blob.state),
            _ => None,
        });
        found.unwrap()
    };
    assert_eq!((listed().length, listed().copy.unwrap().status), (0, CopyStatus::Pending));
    bench.pass(10);
    let bench = &bench;
    bench.put_asked("written", b"x", AccessConditions::default()).unwrap();
    let page = bench.service.list_blobs(&bench.cx(), "c", &everything()).unwrap();
    let pending = page.items.iter().filter(|item| match item {
        BlobListItem::Blob(blob) => {
            blob.state.copy.as_ref().is_some_and(|copy| copy.status == CopyStatus::Pending)
        }
        BlobListItem::Prefix(_) => false,
    });
    assert_eq!(pending.count(), 0);
    let action = LeaseAction::Acquire { duration: Some(-1), proposed: None, fresh: id(9) };
    let (cx, conditions) = (bench.cx(), Conditions::default());
    within(bench.service.lease_blob(&cx, &at("leased"), conditions, None, action)).unwrap();
    assert_eq!(bench.get("leased").unwrap(), b"bytes", "the end is kept with the lease");
    copy(bench, &at("copied"), "again", AccessConditions::default()).unwrap();
    bench.delete("deleted").unwrap();
    let late = |name: &str| {
        let at = at(name);
        denial(within(bench.service.abort_copy(
            &cx,
            &at,
            AccessConditions::default(),
            "id1".into(),
        )))
    };
    assert_eq!(late("copied"), BlobDenial::NoPendingCopyOperation);
}

#[test]
fn over_a_restart_a_held_copy_goes_on_and_one_that_is_fetched_has_failed() {
    let delay = Duration::from_secs(10);
    let options = BlobOptions { copy_delay: delay, ..BlobOptions::default() };
    let mut bench = Bench::with(options.clone());
    bench.put("from", b"bytes");
    copy(&bench, &at("from"), "held", AccessConditions::default()).unwrap();
    let request = CopyRequest { id: "id2".into(), source: "s".into(), ..Default::default() };
    let (cx, asked) = (bench.cx(), AccessConditions::default());
    let (to, kind) = (at("to"), BlobType::Page);
    within(bench.service.begin_copy(&cx, &to, asked, kind, 512, request)).unwrap();
    bench.pass(1);
    bench = bench.restarted(options);
    assert_eq!(bench.head("held").unwrap().state.copy.clone().unwrap().status, CopyStatus::Pending);
    let failed = bench.head("to").unwrap().state;
    let copy = failed.copy.clone().unwrap();
    assert_eq!((copy.status, failed.length), (CopyStatus::Failed, 0));
    assert!(copy.description.unwrap().contains("stopped"));
    assert_eq!(bench.get("to").unwrap(), b"");
    bench.pass(9);
    assert_eq!(bench.get("held").unwrap(), b"bytes");
    bench.put("to", b"usable again");
}

#[test]
fn bytes_that_come_after_an_abort_or_a_deletion_are_not_taken() {
    let bench = Bench::new();
    let begin = |name: &str, id: &str| {
        let request = CopyRequest { id: id.into(), source: "s".into(), ..Default::default() };
        let (cx, asked) = (bench.cx(), AccessConditions::default());
        let kind = BlobType::Block;
        within(bench.service.begin_copy(&cx, &at(name), asked, kind, 5, request)).unwrap();
    };
    let waits =
        |name: &str, id: &str| bench.service.awaits_bytes(&bench.cx(), &at(name), id).unwrap();
    begin("to", "id1");
    assert!(waits("to", "id1") && !waits("to", "id2") && !waits("no", "id1"));
    let (cx, asked) = (bench.cx(), AccessConditions::default());
    within(bench.service.abort_copy(&cx, &at("to"), asked, "id1".into())).unwrap();
    assert!(!waits("to", "id1"));
    let end = |name: &str, id: &str, bytes: Content| {
        within(bench.service.end_copy(&bench.cx(), &at(name), id.into(), Ok(bytes))).unwrap();
    };
    end("to", "id1", bench.body_whole(b"bytes"));
    assert_eq!(bench.get("to").unwrap(), b"");
    begin("gone", "id3");
    let late = bench.body_whole(b"bytes");
    within(bench.service.delete_container(&cx, "c", AccessConditions::default())).unwrap();
    assert!(!waits("gone", "id3"));
    end("gone", "id3", late);
}

#[test]
fn a_copy_from_elsewhere_is_pending_until_its_bytes_are_there() {
    let bench = Bench::new();
    let request = || CopyRequest { id: "id1".into(), source: "s".into(), ..Default::default() };
    let begin = || {
        let (cx, asked) = (bench.cx(), AccessConditions::default());
        within(bench.service.begin_copy(&cx, &at("to"), asked, BlobType::Block, 5, request()))
    };
    begin().unwrap();
    assert_eq!(denial(begin()), BlobDenial::PendingCopyOperation);
    let end = |outcome| {
        within(bench.service.end_copy(&bench.cx(), &at("to"), "id1".into(), outcome)).unwrap();
    };
    end(Err("403 from the source".into()));
    let failed = bench.head("to").unwrap().state.copy.clone().unwrap();
    assert_eq!(failed.status, CopyStatus::Failed);
    begin().unwrap();
    end(Ok(bench.body_whole(b"bytes")));
    assert_eq!(bench.get("to").unwrap(), b"bytes");
    end(Err("too late".into()));
    assert_eq!(bench.get("to").unwrap(), b"bytes");
}
