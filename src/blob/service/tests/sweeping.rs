//! Tests of the sweeper: what it removes, and what it leaves.

use super::super::sweeper::{UNCOMMITTED_KEPT, sweep_once};
use super::*;

const DAY: u64 = 24 * 3_600;

fn keep_days(bench: &Bench, days: u16) {
    let retention = Retention { days: Some(days), permanent_delete: false };
    bench.service.set_retention(retention);
}

/// Sweeps until there is nothing to do; how long the sweeper would sleep then.
fn sweep(bench: &Bench) -> Duration {
    let clock: Arc<dyn TimeSource> = Arc::new(ManualClock::new(bench.now));
    for _ in 0..1_000 {
        let sleep = sweep_once(&bench.service.store, &clock).unwrap();
        if !sleep.is_zero() {
            return sleep;
        }
    }
    panic!("the sweeper does not come to an end");
}

/// Rows of a name, also those that no request can see.
fn rows(bench: &Bench, name: &str) -> usize {
    let states = |tx: &crate::blob::store::BlobTx<'_>| {
        let container = tx.container::<serde_json::Value>("c")?.unwrap().id;
        Ok::<_, DbError>(tx.states::<serde_json::Value>(container, name)?.len())
    };
    bench.service.store.read(states).unwrap()
}

#[test]
fn deleted_states_go_when_their_retention_ends_and_not_before() {
    let mut bench = Bench::new();
    keep_days(&bench, 2);
    for n in 0..200 {
        let name = format!("many{n}");
        bench.put(&name, b"x");
        bench.delete(&name).unwrap();
    }
    bench.put("kept", b"one");
    bench.put("kept", b"two");
    assert_eq!((rows(&bench, "kept"), rows(&bench, "many7")), (2, 1));
    bench.pass(2 * DAY - 1);
    assert_eq!(sweep(&bench), Duration::from_secs(1), "it sleeps until the first one ends");
    assert_eq!((rows(&bench, "kept"), rows(&bench, "many7")), (2, 1));
    bench.pass(1);
    sweep(&bench);
    assert_eq!((rows(&bench, "kept"), rows(&bench, "many7")), (1, 0));
    assert_eq!(bench.get("kept").unwrap(), b"two");
}

#[test]
fn a_deleted_container_goes_with_its_blobs() {
    let mut bench = Bench::new();
    keep_days(&bench, 1);
    bench.put("b", &vec![1; 100_000]);
    within(bench.service.delete_container(&bench.cx(), "c", AccessConditions::default())).unwrap();
    bench.pass(DAY);
    sweep(&bench);
    let all = bench.service.list_containers(&bench.cx(), "", None, 10, true).unwrap();
    assert_eq!(all.containers, []);
    bench.service.store.settle().unwrap();
    let files = std::fs::read_dir(bench.folder.path().join("blobs")).unwrap().count();
    assert_eq!(files, 0, "content of a container that is gone");
}

#[test]
fn blocks_that_nobody_commits_go_after_a_week() {
    let mut bench = Bench::new();
    put_block(&bench, "old", b"1", b"one", AccessConditions::default()).unwrap();
    bench.put("blob", b"stays");
    put_block(&bench, "blob", b"1", b"one", AccessConditions::default()).unwrap();
    bench.now = bench.now.after(UNCOMMITTED_KEPT);
    put_block(&bench, "new", b"1", b"one", AccessConditions::default()).unwrap();
    sweep(&bench);
    assert_eq!(rows(&bench, "old"), 1, "a week has not passed");
    bench.pass(1);
    sweep(&bench);
    assert_eq!((rows(&bench, "old"), rows(&bench, "new")), (0, 1));
    assert_eq!(bench.get("blob").unwrap(), b"stays");
    let listed = bench.service.block_lists(&bench.cx(), &at("blob"), &AccessConditions::default());
    assert_eq!(listed.unwrap().uncommitted, []);
}

#[test]
fn the_thread_sweeps_by_the_clock_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new();
    {
        let service = open(folder.path(), BlobOptions::default(), START);
        within(service.create_container(&bench.cx(), "gone", NewContainer::default())).unwrap();
        let retention = Retention { days: Some(1), permanent_delete: false };
        service.set_retention(retention);
        within(service.delete_container(&bench.cx(), "gone", AccessConditions::default())).unwrap();
    }
    let later = START.after(Duration::from_secs(DAY));
    let service = open(folder.path(), BlobOptions::default(), later);
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    let left = || service.store.read::<_, BlobError>(|tx| Ok(tx.next_retention_end()?)).unwrap();
    while left().is_some() {
        assert!(std::time::Instant::now() < deadline, "the thread did not sweep");
        std::thread::yield_now();
    }
}

#[test]
fn a_container_is_filled_as_a_whole_or_not_at_all() {
    let bench = Bench::new();
    let cx = bench.cx();
    let fill = |name: &str| {
        let address = within(bench.service.begin_filling(&cx, name)).unwrap()?;
        let body = bench.body_whole(b"seed");
        let (at, new) = (address("x".to_owned()), NewBlob::default());
        let put = bench.service.put_blob(
            &cx,
            &at,
            AccessConditions::default(),
            BlobType::Block,
            new,
            body,
        );
        within(put).unwrap();
        Some(())
    };
    let names = || {
        let page = bench.service.list_containers(&cx, "", None, 10, true).unwrap();
        page.containers.into_iter().map(|one| one.name).collect::<Vec<_>>()
    };
    fill("new").unwrap();
    within(bench.service.cancel_filling(&cx)).unwrap();
    assert_eq!(names(), ["c"]);
    fill("new").unwrap();
    assert!(within(bench.service.end_filling(&cx, "new")).unwrap());
    assert_eq!(names(), ["c", "new"]);
    assert_eq!(bench.get_at(&BlobAt::new("new", "x")).unwrap(), b"seed");
    assert_eq!(fill("new"), None, "it has blobs");
    let metadata = vec![("k".to_owned(), "v".to_owned())];
    let set = bench.service.set_container_metadata(
        &cx,
        "c",
        AccessConditions::default(),
        metadata.clone(),
    );
    within(set).unwrap();
    fill("c").unwrap();
    assert!(within(bench.service.end_filling(&cx, "c")).unwrap());
    let read = bench.service.container(
        &cx,
        BlobOperation::ContainerGetProperties,
        "c",
        &AccessConditions::default(),
    );
    assert_eq!(read.unwrap().metadata, metadata, "an empty container keeps its properties");
    fill("cut").unwrap();
    let bench = bench.restarted(BlobOptions::default());
    let page = bench.service.list_containers(&cx, "", None, 10, true).unwrap();
    assert_eq!(page.containers.len(), 2, "what a killed start left is gone");
}
