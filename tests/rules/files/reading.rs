//! Get File: what a reader sees while its file changes.

use std::thread;

use latchfs::file::service::{IO_MAX, TimeChange};

use crate::files::fixture::{Fixture, code, path};

#[test]
fn a_reader_reads_on_after_its_file_is_deleted_and_keeps_nothing_when_it_ends() {
    let fixture = Fixture::new();
    let file = fixture.file();
    let reader = fixture.share.open_reader(fixture.rest(), &file, Some(2..5)).unwrap();
    assert_eq!(reader.properties().size(), 10);
    fixture.share.delete_file(fixture.rest(), &file).unwrap();
    let mut bytes = [0; 10];
    assert_eq!(reader.read_at(2, &mut bytes).unwrap(), 3);
    assert_eq!(&bytes[..3], b"234");
    assert_eq!(reader.read_at(4, &mut bytes).unwrap(), 1);
    assert_eq!(reader.read_at(5, &mut bytes).unwrap(), 0);
    assert_eq!(reader.read_at(0, &mut bytes).unwrap(), 0);
    drop(reader);
    assert_eq!(fixture.share.files_in_use(), 0);
}

#[test]
fn a_short_range_is_sent_as_its_etag_has_it_though_the_file_changes() {
    let fixture = Fixture::new();
    let file = fixture.file();
    let reader = fixture.share.open_reader(fixture.rest(), &file, None).unwrap();
    fixture.put(&file, 0, b"XYZ").unwrap();
    fixture.create(&file, 0).unwrap();
    let mut bytes = [0; 10];
    assert_eq!(reader.read_at(0, &mut bytes).unwrap(), 10);
    assert_eq!(&bytes, b"0123456789");
}

#[test]
fn a_reader_stops_no_open_and_no_delete() {
    let fixture = Fixture::new();
    let file = fixture.file();
    let _reader = fixture.share.open_reader(fixture.rest(), &file, None).unwrap();
    let handle = fixture.open(&file, "rwd", "none");
    fixture.share.close(&handle).unwrap();
    assert_eq!(code(&fixture.share.delete_file(fixture.rest(), &file)), "ok");
}

#[test]
fn no_read_sees_half_of_a_range() {
    const SIZE: usize = 1 << 20;
    const ROUNDS: u8 = 250;
    let fixture = Fixture::new();
    let file = path("big");
    // Longer than what is read when the reader is let through.
    fixture.create(&file, IO_MAX as u64 + 1).unwrap();
    let reader = fixture.share.open_reader(fixture.rest(), &file, None).unwrap();
    let (share, cx) = (&fixture.share, fixture.rest().cx);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let asking = latchfs::file::service::Asking { cx, lease_id: None };
            let mut bytes = vec![0; SIZE];
            for round in 1..=ROUNDS {
                bytes.fill(round);
                share.put_range(asking, &file, 0, &bytes, TimeChange::Now).unwrap();
            }
        });
        let mut bytes = vec![0; SIZE];
        while bytes[0] != ROUNDS {
            assert_eq!(reader.read_at(0, &mut bytes).unwrap(), SIZE);
            let first = bytes[0];
            // One byte a page will do: the kernel moves pages.
            let mut pages = bytes.iter().step_by(4096);
            assert!(pages.all(|byte| *byte == first), "half of a range");
        }
        writer.join().unwrap();
    });
}
