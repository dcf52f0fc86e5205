//! Blocks and block lists: what a list finds, what a commit replaces, long lists.

use super::{CURRENT, Home, bytes, check_settled, content_of, put, put_block, row};
use crate::blob::rules::blocks::BlockSearch::{Latest, Uncommitted};
use crate::blob::rules::blocks::{BlockId, BlockSearch, ListedBlock};
use crate::blob::store::{BlobStore, ContainerId, Content, StateId, StateKey};
use crate::db::DbError;
use crate::rules::Timestamp;

type Named<'a> = (&'a [u8], BlockSearch);

/// Puts the blob of a list. `None`: an entry names no block.
fn put_list(
    store: &BlobStore,
    container: ContainerId,
    name: &str,
    list: &[Named<'_>],
) -> Option<StateId> {
    let entry = |(id, search): &Named<'_>| {
        let id = BlockId::from_bytes(id.to_vec());
        ListedBlock { search: *search, id }
    };
    let (list, name): (Vec<_>, _) = (list.iter().map(entry).collect(), name.to_owned());
    let current = row(store, container, &name).map(|row| row.id);
    store
        .write(move |tx| match tx.resolve_blocks(container, &name, current, &list)? {
            Some(found) => tx.commit_blocks(container, &name, &"", &found).map(Some),
            None => Ok::<_, DbError>(None),
        })
        .unwrap()
}

fn ids(blocks: Vec<(Vec<u8>, u64)>) -> Vec<(String, u64)> {
    blocks.into_iter().map(|(id, length)| (String::from_utf8(id).unwrap(), length)).collect()
}

fn committed(store: &BlobStore, id: StateId) -> Vec<(String, u64)> {
    ids(store.read(|tx| tx.committed_blocks(id)).unwrap())
}

fn uncommitted(store: &BlobStore, container: ContainerId, name: &str) -> Vec<(String, u64)> {
    ids(store.read(|tx| tx.uncommitted_blocks(container, name)).unwrap())
}

#[test]
fn a_list_makes_the_blob_of_its_blocks_in_its_order() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let (a, b) = (bytes(1, 100_000), bytes(2, 3 << 20));
    put_block(&store, c, "blob", b"a", &a);
    put_block(&store, c, "blob", b"b", &b);
    put_block(&store, c, "blob", b"c", b"not named");
    assert_eq!(
        uncommitted(&store, c, "blob"),
        [("a".into(), 100_000), ("b".into(), 3 << 20), ("c".into(), 9)]
    );
    assert_eq!(store.read(|tx| tx.block_summary(c, "blob")).unwrap(), (3, Some(1)));
    assert!(row(&store, c, "blob").is_none());
    let files = home.files();
    let list = [(&b"b"[..], Latest), (b"a", Uncommitted), (b"b", Latest)];
    let id = put_list(&store, c, "blob", &list).unwrap();
    assert!(content_of(&store, id) == [&b[..], &a, &b].concat());
    assert_eq!(home.files(), files, "no bytes are copied");
    assert_eq!(row(&store, c, "blob").unwrap().length, (6 << 20) + 100_000);
    assert_eq!(
        committed(&store, id),
        [("b".into(), 3 << 20), ("a".into(), 100_000), ("b".into(), 3 << 20)]
    );
    assert!(uncommitted(&store, c, "blob").is_empty());
    assert_eq!(store.read(|tx| tx.block_summary(c, "blob")).unwrap(), (0, None));
    check_settled(&store, &home);
}

#[test]
fn putting_a_blob_leaves_no_committed_blocks_and_keeps_uncommitted_ones() {
    let home = Home::new();
    let (store, c) = home.with_container();
    put_block(&store, c, "blob", b"a", b"block");
    let id = put_list(&store, c, "blob", &[(b"a", Latest)]).unwrap();
    put_block(&store, c, "blob", b"b", b"later");
    assert_eq!(put(&store, c, "blob", &bytes(1, 50_000)), id);
    assert!(committed(&store, id).is_empty());
    assert_eq!(uncommitted(&store, c, "blob"), [("b".into(), 5)]);
    store.write(move |tx| tx.drop_blocks(c, "blob")).unwrap();
    assert!(uncommitted(&store, c, "blob").is_empty());
    check_settled(&store, &home);
}

#[test]
fn a_commit_ends_the_row_of_the_uncommitted_blob() {
    let home = Home::new();
    let (store, c) = home.with_container();
    put_block(&store, c, "blob", b"a", b"block");
    let key = StateKey::Uncommitted;
    store.write(move |tx| tx.put(c, "blob", key, &"leased", Content::default())).unwrap();
    put_list(&store, c, "blob", &[(b"a", Latest)]).unwrap();
    assert!(store.read(|tx| tx.state::<String>(c, "blob", key)).unwrap().is_none());
    assert!(row(&store, c, "blob").is_some());
}

fn many(store: &BlobStore, container: ContainerId, count: usize) -> (Vec<Vec<u8>>, Vec<u8>) {
    let ids: Vec<_> = (0..count).map(|block| format!("{block:06}").into_bytes()).collect();
    let mut all = Vec::new();
    let mut contents = Vec::new();
    for (seed, id) in (0..).zip(&ids) {
        let sent = bytes(seed, 100);
        let place = crate::blob::store::BodyRole::Part;
        contents.push((id.clone(), super::body(store, place, &sent)));
        all.extend(sent);
    }
    store
        .write(move |tx| {
            for (id, content) in contents {
                tx.put_block(container, "blob", &id, content, Timestamp(1))?;
            }
            Ok::<_, DbError>(())
        })
        .unwrap();
    (ids, all)
}

#[test]
fn a_long_list_is_committed_and_replaced_again() {
    let home = Home::new();
    let (store, c) = home.with_container();
    put(&store, c, "blob", &bytes(1, 50_000));
    let (ids, all) = many(&store, c, 5000);
    let list: Vec<Named<'_>> = ids.iter().map(|id| (id.as_slice(), Latest)).collect();
    let id = put_list(&store, c, "blob", &list).unwrap();
    assert!(content_of(&store, id) == all);
    assert_eq!(committed(&store, id).len(), 5000);
    check_settled(&store, &home);
    // Replacing and removing such a blob is done in slices.
    put(&store, c, "blob", b"small");
    check_settled(&store, &home);
    let id = row(&store, c, "blob").unwrap().id;
    assert_eq!(content_of(&store, id), b"small");
}

#[test]
fn a_long_upload_that_is_dropped_goes_in_slices() {
    let home = Home::new();
    let (store, c) = home.with_container();
    many(&store, c, 3000);
    store.write(move |tx| tx.drop_blocks(c, "blob")).unwrap();
    assert_eq!(store.read(|tx| tx.block_summary(c, "blob")).unwrap(), (0, None));
    // New blocks of the same name have nothing to do with the old ones.
    put_block(&store, c, "blob", b"000001", b"new");
    check_settled(&store, &home);
    assert_eq!(uncommitted(&store, c, "blob"), [("000001".into(), 3)]);
    drop(store);
    // Nor are they gone after a restart.
    let store = home.open();
    check_settled(&store, &home);
    assert_eq!(uncommitted(&store, c, "blob"), [("000001".into(), 3)]);
}

#[test]
fn uploads_that_nobody_touched_are_found() {
    let home = Home::new();
    let (store, c) = home.with_container();
    let stale = |before| store.read(|tx| tx.stale_uploads(Timestamp(before), 10)).unwrap();
    put_block(&store, c, "blob", b"a", b"block");
    assert!(stale(1).is_empty());
    assert_eq!(stale(2), [(c, "blob".to_owned())]);
}

#[test]
fn copies_and_snapshots_keep_the_block_list() {
    let home = Home::new();
    let (store, c) = home.with_container();
    put_block(&store, c, "blob", b"a", b"one");
    put_block(&store, c, "blob", b"b", b"two");
    let id = put_list(&store, c, "blob", &[(b"b", Latest), (b"a", Latest)]).unwrap();
    let copy = store.write(move |tx| tx.put_shared(c, "copy", CURRENT, &"", id, None)).unwrap();
    store.write(move |tx| tx.remove(id)).unwrap();
    store.settle().unwrap();
    assert_eq!(committed(&store, copy), [("b".into(), 3), ("a".into(), 3)]);
    assert_eq!(content_of(&store, copy), b"twoone");
    check_settled(&store, &home);
}
