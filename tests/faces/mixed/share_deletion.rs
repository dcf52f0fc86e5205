//! Delete Share while the share is mounted and in use: everybody is told, nobody is left waiting.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::common::calls::LEASE;
use crate::common::http::ACCOUNT;
use crate::common::meeting::{Meeting, elements, errno};
use crate::common::program::Program;

/// How long the deletion may take. The machine may be busy: the goal is a second.
const DELETED_WITHIN: Duration = Duration::from_secs(5);

/// Longer than what the buffers of a connection hold.
const DOWNLOAD_BYTES: u64 = 64 << 20;

/// A Get File whose head was read, and nothing else.
fn start_download(at: &Meeting, name: &str) -> TcpStream {
    let mut stream = TcpStream::connect(at.served().addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let host = at.served().addr();
    let head = format!(
        "GET /{ACCOUNT}/share/{name} HTTP/1.1\r\nhost: {host}\r\nx-ms-version: 2025-05-05\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    stream
}

/// How many bytes still come before the end of the connection, or its reset.
fn rest_of(mut stream: TcpStream) -> u64 {
    let (mut count, mut piece) = (0, vec![0; 1 << 16]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return count,
            Ok(read) => count += read as u64,
        }
    }
}

#[test]
fn a_mounted_share_in_use_is_deleted_at_once_and_everybody_is_told() {
    let Some(at) = Meeting::alone(&[]) else { return };
    let start = || Program::start(&at.served().mount());
    let (Some(mut writer), Some(mut locker), Some(mut waiter)) = (start(), start(), start()) else {
        return;
    };
    at.put("/other?restype=share", &[]).is(201);
    let length = DOWNLOAD_BYTES.to_string();
    let sized = [("x-ms-type", "file"), ("x-ms-content-length", length.as_str())];
    at.put("/share/large", &sized).is(201);
    for name in ["written", "locked", "leased"] {
        at.file(name);
    }
    let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    let lease = [lease[0], lease[1], ("x-ms-proposed-lease-id", LEASE)];
    at.put("/share/leased?comp=lease", &lease).is(201);
    writer.ok("fd = os.open('written', os.O_RDWR)");
    writer.ok("mapping = mmap.mmap(fd, 10)");
    writer.begin("exec('while True: os.pwrite(fd, b\"noise\", 0)')");
    locker.ok("fd = os.open('locked', os.O_RDWR)");
    locker.ok("lock(fd, SETLK, fcntl.F_WRLCK)");
    waiter.ok("fd = os.open('locked', os.O_RDWR)");
    waiter.begin("lock(fd, SETLKW, fcntl.F_WRLCK)");
    let download = start_download(&at, "large");

    let started = Instant::now();
    at.delete("/share?restype=share").is(202);
    let took = started.elapsed();
    assert!(took < DELETED_WITHIN, "{took:?}");

    assert_eq!(writer.answer(), Some(Err(libc::EIO)));
    let waited = waiter.answer();
    assert!(matches!(waited, Some(Err(_))), "a lock of a deleted share: {waited:?}");
    assert_eq!(locker.fails("os.pwrite(fd, b'x', 0)"), libc::EIO);
    let sent = rest_of(download);
    assert!(sent < DOWNLOAD_BYTES, "the download of a deleted share came to its end");
    let gone = errno(fs::read(at.path("written")));
    assert!([libc::ENOENT, libc::ESTALE, libc::ENOTCONN].contains(&gone), "{gone}");
    at.get("/share?restype=share").refused(404, "ShareNotFound");
    at.get("/other?restype=share").is(200);
    at.put("/other/new", &[("x-ms-type", "file"), ("x-ms-content-length", "0")]).is(201);
}

/// Deletes the share; under which version it can be restored.
fn delete_share(at: &Meeting) -> String {
    let versions = || elements(&at.get("/?comp=list&include=deleted").is(200).text(), "Version");
    let before = versions();
    at.delete("/share?restype=share").is(202);
    versions().into_iter().find(|version| !before.contains(version)).unwrap()
}

#[test]
fn a_mount_goes_on_with_the_share_that_takes_the_name_of_a_deleted_one() {
    let Some(at) = Meeting::alone(&[]) else { return };
    at.file_of("first", b"1");
    assert_eq!(fs::read(at.path("first")).unwrap(), b"1");
    let first = delete_share(&at);
    assert!(fs::read(at.path("first")).is_err());

    at.put("/share?restype=share", &[]).is(201);
    assert_eq!(errno(fs::read(at.path("first"))), libc::ENOENT);
    at.file_of("second", b"2");
    assert_eq!(fs::read(at.path("second")).unwrap(), b"2");
    fs::write(at.path("written"), "by the mount").unwrap();
    assert_eq!(at.named("written").bytes(), b"by the mount");

    delete_share(&at);
    let restore =
        [("x-ms-deleted-share-name", "share"), ("x-ms-deleted-share-version", first.as_str())];
    at.put("/share?restype=share&comp=undelete", &restore).is(201);
    assert_eq!(fs::read(at.path("first")).unwrap(), b"1");
    assert_eq!(errno(fs::read(at.path("second"))), libc::ENOENT);
}

#[test]
fn a_forced_close_of_a_handle_of_a_deleted_share_cuts_no_file_of_the_share_with_its_name() {
    let Some(at) = Meeting::alone(&[]) else { return };
    let open = || File::options().read(true).write(true).open(at.path("f")).unwrap();
    let handles = || elements(&at.get("/share/f?comp=listhandles").is(200).text(), "HandleId");
    let close = |id: &str| {
        let headers = [("x-ms-handle-id", id)];
        let closed = at.put("/share/f?comp=forceclosehandles", &headers).is(200);
        closed.header("x-ms-number-of-handles-closed").to_owned()
    };
    at.file_of("f", b"old");
    let mut old = open();
    let [of_old] = handles().try_into().unwrap();
    delete_share(&at);
    at.put("/share?restype=share", &[]).is(201);
    at.file_of("f", b"new");
    let mut new = open();
    let [of_new] = handles().try_into().unwrap();
    assert_ne!(of_old, of_new);

    assert_eq!(close(&of_old), "0");
    assert_eq!(errno(old.write(b"x")), libc::EIO);
    drop(old);
    new.write_all(b"NEW").unwrap();
    assert_eq!(at.named("f").bytes(), b"NEW");
    assert_eq!(handles(), [of_new.as_str()]);
    // Its own handle does end it.
    assert_eq!(close(&of_new), "1");
    assert_eq!(errno(new.write(b"x")), libc::EIO);
}
