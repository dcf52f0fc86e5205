//! What is told of requests, and what is counted of both faces.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use latchfs::file::rules::Rule;
use latchfs::file::rules::ranges::{ByteRange, LockKind};
use latchfs::file::service::Tally;
use latchfs::http::observer::Observer;
use latchfs::rules::service::ServiceKind;

use crate::rest::fixture::Fixture;

#[derive(Default)]
struct Told(Mutex<Vec<(&'static str, u16)>>);

impl Observer for Told {
    fn answered(&self, operation: &'static str, status: u16, _: Duration) {
        self.0.lock().unwrap().push((operation, status));
    }
}

#[test]
fn an_observer_is_told_of_every_answer_also_of_early_refusals() {
    let told = Arc::new(Told::default());
    let observer = Arc::clone(&told);
    let fixture = Fixture::with(|options| options.observer = Some(observer));
    fixture.upload("a", b"abc");
    fixture.get("/docs/a").is(200);
    fixture.head("/docs/none").is(404);
    fixture.get("/docs/a?comp=nothing").is(400);
    fixture.ask_host("evil.example", "GET", "/", &[], b"").is(400);
    let expected = [
        ("FileCreate", 201),
        ("FileUploadRange", 201),
        ("FileDownload", 200),
        ("FileGetProperties", 404),
        ("Unknown", 400),
        ("Unknown", 400),
    ];
    assert_eq!(*told.0.lock().unwrap(), expected);
}

#[test]
fn conflicts_of_both_faces_are_counted_by_rule() {
    let fixture = Fixture::new();
    fixture.upload("a", b"abc");
    let count = |wanted: Rule| {
        let journal = fixture.engine.journal();
        journal.journal().refused(journal.account(), ServiceKind::File, wanted.name())
    };
    let _held = fixture.open("a", "r", "r");
    fixture.delete("/docs/a").is(409);
    assert_eq!(count(Rule::SharingViolation), 1);
    assert!(fixture.try_open("a", "w", "rwd").is_err());
    assert_eq!(count(Rule::SharingViolation), 2);
    fixture.get("/docs/none").is(404);
    let all: u64 = Rule::ALL.into_iter().map(count).sum();
    assert_eq!(all, 2);
}

#[test]
fn what_is_held_is_tallied_by_share() {
    let fixture = Fixture::new();
    let tally = || fixture.engine.tallies().unwrap()["docs"];
    assert_eq!(tally(), Tally::default());
    fixture.upload("a", b"abc");
    fixture.upload("b", b"abc");
    let handle = fixture.open("a", "rw", "rwd");
    let range = ByteRange::new(0, 2).unwrap();
    fixture.share().lock(&handle, &[(range, LockKind::Exclusive)]).unwrap();
    let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    fixture.put("/docs/b?comp=lease", &acquire).is(201);
    fixture.put("/docs?restype=share&comp=lease", &acquire).is(201);
    assert_eq!(tally(), Tally { opens: 1, locks: 1, leases: 2, pending: 0 });
    let deleter = fixture.open("a", "d", "rwd");
    fixture.share().set_disposition(&deleter, true).unwrap();
    fixture.share().close(&deleter).unwrap();
    assert_eq!(tally().pending, 1);
    let end = [("x-ms-lease-action", "break"), ("x-ms-lease-break-period", "0")];
    fixture.put("/docs/b?comp=lease", &end[..1]).is(202);
    fixture.put("/docs?restype=share&comp=lease", &end).is(202);
    fixture.share().close(&handle).unwrap();
    assert_eq!(tally(), Tally::default());
}
