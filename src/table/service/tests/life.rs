//! Tables: deleted, swept; restarts.

use super::*;
use crate::db::{Purpose, Store};

#[test]
fn a_deleted_table_is_gone_at_once_and_swept_later_t44() {
    let mut fixture = Fixture::with_table("tab");
    let writes = |from: usize| -> Vec<_> {
        let write = |n| Write {
            change: rules::EntityChange::Insert,
            key: EntityKey::new("p", format!("{n:05}")),
            properties: int(1),
        };
        (from..from + 100).map(|n| (name("tab"), write(n))).collect()
    };
    let context = fixture.context();
    for batch in 0..20 {
        let writes = writes(batch * 100);
        fixture.wait(fixture.service().transact(&context, writes)).unwrap();
    }
    fixture.wait(fixture.service().delete_table(&context, &name("tab"))).unwrap();
    fixture.wait(fixture.service().create_table(&context, &name("tab"))).unwrap();
    assert_eq!(fixture.found("tab", "true"), [""; 0]);
    fixture.restart();
    let deadline = std::time::Instant::now() + Duration::from_mins(1);
    while fixture.service().store.delete(|tx| tx.sweep_deleted(0)).unwrap() {
        assert!(std::time::Instant::now() < deadline, "the sweeper does not end");
        std::thread::yield_now();
    }
}

/// Keeps the writer busy until the returned sender is dropped.
fn hold_writer(fixture: &Fixture) -> std::sync::mpsc::Sender<()> {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (entered, inside) = std::sync::mpsc::channel();
    fixture.service().store.submit(
        Purpose::Store,
        move |_| {
            entered.send(()).unwrap();
            // Ends when the sender is dropped.
            let _ = released.recv();
            Ok::<_, DbError>(())
        },
        drop,
    );
    inside.recv().unwrap();
    release
}

/// Has a request wait for the writer, and gives it up.
fn give_up<T>(fixture: &Fixture, request: impl Future<Output = T>) {
    fixture.wait(async {
        let request = std::pin::pin!(request);
        let polled = poll_once(request).await;
        assert!(polled.is_none(), "the writer is held");
    });
}

async fn poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match future.as_mut().poll(context) {
            std::task::Poll::Ready(done) => Some(done),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

#[test]
fn a_table_is_swept_although_its_client_went_away() {
    let fixture = Fixture::with_table("tab");
    fixture.insert("tab", ("p", "r"), 1).unwrap();
    let release = hold_writer(&fixture);
    let (context, table) = (fixture.context(), name("tab"));
    give_up(&fixture, fixture.service().delete_table(&context, &table));
    drop(release);
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    let gone = |tx: &TableTx<'_>| Ok::<_, DbError>(tx.table(&name("tab"))?.is_none());
    while !fixture.service().store.read(gone).unwrap()
        || fixture.service().store.delete(|tx| tx.sweep_deleted(0)).unwrap()
    {
        assert!(std::time::Instant::now() < deadline, "the sweeper was not woken");
        std::thread::yield_now();
    }
}

#[test]
fn no_timestamp_comes_again_after_a_close_with_writes_under_way() {
    let mut fixture = Fixture::with_table("tab");
    let release = hold_writer(&fixture);
    fixture.advance(Duration::from_secs(3));
    let (context, table) = (fixture.context(), name("tab"));
    let change = rules::EntityChange::Insert;
    let write = Write { change, key: EntityKey::new("p", "late"), properties: int(1) };
    give_up(&fixture, fixture.service().write(&context, &table, write));
    let releasing = std::thread::spawn(move || drop(release));
    fixture.restart();
    releasing.join().unwrap();
    let late = fixture.get("tab", ("p", "late")).unwrap().timestamp();
    // The clock stands still, or was set back: the counter alone keeps timestamps apart.
    fixture.now = START;
    let next = fixture.insert("tab", ("p", "next"), 2).unwrap().ticks.unwrap();
    assert!(next > late, "{next:?} {late:?}");
}

#[test]
fn accounts_share_nothing() {
    let (one, two) = (Fixture::with_table("tab"), Fixture::new());
    one.insert("tab", ("p", "r"), 1).unwrap();
    assert_eq!(denied(two.get("tab", ("p", "r"))), TableDenial::TableNotFound);
}
