//! Removing much at once: names must be gone when the program says so, however late the kernel
//! reports their last close.

use std::fs;

use crate::programs::desk::{Desk, ready};

const TREE: &str = "for d in $(seq 100); do
    mkdir -p tree/$d
    for f in $(seq 20); do echo $f > tree/$d/$f; done
done
";

fn write_tree(desk: &Desk) {
    desk.sh(TREE);
    assert_eq!(desk.sh("find tree -type f | wc -l").trim(), "2000");
}

#[test]
fn rm_removes_a_tree_right_after_it_was_written() {
    if !ready(&["rm"]) {
        return;
    }
    let desk = Desk::new();
    desk.sh(&format!("{TREE} rm -rf tree; [ ! -e tree ]"));
    assert_eq!(fs::read_dir(desk.behind("")).unwrap().count(), 0);
    // And by a program that writes and removes with no pause between.
    desk.sh("for i in $(seq 300); do mkdir d; echo $i > d/f; rm -r d; [ ! -e d ]; done");
    assert_eq!(fs::read_dir(desk.on("")).unwrap().count(), 0);
    desk.finish();
}

#[test]
fn find_deletes_what_it_finds_and_leaves_the_rest() {
    if !ready(&["find"]) {
        return;
    }
    let desk = Desk::new();
    write_tree(&desk);
    desk.sh("find tree -name '1*' -type f -delete");
    assert_eq!(desk.sh("find tree -type f | wc -l").trim(), "900");
    desk.sh("find tree -mindepth 1 -maxdepth 1 -name '5*' -exec rm -r {} +");
    assert_eq!(fs::read_dir(desk.behind("tree")).unwrap().count(), 89);
    desk.sh("find tree -delete");
    assert!(!desk.on("tree").exists());
    assert!(!desk.behind("tree").exists());
    desk.finish();
}

#[test]
fn a_tree_is_removed_while_others_read_it() {
    if !ready(&["rm"]) {
        return;
    }
    let desk = Desk::new();
    write_tree(&desk);
    // The reader may lose the race for any file; the remover may not fail for good: what it was
    // refused or had to leave pending is gone at the latest when the reader is done.
    desk.sh("(grep -r 20 tree > /dev/null 2>&1 || true) & reader=$!
rm -rf tree 2> /dev/null || true
wait $reader
rm -rf tree; [ ! -e tree ]");
    assert_eq!(fs::read_dir(desk.behind("")).unwrap().count(), 0);
    desk.finish();
}
