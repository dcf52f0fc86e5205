//! git: lock files that are renamed over what they guard, read-only objects, packs.

use std::collections::BTreeSet;
use std::fs;

use crate::programs::desk::{Desk, ready, tree};

const IDENTITY: &str = "git config --global user.name Someone
git config --global user.email someone@example.invalid
git config --global init.defaultBranch main
git config --global gc.auto 0
";

/// A repository beside the mount: 300 files in 30 directories, five commits.
const ORIGIN: &str = "cd \"$BESIDE\"
git init -q origin && cd origin
for i in $(seq 30); do
    mkdir -p dir$i
    for j in $(seq 10); do echo \"file $i $j\" > dir$i/file$j.txt; done
done
git add . && git commit -qm 'commit 1'
for n in 2 3 4 5; do
    for i in $(seq $n); do echo \"change $n\" >> dir$i/file$n.txt; done
    git commit -qam \"commit $n\"
done
";

#[test]
fn git_clones_commits_packs_and_checks_a_repository() {
    if !ready(&["git"]) {
        return;
    }
    let desk = Desk::new();
    desk.sh(IDENTITY);
    desk.sh(ORIGIN);
    desk.sh("git clone -q \"$BESIDE/origin\" copy");
    let work = |dir: &std::path::Path| {
        let mut all = tree(dir);
        all.retain(|(name, _)| !name.starts_with(".git"));
        all
    };
    assert_eq!(work(&desk.on("copy")), work(&desk.beside("origin")));
    assert_eq!(desk.sh("cd copy && git log --oneline | wc -l").trim(), "5");
    assert_eq!(desk.sh("cd copy && git status --porcelain"), "");

    desk.sh("cd copy && echo more >> dir1/file1.txt && git rm -q dir2/file2.txt && \
         git mv dir3/file3.txt dir4/moved.txt && echo new > new.txt && git add -A && \
         git commit -qm 'a change made on the mount'");
    assert_eq!(desk.sh("cd copy && git status --porcelain"), "");
    assert_eq!(desk.sh("cd copy && git show HEAD:new.txt"), "new\n");
    assert!(!desk.on("copy/dir2/file2.txt").exists());

    desk.sh("cd copy && git gc -q --prune=now");
    assert_eq!(desk.sh("cd copy && git count-objects -v | grep ^count:"), "count: 0\n");
    assert_eq!(desk.sh("cd copy && git fsck --full --strict 2>&1"), "");
    desk.sh("cd copy && git push -q origin HEAD:refs/heads/from-the-mount");
    let (here, there) = ("git rev-parse HEAD", "git rev-parse from-the-mount");
    let pushed = desk.sh(&format!("cd \"$BESIDE/origin\" && {there}"));
    assert_eq!(desk.sh(&format!("cd copy && {here}")), pushed);
    desk.finish();
}

#[test]
fn git_switches_branches_stashes_and_rebases() {
    if !ready(&["git"]) {
        return;
    }
    let desk = Desk::new();
    desk.sh(IDENTITY);
    desk.sh("git init -q r && cd r
for i in $(seq 50); do echo $i > f$i; done
git add . && git commit -qm base
git switch -qc side
for i in $(seq 2 25); do echo side >> f$i; done
git commit -qam side && git switch -q main
for i in $(seq 26 50); do echo main >> f$i; done
git commit -qam main
echo dirt >> f1 && git stash -q
git switch -q side && git rebase -q main
git switch -q main && git merge -q --ff-only side && git stash pop -q");
    assert_eq!(fs::read_to_string(desk.behind("r/f1")).unwrap(), "1\ndirt\n");
    assert_eq!(fs::read_to_string(desk.behind("r/f2")).unwrap(), "2\nside\n");
    assert_eq!(fs::read_to_string(desk.behind("r/f50")).unwrap(), "50\nmain\n");
    assert_eq!(desk.sh("cd r && git status --porcelain"), " M f1\n");
    assert_eq!(desk.sh("cd r && git fsck --full 2>&1 | grep -v dangling || true"), "");
    desk.finish();
}

#[test]
fn git_clones_a_repository_on_the_mount_by_hard_links() {
    if !ready(&["git"]) {
        return;
    }
    let desk = Desk::new();
    desk.sh(IDENTITY);
    desk.sh("git init -q one && cd one && echo 1 > f && git add f && git commit -qm one");
    desk.sh("git clone -q one two && cd two && git fsck --full --strict");
    // The objects are the same files, to programs too.
    let numbers = desk.sh("stat -c %i one/.git/objects/*/* two/.git/objects/*/*");
    let numbers: Vec<_> = numbers.lines().collect();
    let files: BTreeSet<_> = numbers.iter().collect();
    assert_eq!(numbers.len(), 2 * files.len(), "{numbers:?}");
    // And to those that keep links: one body, and one archive member each.
    desk.sh(
        "cp -a one/.git/objects copied && tar -cf objects.tar one/.git/objects two/.git/objects",
    );
    let linked = desk.sh("tar -tvf objects.tar | grep -c '^h'");
    assert_eq!(linked.trim(), files.len().to_string());
    desk.finish();
}
