//! Readers: one committed state from start to end, whatever happens meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{
    CURRENT, Home, bytes, check_settled, content_of, put, read_all, state_and_reader, whole,
};
use crate::blob::store::{BlobStore, BodyRole, ContainerId, Content, ContentReader, StateId};
use crate::db::DbError;

const SIZES: [usize; 3] = [1000, 200_000, 3 << 20];

fn reader(store: &BlobStore, id: StateId) -> ContentReader {
    store.read(|tx| tx.reader(id)).unwrap()
}

#[test]
fn a_reader_keeps_its_bytes_when_the_blob_is_replaced_and_its_files_are_gone() {
    for size in SIZES {
        let home = Home::new();
        let (store, c) = home.with_container();
        let old = bytes(1, size);
        let id = put(&store, c, "blob", &old);
        let mut before = reader(&store, id);
        let files = home.files();
        put(&store, c, "blob", &bytes(2, size));
        store.write(move |tx| tx.remove(id)).unwrap();
        check_settled(&store, &home);
        if size > 1 << 20 {
            assert!(home.files().is_disjoint(&files), "the file is gone");
        }
        assert!(read_all(&mut before) == old);
    }
}

/// A blob of many appends, each in a file of its own.
fn many_files(store: &BlobStore, c: ContainerId, count: u64) -> (StateId, Vec<u8>) {
    let mut all = Vec::new();
    let mut contents = Vec::new();
    for seed in 0..count {
        let sent = bytes(seed, (1 << 20) + 1);
        // A whole blob that is appended keeps its own file.
        contents.push(whole(store, &sent));
        all.extend(sent);
    }
    let id = store
        .write(move |tx| {
            let id = tx.put(c, "blob", CURRENT, &"", Content::default())?;
            for content in contents {
                tx.append(id, content)?;
            }
            Ok::<_, DbError>(id)
        })
        .unwrap();
    (id, all)
}

#[test]
fn a_reader_of_many_files_opens_one_and_keeps_the_others_from_being_unlinked() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let (id, all) = many_files(&store, c, 5);
    assert_eq!(home.files().len(), 5);
    let mut late = reader(&store, id);
    store.write(move |tx| tx.remove(id)).unwrap();
    store.settle().unwrap();
    assert_eq!(home.files().len(), 5);
    assert!(read_all(&mut late) == all);
    // Readers that come now do not delay anything.
    put(&store, c, "other", b"bytes");
    drop(late);
    super::wait_until("the files to go", || home.files().is_empty());
    check_settled(&store, &home);
}

#[test]
fn a_range_loads_only_its_extents_and_reads_at_the_state_s_offsets() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let (id, all) = many_files(&store, c, 5);
    let from = (1 << 20) + 500_000_u64;
    let to = from + 1_500_000;
    let mut part = store.read(|tx| tx.range_reader(id, from..to)).unwrap();
    assert_eq!(part.length(), all.len() as u64);
    let mut found = vec![0; 2_000_000];
    let count = part.read_at(from, &mut found).unwrap();
    let bounds = usize::try_from(from).unwrap()..usize::try_from(to).unwrap();
    assert!(found[..count] == all[bounds]);
    assert_eq!(part.read_at(to, &mut found).unwrap(), 0);
}

#[test]
fn what_is_in_memory_is_read_without_waiting() {
    let home = Home::new();
    let (store, c) = home.with_container();
    for size in SIZES {
        let sent = bytes(5, size);
        let id = put(&store, c, "blob", &sent);
        let mut reader = reader(&store, id);
        let mut found = vec![0; size + 10];
        // Just written, so it is in the cache; a file system that cannot tell says `None`.
        match reader.read_now(0, &mut found).unwrap() {
            Some(count) => assert!(found[..count] == sent[..count] && count > 0),
            None => assert!(size > 16 << 10),
        }
        assert_eq!(reader.read_now(size as u64, &mut found).unwrap(), Some(0));
    }
}

#[test]
fn a_missing_or_short_content_file_is_reported_by_name() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let id = put(&store, c, "blob", &bytes(1, 2 << 20));
    let name = home.files().pop_first().unwrap();
    let path = home.dir.path().join("blobs").join(&name);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(1000).unwrap();
    let mut short = reader(&store, id);
    let mut buffer = vec![0; 2000];
    assert_eq!(short.read_at(0, &mut buffer).map_or(0, |count| count.min(1000)), 0);
    let error = short.read_at(1000, &mut buffer).unwrap_err();
    assert!(matches!(&error, DbError::Damaged { file, .. } if file == &path), "{error:?}");
    std::fs::remove_file(&path).unwrap();
    let error = store.read(|tx| tx.reader(id)).err().unwrap();
    assert!(matches!(&error, DbError::Damaged { file, .. } if file == &path), "{error:?}");
}

#[test]
fn readers_beside_writers_see_whole_states_and_records_that_fit() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let stop = AtomicBool::new(false);
    let size = |seed: u64| SIZES[usize::try_from(seed).unwrap() % 3];
    let write = |seed: u64| {
        let content = whole(&store, &bytes(seed, size(seed)));
        store.write(move |tx| tx.put(c, "blob", CURRENT, &seed, content)).unwrap();
    };
    write(1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for seed in 2.. {
                write(seed);
                if seed % 5 == 0 {
                    store.database.request_checkpoint();
                }
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < 30 {
            let (row, mut reader) = state_and_reader::<u64>(&store, c, "blob").unwrap();
            assert!(read_all(&mut reader) == bytes(row.record, size(row.record)));
            seen.insert(row.record);
        }
        stop.store(true, Ordering::Relaxed);
    });
    check_settled(&store, &home);
}

#[test]
fn a_part_s_place_is_never_given_again_while_a_snapshot_has_it() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let part = |seed| super::body(&store, BodyRole::Part, &bytes(seed, 50_000));
    let first = part(1);
    let id = store
        .write(move |tx| {
            let id = tx.put(c, "log", CURRENT, &"", Content::default())?;
            tx.append(id, first).map(|_| id)
        })
        .unwrap();
    let key = crate::blob::store::StateKey::Snapshot(crate::rules::Timestamp(1));
    let snapshot = store.write(move |tx| tx.put_shared(c, "log", key, &"", id, None)).unwrap();
    for seed in 2..40 {
        let more = part(seed);
        store.write(move |tx| tx.append(id, more)).unwrap();
    }
    assert!(content_of(&store, snapshot) == bytes(1, 50_000));
    assert_eq!(content_of(&store, id).len(), 39 * 50_000);
    check_settled(&store, &home);
}
