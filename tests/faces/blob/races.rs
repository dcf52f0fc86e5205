//! Clients that race: B42 to B45, B109, B110, B133.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

use super::fixture::{A, ACCOUNT, Blobs};

fn race(
    blobs: &Arc<Blobs>,
    clients: usize,
    ask: impl Fn(&Blobs, usize) -> u16 + Send + Sync + Copy + 'static,
) -> Vec<u16> {
    let threads: Vec<_> = (0..clients)
        .map(|n| {
            let blobs = Arc::clone(blobs);
            thread::spawn(move || ask(&blobs, n))
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn count(statuses: &[u16], status: u16) -> usize {
    statuses.iter().filter(|found| **found == status).count()
}

#[test]
fn b043_of_a_hundred_who_create_a_blob_one_wins() {
    let blobs = Arc::new(Blobs::new());
    let new = race(&blobs, 100, |blobs, n| {
        blobs.upload("b", &n.to_string(), &[("if-none-match", "*")]).status
    });
    assert_eq!((count(&new, 201), count(&new, 409)), (1, 99), "{new:?}");
}

#[test]
fn b042_of_a_hundred_writers_with_one_etag_one_wins() {
    let blobs = Arc::new(Blobs::new());
    let etag: &'static str = Box::leak(blobs.blob("start").into_boxed_str());
    let won = race(&blobs, 100, move |blobs, n| {
        blobs.upload("b", &n.to_string(), &[("if-match", etag)]).status
    });
    assert_eq!((count(&won, 201), count(&won, 412)), (1, 99), "{won:?}");
}

#[test]
fn b109_of_fifty_who_acquire_a_lease_one_wins() {
    let blobs = Arc::new(Blobs::new());
    blobs.blob("x");
    let leases = race(&blobs, 50, |blobs, _| {
        blobs.lease("/con/b?", "acquire", &[("x-ms-lease-duration", "-1")]).status
    });
    assert_eq!((count(&leases, 201), count(&leases, 409)), (1, 49), "{leases:?}");
}

#[test]
fn b133_of_those_who_append_at_one_position_one_wins() {
    let blobs = Arc::new(Blobs::new());
    blobs.put("/con/log", &[("x-ms-blob-type", "AppendBlob")]).is(201);
    let appends = race(&blobs, 20, |blobs, _| {
        let position = [("x-ms-blob-condition-appendpos", "0")];
        blobs.ask("PUT", "/con/log?comp=appendblock", &position, b"x").status
    });
    assert_eq!((count(&appends, 201), count(&appends, 412)), (1, 19), "{appends:?}");
    assert_eq!(blobs.text("log"), "x");
}

/// Begins a Put Blob of ten bytes and sends five of them.
fn begin_upload(blobs: &Blobs, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(blobs.addr()).unwrap();
    let head = format!(
        "PUT /{ACCOUNT}/con/b HTTP/1.1\r\nhost: {}\r\nx-ms-version: 2026-10-06\r\n\
         x-ms-blob-type: BlockBlob\r\ncontent-length: 10\r\nconnection: close\r\n{headers}\r\n",
        blobs.addr()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(b"01234").unwrap();
    stream
}

/// Sends the other five bytes; the answer.
fn end_upload(mut stream: TcpStream) -> String {
    use std::io::Read as _;
    stream.write_all(b"56789").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn b044_a_condition_that_held_at_the_headers_must_hold_at_the_end() {
    let blobs = Blobs::new();
    let etag = blobs.blob("start");
    let upload = begin_upload(&blobs, &format!("if-match: {etag}\r\n"));
    blobs.upload("b", "between", &[]).is(201);
    let answer = end_upload(upload);
    assert!(answer.starts_with("HTTP/1.1 412") && answer.contains("ConditionNotMet"), "{answer}");
    assert_eq!(blobs.text("b"), "between");
}

#[test]
fn b110_a_lease_that_ends_during_an_upload_is_lost() {
    let blobs = Blobs::new();
    blobs.blob("start");
    blobs.leased("/con/b?", "15");
    let upload = begin_upload(&blobs, &format!("x-ms-lease-id: {A}\r\n"));
    blobs.pass(15);
    let answer = end_upload(upload);
    assert!(answer.starts_with("HTTP/1.1 412") && answer.contains("LeaseLost"), "{answer}");
    assert_eq!(blobs.text("b"), "start");
}

#[test]
fn b045_a_reader_sees_one_state_from_start_to_end() {
    use std::io::Read as _;
    let blobs = Blobs::new();
    let length = 8 << 20;
    let etag = blobs.blob(&"a".repeat(length));
    let mut stream = TcpStream::connect(blobs.addr()).unwrap();
    let head = format!(
        "GET /{ACCOUNT}/con/b HTTP/1.1\r\nhost: {}\r\nx-ms-version: 2026-10-06\r\n\
         connection: close\r\n\r\n",
        blobs.addr()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut begun = vec![0; 1000];
    stream.read_exact(&mut begun).unwrap();
    blobs.upload("b", &"b".repeat(length), &[]).is(201);
    blobs.delete("/con/b", &[]).is(202);
    stream.read_to_end(&mut begun).unwrap();
    let answer = String::from_utf8_lossy(&begun);
    assert!(answer.contains(&etag), "the ETag is that of the bytes");
    let body = answer.split("\r\n\r\n").nth(1).unwrap();
    assert_eq!(body.len(), length);
    assert!(body.bytes().all(|byte| byte == b'a'));
}

/// Every GET is whole and has the ETag that the write of its bytes was answered with.
#[test]
fn readers_beside_writers_of_a_long_blob_see_it_whole() {
    use std::collections::HashMap;
    use std::sync::Mutex;
    const LENGTH: usize = 64 << 20;
    let blobs = &Blobs::new();
    let written = &Mutex::new(HashMap::new());
    let put = |value: u8| {
        let headers = [("x-ms-blob-type", "BlockBlob")];
        let got = blobs.ask("PUT", "/con/b", &headers, &vec![value; LENGTH]).is(201);
        written.lock().unwrap().insert(got.header("etag").to_owned(), value);
    };
    put(0);
    let read = thread::scope(|scope| {
        let writers: Vec<_> = [[1, 2, 3], [4, 5, 6]]
            .into_iter()
            .map(|values| scope.spawn(move || values.into_iter().for_each(put)))
            .collect();
        let reader = || {
            let mut read = Vec::new();
            while !writers.iter().all(thread::ScopedJoinHandle::is_finished) || read.is_empty() {
                let got = blobs.get("/con/b", &[]).is(200);
                assert_eq!(got.body.len(), LENGTH);
                let first = got.body[0];
                assert!(got.body.iter().all(|byte| *byte == first), "bytes of two states");
                read.push((got.header("etag").to_owned(), first));
            }
            read
        };
        let (one, two) = thread::scope(|inner| {
            let two = inner.spawn(reader);
            (reader(), two.join().unwrap())
        });
        [one, two].concat()
    });
    let written = written.lock().unwrap();
    for (etag, value) in read {
        assert_eq!(written.get(&etag), Some(&value), "the ETag of other bytes");
    }
}
