//! Entity group transactions: all or nothing, with the index of what failed.

use super::*;

fn op(change: rules::EntityChange, row: &str, number: i32) -> (TableName, Write) {
    let properties = match change {
        rules::EntityChange::Delete(_) => Properties::default(),
        _ => int(number),
    };
    (name("tab"), Write { change, key: EntityKey::new("p", row), properties })
}

fn transact(fixture: &Fixture, writes: Vec<(TableName, Write)>) -> TableResult<Vec<WrittenEntity>> {
    fixture.wait(fixture.service().transact(&fixture.context(), writes))
}

#[test]
fn all_kinds_of_writes_stand_together_t62() {
    let fixture = Fixture::with_table("tab");
    for row in ["b", "c", "d"] {
        fixture.insert("tab", ("p", row), 0).unwrap();
    }
    let written = transact(
        &fixture,
        vec![
            op(rules::EntityChange::Insert, "a", 1),
            op(with(How::Replace, IfMatch::Any), "b", 1),
            op(with(How::Merge, IfMatch::Any), "c", 1),
            op(rules::EntityChange::Delete(IfMatch::Any), "d", 1),
            op(with(How::Replace, IfMatch::Absent), "e", 1),
            op(with(How::Merge, IfMatch::Absent), "f", 1),
        ],
    )
    .unwrap();
    let rows: Vec<_> = written.iter().map(|written| &*written.key.row).collect();
    assert_eq!(rows, ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(written.iter().filter(|written| written.etag().is_some()).count(), 5);
    assert_eq!(fixture.found("tab", "i eq 1"), ["p/a", "p/b", "p/c", "p/e", "p/f"]);
    let changes = fixture.service().changes(|change| change.by.operation.contains("transaction"));
    assert_eq!(changes.len(), 6);
    assert_eq!(changes[0].by.operation, "Insert Or Merge Entity in a transaction");
}

#[test]
fn readers_see_all_of_a_transaction_or_nothing_t72() {
    let fixture = Fixture::with_table("tab");
    let round = |number: i32| -> Vec<_> {
        (0..100)
            .map(|n| op(with(How::Replace, IfMatch::Absent), &format!("{n:03}"), number))
            .collect()
    };
    transact(&fixture, round(0)).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..40 {
                transact(&fixture, round(number)).unwrap();
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let mut looks = 0;
        while !done.load(std::sync::atomic::Ordering::SeqCst) || looks < 5 {
            let mut page = Numbers(Vec::new());
            (page, _) = fixture.service().query(&EntityQuery::all(name("tab")), page).unwrap();
            assert_eq!(page.0.len(), 100);
            assert!(page.0.windows(2).all(|pair| pair[0] == pair[1]), "{:?}", page.0);
            looks += 1;
        }
    });
}

struct Numbers(Vec<i32>);

impl EntitySink for Numbers {
    fn add(&mut self, entity: &EntityRef<'_>) -> ControlFlow<()> {
        if let Some(rules::ValueRef::Int32(number)) = entity.field("i") {
            self.0.push(number);
        }
        ControlFlow::Continue(())
    }
}
