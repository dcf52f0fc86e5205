//! Nodes as the kernel uses them: looked up, forgotten, moved, removed.

use super::*;

fn file(ino: u64) -> FileId {
    FileId { ino, born: 0 }
}

fn nodes() -> Nodes {
    Nodes::new(file(1), false)
}

fn path(nodes: &Nodes, node: u64) -> Option<String> {
    nodes.path(node).map(|path| path.as_str().to_owned())
}

#[test]
fn each_spelling_has_a_node_of_its_own_and_keeps_it() {
    let nodes = nodes();
    let (lower, _) = nodes.enter(ROOT, "foo", file(7));
    let (upper, _) = nodes.enter(ROOT, "FOO", file(7));
    assert_ne!(lower, upper);
    assert_eq!(nodes.enter(ROOT, "foo", file(7)).0, lower);
    assert_eq!(path(&nodes, upper).as_deref(), Some("FOO"));
}

#[test]
fn a_node_has_the_number_of_its_file_again_after_it_was_forgotten() {
    let nodes = nodes();
    let (first, _) = nodes.enter(ROOT, "f", file(7));
    let (second, _) = nodes.enter(ROOT, "other-name", file(7));
    assert_eq!(first, 7);
    assert!(second > OWN_NUMBERS);
    nodes.forget(first, 1);
    assert_eq!(nodes.enter(ROOT, "f", file(7)).0, 7);
    // An inode number that is used again while the kernel knows its former file.
    nodes.removed(ROOT, "f");
    let reused = FileId { ino: 7, born: 1 };
    assert!(nodes.enter(ROOT, "f", reused).0 > OWN_NUMBERS);
    assert!(nodes.enter(ROOT, "one", file(ROOT)).0 > OWN_NUMBERS);
}

#[test]
fn names_of_one_file_show_its_number_and_spellings_of_one_name_their_own() {
    let nodes = nodes();
    let (first, _) = nodes.enter(ROOT, "f", file(7));
    let (spelling, _) = nodes.enter(ROOT, "F", file(7));
    let (name, _) = nodes.enter(ROOT, "g", file(7));
    nodes.set_linked(name);
    assert_eq!([first, spelling, name].map(|id| nodes.number(id, file(7))), [7, spelling, 7]);
    assert_eq!(nodes.listed(ROOT, "g", 7), 7);
    assert_eq!(nodes.listed(ROOT, "F", 7), spelling);
}

#[test]
fn a_node_that_another_file_took_the_name_of_can_be_that_files() {
    let nodes = nodes();
    let (node, _) = nodes.enter(ROOT, "f", file(7));
    let (other, _) = nodes.enter(ROOT, "f", file(8));
    assert_eq!(nodes.last_path(node).unwrap().as_str(), "f");
    assert_eq!(nodes.adopt(node, file(8)), None);
    assert_eq!((nodes.file(node), path(&nodes, node)), (Some(file(8)), None));
    assert_eq!(nodes.adopt(other, file(9)).map(|stale| stale.node), Some(other));
}

#[test]
fn a_name_that_stands_for_another_file_gets_another_node() {
    let nodes = nodes();
    let (old, _) = nodes.enter(ROOT, "f", file(7));
    let (new, _) = nodes.enter(ROOT, "f", file(8));
    assert_ne!(old, new);
    assert_eq!(path(&nodes, old), None);
    assert_eq!(path(&nodes, new).as_deref(), Some("f"));
}

#[test]
fn a_removed_name_takes_its_other_spellings_along() {
    let nodes = nodes();
    let (lower, _) = nodes.enter(ROOT, "foo", file(7));
    let (upper, _) = nodes.enter(ROOT, "FOO", file(7));
    let mut stale: Vec<_> =
        nodes.removed(ROOT, "Foo").into_iter().map(|stale| stale.node).collect();
    stale.sort_unstable();
    assert_eq!(stale, [lower, upper]);
    assert_eq!(path(&nodes, lower), None);
    assert!(nodes.removed(ROOT, "foo").is_empty());
}

#[test]
fn a_moved_directory_moves_what_is_below_it() {
    let nodes = nodes();
    let (dir, _) = nodes.enter(ROOT, "d", file(7));
    let (below, _) = nodes.enter(dir, "x", file(8));
    nodes.moved((ROOT, "d"), (ROOT, "e"));
    assert_eq!(path(&nodes, below).as_deref(), Some("e/x"));
    assert_eq!(nodes.enter(ROOT, "e", file(7)).0, dir);
}

#[test]
fn a_case_only_rename_keeps_the_node_that_moved() {
    let nodes = nodes();
    let (node, _) = nodes.enter(ROOT, "foo", file(7));
    assert!(nodes.moved((ROOT, "foo"), (ROOT, "Foo")).is_empty());
    assert_eq!(path(&nodes, node).as_deref(), Some("Foo"));
}

#[test]
fn what_a_rename_replaces_is_dead() {
    let nodes = nodes();
    let (a, _) = nodes.enter(ROOT, "a", file(7));
    let (b, _) = nodes.enter(ROOT, "b", file(8));
    let stale = nodes.moved((ROOT, "b"), (ROOT, "a"));
    assert_eq!(stale.len(), 1);
    assert_eq!((path(&nodes, a), path(&nodes, b).as_deref()), (None, Some("a")));
}

#[test]
fn an_exchange_swaps_two_names() {
    let nodes = nodes();
    let (a, _) = nodes.enter(ROOT, "a", file(7));
    let (b, _) = nodes.enter(ROOT, "b", file(8));
    nodes.exchanged((ROOT, "a"), (ROOT, "b"));
    assert_eq!(path(&nodes, a).as_deref(), Some("b"));
    assert_eq!(path(&nodes, b).as_deref(), Some("a"));
    assert_eq!(nodes.enter(ROOT, "a", file(8)).0, b);
}

#[test]
fn the_spellings_and_names_of_a_file_are_siblings_while_they_live() {
    let nodes = nodes();
    let (lower, _) = nodes.enter(ROOT, "foo", file(7));
    let (upper, _) = nodes.enter(ROOT, "FOO", file(7));
    let (link, _) = nodes.enter(ROOT, "link", file(7));
    nodes.enter(ROOT, "other", file(8));
    assert_eq!(nodes.siblings(lower), [upper, link]);
    nodes.forget(upper, 1);
    assert_eq!(nodes.siblings(lower), [link]);
    nodes.removed(ROOT, "link");
    assert!(nodes.siblings(lower).is_empty());
    assert_eq!(nodes.siblings(link), [lower]);
}

#[test]
fn a_node_is_forgotten_with_its_last_lookup() {
    let nodes = nodes();
    let (node, _) = nodes.enter(ROOT, "f", file(7));
    nodes.enter(ROOT, "f", file(7));
    nodes.forget(node, 1);
    assert!(nodes.path(node).is_some());
    nodes.forget(node, 1);
    assert!(nodes.path(node).is_none());
    assert!(nodes.inner.read().unwrap().names.is_empty());
    assert!(nodes.inner.read().unwrap().files.is_empty());
    nodes.forget(ROOT, 9);
    assert!(nodes.path(ROOT).is_some());
}

#[test]
fn all_nodes_but_the_root_are_dead_when_another_share_has_the_place() {
    let nodes = nodes();
    let (dir, _) = nodes.enter(ROOT, "d", file(7));
    let (below, _) = nodes.enter(dir, "x", file(8));
    let stale = nodes.replaced(file(9));
    assert_eq!(stale, [Stale { parent: ROOT, name: "d".to_owned(), node: dir }]);
    assert_eq!((path(&nodes, dir), path(&nodes, below)), (None, None));
    assert_eq!((path(&nodes, ROOT).as_deref(), nodes.file(ROOT)), (Some(""), Some(file(9))));
    // The same inode number again, while the kernel knows the dead node.
    let again = nodes.enter(ROOT, "d", file(7)).0;
    assert_ne!(again, dir);
    nodes.forget(dir, 1);
    assert_eq!(path(&nodes, again).as_deref(), Some("d"));
}

#[test]
fn cutting_a_node_off_raises_its_generation_and_counts_a_lookup() {
    let nodes = nodes();
    let node = nodes.enter(ROOT, "f", file(7)).0;
    let other = nodes.enter(ROOT, "F", file(7)).0;
    assert_eq!(nodes.cut_off(node), Some(1));
    assert_eq!(nodes.enter(ROOT, "f", file(7)), (node, 1));
    assert_eq!(nodes.enter(ROOT, "F", file(7)), (other, 0));
    nodes.forget(node, 2);
    assert!(nodes.is_alive(node), "the kernel still knows it by one of three lookups");
    // By a name that is gone as well.
    nodes.removed(ROOT, "f");
    assert_eq!(nodes.cut_off(node), Some(2));
    nodes.forget(node, 2);
    assert_eq!(nodes.cut_off(node), None);
}
