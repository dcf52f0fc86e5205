//! Bodies: where they go by their size, hashes, lengths, what a body that is given up leaves.

use md5::{Digest as _, Md5};

use super::{CURRENT, Home, body, bytes, check_settled, content_of, put, row, whole};
use crate::blob::store::{
    BlobStore, BodyRole, Content, ContentError, ContentPlan, ContentWriter, INLINE_MAX,
};
use crate::db::SyncMode;

const MIB: usize = 1 << 20;

#[test]
fn bodies_come_back_whatever_their_size() {
    let home = Home::new();
    let (store, container) = home.with_container();
    for size in [0, 1, 16 << 10, (16 << 10) + 1, 100_000, MIB, MIB + 1, 5 * MIB + 3] {
        let sent = bytes(size as u64, size);
        let id = put(&store, container, "blob", &sent);
        assert_eq!(content_of(&store, id), sent, "{size}");
        assert_eq!(row(&store, container, "blob").unwrap().length, size as u64);
    }
    check_settled(&store, &home);
}

#[test]
fn small_bodies_are_in_the_row_middle_ones_share_a_segment_large_ones_have_a_file() {
    let home = Home::new();
    let (store, container) = home.with_container();
    for count in 0..10 {
        put(&store, container, &format!("small {count}"), &bytes(count, 16 << 10));
    }
    assert_eq!(home.files().len(), 0);
    for count in 0..10 {
        put(&store, container, &format!("middle {count}"), &bytes(count, MIB));
    }
    assert_eq!(home.files().len(), 1);
    for count in 0..3 {
        put(&store, container, &format!("large {count}"), &bytes(count, MIB + 1));
    }
    assert_eq!(home.files().len(), 4);
    check_settled(&store, &home);
}

#[test]
fn short_parts_share_a_segment_apart_from_whole_blobs_and_long_ones_have_a_file() {
    let home = Home::new();
    let (store, container) = home.with_container();
    put(&store, container, "whole", &bytes(1, MIB));
    let short: Vec<_> =
        (0..10).map(|seed| body(&store, BodyRole::Part, &bytes(seed, MIB))).collect();
    assert_eq!(home.files().len(), 2);
    let long: Vec<_> =
        (0..3).map(|seed| body(&store, BodyRole::Part, &bytes(seed, 2 * MIB))).collect();
    assert_eq!(home.files().len(), 5);
    drop((short, long));
    drop(store);
    check_settled(&home.open(), &home);
    assert_eq!(home.files().len(), 1);
}

#[test]
fn a_body_of_unknown_length_ends_up_where_its_size_belongs() {
    let home = Home::new();
    let (store, container) = home.with_container();
    for (size, files) in [(0, 0), (100, 0), (16 << 10, 0), ((16 << 10) + 1, 1), (3 * MIB, 2)] {
        let sent = bytes(7, size);
        let plan = ContentPlan { length: None, role: BodyRole::Whole, md5: true };
        let mut writer = store.content(plan).unwrap();
        for chunk in sent.chunks(15_000) {
            writer.write(chunk).unwrap();
            writer.write(b"").unwrap();
        }
        assert_eq!(writer.received(), size as u64);
        let content = writer.finish().unwrap();
        assert_eq!(content.length(), size as u64);
        let name = format!("blob {size}");
        let id = store.write(move |tx| tx.put(container, &name, CURRENT, &"", content)).unwrap();
        assert_eq!(content_of(&store, id), sent);
        assert_eq!(home.files().len(), files);
    }
    check_settled(&store, &home);
}

#[test]
fn a_small_part_of_unknown_length_is_never_inline() {
    let home = Home::new();
    let (store, container) = home.with_container();
    let plan = ContentPlan { length: None, role: BodyRole::Part, md5: false };
    let mut writer = store.content(plan).unwrap();
    writer.write(b"a line").unwrap();
    let content = writer.finish().unwrap();
    let id = store
        .write(move |tx| {
            let id = tx.put(container, "log", CURRENT, &"", Content::default())?;
            tx.append(id, content).map(|_| id)
        })
        .unwrap();
    assert_eq!(content_of(&store, id), b"a line");
}

#[test]
fn hashes_are_those_of_the_bytes() {
    let home = Home::new();
    let (store, _) = home.with_container();
    let check = b"123456789";
    let content = whole(&store, check);
    assert_eq!(content.crc64(), 0xae8b_1486_0a79_9888);
    assert_eq!(content.md5(), None);
    for size in [0, 100, 2 * MIB] {
        let sent = bytes(3, size);
        let plan = ContentPlan { length: Some(size as u64), role: BodyRole::Whole, md5: true };
        let mut writer = store.content(plan).unwrap();
        for chunk in sent.chunks(77_777) {
            writer.write(chunk).unwrap();
        }
        let content = writer.finish().unwrap();
        assert_eq!(content.md5(), Some(Md5::digest(&sent).into()));
        let mut crc = crc64fast_nvme::Digest::new();
        crc.write(&sent);
        assert_eq!(content.crc64(), crc.sum64());
    }
}

#[test]
fn a_body_of_another_length_than_announced_is_refused() {
    let home = Home::new();
    let (store, _) = home.with_container();
    for declared in [10, INLINE_MAX + 10, 3 * MIB as u64] {
        let plan = ContentPlan { length: Some(declared), role: BodyRole::Whole, md5: false };
        let mut writer = store.content(plan).unwrap();
        let most = usize::try_from(declared).unwrap();
        writer.write(&bytes(1, most - 1)).unwrap();
        let wrong = ContentError::Length { declared, received: declared + 1 };
        assert_eq!(writer.write(b"ab"), Err(wrong));
        let wrong = ContentError::Length { declared, received: declared - 1 };
        assert_eq!(writer.finish().err().unwrap(), wrong);
    }
    check_settled(&store, &home);
}

#[test]
fn a_body_that_is_given_up_leaves_nothing() {
    let home = Home::new();
    let store = home.open();
    let begin = |length, role| {
        let plan = ContentPlan { length, role, md5: false };
        let mut writer = store.content(plan).unwrap();
        writer.write(&bytes(1, 20_000)).unwrap();
        writer
    };
    let half = [
        begin(Some(3 << 20), BodyRole::Whole),
        begin(None, BodyRole::Whole),
        begin(Some(30_000), BodyRole::Whole),
        begin(Some(3 << 20), BodyRole::Part),
    ];
    assert_eq!(home.files().len(), 4);
    drop(half);
    // Finished, but no transaction takes it.
    drop(whole(&store, &bytes(2, 2 * MIB)));
    store.settle().unwrap();
    // The segment stays open for others.
    assert_eq!(home.files().len(), 1);
    drop(store);
    let store = home.open();
    store.settle().unwrap();
    assert_eq!(home.files().len(), 0);
}

#[test]
fn a_transaction_that_refuses_leaves_nothing_of_the_body() {
    let home = Home::new();
    let (store, container) = home.with_container();
    put(&store, container, "blob", b"old");
    let content = whole(&store, &bytes(2, 2 * MIB));
    let refused = store.write(move |tx| {
        tx.put(container, "blob", CURRENT, &"", content)?;
        Err::<(), _>(crate::db::DbError::Closed)
    });
    assert!(refused.is_err());
    store.settle().unwrap();
    assert_eq!(home.files().len(), 0);
    let id = row(&store, container, "blob").unwrap().id;
    assert_eq!(content_of(&store, id), b"old");
}

#[test]
fn two_parts_of_one_blob_never_have_the_same_place() {
    let home = Home::new();
    let (store, container) = home.with_container();
    let sent: Vec<_> = (0..16).map(|seed| bytes(seed, 300_000)).collect();
    let contents: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            sent.iter().map(|sent| scope.spawn(|| body(&store, BodyRole::Part, sent))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let id = store
        .write(move |tx| {
            let id = tx.put(container, "log", CURRENT, &"", Content::default())?;
            let offsets: Result<Vec<_>, _> =
                contents.into_iter().map(|content| tx.append(id, content)).collect();
            assert_eq!(offsets?, (0..16).map(|part| part * 300_000).collect::<Vec<_>>());
            Ok::<_, crate::db::DbError>(id)
        })
        .unwrap();
    assert!(content_of(&store, id) == sent.concat());
    check_settled(&store, &home);
}

#[test]
fn with_sync_always_everything_works_the_same() {
    let home = Home::new();
    let store = BlobStore::open(home.dir.path(), SyncMode::Always).unwrap();
    let container = store.write(|tx| tx.add_container("c", &"")).unwrap().unwrap();
    for size in [10, 100_000, 2 * MIB] {
        let sent = bytes(size as u64, size);
        let id = put(&store, container, "blob", &sent);
        assert!(content_of(&store, id) == sent);
    }
    check_settled(&store, &home);
}

#[test]
fn content_of_another_store_is_refused() {
    let (home, other) = (Home::new(), Home::new());
    let (store, container) = home.with_container();
    let (foreign, _) = other.with_container();
    let content = whole(&foreign, &bytes(1, 100_000));
    let refused = store.write(move |tx| tx.put(container, "blob", CURRENT, &"", content));
    assert!(refused.is_err());
    assert!(row(&store, container, "blob").is_none());
    check_settled(&store, &home);
}

/// Begins a block that is longer than those in segments, and writes some of it.
fn begun_block(store: &BlobStore) -> ContentWriter {
    let plan = ContentPlan { length: Some(8 << 20), role: BodyRole::Part, md5: false };
    let mut writer = store.content(plan).unwrap();
    writer.write(&bytes(1, 3 << 20)).unwrap();
    writer
}

#[test]
fn blocks_that_broke_off_or_were_refused_leave_no_bytes() {
    let home = Home::new();
    let store = home.open();
    for _ in 0..3 {
        drop(begun_block(&store));
        drop(body(&store, BodyRole::Part, &bytes(2, 8 << 20)));
    }
    store.settle().unwrap();
    assert!(home.files().is_empty(), "{:?}", home.files());
}
