//! Every bound of the listener, at it and past it.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use latchfs::file::rules::SharePath;
use latchfs::http::fetch::CopySources;
use latchfs::http::limits::{BODY_MAX, Limits};

use crate::common::served::wait_for;
use crate::rest::fixture::{ACCOUNT, Fixture, sas};

/// How long anything may take that is to happen.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a client is left alone that is not to keep up.
const SHORT: Duration = Duration::from_millis(300);
/// How long something is looked at that is not to happen: longer than `SHORT`.
const WHILE: Duration = Duration::from_millis(600);

/// A connection that is spoken to byte by byte.
struct Wire(TcpStream);

impl Wire {
    fn open(fixture: &Fixture) -> Self {
        let stream = TcpStream::connect(fixture.server.addr()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
    }

    /// A request without a body; `more` are further lines of headers.
    fn head(&mut self, more: &str) {
        self.send(&format!("HEAD /{ACCOUNT}/docs/none HTTP/1.1\r\nHost: localhost\r\n{more}\r\n"));
    }

    /// Begins to write a range of `a`; the body follows.
    fn begin_put(&mut self, length: &str) {
        self.send(&format!(
            "PUT /{ACCOUNT}/docs/a?comp=range HTTP/1.1\r\nHost: localhost\r\n\
             x-ms-range: bytes=0-9\r\nx-ms-write: update\r\n{length}\r\n\r\n"
        ));
    }

    /// An answer up to the end of its headers.
    fn answer(&mut self) -> String {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
        }
        String::from_utf8(bytes).unwrap()
    }

    /// All there is until the server ends the connection. One that it ends while it is still
    /// sent to is reset.
    fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        match self.0.read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// True if the connection stays, and nothing comes, for longer than `SHORT`.
    fn is_quiet(&mut self) -> bool {
        self.0.set_read_timeout(Some(WHILE)).unwrap();
        let read = self.0.read(&mut [0]);
        self.0.set_read_timeout(Some(PATIENCE)).unwrap();
        let nothing = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
        read.is_err_and(|error| nothing.contains(&error.kind()))
    }
}

fn with(limits: Limits) -> Fixture {
    Fixture::with_limits(limits)
}

#[test]
fn so_many_headers_are_taken_and_one_more_ends_the_connection() {
    let fixture = with(Limits { headers: 16, ..Limits::default() });
    let ask = |headers: usize| {
        let mut wire = Wire::open(&fixture);
        // One of them is the Host.
        let more: Vec<_> = (1..headers).map(|n| format!("x-header-{n}: 1\r\n")).collect();
        wire.head(&more.concat());
        (wire.answer(), wire)
    };
    assert!(ask(16).0.starts_with("HTTP/1.1 404"));
    let (answer, mut wire) = ask(17);
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert_eq!(wire.rest(), "");
}

#[test]
fn so_many_bytes_of_headers_are_taken_and_one_more_ends_the_connection() {
    let fixture = with(Limits { header_bytes: 16 << 10, ..Limits::default() });
    let ask = |bytes: usize| {
        let frame = format!("HEAD /{ACCOUNT}/docs/none HTTP/1.1\r\nHost: localhost\r\nx: \r\n\r\n");
        let mut wire = Wire::open(&fixture);
        wire.head(&format!("x: {}\r\n", "y".repeat(bytes - frame.len())));
        wire.answer()
    };
    assert!(ask(16 << 10).starts_with("HTTP/1.1 404"));
    let answer = ask((16 << 10) + 1);
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[test]
fn a_body_is_held_at_its_bound_and_past_it() {
    let fixture = with(Limits { body_bytes: 10, ..Limits::default() });
    fixture.put("/docs/a", &[("x-ms-type", "file"), ("x-ms-content-length", "20")]).is(201);
    fixture.put_range("/docs/a", 0, b"0123456789", &[]).is(201);
    let got = fixture.put_range("/docs/a", 0, b"0123456789A", &[]);
    assert_eq!(got.refused(413, "RequestBodyTooLarge").header("connection"), "close");
    let mut wire = Wire::open(&fixture);
    wire.begin_put("Transfer-Encoding: chunked");
    wire.send("5\r\n01234\r\n6\r\n56789A\r\n0\r\n\r\n");
    let answer = wire.rest();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("RequestBodyTooLarge"), "{answer}");
    assert_eq!(&fixture.get("/docs/a").body[..10], b"0123456789");
}

/// Sends a body of that length after the head of a write that is refused for its length. An error
/// says that the connection ended before all of it was sent.
fn send_refused(fixture: &Fixture, length: usize) -> (std::io::Result<()>, Wire) {
    let mut wire = Wire::open(fixture);
    wire.begin_put(&format!("Content-Length: {length}"));
    let piece = vec![7; 1 << 20];
    let sent = (0..length >> 20).try_for_each(|_| wire.0.write_all(&piece));
    (sent, wire)
}

/// More than sockets hold between two programs.
const MUCH: usize = 64 << 20;

#[test]
fn a_client_that_sends_on_after_a_refusal_gets_the_answer_up_to_a_bound() {
    let fixture = with(Limits { refused_bytes: MUCH, ..Limits::default() });
    let (sent, mut wire) = send_refused(&fixture, MUCH);
    sent.unwrap();
    let answer = wire.rest();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("connection: close") && answer.contains("RequestBodyTooLarge"));
    let (sent, _) = send_refused(&fixture, 2 * MUCH);
    sent.unwrap_err();
}

#[test]
fn a_stranger_that_sends_much_is_told_so() {
    let fixture = Fixture::signed(|_| {});
    let (sent, mut wire) = send_refused(&fixture, MUCH);
    sent.unwrap();
    let answer = wire.rest();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[test]
fn a_range_of_4_mib_is_written_and_a_longer_one_is_not() {
    let fixture = Fixture::new();
    fixture.put("/docs/a", &[("x-ms-type", "file"), ("x-ms-content-length", "8388608")]).is(201);
    fixture.put_range("/docs/a", 0, &vec![7; 4 << 20], &[]).is(201);
    let longer = vec![8; (4 << 20) + 1];
    fixture.put_range("/docs/a", 0, &longer, &[]).refused(413, "RequestBodyTooLarge");
    // It was not even sent: the length alone is refused.
    let length = (BODY_MAX + 1).to_string();
    let headers = [("content-length", length.as_str()), ("x-ms-range", "bytes=0-1")];
    let got = fixture.ask("PUT", "/docs/a?comp=range", &headers, b"");
    assert_eq!(got.refused(413, "RequestBodyTooLarge").header("connection"), "close");
    let md5 = |range| [("x-ms-range", range), ("x-ms-range-get-content-md5", "true")];
    fixture.ask("GET", "/docs/a", &md5("bytes=0-4194303"), b"").is(206);
    let got = fixture.ask("GET", "/docs/a", &md5("bytes=0-4194304"), b"");
    got.refused(400, "InvalidHeaderValue");
}

#[test]
fn a_connection_past_the_bound_waits_while_none_of_the_others_is_idle() {
    let fixture = with(Limits { connections: 2, ..Limits::default() });
    fixture.upload("a", &[0; 10]);
    // One after the other: an idle one would make room for the next, while the upload's lingers.
    let mut served = [(), ()].map(|()| {
        let mut wire = Wire::open(&fixture);
        wire.begin_put("Content-Length: 10\r\nExpect: 100-continue");
        assert!(wire.answer().starts_with("HTTP/1.1 100"));
        wire
    });
    let mut third = Wire::open(&fixture);
    third.head("");
    assert!(third.is_quiet());
    served[0].send("0123456789");
    assert!(served[0].answer().starts_with("HTTP/1.1 201"));
    assert!(third.answer().starts_with("HTTP/1.1 404"), "one became idle and made room");
    assert_eq!(served[0].rest(), "");
    served[1].send("0123456789");
    assert!(served[1].answer().starts_with("HTTP/1.1 201"), "one at work is left alone");
}

#[test]
fn a_connection_that_sends_an_answer_is_not_idle() {
    const SIZE: usize = 64 << 20;
    let fixture = with(Limits { connections: 1, ..Limits::default() });
    let size = SIZE.to_string();
    let headers = [("x-ms-type", "file"), ("x-ms-content-length", size.as_str())];
    fixture.put("/docs/long", &headers).is(201);
    let mut download = Wire::open(&fixture);
    download.send(&format!("GET /{ACCOUNT}/docs/long HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    assert!(download.answer().starts_with("HTTP/1.1 200"));
    let mut next = Wire::open(&fixture);
    next.head("");
    assert!(next.is_quiet(), "it waits for the download");
    assert_eq!(download.rest().len(), SIZE, "the download is not cut short");
    assert!(next.answer().starts_with("HTTP/1.1 404"));
}

#[test]
fn the_connection_that_is_idle_longest_makes_room_and_strangers_go_first() {
    let fixture = with(Limits { connections: 3, ..Limits::default() });
    let mut known = Wire::open(&fixture);
    known.head("");
    assert!(known.answer().starts_with("HTTP/1.1 404"));
    // Both came later than the first was answered, and never proved anything.
    let mut strangers = [Wire::open(&fixture), Wire::open(&fixture)];
    strangers[0].send("HEAD /");
    let mut others = Vec::new();
    for stranger in &mut strangers {
        let mut next = Wire::open(&fixture);
        next.head("");
        assert!(next.answer().starts_with("HTTP/1.1 404"));
        assert_eq!(stranger.rest(), "", "made room");
        others.push(next);
    }
    known.head("");
    assert!(known.answer().starts_with("HTTP/1.1 404"), "the known one stayed");
}

#[test]
fn a_thousand_idle_strangers_keep_nobody_out() {
    let fixture = Fixture::signed(|options| options.limits.connections = 64);
    let strangers: Vec<_> = (0..300).map(|_| Wire::open(&fixture)).collect();
    let target = format!("/docs?restype=share&{}", sas("r", false));
    for _ in 0..20 {
        fixture.get(&target).is(200);
    }
    drop(strangers);
}

/// The head of a preflight with a body of that length.
fn preflight(length: &str) -> String {
    format!(
        "OPTIONS /{ACCOUNT}/docs HTTP/1.1\r\nHost: localhost\r\nOrigin: http://app.example\r\n\
         Access-Control-Request-Method: GET\r\nContent-Length: {length}\r\n\r\n"
    )
}

#[test]
fn a_preflight_is_answered_by_its_head_and_its_body_is_not_waited_for() {
    let limits = Limits { refused_wait: SHORT, body_wait: 10 * PATIENCE, ..Limits::default() };
    let fixture = Fixture::signed(|options| options.limits = limits);
    let ask = || {
        let mut wire = Wire::open(&fixture);
        wire.send(&preflight("4194304"));
        wire.rest()
    };
    let refused = ask();
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    assert!(refused.contains("CorsPreflightFailure"), "{refused}");
    assert!(refused.contains("connection: close"), "{refused}");
    let rule = b"<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>\
        <AllowedMethods>GET</AllowedMethods></CorsRule></Cors></StorageServiceProperties>";
    let target = format!("/?restype=service&comp=properties&{}", sas("w", false));
    fixture.ask("PUT", &target, &[], rule).is(202);
    let allowed = ask();
    assert!(allowed.starts_with("HTTP/1.1 200"), "{allowed}");
    assert!(allowed.contains("connection: close"), "{allowed}");
    // One whose body comes leaves the connection usable.
    let mut wire = Wire::open(&fixture);
    for _ in 0..2 {
        wire.send(&preflight("5"));
        wire.send("bytes");
        assert!(wire.answer().starts_with("HTTP/1.1 200"));
    }
}

#[test]
fn a_stranger_in_the_middle_of_a_preflight_makes_room() {
    let (refused_wait, body_wait) = (10 * PATIENCE, 10 * PATIENCE);
    let limits = Limits { connections: 1, refused_wait, body_wait, ..Limits::default() };
    let fixture = Fixture::signed(|options| options.limits = limits);
    for _ in 0..4 {
        let mut stranger = Wire::open(&fixture);
        stranger.send(&preflight("4194304"));
        stranger.send("b");
        fixture.get(&format!("/docs?restype=share&{}", sas("r", false))).is(200);
        assert_eq!(stranger.rest(), "", "made room");
    }
}

#[test]
fn a_preflight_does_not_prove_who_sent_it() {
    let fixture = Fixture::signed(|options| options.limits.connections = 2);
    let target = format!("/docs?restype=share&{}", sas("r", false));
    let mut known = Wire::open(&fixture);
    let request = format!("GET /{ACCOUNT}{target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    known.send(&request);
    assert!(known.answer().starts_with("HTTP/1.1 200"));
    let mut stranger = Wire::open(&fixture);
    stranger.send(&preflight("0"));
    assert!(stranger.answer().starts_with("HTTP/1.1 403"));
    // The known one is idle longer, and stays.
    fixture.get(&target).is(200);
    assert!(stranger.rest().contains("CorsPreflightFailure"), "the answer, then the end");
    known.send(&request);
    assert!(known.answer().starts_with("HTTP/1.1 200"));
}

/// The connection whose request begins with `first`. The port may have been another test's before,
/// and that test's client may still ask it.
fn asked_for(source: &TcpListener, first: &str) -> TcpStream {
    loop {
        let (mut asked, _) = source.accept().unwrap();
        let mut begins = vec![0; first.len()];
        if asked.read_exact(&mut begins).is_ok() && begins == first.as_bytes() {
            return asked;
        }
    }
}

#[test]
fn a_request_that_finds_no_thread_in_time_is_told_to_come_again_and_nothing_is_done() {
    let limits = Limits { workers: 1, blocking: 1, thread_wait: SHORT, ..Limits::default() };
    let fixture = Fixture::with(|options| {
        options.limits = limits;
        options.copy_sources = CopySources::Any;
    });
    fixture.upload("a", b"bytes");
    // The only thread waits for a source that does not answer before it is told to.
    let source = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/slow", source.local_addr().unwrap());
    let headers =
        [("x-ms-copy-source", &*url), ("x-ms-range", "bytes=0-4"), ("x-ms-write", "update")];
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| fixture.put("/docs/a?comp=range", &headers));
        let mut asked = asked_for(&source, "GET /slow ");
        fixture.put("/docs/new?restype=directory", &[]).refused(503, "ServerBusy");
        asked.write_all(b"HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 0-4/5\r\n").unwrap();
        asked.write_all(b"content-length: 5\r\n\r\nother").unwrap();
        // It was answered while it still could be: the refusal above did not wait for it.
        slow.join().unwrap().is(201);
    });
    fixture.get("/docs/new?restype=directory").refused(404, "ResourceNotFound");
}

#[test]
fn an_idle_connection_ends_after_a_while() {
    let fixture = with(Limits { idle_wait: SHORT, ..Limits::default() });
    let mut fresh = Wire::open(&fixture);
    let mut used = Wire::open(&fixture);
    used.head("");
    assert!(used.answer().starts_with("HTTP/1.1 404"));
    assert_eq!((used.rest(), fresh.rest()), (String::new(), String::new()));
}

#[test]
fn headers_must_come_in_time_from_their_first_byte_on() {
    let fixture = with(Limits { header_wait: SHORT, ..Limits::default() });
    let mut wire = Wire::open(&fixture);
    // To wait between requests is another matter, also after one that came in two parts.
    assert!(wire.is_quiet());
    wire.send("HEAD /");
    wire.send(&format!("{ACCOUNT}/docs/none HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    assert!(wire.answer().starts_with("HTTP/1.1 404"));
    assert!(wire.is_quiet());
    wire.head("");
    assert!(wire.answer().starts_with("HTTP/1.1 404"));
    wire.send("HEAD / HTTP/1.1\r\nHost:");
    assert_eq!(wire.rest(), "");
}

#[test]
fn a_body_must_come_in_time_and_is_no_header() {
    let waits = Limits { header_wait: SHORT, body_wait: 3 * WHILE, ..Limits::default() };
    let fixture = with(waits);
    fixture.upload("a", &[0; 10]);
    let mut wire = Wire::open(&fixture);
    wire.begin_put("Content-Length: 10");
    wire.send("01234");
    assert!(wire.is_quiet());
    wire.send("56789");
    assert!(wire.answer().starts_with("HTTP/1.1 201"));
    wire.begin_put("Content-Length: 10");
    wire.send("ABCDE");
    let answer = wire.rest();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains("OperationTimedOut") && answer.contains("connection: close"));
    assert_eq!(fixture.get("/docs/a").text(), "0123456789");
}

#[test]
fn a_client_that_does_not_read_loses_its_connection() {
    const SIZE: u64 = 64 << 20;
    let fixture = with(Limits { write_wait: SHORT, ..Limits::default() });
    let size = SIZE.to_string();
    let headers = [("x-ms-type", "file"), ("x-ms-content-length", size.as_str())];
    fixture.put("/docs/long", &headers).is(201);
    let mut wire = Wire::open(&fixture);
    wire.send(&format!("GET /{ACCOUNT}/docs/long HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    assert!(wire.answer().starts_with("HTTP/1.1 200"));
    // The file has a descriptor while it is sent.
    let file = fixture.share().stat(&SharePath::new("long").unwrap()).unwrap().id.ino;
    let is_sent = || {
        let mut descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten();
        descriptors.any(|fd| fs::metadata(fd.path()).is_ok_and(|meta| meta.ino() == file))
    };
    wait_for("the end of the download", || (!is_sent()).then_some(()));
    assert!((wire.rest().len() as u64) < SIZE);
}

#[test]
fn requests_wait_for_a_thread_where_there_is_one_only() {
    let fixture = with(Limits { workers: 1, blocking: 1, ..Limits::default() });
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| fixture.get("/docs?restype=directory&comp=list").is(200));
        }
    });
}

#[test]
fn so_many_copies_are_under_way_and_one_more_is_told_to_come_again() {
    for (copies, status) in [(1, 202), (0, 503)] {
        let fixture = with(Limits { copies, ..Limits::default() });
        fixture.upload("a", b"bytes");
        let url = format!("http://{}/{ACCOUNT}/docs/a", fixture.server.addr());
        let got = fixture.put("/docs/b", &[("x-ms-copy-source", &url)]).is(status);
        assert_eq!(got.code(), if copies == 0 { "ServerBusy" } else { "" });
    }
}

#[test]
fn a_stop_lets_a_request_finish_and_takes_no_other() {
    let mut fixture = with(Limits { stop_wait: PATIENCE, ..Limits::default() });
    fixture.upload("a", &[0; 10]);
    let mut wire = Wire::open(&fixture);
    wire.begin_put("Content-Length: 10\r\nExpect: 100-continue");
    assert!(wire.answer().starts_with("HTTP/1.1 100"));
    let (addr, share) = (fixture.server.addr(), fixture.share());
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| fixture.server.stop());
        wait_for("the end of listening", || TcpStream::connect(addr).is_err().then_some(()));
        wire.send("0123456789");
        let answer = wire.answer();
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        assert_eq!(wire.rest(), "");
        stopping.join().unwrap();
    });
    assert_eq!(share.files_in_use(), 0);
}

#[test]
fn a_stop_does_not_wait_for_a_request_that_never_ends() {
    let mut fixture = with(Limits { stop_wait: SHORT, ..Limits::default() });
    fixture.upload("a", &[0; 10]);
    let mut wire = Wire::open(&fixture);
    wire.begin_put("Content-Length: 10\r\nExpect: 100-continue");
    assert!(wire.answer().starts_with("HTTP/1.1 100"));
    let begun = Instant::now();
    fixture.server.stop();
    assert!(begun.elapsed() >= SHORT && begun.elapsed() < PATIENCE);
    assert_eq!(wire.rest(), "");
}
