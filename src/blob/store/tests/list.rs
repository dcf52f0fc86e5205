//! Listing against a slow and obvious model.

use proptest::prelude::*;

use super::{CURRENT, Home};
use crate::blob::store::{
    BlobStore, ContainerId, Content, ListBlobs, ListPosition, ListedBlob, Retained, StateKey,
};
use crate::db::DbError;
use crate::rules::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stored {
    name: Vec<u8>,
    key: StateKey,
    kept: bool,
}

fn fill(store: &BlobStore, container: ContainerId, states: Vec<Stored>) {
    store
        .write(move |tx| {
            for stored in states {
                let name = String::from_utf8(stored.name).unwrap();
                let id = tx.put(container, &name, stored.key, &"", Content::default())?;
                let kept = Retained { deleted: Timestamp(1), until: Timestamp(2) };
                if stored.kept {
                    tx.rekey(id, stored.key, &"", Some(kept))?;
                }
            }
            Ok::<_, DbError>(())
        })
        .unwrap();
}

/// All pages of a listing, as texts.
fn list(store: &BlobStore, container: ContainerId, ask: &ListBlobs) -> Vec<String> {
    let mut ask = ask.clone();
    let mut entries = Vec::new();
    loop {
        let page = store.read(|tx| tx.list_blobs::<String>(container, &ask)).unwrap();
        assert!(page.items.len() <= ask.limit);
        assert!(page.next.is_none() || page.items.len() == ask.limit);
        entries.extend(page.items.into_iter().map(|item| match item {
            ListedBlob::Prefix(prefix) => format!("{prefix}*"),
            ListedBlob::Blob(row) => format!("{} {:?}", row.name, row.key),
            ListedBlob::DeletedWithVersions(row) => format!("{} {:?} stands", row.name, row.key),
        }));
        match page.next {
            Some(next) => ask.from = Some(next),
            None => return entries,
        }
    }
}

/// Whether the state is the newest version of a blob that is deleted.
fn stands(states: &[Stored], stored: &Stored) -> bool {
    let later = |other: &Stored| other.name == stored.name && !other.kept && other.key > stored.key;
    let newer =
        |other: &Stored| later(other) && matches!(other.key, StateKey::Version(_) | CURRENT);
    matches!(stored.key, StateKey::Version(_)) && !stored.kept && !states.iter().any(newer)
}

fn expected(states: &[Stored], ask: &ListBlobs) -> Vec<String> {
    let stands = |stored: &Stored| ask.deleted_with_versions && stands(states, stored);
    let shown = |stored: &&Stored| {
        let kind = match stored.key {
            StateKey::Snapshot(_) => ask.snapshots,
            StateKey::Version(_) => ask.versions || stands(stored),
            StateKey::Deleted(_) => ask.deleted,
            StateKey::Current => true,
            StateKey::Uncommitted => ask.uncommitted,
        };
        let before = ask.before.as_ref().is_none_or(|end| *stored.name < *end.as_bytes());
        let kept = ask.deleted || !stored.kept;
        kind && kept && before && stored.name.starts_with(ask.prefix.as_bytes())
    };
    let mut entries: Vec<String> = Vec::new();
    for stored in states.iter().filter(shown) {
        let name = std::str::from_utf8(&stored.name).unwrap();
        let rest = &name[ask.prefix.len()..];
        let found = ask.delimiter.as_ref().and_then(|it| Some(rest.find(it)? + it.len()));
        let entry = match found {
            Some(end) => format!("{}{}*", ask.prefix, &rest[..end]),
            None if stands(stored) => format!("{name} {:?} stands", stored.key),
            None => format!("{name} {:?}", stored.key),
        };
        if entries.last() != Some(&entry) {
            entries.push(entry);
        }
    }
    entries
}

fn any_name() -> impl Strategy<Value = Vec<u8>> {
    let letter =
        prop::sample::select(vec!["a", "b", "/", "//", "B", "é", "\u{e000}", "\u{10000}", "~"]);
    prop::collection::vec(letter, 1..6).prop_map(|letters| letters.concat().into_bytes())
}

fn any_state() -> impl Strategy<Value = Stored> {
    let key = prop_oneof![
        3 => Just(CURRENT),
        1 => Just(StateKey::Uncommitted),
        2 => (0_i64..4).prop_map(|time| StateKey::Snapshot(Timestamp(time))),
        2 => (0_i64..4).prop_map(|time| StateKey::Version(Timestamp(time))),
        1 => (0_i64..4).prop_map(|time| StateKey::Deleted(Timestamp(time))),
    ];
    (any_name(), key, any::<bool>()).prop_map(|(name, key, kept)| {
        let kept = match key {
            StateKey::Current | StateKey::Uncommitted => false,
            StateKey::Deleted(_) => true,
            _ => kept,
        };
        Stored { name, key, kept }
    })
}

fn any_ask() -> impl Strategy<Value = ListBlobs> {
    let prefix = prop::sample::select(vec!["", "a", "a/", "b", "é", "/", "zz", "\u{10000}"]);
    let delimiter = prop::sample::select(vec![None, Some("/"), Some("//"), Some("b"), Some("é")]);
    let before = prop::sample::select(vec![None, Some("a/"), Some("a/b"), Some("b"), Some("zz")]);
    (prefix, delimiter, before, 1_usize..8, any::<[bool; 5]>()).prop_map(
        |(prefix, delimiter, before, limit, on)| ListBlobs {
            prefix: prefix.to_owned(),
            delimiter: delimiter.map(str::to_owned),
            from: None,
            before: before.map(str::to_owned),
            limit,
            snapshots: on[0],
            versions: on[1],
            deleted: on[2],
            uncommitted: on[3],
            deleted_with_versions: on[4],
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn pages_together_are_what_the_model_says(
        states in prop::collection::vec(any_state(), 0..60),
        asks in prop::collection::vec(any_ask(), 1..12),
    ) {
        let home = Home::new();
        let (store, container) = home.with_container();
        let other = store.write(|tx| tx.add_container("d", &"")).unwrap().unwrap();
        let mut states = states;
        states.sort();
        states.dedup_by(|one, two| one.name == two.name && one.key == two.key);
        fill(&store, container, states.clone());
        fill(&store, other, vec![Stored { name: b"a/x".to_vec(), key: CURRENT, kept: false }]);
        for ask in asks {
            prop_assert_eq!(list(&store, container, &ask), expected(&states, &ask), "{:?}", ask);
        }
    }
}

#[test]
fn changes_between_pages_neither_repeat_nor_lose_a_stable_blob() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let state = |name: &str| Stored { name: name.into(), key: CURRENT, kept: false };
    fill(&store, c, ["a", "c", "d/1", "d/2", "e"].map(state).to_vec());
    let ask = ListBlobs { limit: 2, delimiter: Some("/".into()), ..ListBlobs::default() };
    let first = store.read(|tx| tx.list_blobs::<String>(c, &ask)).unwrap();
    assert_eq!(first.next, Some(ListPosition { name: "d/".into(), key: None }));
    // The entry of the marker goes, others come before and behind it.
    store
        .write(move |tx| {
            for name in ["d/1", "d/2"] {
                let row = tx.state::<String>(c, name, CURRENT)?.unwrap();
                tx.remove(row.id)?;
            }
            Ok::<_, DbError>(())
        })
        .unwrap();
    fill(&store, c, ["b", "d0"].map(state).to_vec());
    let rest = list(&store, c, &ListBlobs { from: first.next, ..ask });
    assert_eq!(rest, ["d0 Current", "e Current"]);
}

#[test]
fn the_plan_of_a_listing_is_a_seek_without_a_sort() {
    let home = Home::new();
    let (store, _) = home.with_container();
    let plan: Vec<String> = store
        .read(|tx| {
            let sql = format!("EXPLAIN QUERY PLAN {}", crate::blob::store::list::PAGE);
            let mut select = tx.conn.prepare(&sql)?;
            let plan = select.query_map((1, b"a", 0, 0, b"b", 0, 0, 0, 0, 0), |row| row.get(3))?;
            Ok::<_, DbError>(plan.collect::<Result<_, _>>()?)
        })
        .unwrap();
    let plan = plan.join("; ");
    assert!(plan.contains("SEARCH") && plan.contains("blob_key"), "{plan}");
    assert!(plan.contains("name>?") || plan.contains("(name,rank,time)>(?,?,?)"), "{plan}");
    assert!(!plan.contains("TEMP B-TREE"), "{plan}");
}
