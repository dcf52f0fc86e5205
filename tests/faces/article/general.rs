//! What the article says of all services (S1-S3), as far as files show it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::calls::{Call, LEASE, lease};
use crate::common::meeting::{Meeting, errno};

// The optimistic strategy is not here: files have no conditions (S104), and Blob is yet to come.
#[test]
fn s001_a_file_is_locked_pessimistically_or_the_last_writer_wins() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("s001");
    at.put_range(&file.target(), 0, b"first", &[]).is(201);
    fs::File::options().write(true).open(file.path()).unwrap().write_all(b"second").unwrap();
    at.wait_idle("s001");
    at.put_range(&file.target(), 0, b"third", &[]).is(201);
    assert_eq!(file.bytes(), b"thirdd6789");
    let locked = file.open("rw", "none");
    file.answers("SharingViolation", &[Call::Put]);
    locked.close();
    file.call(Call::Acquire).is(201);
    file.answers("LeaseIdMissing", &[Call::Put]);
    assert_eq!(file.open_errno("w", "rwd"), libc::EBUSY);
    file.answers_to(Call::Put, &[lease(LEASE)], "ok");
}

#[test]
fn s002_what_was_acknowledged_is_seen_by_every_later_access() {
    let Some(at) = Meeting::start() else { return };
    at.directory("s002");
    let rounds = if std::env::var_os("LATCHFS_FULL").is_some() { 50 } else { 15 };
    for round in 0..rounds {
        let file = at.named(&format!("s002/{round}"));
        let (by_rest, on_mount) = (format!("rest {round:02}"), format!("disk {round:02}"));
        at.upload(&file.name, by_rest.as_bytes());
        assert_eq!(fs::read(file.path()).unwrap(), by_rest.as_bytes());
        fs::write(file.path(), &on_mount).unwrap();
        assert_eq!(file.bytes(), on_mount.as_bytes());
        assert_eq!(at.listing("s002").len(), 1);
        at.wait_idle(&file.name);
        file.answers("ok", &[Call::Delete]);
        assert_eq!(errno(fs::metadata(file.path())), libc::ENOENT);
    }
}

/// One request writes a range as a whole, up to the largest there is.
#[test]
fn s003_a_reader_sees_each_request_s_range_as_a_whole() {
    for (name, length, rounds) in [("s003-small", 4_096, 60), ("s003-large", 4 << 20, 10)] {
        let Some(at) = Meeting::start() else { return };
        let file = at.file_of(name, &vec![b'a'; length]);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut reads = 0_usize;
                        while !done.load(Ordering::Relaxed) || reads == 0 {
                            let bytes = file.bytes();
                            assert_eq!(bytes.len(), length);
                            // A few bytes a page will do: the kernel moves pages.
                            let whole = bytes.iter().step_by(1021).all(|b| *b == bytes[0]);
                            assert!(whole, "half of one request, half of another");
                            reads += 1;
                        }
                    })
                })
                .collect();
            for round in 0..rounds {
                let letter = b'a' + u8::try_from(round % 26).unwrap();
                at.put_range(&file.target(), 0, &vec![letter; length], &[]).is(201);
            }
            done.store(true, Ordering::Relaxed);
            for reader in readers {
                reader.join().unwrap();
            }
        });
        let mut first = [0];
        fs::File::open(file.path()).unwrap().read_exact(&mut first).unwrap();
        assert_eq!(first[0], b'a' + u8::try_from((rounds - 1) % 26).unwrap());
        fs::remove_file(file.path()).unwrap();
    }
}
