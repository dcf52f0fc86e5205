//! Get File and List Ranges: behaviour 131, and that a reader sees whole ranges (S3).

use std::thread;

use latchfs::file::service::{IO_MAX, TimeChange};

use crate::files::fixture::{BYTES, Fixture, code, path};

#[test]
fn b131_a_range_past_the_end_is_refused_and_what_was_never_written_is_zeros() {
    let fixture = Fixture::new();
    let file = path("sparse");
    fixture.create(&file, 1_000).unwrap();
    fixture.put(&file, 500, b"abc").unwrap();
    assert_eq!(fixture.get(&file, Some(498..505)).unwrap(), b"\0\0abc\0\0");
    assert_eq!(fixture.get(&file, Some(990..u64::MAX)).unwrap(), [0; 10]);
    for range in [1_000..1_001, 5_000..6_000, u64::MAX - 1..u64::MAX, 7..7] {
        assert_eq!(code(&fixture.get(&file, Some(range.clone()))), "InvalidRange", "{range:?}");
    }
}

#[test]
fn an_empty_file_is_read_whole_and_has_no_range() {
    let fixture = Fixture::new();
    let file = path("empty");
    fixture.create(&file, 0).unwrap();
    assert_eq!(fixture.get(&file, None).unwrap(), b"");
    assert_eq!(code(&fixture.get(&file, Some(0..1))), "InvalidRange");
    let listed = fixture.share.range_list(fixture.rest(), &file, None).unwrap();
    assert!(listed.ranges.is_empty());
}

#[test]
fn a_directory_or_a_link_is_no_file() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.root.join("dir")).unwrap();
    std::os::unix::fs::symlink("dir", fixture.root.join("link")).unwrap();
    assert_eq!(code(&fixture.get(&path("dir"), None)), "ResourceTypeMismatch");
    assert_eq!(code(&fixture.get(&path("link"), None)), "ResourceNotFound");
    assert_eq!(code(&fixture.head(&path("none/file"))), "ParentNotFound");
}

#[test]
fn any_spelling_finds_the_file_and_shows_the_one_on_disk() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.root.join("Dir")).unwrap();
    std::fs::write(fixture.root.join("Dir/File.TXT"), BYTES).unwrap();
    let shown = fixture.head(&path("dir/file.txt")).unwrap();
    assert_eq!(shown.path.as_str(), "Dir/File.TXT");
    assert_eq!(shown.parent, fixture.share.stat(&path("Dir")).unwrap().id);
}

#[test]
fn the_list_of_ranges_shows_what_was_written() {
    const BLOCK: u64 = 64 << 10;
    let fixture = Fixture::new();
    let file = path("sparse");
    fixture.create(&file, 8 * BLOCK).unwrap();
    let block = vec![1; usize::try_from(BLOCK).unwrap()];
    fixture.put(&file, 2 * BLOCK, &block).unwrap();
    fixture.put(&file, 5 * BLOCK, &block).unwrap();
    let list = |window| fixture.share.range_list(fixture.rest(), &file, window);
    let all = list(None).unwrap();
    assert_eq!(all.ranges, [2 * BLOCK..3 * BLOCK, 5 * BLOCK..6 * BLOCK]);
    assert_eq!(all.properties, fixture.head(&file).unwrap());
    let (start, inside) = (2 * BLOCK, 2 * BLOCK + 7);
    assert_eq!(list(Some(0..inside)).unwrap().ranges, vec![start..inside; 1]);
    assert_eq!(code(&list(Some(8 * BLOCK..9 * BLOCK))), "InvalidRange");
    let cleared = 5 * BLOCK..6 * BLOCK;
    fixture.share.clear_range(fixture.rest(), &file, cleared, TimeChange::Now).unwrap();
    assert_eq!(list(None).unwrap().ranges, vec![start..3 * BLOCK; 1]);
}

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
