//! Rows of tables and entities on a real database file.

use tempfile::TempDir;

use super::*;
use crate::db::{Store as _, SyncMode};
use crate::rules::Writer;
use crate::rules::policy::SentPolicy;
use crate::table::rules::range::Edge;
use crate::table::rules::{
    EntityFields as _, EntityKey, Position, Properties, Range, TableName, Ticks, Value,
};

fn store() -> (TempDir, TableStore) {
    let dir = TempDir::new().unwrap();
    let store = TableStore::open(&dir.path().join("table.db"), SyncMode::Normal).unwrap();
    (dir, store)
}

fn name(text: &str) -> TableName {
    TableName::parse(text).unwrap()
}

fn write<T: Send + 'static>(
    store: &TableStore,
    write: impl FnMut(&TableTx<'_>) -> Result<T, DbError> + Send + 'static,
) -> T {
    store.delete(write).unwrap()
}

fn read<T>(store: &TableStore, read: impl FnOnce(&TableTx<'_>) -> Result<T, DbError>) -> T {
    store.read(read).unwrap()
}

fn entity(partition: &str, row: &str) -> StoredEntity {
    let properties = Properties::new(vec![("i".into(), Value::Int32(1))]);
    StoredEntity::new(EntityKey::new(partition, row), Ticks(5), &properties)
}

fn made(store: &TableStore, table: &str) -> TableId {
    let table = name(table);
    write(store, move |tx| {
        tx.create_table(&table)?;
        Ok(tx.table_id(&table)?.unwrap())
    })
}

fn scanned(store: &TableStore, table: TableId, range: &Range) -> Vec<String> {
    let mut found = Vec::new();
    read(store, |tx| {
        tx.scan(table, range, |entity| {
            found.push(format!("{}{}", entity.partition(), entity.row()));
            true
        })
    });
    found
}

#[test]
fn a_scan_reads_what_its_range_holds() {
    let (_dir, store) = store();
    let (table, other) = (made(&store, "abc"), made(&store, "abd"));
    write(&store, move |tx| {
        for (partition, row) in
            [("", ""), ("a", ""), ("a", "1"), ("a", "2"), ("ab", "0"), ("b", "")]
        {
            assert!(tx.insert_entity(table, &entity(partition, row), &Writer::default())?);
        }
        tx.insert_entity(other, &entity("zz", "other"), &Writer::default())
    });
    let at = |partition: &str, edge| Position::In(partition.into(), edge);
    let all = ["", "a", "a1", "a2", "ab0", "b"];
    assert_eq!(scanned(&store, table, &Range::ALL), all);
    for (start, end, expected) in [
        (at("a", Edge::START), at("a", Edge::End), &all[1..4]),
        (at("a", Edge::before("1")), at("a", Edge::after("1")), &all[2..3]),
        (at("a", Edge::after("1")), Position::End, &all[3..]),
        (at("a", Edge::End), at("b", Edge::START), &all[4..5]),
        (at("", Edge::after("")), at("a", Edge::before("2")), &all[1..3]),
        (Position::End, Position::End, &all[..0]),
    ] {
        assert_eq!(scanned(&store, table, &Range { start, end }), expected);
    }
}

#[test]
fn every_scan_is_a_seek_along_the_key() {
    let (_dir, store) = store();
    for place in ["(pk, rk) >= ('a', 'b')", "(pk, rk) > ('a', 'b')", "pk > 'a'"] {
        let sql = format!(
            "EXPLAIN QUERY PLAN SELECT pk, rk, ticks, body FROM entities \
             WHERE table_id = 1 AND {place} ORDER BY pk, rk"
        );
        let plan: String =
            read(&store, |tx| Ok(tx.0.prepare(&sql)?.query_row([], |row| row.get(3))?));
        assert!(plan.starts_with("SEARCH entities USING PRIMARY KEY (table_id=? AND "), "{plan}");
        assert!(plan.contains('>'), "{plan}");
    }
}

#[test]
fn policies_and_the_ceiling_are_kept() {
    let (dir, store) = store();
    made(&store, "abc");
    let policy = SentPolicy {
        id: "one".into(),
        start: Some("2020-01-01T00:00:00Z".into()),
        expiry: None,
        permission: Some(String::new()),
    };
    let kept = vec![policy.clone(), SentPolicy { id: "two".into(), ..SentPolicy::default() }];
    let given = kept.clone();
    assert!(write(&store, move |tx| tx.set_policies(&name("ABC"), &given)));
    assert!(!write(&store, |tx| tx.set_policies(&name("missing"), &[])));
    write(&store, |tx| tx.set_tick_ceiling(Ticks(7)));
    drop(store);
    let store = TableStore::open(&dir.path().join("table.db"), SyncMode::Normal).unwrap();
    assert_eq!(read(&store, |tx| tx.policies(&name("abc"))), Some(kept));
    assert_eq!(read(&store, |tx| tx.policies(&name("missing"))), None);
    assert_eq!(store.ceiling(), Ok(Ticks(7)));
}

#[test]
fn the_last_writer_is_in_the_row() {
    let (_dir, store) = store();
    let table = made(&store, "abc");
    let by = Writer {
        operation: "Merge Entity".into(),
        client_request: Some("id".into()),
        when: Ticks(5).timestamp(),
        ..Writer::default()
    };
    let given = by.clone();
    assert!(write(&store, move |tx| tx.insert_entity(table, &entity("p", "r"), &given)));
    let key = EntityKey::new("p", "r");
    assert_eq!(read(&store, |tx| tx.last_writer(table, &key)), Some(by));
    assert_eq!(read(&store, |tx| tx.written(table, &key)), Some(Ticks(5)));
    assert_eq!(read(&store, |tx| tx.entity(table, &key)), Some(entity("p", "r")));
}
