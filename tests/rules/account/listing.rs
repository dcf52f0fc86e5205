//! List Shares, page by page.

use latchfs::file::service::shares::{DeleteShareSnapshots, ListOptions, ShareInfo};
use latchfs::file::store::share::Metadata;

use super::*;

fn many(setup: &Setup, names: &[&str]) -> FileService {
    let engine = setup.open();
    for name in names {
        let metadata: Metadata = [("of", *name)].into_iter().collect();
        engine.create_share(name, NewShare { metadata, ..NewShare::default() }).unwrap();
    }
    engine
}

/// Name, then `@` for a snapshot or `-` for a deleted one.
fn label(info: &ShareInfo) -> String {
    let mark = match (&info.snapshot, &info.deleted) {
        (Some(_), _) => "@",
        (None, Some(_)) => "-",
        (None, None) => "",
    };
    format!("{}{mark}", info.name)
}

fn pages(engine: &FileService, options: &ListOptions<'_>) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut marker: Option<String> = None;
    loop {
        let options = ListOptions { marker: marker.as_deref(), ..*options };
        let page = engine.list_shares(&options).unwrap();
        pages.push(page.shares.iter().map(label).collect());
        marker = page.next;
        if marker.is_none() {
            return pages;
        }
    }
}

#[test]
fn shares_come_in_the_order_of_names_and_by_prefix() {
    let setup = Setup::new();
    let engine = many(&setup, &["bee", "abc-1", "abc", "abcd"]);
    let all = ListOptions::default();
    assert_eq!(pages(&engine, &all), [["abc", "abc-1", "abcd", "bee"]]);
    let some = ListOptions { prefix: "abc", ..all };
    assert_eq!(pages(&engine, &some), [["abc", "abc-1", "abcd"]]);
    let none = ListOptions { prefix: "x", ..all };
    assert_eq!(pages(&engine, &none), [Vec::<String>::new()]);
    let by_two = ListOptions { limit: Some(2), ..all };
    assert_eq!(pages(&engine, &by_two), [["abc", "abc-1"], ["abcd", "bee"]]);
}

#[test]
fn snapshots_and_deleted_shares_are_listed_on_request() {
    let setup = Setup::new();
    let engine = many(&setup, &["aaa", "bbb"]);
    for _ in 0..2 {
        engine.create_snapshot(&ShareRef::new("aaa"), None, &mut go_on).unwrap();
        let at = ShareRef::new("bbb");
        engine.delete_share(&somebody(), &at, DeleteShareSnapshots::None).unwrap();
        engine.create_share("bbb", NewShare::default()).unwrap();
    }
    let all = ListOptions { snapshots: true, deleted: true, ..ListOptions::default() };
    let flat = ["aaa@", "aaa@", "aaa", "bbb", "bbb-", "bbb-"];
    for limit in 1..=6 {
        let paged = pages(&engine, &ListOptions { limit: Some(limit), ..all });
        assert!(paged.iter().all(|page| page.len() <= limit));
        assert_eq!(paged.concat(), flat, "{limit} a page");
    }
    let plain = ListOptions::default();
    assert_eq!(pages(&engine, &plain), [["aaa", "bbb"]]);
}

#[test]
fn a_marker_nobody_was_given_is_refused_and_one_whose_share_went_is_not() {
    let setup = Setup::new();
    let engine = many(&setup, &["aaa", "bbb", "ccc"]);
    for bad in ["x", "aaa", "/t", "aaa/", "aaa/x", "AAA/t", "aaa/\u{e4}"] {
        let options = ListOptions { marker: Some(bad), ..ListOptions::default() };
        let answer = refused(engine.list_shares(&options));
        assert_eq!(answer, ShareDenial::InvalidContinuationToken, "{bad}");
    }
    let one = ListOptions { limit: Some(1), ..ListOptions::default() };
    let next = engine.list_shares(&one).unwrap().next.unwrap();
    let at = ShareRef::new("bbb");
    engine.delete_share(&somebody(), &at, DeleteShareSnapshots::None).unwrap();
    let page = engine.list_shares(&ListOptions { marker: Some(&next), ..one }).unwrap();
    assert_eq!(page.shares.iter().map(label).collect::<Vec<_>>(), ["ccc"]);
}
