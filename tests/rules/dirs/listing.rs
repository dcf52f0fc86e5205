//! REST's view of a directory.

use std::collections::BTreeSet;

use latchfs::file::rules::Denial;
use latchfs::file::service::{DirectoryPage, FileKind, PAGE_MAX, PageOptions};

use crate::dirs::fixture::{Fixture, denial, path};

const ALL: PageOptions<'static> =
    PageOptions { prefix: "", after: None, limit: PAGE_MAX, smb: false, pending: false };

fn names(page: &DirectoryPage) -> Vec<&str> {
    page.entries.iter().map(|entry| &*entry.name).collect()
}

/// All names, page by page.
fn walk(it: &Fixture, dir: &str, options: PageOptions<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let options = PageOptions { after: after.as_deref(), ..options };
        let page = it.share().list_page(&path(dir), options).unwrap();
        assert!(page.entries.len() <= options.limit);
        found.extend(page.entries.into_iter().map(|entry| entry.name));
        match page.next {
            Some(next) => after = Some(next),
            None => return found,
        }
    }
}

#[test]
fn files_and_directories_come_in_one_order_and_links_and_special_files_do_not() {
    let it = Fixture::new();
    it.folder("Dir/b");
    it.file("Dir/A", b"12345");
    it.file("Dir/c", b"");
    std::os::unix::fs::symlink("A", it.on_disk("Dir/link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(it.on_disk("Dir/socket")).unwrap();
    let page = it.share().list_page(&path("dir"), ALL).unwrap();
    assert_eq!(names(&page), ["A", "b", "c"]);
    assert_eq!(page.path, path("Dir"));
    assert_eq!(page.id, it.share().stat(&path("Dir")).unwrap().id);
    assert_eq!(page.next, None);
    assert_eq!(page.entries[0].stat.size, 5);
    assert_eq!(page.entries[1].stat.kind, FileKind::Directory);
    assert!(page.entries.iter().all(|entry| entry.smb.is_none()));
}

#[test]
fn only_directories_are_listed() {
    let it = Fixture::new();
    it.file("file", b"");
    let at = |name, options| denial(it.share().list_page(&path(name), options));
    assert_eq!(at("file", ALL), Denial::NotDirectory);
    assert_eq!(at("none", ALL), Denial::NotFound);
    assert_eq!(at("no/such", ALL), Denial::PathNotFound);
    let none = at("", PageOptions { limit: 0, ..ALL });
    assert!(matches!(none, Denial::InvalidParameter(_)));
}

#[test]
fn a_prefix_is_matched_in_any_case_also_from_a_marker_before_it() {
    let it = Fixture::new();
    for name in ["aa", "Ab", "AB1", "abC", "b", "Äb", "ab"] {
        it.file(name, b"");
    }
    let found = |prefix, after| walk(&it, "", PageOptions { prefix, after, limit: 2, ..ALL });
    // Case aside, "Ab" and "ab" are one name; both can stand there only beside us.
    assert_eq!(found("aB", None), ["Ab", "ab", "AB1", "abC"]);
    assert_eq!(found("ab1", None), ["AB1"]);
    assert_eq!(found("äB", None), ["Äb"]);
    assert_eq!(found("abcd", None), [""; 0]);
    let page = |after| {
        let options = PageOptions { prefix: "ab", after: Some(after), ..ALL };
        let page = it.share().list_page(&path(""), options).unwrap();
        page.entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
    };
    assert_eq!(page("a"), ["Ab", "ab", "AB1", "abC"]);
    assert_eq!(page("ab1"), ["abC"]);
    assert_eq!(page("z"), [""; 0]);
}

#[test]
fn a_pending_link_is_left_out_and_the_other_name_of_the_file_is_not() {
    let it = Fixture::new();
    it.file("one", b"");
    std::fs::hard_link(it.on_disk("one"), it.on_disk("two")).unwrap();
    let _keeper = it.pending("one");
    assert_eq!(walk(&it, "", ALL), ["two"]);
}

#[test]
fn a_page_of_nothing_but_hidden_names_leads_on() {
    let it = Fixture::new();
    for number in 0..PAGE_MAX * 4 + 10 {
        std::os::unix::fs::symlink(".", it.on_disk(&format!("a{number}"))).unwrap();
    }
    it.file("last", b"");
    let first = it.share().list_page(&path(""), PageOptions { limit: 3, ..ALL }).unwrap();
    assert!(first.entries.is_empty());
    assert!(first.next.is_some());
    assert_eq!(walk(&it, "", PageOptions { limit: 3, ..ALL }), ["last"]);
}

#[test]
fn twenty_thousand_names_come_once_each_in_pages_that_are_never_too_long() {
    let it = Fixture::new();
    it.folder("many");
    let all: BTreeSet<String> = (0..20_000).map(|number| format!("Name{number:05}")).collect();
    for name in &all {
        it.file(&format!("many/{name}"), b"");
    }
    let page = it.share().list_page(&path("many"), PageOptions { limit: 9_000, ..ALL }).unwrap();
    assert_eq!(page.entries.len(), PAGE_MAX);
    for limit in [PAGE_MAX, 777] {
        let found = walk(&it, "many", PageOptions { limit, ..ALL });
        assert!(found.iter().eq(&all), "{} names", found.len());
    }
    let tenth = walk(&it, "many", PageOptions { prefix: "name1234", limit: 3, ..ALL });
    assert_eq!(tenth.len(), 10);
}
