//! Containers: names, deletion with and without keeping, pages.

use super::{Home, bytes, check_settled, put, row};
use crate::blob::store::{BlobStore, Retained};
use crate::rules::Timestamp;

const KEPT: Retained = Retained { deleted: Timestamp(5), until: Timestamp(50) };

fn pages(store: &BlobStore, prefix: &str, limit: usize, deleted: bool) -> Vec<String> {
    let mut names = Vec::new();
    let mut from: Option<String> = None;
    loop {
        let (page, next) = store
            .read(|tx| tx.list_containers::<String>(prefix, from.as_deref(), limit, deleted))
            .unwrap();
        assert!(page.len() <= limit);
        assert!(next.is_none() || page.len() == limit);
        for row in page {
            let version = row.retained.map_or(String::new(), |(version, _)| format!("@{version}"));
            names.push(format!("{}{version}", row.name));
        }
        match next {
            Some(next) => from = Some(next),
            None => return names,
        }
    }
}

#[test]
fn a_deleted_container_is_gone_at_once_and_its_content_later() {
    let home = Home::new();
    let (store, container) = home.with_container();
    for count in 0..250 {
        put(&store, container, &format!("blob {count}"), &bytes(count, 20_000));
    }
    super::put_block(&store, container, "half", b"id", &bytes(1, 2 << 20));
    store.write(move |tx| tx.delete_container(container, None)).unwrap();
    assert!(store.read(|tx| tx.container::<String>("c")).unwrap().is_none());
    let again = store.write(|tx| tx.add_container("c", &"")).unwrap().unwrap();
    assert_ne!(again, container);
    assert!(row(&store, again, "blob 1").is_none());
    put(&store, again, "blob 1", b"new");
    check_settled(&store, &home);
    assert!(row(&store, container, "blob 1").is_none());
    assert!(row(&store, again, "blob 1").is_some());
}

#[test]
fn a_deleted_container_can_be_kept_and_restored() {
    let home = Home::new();
    let (store, container) = home.with_container();
    put(&store, container, "blob", b"bytes");
    store.write(move |tx| tx.delete_container(container, Some(("v1", KEPT)))).unwrap();
    assert!(store.read(|tx| tx.container::<String>("c")).unwrap().is_none());
    let kept = store.read(|tx| tx.deleted_container::<String>("c", "v1")).unwrap().unwrap();
    assert_eq!(kept.retained, Some(("v1".to_owned(), KEPT)));
    assert_eq!(kept.id, container);

    let other = store.write(|tx| tx.add_container("c", &"")).unwrap().unwrap();
    assert!(!store.write(move |tx| tx.restore_container(container, "c")).unwrap());
    assert!(store.write(move |tx| tx.restore_container(container, "d")).unwrap());
    let found = store.read(|tx| tx.container::<String>("d")).unwrap().unwrap();
    assert_eq!((found.id, found.retained), (container, None));
    assert!(row(&store, container, "blob").is_some());
    assert!(row(&store, other, "blob").is_none());
}

#[test]
fn listings_are_in_order_in_pages_and_by_prefix() {
    let home = Home::new();
    let store = home.open();
    for name in ["b2", "a", "$root", "b1", "b", "c"] {
        store.write(move |tx| tx.add_container(name, &"")).unwrap();
    }
    store
        .write(|tx| {
            for version in ["v2", "v1"] {
                let id = tx.container::<String>("b1")?.unwrap().id;
                tx.delete_container(id, Some((version, KEPT)))?;
                tx.add_container("b1", &"")?;
            }
            Ok::<_, crate::db::DbError>(())
        })
        .unwrap();
    for limit in [1, 2, 3, 100] {
        assert_eq!(pages(&store, "", limit, false), ["$root", "a", "b", "b1", "b2", "c"]);
        assert_eq!(pages(&store, "b", limit, true), ["b", "b1", "b1@v1", "b1@v2", "b2"]);
        assert_eq!(pages(&store, "b1", limit, false), ["b1"]);
        assert!(pages(&store, "x", limit, true).is_empty());
    }
}
