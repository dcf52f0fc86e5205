//! Copy File and Put Range From URL from another server, a small one of the test's own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use latchfs::http::fetch::CopySources;

use crate::common::ports::Nobody;
use crate::common::served::wait_for;
use crate::rest::fixture::{ACCOUNT, Fixture, Got, sas};

/// More than one step of a copy takes.
const LONG: usize = (4 << 20) + 5;

/// Serves what `answer` writes, one connection at a time, until the test ends.
struct Source {
    addr: SocketAddr,
    /// Heads of the requests that came.
    heads: Receiver<String>,
}

impl Source {
    fn new(answer: impl Fn(&mut TcpStream, &str) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let (told, heads) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let Some(head) = read_head(&mut stream) else { continue };
                answer(&mut stream, &head);
                if told.send(head).is_err() {
                    return;
                }
            }
        });
        Self { addr, heads }
    }

    /// Always the same answer.
    fn saying(status: &'static str, headers: &'static str, body: Vec<u8>) -> Self {
        Self::new(move |stream, _| {
            let length = body.len();
            // The connection ends with the answer, and whoever asks again must know.
            let about = format!("connection: close\r\ncontent-length: {length}\r\n{headers}");
            let head = format!("HTTP/1.1 {status}\r\n{about}\r\n");
            drop(stream.write_all(&[head.as_bytes(), &body].concat()));
        })
    }

    fn url(&self) -> String {
        format!("http://{}/a%20b?sig=secret", self.addr)
    }
}

fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

fn anywhere() -> Fixture {
    Fixture::with(|options| options.copy_sources = CopySources::Any)
}

fn impatient() -> Fixture {
    Fixture::with(|options| {
        options.copy_sources = CopySources::Any;
        options.source_wait = Duration::from_millis(200);
    })
}

fn copy(fixture: &Fixture, source: &Source, to: &str) -> Got {
    fixture.put(to, &[("x-ms-copy-source", &source.url())])
}

/// The destination, once the copy has ended.
fn ended(fixture: &Fixture, to: &str) -> Got {
    wait_for("the copy to end", || {
        let got = fixture.head(to).is(200);
        (got.header("x-ms-copy-status") != "pending").then_some(got)
    })
}

#[test]
fn a_copy_brings_bytes_headers_and_metadata_along() {
    let fixture = anywhere();
    let headers = "content-type: text/plain\r\nx-ms-meta-who: me\r\n";
    let source = Source::saying("200 OK", headers, b"hello".to_vec());
    let got = copy(&fixture, &source, "/docs/to").is(202);
    assert_eq!(got.header("x-ms-copy-status"), "success");
    let got = fixture.get("/docs/to").is(200);
    assert_eq!((got.text().as_str(), got.header("content-type")), ("hello", "text/plain"));
    assert_eq!(got.header("x-ms-meta-who"), "me");
    assert_eq!(got.header("x-ms-copy-progress"), "5/5");
    let head = source.heads.recv().unwrap();
    assert!(head.starts_with("GET /a%20b?sig=secret HTTP/1.1"), "{head}");
    let more = [("x-ms-copy-source", &*source.url()), ("x-ms-meta-mine", "1")];
    fixture.put("/docs/to", &more).is(202);
    let got = fixture.head("/docs/to");
    assert_eq!((got.header("x-ms-meta-who"), got.header("x-ms-meta-mine")), ("", "1"));
}

#[test]
fn nothing_is_asked_of_others_unless_that_is_allowed() {
    let fixture = Fixture::new();
    let source = Source::saying("200 OK", "", b"hello".to_vec());
    copy(&fixture, &source, "/docs/to").refused(403, "CannotVerifyCopySource");
    fixture.head("/docs/to").is(404);
    assert!(source.heads.try_recv().is_err());
}

#[test]
fn properties_that_a_foreign_source_cannot_have_are_refused() {
    let fixture = anywhere();
    let source = Source::saying("200 OK", "", b"hello".to_vec());
    for name in ["x-ms-file-attributes", "x-ms-file-creation-time", "x-ms-file-last-write-time"] {
        let headers = [("x-ms-copy-source", &*source.url()), (name, "source")];
        fixture.put("/docs/to", &headers).refused(400, "InvalidHeaderValue");
    }
}

#[test]
fn a_source_that_says_no_passes_its_status_and_code_on_and_nothing_is_changed() {
    let fixture = anywhere();
    fixture.upload("to", b"kept");
    let code = "x-ms-error-code: ResourceNotFound\r\n";
    let source = Source::saying("404 Not Found", code, b"no".to_vec());
    let got = copy(&fixture, &source, "/docs/to").refused(404, "CannotVerifyCopySource");
    assert_eq!(got.header("x-ms-copy-source-status-code"), "404");
    assert_eq!(got.header("x-ms-copy-source-error-code"), "ResourceNotFound");
    assert!(!got.text().contains("secret"), "{}", got.text());
    let source = Source::saying("503 Busy", "x-ms-error-code: ServerBusy\r\n", Vec::new());
    let got = copy(&fixture, &source, "/docs/to").refused(400, "CannotVerifyCopySource");
    assert_eq!(got.header("x-ms-copy-source-error-code"), "ServerBusy");
    let chunked = Source::new(|stream, _| {
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"));
    });
    let got = copy(&fixture, &chunked, "/docs/to").refused(400, "CannotVerifyCopySource");
    assert!(got.text().contains("how long"), "{}", got.text());
    let nobody = Nobody::new();
    let url = format!("http://{}/x?sig=secret", nobody.addr);
    let got = fixture.put("/docs/to", &[("x-ms-copy-source", &url)]);
    let got = got.refused(400, "CannotVerifyCopySource");
    assert!(got.text().contains("refused") && !got.text().contains("secret"), "{}", got.text());
    assert_eq!(fixture.get("/docs/to").text(), "kept");
}

#[test]
fn a_source_that_hangs_or_breaks_off_is_given_up() {
    let fixture = impatient();
    fixture.upload("to", b"kept");
    let (end, ending) = channel::<()>();
    let hanging = Source::new(move |_, _| {
        let _ = ending.recv();
    });
    let begun = Instant::now();
    copy(&fixture, &hanging, "/docs/to").refused(500, "CannotVerifyCopySource");
    assert!(begun.elapsed() < Duration::from_secs(10));
    drop(end);
    let (end, ending) = channel::<()>();
    let stuck = Source::new(move |stream, _| {
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"));
        let _ = ending.recv();
    });
    copy(&fixture, &stuck, "/docs/to").refused(500, "CannotVerifyCopySource");
    drop(end);
    let short = Source::new(|stream, _| {
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"));
    });
    copy(&fixture, &short, "/docs/to").refused(400, "CannotVerifyCopySource");
    assert_eq!(fixture.get("/docs/to").text(), "kept");
}

#[test]
fn a_source_that_sends_on_is_not_followed() {
    let fixture = anywhere();
    let sends_on = Source::saying("302 Found", "location: /again\r\n", Vec::new());
    let got = copy(&fixture, &sends_on, "/docs/to").refused(400, "CannotVerifyCopySource");
    assert_eq!(got.header("x-ms-copy-source-status-code"), "302");
    assert!(got.text().contains("redirects are not followed"), "{}", got.text());
    fixture.head("/docs/to").is(404);
    sends_on.heads.recv().unwrap();
    assert!(sends_on.heads.try_recv().is_err(), "asked once");
}

/// A source of so many bytes that sends one each time the pause is over.
fn dripping(length: usize, pause: Duration) -> Source {
    Source::new(move |stream, _| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
        drop(stream.write_all(head.as_bytes()));
        for _ in 0..length {
            thread::sleep(pause);
            if stream.write_all(b"x").is_err() {
                return;
            }
        }
    })
}

#[test]
fn a_slow_source_is_waited_for_between_its_bytes_up_to_a_bound_in_all() {
    let fixture = Fixture::with(|options| {
        options.copy_sources = CopySources::Any;
        options.source_wait = Duration::from_secs(3);
    });
    // Longer than one wait in all, and each pause is much shorter.
    copy(&fixture, &dripping(34, Duration::from_millis(100)), "/docs/to").is(202);
    assert_eq!(fixture.get("/docs/to").text(), "x".repeat(34));
    let got = copy(&fixture, &dripping(1_000, Duration::from_millis(50)), "/docs/other");
    let got = got.refused(500, "CannotVerifyCopySource");
    assert!(got.text().contains("did not send 1000 bytes within 4.5 s"), "{}", got.text());
    fixture.head("/docs/other").is(404);
}

/// A source of [`LONG`] bytes that sends all but the last, and that one when it is told to.
fn slow_source() -> (Source, Sender<bool>) {
    let (go, going) = channel();
    let source = Source::new(move |stream, _| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LONG}\r\n\r\n");
        drop(stream.write_all(&[head.as_bytes(), &vec![b'x'; LONG - 1]].concat()));
        if going.recv() == Ok(true) {
            drop(stream.write_all(b"!"));
        }
    });
    (source, go)
}

#[test]
fn a_long_copy_is_pending_until_the_last_byte_has_come() {
    let fixture = anywhere();
    let (source, go) = slow_source();
    let got = copy(&fixture, &source, "/docs/to").is(202);
    assert_eq!(got.header("x-ms-copy-status"), "pending");
    let far = format!("{}/{LONG}", 4 << 20);
    wait_for("the first stretch", || {
        (fixture.head("/docs/to").header("x-ms-copy-progress") == far).then_some(())
    });
    fixture.put_range("/docs/to", 0, b"x", &[]).refused(409, "PendingCopyOperation");
    go.send(true).unwrap();
    let got = ended(&fixture, "/docs/to");
    assert_eq!(got.header("x-ms-copy-status"), "success");
    let tail = [("x-ms-range", &*format!("bytes={}-", LONG - 2))];
    assert_eq!(fixture.ask("GET", "/docs/to", &tail, b"").is(206).text(), "x!");
}

#[test]
fn a_long_copy_can_be_aborted_while_its_source_hangs() {
    let fixture = anywhere();
    let (source, go) = slow_source();
    let got = copy(&fixture, &source, "/docs/to").is(202);
    let abort = format!("/docs/to?comp=copy&copyid={}", got.header("x-ms-copy-id"));
    fixture.put(&abort, &[("x-ms-copy-action", "abort")]).is(204);
    go.send(true).unwrap();
    source.heads.recv().unwrap();
    let got = ended(&fixture, "/docs/to");
    assert_eq!((got.header("x-ms-copy-status"), got.header("content-length")), ("aborted", "0"));
    fixture.upload("to", b"free again");
}

#[test]
fn a_long_copy_whose_source_breaks_off_has_failed_and_says_why() {
    let fixture = anywhere();
    let (source, go) = slow_source();
    copy(&fixture, &source, "/docs/to").is(202);
    go.send(false).unwrap();
    let got = ended(&fixture, "/docs/to");
    assert_eq!(got.header("x-ms-copy-status"), "failed");
    let why = got.header("x-ms-copy-status-description");
    assert!(why.contains("cannot be read"), "{why}");
}

#[test]
fn a_stop_does_not_wait_for_a_source_that_hangs() {
    let mut fixture = anywhere();
    let (source, _go) = slow_source();
    copy(&fixture, &source, "/docs/to").is(202);
    let begun = Instant::now();
    fixture.server.stop();
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

/// A source of these ten bytes that knows ranges, if it is to.
fn ten(ranges: bool) -> Source {
    Source::new(move |stream, head| {
        let all = b"0123456789";
        let asked = head.lines().find_map(|line| line.strip_prefix("range: bytes="));
        let (first, last) = asked.and_then(|asked| asked.split_once('-')).unwrap();
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        let part = if ranges { &all[first..all.len().min(last + 1)] } else { &all[..] };
        let status = if ranges { "206 Partial Content" } else { "200 OK" };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-range: bytes {first}-{last}/10\r\n\
             content-length: {}\r\n\r\n{}",
            part.len(),
            String::from_utf8_lossy(part)
        );
        let answer = if ranges { answer } else { answer.replace("content-range", "x-nothing") };
        drop(stream.write_all(answer.as_bytes()));
    })
}

fn put_from(fixture: &Fixture, source: &Source, from: &str, more: &[(&str, &str)]) -> Got {
    let url = source.url();
    let mut headers = vec![
        ("x-ms-write", "update"),
        ("x-ms-range", "bytes=0-2"),
        ("x-ms-source-range", from),
        ("x-ms-copy-source", &url),
    ];
    headers.extend_from_slice(more);
    fixture.put("/docs/b?comp=range", &headers)
}

#[test]
fn a_range_is_taken_from_another_server_under_conditions_of_its_checksum() {
    let fixture = anywhere();
    fixture.upload("b", b"----------");
    let source = ten(true);
    let token = [("x-ms-copy-source-authorization", "Bearer abc")];
    let got = put_from(&fixture, &source, "bytes=7-9", &token).is(201);
    assert_eq!(fixture.get("/docs/b").text(), "789-------");
    let head = source.heads.recv().unwrap();
    assert!(head.contains("authorization: Bearer abc"), "{head}");
    let crc = got.header("x-ms-content-crc64").to_owned();
    let check = |name, value: &str| put_from(&fixture, &source, "bytes=7-9", &[(name, value)]);
    check("x-ms-source-if-match-crc64", &crc).is(201);
    check("x-ms-source-content-crc64", &crc).is(201);
    check("x-ms-source-if-none-match-crc64", &crc).refused(412, "SourceConditionNotMet");
    let other = "AAAAAAAAAAA=";
    check("x-ms-source-if-none-match-crc64", other).is(201);
    check("x-ms-source-if-match-crc64", other).refused(412, "SourceConditionNotMet");
    for wrong in [other, "MTIz"] {
        check("x-ms-source-content-crc64", wrong).refused(400, "Crc64Mismatch");
    }
}

#[test]
fn a_range_that_the_source_does_not_have_or_give_is_refused() {
    let fixture = anywhere();
    fixture.upload("b", b"----------");
    put_from(&fixture, &ten(true), "bytes=8-10", &[]).refused(416, "InvalidRange");
    let whole = ten(false);
    put_from(&fixture, &whole, "bytes=1-3", &[]).refused(400, "CannotVerifyCopySource");
    assert_eq!(fixture.get("/docs/b").text(), "----------");
    put_from(&fixture, &whole, "bytes=0-2", &[]).is(201);
    assert_eq!(fixture.get("/docs/b").text(), "012-------");
}

#[test]
fn a_sas_opens_a_foreign_source_for_whoever_has_it_and_an_own_one_with_a_sas_of_its_own() {
    let fixture = Fixture::signed(|options| options.copy_sources = CopySources::Any);
    let source = Source::saying("200 OK", "", b"hello".to_vec());
    let target = |name: &str| format!("/docs/{name}?{}", sas("rwc", false));
    let put = |name: &str, url: &str| fixture.put(&target(name), &[("x-ms-copy-source", url)]);
    put("a", &source.url()).is(202);
    let addr = fixture.server.addr();
    let own = format!("http://{addr}/{ACCOUNT}/docs/a");
    put("b", &own).refused(401, "CannotVerifyCopySource");
    put("b", &format!("{own}?{}", sas("w", false))).refused(403, "CannotVerifyCopySource");
    put("b", &format!("{own}?{}", sas("r", false))).is(202);
    // Whoever reads the copy is not told how to read the source.
    let shown = fixture.head(&target("b")).is(200).header("x-ms-copy-source").to_owned();
    assert!(shown.starts_with(&format!("{own}?")) && !shown.contains("sig="), "{shown}");
    // Ours by another name, and no way around the signature.
    put("b", &format!("http://localhost:{}/{ACCOUNT}/docs/a", addr.port()))
        .refused(401, "CannotVerifyCopySource");
    let real = format!("https://{ACCOUNT}.file.core.windows.net/docs/a");
    put("b", &format!("{real}?{}", sas("r", true))).refused(403, "CannotVerifyCopySource");
    put("b", &format!("{real}?{}", sas("r", false))).is(202);
    assert_eq!(fixture.get(&target("b")).is(200).text(), "hello");
}
