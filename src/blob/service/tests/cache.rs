//! The cache of blobs: a read never finds an older state than one that was answered.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::super::cache::{BlobCache, CachedBlob};
use super::*;
use crate::blob::rules::{BlobState, ContainerState};
use crate::db::Version;

/// Whether the next read of a blob needs no look into the database.
fn is_cached(bench: &Bench, name: &str) -> bool {
    bench.service.cache.get(bench.service.store.version(), &at(name)).is_some()
}

/// Reads until the blob is cached: a sweep in the background may invalidate the cache by a write.
fn read_until_cached(bench: &Bench, read: impl Fn()) {
    let cached = (0..1_000).any(|_| {
        read();
        is_cached(bench, "a")
    });
    assert!(cached, "a thousand reads in a row, and none was cached");
}

#[test]
fn a_blob_that_was_read_is_cached_until_something_is_written() {
    let bench = Bench::new();
    bench.put("a", b"one");
    assert!(!is_cached(&bench, "a"));
    for expected in [b"one", b"one", b"two"] {
        if expected == b"two" {
            bench.put("a", b"two");
            assert!(!is_cached(&bench, "a"));
        }
        read_until_cached(&bench, || assert_eq!(bench.get("a").unwrap(), expected));
        assert!(!is_cached(&bench, "b"));
    }
    bench.put("b", b"another");
    assert!(!is_cached(&bench, "a"));
}

#[test]
fn a_part_of_a_cached_blob_is_that_of_the_range() {
    let bench = Bench::new();
    bench.put("a", b"0123456789");
    for _ in 0..2 {
        let read = |range| {
            let asked = AccessConditions::default();
            let opened = within(bench.service.open_blob(&bench.cx(), &at("a"), asked, range));
            opened.map(|opened| (opened.range, opened.blob.state.length))
        };
        assert_eq!(read(Some(3..7)).unwrap(), (3..7, 10));
        assert_eq!(read(Some(8..99)).unwrap(), (8..10, 10));
        assert_eq!(denial(read(Some(10..11))), BlobDenial::InvalidRange(10));
    }
}

#[test]
fn the_rules_are_asked_about_a_cached_blob_too() {
    let bench = Bench::new();
    let first = bench.put("a", b"one");
    read_until_cached(&bench, || assert_eq!(bench.get("a").unwrap(), b"one"));
    let read = |asked| within(bench.service.open_blob(&bench.cx(), &at("a"), asked, None));
    assert!(read(if_match(first.etag)).is_ok());
    let other = Etag::from_number(first.etag.number() + 1);
    assert!(matches!(denial(read(if_match(other))), BlobDenial::Condition(_)));
}

#[test]
fn metadata_that_was_read_first_has_the_content_read_later() {
    let bench = Bench::new();
    bench.put("a", b"one");
    read_until_cached(&bench, || drop(bench.head("a").unwrap()));
    assert_eq!(bench.get("a").unwrap(), b"one");
    assert_eq!(bench.head("a").unwrap().state.length, 3);
}

#[test]
fn the_bytes_of_the_cache_have_a_bound() {
    let bench = Bench::new();
    let blob = |bytes| CachedBlob {
        state: Arc::clone(&bench.head("a").unwrap().state),
        content: Some(vec![0; bytes].into()),
    };
    bench.put("a", b"one");
    let (cache, version) = (BlobCache::default(), Some(Version::default()));
    for name in ["a", "b", "c"] {
        cache.put(version, &at(name), blob(1 << 20));
    }
    assert!(["a", "b", "c"].iter().all(|name| cache.get(version, &at(name)).is_some()));
    cache.put(version, &at("d"), blob(1 << 20));
    assert!(["a", "b", "c"].iter().all(|name| cache.get(version, &at(name)).is_none()));
    assert!(cache.get(version, &at("d")).is_some());
}

#[test]
fn snapshots_are_not_taken_for_the_blob() {
    let bench = Bench::new();
    bench.put("a", b"old");
    let snapshot = at("a").state(Selector::Snapshot(bench.snapshot("a")));
    bench.put("a", b"new");
    for _ in 0..2 {
        assert_eq!(bench.get("a").unwrap(), b"new");
        assert_eq!(bench.get_at(&snapshot).unwrap(), b"old");
    }
}

#[test]
fn what_ends_a_blob_invalidates_the_cache() {
    let ends: [fn(&Bench); 3] = [
        |bench| {
            bench.delete("a").unwrap();
        },
        |bench| {
            let cx = bench.cx();
            within(bench.service.delete_container(&cx, "c", AccessConditions::default())).unwrap();
        },
        |bench| {
            let held = bench.service.store.hold();
            held.empty().unwrap();
            assert!(!is_cached(bench, "a"), "all rows are being replaced");
            held.commit().unwrap();
        },
    ];
    for end in ends {
        let bench = Bench::new();
        bench.put("a", b"one");
        read_until_cached(&bench, || drop(bench.get("a").unwrap()));
        end(&bench);
        assert!(!is_cached(&bench, "a"));
        denial(bench.get("a"));
        denial(bench.head("a"));
    }
}

#[test]
fn a_read_beside_a_write_that_is_not_committed_caches_nothing() {
    let bench = Arc::new(Bench::new());
    bench.put("a", b"one");
    let beside = Arc::clone(&bench);
    let written = bench.service.store.write(move |tx| {
        let container = tx.container::<ContainerState>("c")?.unwrap().id;
        let row = tx.state::<BlobState>(container, "a", StateKey::Current)?.unwrap();
        assert_eq!(beside.get("a").unwrap(), b"one");
        tx.remove(row.id)?;
        // The commit may happen between this read and the next.
        assert_eq!(beside.get("a").unwrap(), b"one");
        assert!(!is_cached(&beside, "a"));
        Ok::<_, DbError>(())
    });
    written.unwrap();
    assert_eq!(denial(bench.get("a")), BlobDenial::BlobNotFound);
}

#[test]
fn a_change_that_is_undone_leaves_the_blob_as_it_was() {
    let bench = Bench::new();
    bench.put("a", b"one");
    bench.get("a").unwrap();
    let undone = bench.service.store.write(|_| Err::<(), _>(DbError::Closed));
    assert_eq!(undone, Err(DbError::Closed));
    read_until_cached(&bench, || assert_eq!(bench.get("a").unwrap(), b"one"));
}

/// Writers answer with ever higher `ETag`s; each reader sees at least what was answered before it
/// asked, and never goes back.
#[test]
fn readers_beside_writers_see_what_was_answered_and_never_an_older_state() {
    const WRITES: u32 = 150;
    let bench = Bench::new();
    bench.put("a", b"0");
    let (answered, done) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let (bench, answered) = (&bench, &answered);
                scope.spawn(move || {
                    for count in 0..WRITES {
                        let written = bench.put("a", format!("{writer} {count}").as_bytes());
                        answered.fetch_max(written.etag.number(), Ordering::SeqCst);
                        let own = bench.head("a").unwrap().state.etag;
                        assert!(own >= written.etag, "a write is not seen by its writer");
                    }
                })
            })
            .collect();
        for _ in 0..3 {
            let (bench, answered, done) = (&bench, &answered, &done);
            scope.spawn(move || {
                let mut last = 0;
                while !done.load(Ordering::SeqCst) {
                    let before = answered.load(Ordering::SeqCst);
                    let (cx, asked) = (bench.cx(), AccessConditions::default());
                    let opened = within(bench.service.open_blob(&cx, &at("a"), asked, None));
                    let found = opened.unwrap().blob.state.etag.number();
                    assert!(found >= before, "an answer was given before this read");
                    assert!(found >= last, "a later read finds an older state");
                    last = found;
                }
            });
        }
        let ended: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::SeqCst);
        assert!(ended.iter().all(Result::is_ok));
    });
}
