//! Tables: made, listed, deleted; settings; restarts.

use super::*;
use crate::db::Purpose;
use crate::rules::policy::{PolicyFault, SentPolicy};

fn tables(fixture: &Fixture, query: TableQuery) -> TablePage {
    fixture.service().list_tables(query).unwrap()
}

#[test]
fn a_name_is_taken_in_any_case_and_shown_as_created_t43() {
    let fixture = Fixture::with_table("MyTable");
    let again = fixture.wait(fixture.service().create_table(&fixture.context(), &name("mytable")));
    assert_eq!(denied(again), TableDenial::TableAlreadyExists);
    fixture.insert("MYTABLE", ("p", "r"), 1).unwrap();
    assert!(fixture.get("mytable", ("p", "r")).is_ok());
    assert_eq!(tables(&fixture, TableQuery::default()).names, ["MyTable"]);
    assert_eq!(fixture.service().table(&name("mytable")).unwrap(), "MyTable");
}

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
fn tables_are_listed_in_pages_with_a_filter_t46() {
    let fixture = Fixture::new();
    for table in ["bbb", "Aaa", "ccc", "Ddd", "eee"] {
        fixture.wait(fixture.service().create_table(&fixture.context(), &name(table))).unwrap();
    }
    let mut query = TableQuery { top: Top(2), ..TableQuery::default() };
    let mut found = Vec::new();
    loop {
        let page = tables(&fixture, query.clone());
        assert!(page.names.len() <= 2);
        found.extend(page.names);
        let Some(next) = page.next else { break };
        query.from = Some(next);
    }
    assert_eq!(found, ["Aaa", "bbb", "ccc", "Ddd", "eee"]);
    let filtered = |text: &str, top| {
        let filter = Some(Filter::parse(text).unwrap());
        tables(&fixture, TableQuery { filter, top: Top(top), from: None })
    };
    assert_eq!(filtered("TableName ge 'b' and TableName lt 'd'", 5).names, ["bbb", "ccc"]);
    assert_eq!(filtered("TableName eq 'ccc'", 1).next, None);
    assert_eq!(filtered("TableName ne 'ccc'", 0), TablePage::default());
    assert_eq!(filtered("other eq 'ccc'", 5), TablePage::default());
}

#[test]
fn policies_are_kept_t16_t80() {
    let mut fixture = Fixture::with_table("tab");
    let policy = |id: &str| SentPolicy { id: id.into(), ..SentPolicy::default() };
    let context = fixture.context();
    for kept in [vec![policy("a")], (0..5).map(|n| policy(&n.to_string())).collect(), vec![]] {
        let given = kept.clone();
        fixture.wait(fixture.service().set_policies(&context, &name("TAB"), given)).unwrap();
        assert_eq!(fixture.service().policies(&name("tab")).unwrap(), kept);
        let found = fixture.service().policy(&name("tab"), "a");
        assert_eq!(
            found.as_ref().map(SentPolicy::from),
            kept.into_iter().find(|policy| policy.id == "a")
        );
    }
    let six = (0..6).map(|n| policy(&n.to_string())).collect();
    let refused = fixture.wait(fixture.service().set_policies(&context, &name("tab"), six));
    assert!(matches!(denied(refused), TableDenial::Policy(PolicyFault::TooMany(6))));
    fixture.restart();
    assert_eq!(fixture.service().policies(&name("tab")).unwrap(), []);
}

#[test]
fn accounts_share_nothing() {
    let (one, two) = (Fixture::with_table("tab"), Fixture::new());
    one.insert("tab", ("p", "r"), 1).unwrap();
    assert_eq!(denied(two.get("tab", ("p", "r"))), TableDenial::TableNotFound);
}
