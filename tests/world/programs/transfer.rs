//! Programs that carry whole trees: rsync, tar, cp.
//!
//! Two names of one file have two inode numbers on the mount (a node a name), so a program that
//! looks for hard links there sees two files and carries both. Making links works.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::programs::desk::{Desk, noise, ready, tree};

/// Sizes around block borders, an empty file, a large one, links, deep and odd names.
fn fill(dir: &Path) {
    for part in ["a/b/c/d", "empty", "names"] {
        fs::create_dir_all(dir.join(part)).unwrap();
    }
    for (number, size) in [0, 1, 4095, 4096, 4097, 65_536, 1_048_577, 5_000_000].iter().enumerate()
    {
        let seed = u32::try_from(number).unwrap();
        fs::write(dir.join(format!("a/size{size}")), noise(*size, seed)).unwrap();
    }
    for name in ["with space", "Ünïcode", "dash-", ".hidden", "semi;colon", "quote'"] {
        fs::write(dir.join("names").join(name), name).unwrap();
    }
    fs::write(dir.join("a/b/c/d/deep"), "deep").unwrap();
    fs::hard_link(dir.join("a/size4097"), dir.join("a/second-name")).unwrap();
    std::os::unix::fs::symlink("a/b/c/d/deep", dir.join("link")).unwrap();
    std::os::unix::fs::symlink("/nowhere/at/all", dir.join("dangling")).unwrap();
}

/// Permission bits, owners and times in whole seconds, which every tool here carries.
fn facts(dir: &Path) -> Vec<(String, u32, u32, i64)> {
    let names = tree(dir).into_iter().map(|(name, _)| name);
    names
        .map(|name| {
            let meta = fs::symlink_metadata(dir.join(&name)).unwrap();
            (name, meta.mode(), meta.uid(), meta.mtime())
        })
        .collect()
}

fn assert_same(one: &Path, other: &Path) {
    let (left, right) = (tree(one), tree(other));
    let names = |tree: &[(String, Option<Vec<u8>>)]| -> Vec<String> {
        tree.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&left), names(&right));
    assert!(left == right, "bytes differ between {} and {}", one.display(), other.display());
    assert_eq!(facts(one), facts(other));
}

#[test]
fn rsync_carries_a_tree_up_and_down_and_then_has_nothing_to_do() {
    if !ready(&["rsync"]) {
        return;
    }
    let desk = Desk::new();
    fs::create_dir(desk.beside("up")).unwrap();
    fill(&desk.beside("up"));
    desk.sh("rsync -a \"$BESIDE/up/\" ./up/");
    assert_same(&desk.beside("up"), &desk.on("up"));
    assert_eq!(desk.sh("rsync -ac --itemize-changes \"$BESIDE/up/\" ./up/"), "");
    desk.sh("rsync -a ./up/ \"$BESIDE/down/\"");
    assert_same(&desk.on("up"), &desk.beside("down"));

    fs::write(desk.beside("up/a/size4096"), "shorter now").unwrap();
    fs::remove_file(desk.beside("up/a/size1")).unwrap();
    desk.sh("rsync -a --delete \"$BESIDE/up/\" ./up/ && rsync -a --inplace \"$BESIDE/up/\" up/");
    assert_same(&desk.beside("up"), &desk.behind("up"));
    desk.finish();
}

#[test]
fn tar_packs_a_tree_from_the_mount_and_unpacks_one_onto_it() {
    if !ready(&["tar"]) {
        return;
    }
    let desk = Desk::new();
    fs::create_dir(desk.on("tree")).unwrap();
    fill(&desk.on("tree"));
    desk.sh("mkdir \"$BESIDE/h\" && cd \"$BESIDE/h\" && echo 1 > one && ln one two
tar -cf ../h.tar .");
    desk.sh("mkdir linked && tar -C linked -xf \"$BESIDE/h.tar\"");
    let ino = |path: &str| fs::metadata(desk.behind(path)).unwrap().ino();
    assert_eq!(ino("linked/one"), ino("linked/two"));
    desk.sh("tar -cf \"$BESIDE/out.tar\" tree && tar -cf inside.tar tree");
    desk.sh("mkdir \"$BESIDE/x\" again && tar -C \"$BESIDE/x\" -xpf \"$BESIDE/out.tar\"");
    desk.sh("tar -C again -xpf inside.tar && tar --compare -C again -f inside.tar");
    assert_same(&desk.on("tree"), &desk.beside("x/tree"));
    assert_same(&desk.on("tree"), &desk.on("again/tree"));
    // Over what is there: tar unlinks and writes anew.
    desk.sh("tar -C again -xpf inside.tar");
    assert_same(&desk.on("tree"), &desk.on("again/tree"));
    desk.finish();
}

#[test]
fn cp_copies_files_and_trees_in_all_its_ways() {
    if !ready(&["cp"]) {
        return;
    }
    let desk = Desk::new();
    fs::create_dir(desk.on("tree")).unwrap();
    fill(&desk.on("tree"));
    desk.sh("cp -a tree copy && cp -a tree \"$BESIDE/out\" && cp -a \"$BESIDE/out\" back");
    for copy in [desk.on("copy"), desk.beside("out"), desk.on("back")] {
        assert_same(&desk.on("tree"), &copy);
    }
    desk.sh("cp --reflink=auto tree/a/size5000000 auto
cp --reflink=never tree/a/size5000000 never
cp --sparse=always tree/a/size5000000 sparse
truncate -s 3M hole && echo end >> hole && cp hole hole-copy
cmp auto never && cmp auto sparse && cmp hole hole-copy");
    assert_eq!(fs::read(desk.behind("auto")).unwrap(), noise(5_000_000, 7));
    assert_eq!(fs::metadata(desk.behind("hole-copy")).unwrap().len(), 3 * 1024 * 1024 + 4);
    assert!(fs::metadata(desk.behind("hole-copy")).unwrap().blocks() < 2048, "holes stay holes");
    desk.sh("cp -f tree/a/size1 auto && cp --backup=numbered tree/a/size4096 auto");
    assert_eq!(fs::metadata(desk.on("auto")).unwrap().len(), 4096);
    assert_eq!(fs::metadata(desk.on("auto.~1~")).unwrap().len(), 1);
    desk.finish();
}
