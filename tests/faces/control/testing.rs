//! `latchfs::testing::Server`: a server for tests of other programs, and what ends with its values.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use latchfs::rules::service::ServiceKind;
use latchfs::testing::{
    Access, Action, Denial, Error, EventQuery, FaultOptions, GateOptions, HoldOptions, Point,
    Server, ShareMode,
};

use crate::common::http;
use crate::common::served::PATIENCE;

fn unsigned() -> Server {
    Server::start_with(|builder| builder.share("docs").no_auth()).unwrap()
}

fn address(server: &Server, service: ServiceKind) -> std::net::SocketAddr {
    let endpoint = server.endpoint(service).unwrap();
    endpoint.split('/').nth(2).unwrap().parse().unwrap()
}

fn put_blob(server: &Server, name: &str) -> http::Got {
    let headers = [("x-ms-blob-type", "BlockBlob")];
    http::ask(address(server, ServiceKind::Blob), "PUT", &format!("/box/{name}"), &headers, b"x")
}

#[test]
fn a_file_is_put_held_and_free_again_when_the_hold_is_dropped() {
    let server = unsigned();
    let large: Vec<u8> = (0..9_000_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    server.put("dir/sub/large", &large).unwrap();
    assert_eq!(server.get("/dir/sub/large").unwrap(), large);
    server.put("a.txt", b"longer").unwrap();
    server.put("a.txt", b"x").unwrap();
    let file = address(&server, ServiceKind::File);
    let hold = server.hold("a.txt", Access::RW, ShareMode::NONE).unwrap();
    let refused = http::ask(file, "GET", "/docs/a.txt", &[], b"").is(409).text();
    assert!(refused.contains("SharingViolation"), "{refused}");
    let refused = server.put("a.txt", b"y").unwrap_err();
    assert!(matches!(refused.denial(), Some(Denial::SharingViolation { .. })), "{refused}");
    drop(hold);
    assert_eq!(http::ask(file, "GET", "/docs/a.txt", &[], b"").is(200).text(), "x");
    let missing = server.hold_with(&HoldOptions::new("other", "a.txt")).unwrap_err();
    assert!(missing.denial().is_none(), "{missing}");
}

#[test]
fn events_and_reasons_are_told_as_by_the_commands() {
    let server = unsigned();
    let blob = address(&server, ServiceKind::Blob);
    http::ask(blob, "PUT", "/box?restype=container", &[], b"").is(201);
    put_blob(&server, "b").is(201);
    let of = |kind: &str| EventQuery { kinds: vec![kind.to_owned()], ..EventQuery::default() };
    let blobs = |query| EventQuery { service: Some(ServiceKind::Blob), ..query };
    // An event is noted when its request has been answered.
    let wait = |query| EventQuery { wait: PATIENCE, ..query };
    let last = server.events(&wait(blobs(of("request")))).unwrap().last().unwrap().seq;
    let more = EventQuery { after: last, ..wait(of("refused")) };
    server.put("a.txt", b"x").unwrap();
    let _hold = server.hold("a.txt", Access::RW, ShareMode::NONE).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| server.events(&more).unwrap());
        let file = address(&server, ServiceKind::File);
        http::ask(file, "GET", "/docs/a.txt", &[], b"").is(409);
        let found = waiting.join().unwrap();
        assert_eq!(found[0].object.as_deref(), Some("file:docs/a.txt"), "{found:?}");
        assert_eq!(found[0].more["rule"], "sharing_violation", "{found:?}");
    });
    let files = EventQuery { service: Some(ServiceKind::File), ..of("gated") };
    assert_eq!(server.events(&files).unwrap(), []);
    for target in ["a.txt", "/a.txt", "file:docs/a.txt"] {
        let why = server.why(target).unwrap();
        assert_eq!(why["opens"][0]["access"], "rw", "{why}");
        assert_eq!(why["share"], "docs", "{why}");
    }
    assert_eq!(server.why("blob:box/b").unwrap()["object"], "blob:box/b");
    assert!(server.why("no such file").is_err());
}

#[test]
fn requests_stop_at_a_gate_and_go_on_when_it_is_dropped() {
    let server = unsigned();
    http::ask(address(&server, ServiceKind::Blob), "PUT", "/box?restype=container", &[], b"")
        .is(201);
    let options = GateOptions { at: Point::Committed, ..GateOptions::new("Put Blob", "box/*") };
    let gate = server.gate(options).unwrap();
    let none = gate.wait(1, Duration::ZERO).unwrap_err();
    assert!(matches!(none, Error::TooFew { waiting: 0, wanted: 1 }), "{none}");
    thread::scope(|scope| {
        let [one, two] = ["one", "two"].map(|name| scope.spawn(|| put_blob(&server, name)));
        gate.wait(2, PATIENCE).unwrap();
        assert_eq!((gate.waiting(), gate.release(Some(1))), (2, 1));
        drop(gate);
        one.join().unwrap().is(201);
        two.join().unwrap().is(201);
    });
    let misspelt = server.gate(GateOptions::new("Putt Blob", "**")).unwrap_err();
    assert!(misspelt.to_string().contains("no operation is called"), "{misspelt}");
}

#[test]
fn a_fault_befalls_requests_until_it_is_dropped() {
    let server = unsigned();
    http::ask(address(&server, ServiceKind::Blob), "PUT", "/box?restype=container", &[], b"")
        .is(201);
    let busy = Action::Answer { status: 503, code: "ServerBusy".to_owned() };
    let fault = server.fault(FaultOptions::new("Put Blob", "box/*", busy)).unwrap();
    assert!(put_blob(&server, "a").is(503).text().contains("ServerBusy"));
    assert_eq!(fault.met(), 1);
    drop(fault);
    put_blob(&server, "a").is(201);
    let lost = FaultOptions::new("Put Blob", "box/b", Action::DropAfter);
    let _fault = server.fault(lost).unwrap();
    let mut stream = TcpStream::connect(address(&server, ServiceKind::Blob)).unwrap();
    let head = format!(
        "PUT /{}/box/b HTTP/1.1\r\nhost: localhost\r\nx-ms-blob-type: BlockBlob\r\n\
         content-length: 1\r\n\r\nx",
        http::ACCOUNT
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok();
    assert!(answer.is_empty(), "the answer is lost");
    http::ask(address(&server, ServiceKind::Blob), "GET", "/box/b", &[], b"").is(200);
}

#[test]
fn the_clock_goes_as_the_test_says() {
    let server = unsigned();
    let clock = server.clock();
    let stood = clock.freeze();
    assert_eq!(clock.now(), stood);
    let later = clock.advance(Duration::from_mins(1));
    assert_eq!(later, stood.after(Duration::from_mins(1)));
    assert!(matches!(clock.set(stood), Err(Error::SetBack(_))));
    assert!(clock.run() >= later && clock.set(clock.now().after(Duration::from_mins(1))).is_ok());
}

#[test]
fn a_reset_leaves_an_empty_share_and_ends_what_was_held() {
    let server = unsigned();
    server.put("dir/a.txt", b"x").unwrap();
    let hold = server.hold("dir/a.txt", Access::R, ShareMode::NONE).unwrap();
    let gate = server.gate(GateOptions::new("Put Blob", "box/*")).unwrap();
    server.clock().advance(Duration::from_hours(1));
    server.reset().unwrap();
    assert!(hold.was_closed());
    let missing = server.get("dir/a.txt").unwrap_err();
    assert!(matches!(missing.denial(), Some(Denial::PathNotFound)), "{missing:?}");
    assert_eq!(gate.release(None), 0);
    // The values that are left over end nothing that came after the reset.
    drop((hold, gate));
    server.put("dir/a.txt", b"y").unwrap();
    assert_eq!(server.get("dir/a.txt").unwrap(), b"y");
}
