//! Right after `close(2)`, over HTTP: a request must not meet the open that the program has just
//! ended, and must still meet one that it has not.

use std::fs::{self, File, OpenOptions};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::http::{Got, ask};
use crate::common::need;
use crate::common::served::Served;
use crate::mount::fixture::{rounds, turn};

/// How long the server waits for the release of an open that was closed.
const RELEASE_WAIT: Duration = Duration::from_millis(500);

/// A server whose mount shares nothing, so that every open is in the way.
fn served() -> Served {
    Served::start(&["--no-auth", "--default-share", "none"])
}

/// Opens a file on the mount and closes it.
fn touch(path: &Path) {
    drop(OpenOptions::new().read(true).write(true).open(path).unwrap());
}

fn put_range(addr: SocketAddr, target: &str, bytes: &[u8]) -> Got {
    let range = format!("bytes=0-{}", bytes.len() - 1);
    let headers = [("x-ms-range", range.as_str()), ("x-ms-write", "update")];
    ask(addr, "PUT", &format!("{target}?comp=range"), &headers, bytes)
}

/// Opens and closes a file, and asks right afterwards. The server waits for the kernel's word of a
/// close for a bounded time; a machine that is busy enough brings it later, and then the request is
/// sent again. A refusal that comes earlier is the answer.
fn after_close(close: impl Fn(), request: impl Fn() -> Got) -> Got {
    let begun = Instant::now();
    close();
    loop {
        let got = request();
        let late = begun.elapsed() >= RELEASE_WAIT && begun.elapsed() < Duration::from_secs(10);
        if got.status != 409 || !late {
            return got;
        }
    }
}

#[test]
fn a_request_right_after_the_close_meets_nobody() {
    if !need::fuse() {
        return;
    }
    let _turn = turn();
    let server = served();
    let (addr, path) = (server.addr(), server.mount().join("f"));
    for round in 0..rounds(2_000) {
        let write = || fs::write(&path, "bytes").unwrap();
        let got = after_close(write, || ask(addr, "GET", "/share/f", &[], b""));
        assert_eq!((got.status, got.text().as_str()), (200, "bytes"), "round {round}");
        let got = after_close(|| touch(&path), || put_range(addr, "/share/f", b"BY"));
        assert_eq!(got.status, 201, "round {round}: {}", got.text());
        let got = after_close(|| touch(&path), || ask(addr, "DELETE", "/share/f", &[], b""));
        assert_eq!(got.status, 202, "round {round}: {}", got.text());
    }
}

#[test]
fn creating_renaming_and_removing_directories_right_after_the_close_meet_nobody() {
    if !need::fuse() {
        return;
    }
    let _turn = turn();
    let server = served();
    let (addr, mount) = (server.addr(), server.mount());
    let source = |name: &str| format!("{}/share/{name}", server.told("endpoint"));
    let create = [("x-ms-type", "file"), ("x-ms-content-length", "1")];
    for round in 0..rounds(200) {
        ask(addr, "PUT", "/share/d?restype=directory", &[], b"").is(201);
        fs::write(mount.join("d/a"), "a").unwrap();
        ask(addr, "PUT", "/share/d/a", &create, b"").is(201);
        fs::write(mount.join("d/b"), "b").unwrap();
        touch(&mount.join("d/a"));
        let from = source("d/a");
        let headers = [
            ("x-ms-file-rename-source", from.as_str()),
            ("x-ms-file-rename-replace-if-exists", "true"),
        ];
        ask(addr, "PUT", "/share/d/b?comp=rename", &headers, b"").is(200);
        touch(&mount.join("d/b"));
        let from = source("d");
        let headers = [("x-ms-file-rename-source", from.as_str())];
        let got = ask(addr, "PUT", "/share/e?restype=directory&comp=rename", &headers, b"");
        assert_eq!(got.status, 200, "round {round}: {}", got.text());
        // Unlinked while open, and closed: the name goes with the release.
        let held = File::open(mount.join("e/b"));
        drop(held);
        fs::remove_file(mount.join("e/b")).unwrap();
        let got = ask(addr, "DELETE", "/share/e?restype=directory", &[], b"");
        assert_eq!(got.status, 202, "round {round}: {}", got.text());
    }
}

#[test]
fn a_file_that_is_kept_open_is_a_conflict_told_in_bounded_time() {
    if !need::fuse() {
        return;
    }
    let _turn = turn();
    let server = served();
    let (addr, path) = (server.addr(), server.mount().join("f"));
    fs::write(&path, "bytes").unwrap();
    ask(addr, "GET", "/share/f", &[], b"").is(200);
    let held = File::open(&path).unwrap();
    let begun = Instant::now();
    ask(addr, "GET", "/share/f", &[], b"").refused(409, "SharingViolation");
    ask(addr, "DELETE", "/share/f", &[], b"").refused(409, "SharingViolation");
    // A copy of the descriptor was closed, and the file is open all the same.
    drop(held.try_clone().unwrap());
    ask(addr, "GET", "/share/f", &[], b"").refused(409, "SharingViolation");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    drop(held);
    ask(addr, "GET", "/share/f", &[], b"").is(200);
}
