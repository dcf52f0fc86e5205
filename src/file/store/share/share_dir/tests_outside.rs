//! Tests of influences from outside: links that lead out of the share, other programs at work in
//! the directory, directories that were there before, and listings meanwhile.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::time::{Duration, Instant};

use super::super::FileKind;
use super::tests::{found, path, share};
use super::*;

fn names(share: &ShareDir, dir: &str) -> Vec<String> {
    let listed = share.list(&path(dir), None, usize::MAX).unwrap();
    listed.into_iter().map(|entry| entry.name).collect()
}

#[test]
fn no_link_leads_out_of_the_share() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "").unwrap();
    for case in [Case::Insensitive, Case::Sensitive] {
        let (temp, share) = share(case);
        fs::create_dir(temp.path().join("dir")).unwrap();
        symlink(outside.path(), temp.path().join("absolute")).unwrap();
        symlink("/etc", temp.path().join("etc")).unwrap();
        symlink("../..", temp.path().join("dir/up")).unwrap();
        symlink("/proc/self/root", temp.path().join("magic")).unwrap();
        symlink("loop", temp.path().join("loop")).unwrap();
        for text in [
            "absolute/secret",
            "ABSOLUTE/Secret",
            "etc/passwd",
            "dir/up/tmp",
            "magic/etc",
            "loop/x",
            "absolute/new/new",
        ] {
            let path = path(text);
            let parent_missing =
                |error: Option<StoreError>| matches!(error, Some(StoreError::ParentNotFound));
            assert!(parent_missing(share.lookup(&path).err()), "{text}");
            assert!(parent_missing(share.stat(&path).err()), "{text}");
            assert!(parent_missing(share.create_file(&path, 0o644).err()));
            assert!(parent_missing(share.open_file(&path, OpenFor::Read).err()));
            let renamed = share.rename(&path, &path, RenameHow::Replace);
            assert!(parent_missing(renamed.err()), "{text}");
        }
        assert!(share.open_file(&path("etc"), OpenFor::Read).is_err());
        assert!(share.list(&path("etc"), None, 1).is_err());
        assert_eq!(share.stat(&path("etc")).unwrap().kind, FileKind::Symlink);
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn a_directory_in_use_that_is_moved_outside_and_linked_to_is_not_used_any_more() {
    let outside = tempfile::tempdir().unwrap();
    let (temp, share) = share(Case::Insensitive);
    for dir in ["a", "a/b", "a/b/c"] {
        fs::create_dir(temp.path().join(dir)).unwrap();
    }
    for dir in ["a/b/c", "a/b", "a"] {
        let file = path(&format!("{dir}/new"));
        let here = temp.path().join("a");
        let there = outside.path().join("a");
        share.create_file(&file, 0o644).unwrap();
        fs::rename(&here, &there).unwrap();
        symlink(&there, &here).unwrap();
        // Used without a pause, so that it does not expire.
        let end = Instant::now() + Duration::from_secs(20);
        while let Ok(stat) = share.stat(&file) {
            assert!(Instant::now() < end, "{dir} is used outside the share: {stat:?}");
        }
        assert!(matches!(share.create_file(&file, 0o644), Err(StoreError::ParentNotFound)));
        fs::remove_file(&here).unwrap();
        fs::rename(&there, &here).unwrap();
    }
}

#[test]
fn a_link_within_the_share_is_not_followed_on_the_way() {
    let (temp, share) = share(Case::Insensitive);
    fs::create_dir_all(temp.path().join("a/Deep")).unwrap();
    fs::create_dir(temp.path().join("b")).unwrap();
    fs::write(temp.path().join("b/File"), "").unwrap();
    symlink("../../b", temp.path().join("a/Deep/link")).unwrap();
    for text in ["A/deep/LINK/file", "a/Deep/link/File", "a/Deep/link/new"] {
        let text = path(text);
        assert!(matches!(share.lookup(&text), Err(StoreError::ParentNotFound)), "{text}");
        let made = share.create_file(&text, 0o644);
        assert!(matches!(made, Err(StoreError::ParentNotFound)), "{text}");
        let moved = share.rename(&path("b/File"), &text, RenameHow::Replace);
        assert!(moved.is_err(), "{text}");
    }
    assert_eq!(fs::read_dir(temp.path().join("b")).unwrap().count(), 1);
}

#[test]
fn changes_by_other_programs_are_seen_at_once() {
    let (temp, share) = share(Case::Insensitive);
    let on_disk = |name: &str| temp.path().join(name);
    for round in 0..50 {
        let (name, other) = (format!("File{round}"), format!("Other{round}"));
        let (upper, other_upper) = (name.to_uppercase(), other.to_uppercase());
        assert!(share.lookup(&path(&upper)).is_err());
        fs::write(on_disk(&name), "").unwrap();
        assert_eq!(found(&share, &upper), name);
        fs::rename(on_disk(&name), on_disk(&other)).unwrap();
        assert!(share.lookup(&path(&upper)).is_err());
        assert_eq!(found(&share, &other_upper), other);
        assert_eq!(names(&share, ""), [other.as_str()]);
        fs::remove_file(on_disk(&other)).unwrap();
        assert!(share.lookup(&path(&other_upper)).is_err());
        assert!(names(&share, "").is_empty());
    }
}

#[test]
fn changes_are_seen_soon_while_the_server_changes_the_same_directory() {
    let (temp, share) = share(Case::Insensitive);
    // A change of another program between two of the server is seen at the next reading.
    let soon = &|what: &str, seen: &dyn Fn() -> bool| {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !seen() {
            assert!(std::time::Instant::now() < end, "{what}");
            std::thread::yield_now();
        }
    };
    let change = &|who: usize| {
        for round in 0..200 {
            let name = format!("File{who}-{round}");
            let (here, upper) = (temp.path().join(&name), path(&name.to_uppercase()));
            if who == 0 {
                share.create_file(&path(&name), 0o644).unwrap();
            } else {
                fs::write(&here, "").unwrap();
            }
            soon("a new name", &|| share.lookup(&upper).is_ok_and(|it| it.path.as_str() == name));
            soon("a new entry", &|| names(&share, "").contains(&name));
            fs::remove_file(&here).unwrap();
            soon("no name", &|| share.lookup(&upper).is_err());
            soon("no entry", &|| !names(&share, "").contains(&name));
        }
    };
    std::thread::scope(|scope| {
        (0..4).for_each(|who| drop(scope.spawn(move || change(who))));
    });
    soon("an empty directory", &|| names(&share, "").is_empty());
}

#[test]
fn a_name_that_became_something_else_is_listed_as_that() {
    let (temp, share) = share(Case::Insensitive);
    fs::write(temp.path().join("a"), "").unwrap();
    fs::create_dir(temp.path().join("b")).unwrap();
    let listed = |share: &ShareDir| share.list(&SharePath::root(), None, 9).unwrap();
    let before = listed(&share);
    assert_eq!([before[0].kind, before[1].kind], [FileKind::File, FileKind::Directory]);
    share.rename(&path("a"), &path("b"), RenameHow::Exchange).unwrap();
    let after = listed(&share);
    assert_eq!([after[0].kind, after[1].kind], [FileKind::Directory, FileKind::File]);
    assert_eq!((after[0].ino, after[1].ino), (before[1].ino, before[0].ino));
}

#[test]
fn a_directory_made_anew_does_not_answer_with_the_names_of_the_old_one() {
    let (temp, share) = share(Case::Insensitive);
    for round in 0..20 {
        let dir = temp.path().join("dir");
        fs::create_dir(&dir).unwrap();
        let name = format!("Old{round}");
        fs::write(dir.join(&name), "").unwrap();
        assert_eq!(found_soon(&share, &format!("DIR/OLD{round}")), format!("dir/{name}"));
        fs::remove_dir_all(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
        assert!(share.lookup(&path(&format!("dir/old{round}"))).is_err());
        fs::remove_dir(&dir).unwrap();
    }
}

/// The file that a path leads to, once the share notices that a directory on the path was replaced
/// by hand.
fn found_soon(share: &ShareDir, text: &str) -> String {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match share.lookup(&path(text)) {
            Ok(found) => return found.path.as_str().to_owned(),
            Err(error) => assert!(Instant::now() < end, "{text}: {error}"),
        }
    }
}

/// Everything that can be told of a tree, but for access times.
fn snapshot(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(path) = todo.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let mut bytes = Vec::new();
        if meta.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            todo.extend(entries.map(|entry| entry.unwrap().path()));
        } else if meta.is_file() {
            bytes = fs::read(&path).unwrap();
        }
        let (ino, mode) = (meta.ino(), meta.mode());
        let written = (meta.mtime(), meta.mtime_nsec());
        let changed = (meta.ctime(), meta.ctime_nsec());
        let told = format!("{ino} {mode:o} {written:?} {changed:?} {bytes:?}");
        all.insert(path, told);
    }
    all
}

#[test]
fn an_existing_directory_is_served_unchanged() {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir_all(temp.path().join("src/.git")).unwrap();
    fs::write(temp.path().join("src/.git/HEAD"), "ref").unwrap();
    fs::write(temp.path().join("Readme"), "text").unwrap();
    symlink("Readme", temp.path().join("link")).unwrap();
    let before = snapshot(temp.path());
    let share = ShareDir::open(temp.path(), Case::Insensitive).unwrap();
    assert_eq!(share.root_path(), temp.path());
    assert_eq!(found(&share, "SRC/.GIT/head"), "src/.git/HEAD");
    assert_eq!(names(&share, ""), ["link", "Readme", "src"]);
    share.open_file(&path("Readme"), OpenFor::Write).unwrap();
    drop(share);
    assert_eq!(snapshot(temp.path()), before);
}

#[test]
fn names_that_are_no_utf8_are_left_out_but_count() {
    let (temp, share) = share(Case::Insensitive);
    share.create_dir(&path("dir"), 0o755).unwrap();
    fs::write(temp.path().join("dir").join(OsStr::from_bytes(b"\xff")), "").unwrap();
    assert!(names(&share, "dir").is_empty());
    assert!(!share.is_empty(&path("dir")).unwrap());
    fs::write(temp.path().join("dir/ok"), "").unwrap();
    assert_eq!(names(&share, "dir"), ["ok"]);
}

#[test]
fn a_listing_is_ordered_by_folded_and_then_by_exact_name() {
    let (temp, share) = share(Case::Insensitive);
    for name in ["b", "B", "a", "C", "é", "É", "_", "a.b"] {
        fs::write(temp.path().join(name), "").unwrap();
    }
    assert_eq!(names(&share, ""), ["a", "a.b", "B", "b", "C", "_", "É", "é"]);
    let page = |after| {
        let listed = share.list(&SharePath::root(), after, 2).unwrap();
        listed.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
    };
    assert_eq!(page(Some("B")), ["b", "C"]);
    assert_eq!(page(Some("b")), ["C", "_"]);
    assert_eq!(page(Some("aa")), ["B", "b"], "a name that does not exist");
    assert!(page(Some("é")).is_empty());
    assert!(share.list(&SharePath::root(), None, 0).unwrap().is_empty());
}

#[test]
fn a_name_is_removed_where_it_was_looked_up_and_looked_at_again_after_a_moment() {
    let (temp, share) = share(Case::Insensitive);
    let (dir, moved) = (temp.path().join("dir"), temp.path().join("moved"));
    let look = || {
        let (found, place) = share.lookup_at(&path("dir/FILE")).unwrap();
        (found, place.unwrap())
    };
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("File"), "").unwrap();
    let (found, place) = look();
    fs::rename(&dir, &moved).unwrap();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("File"), "").unwrap();
    // On a slow machine the look is no longer recent.
    match share.remove_found(&found, &place) {
        Ok(()) => assert!(!moved.join("File").exists()),
        Err(error) => assert!(matches!(error, StoreError::Replaced), "{error}"),
    }
    assert!(dir.join("File").exists(), "a file that was never looked at is gone");
    // The path of the directory is looked up again by then, too.
    while place.is_recent() {}
    let (found, place) = look();
    while place.is_recent() {}
    fs::write(dir.join("new"), "").unwrap();
    fs::rename(dir.join("new"), dir.join("File")).unwrap();
    let late = share.remove_found(&found, &place);
    assert!(matches!(late, Err(StoreError::Replaced)), "{late:?}");
    let (found, place) = look();
    share.remove_found(&found, &place).unwrap();
    assert!(!dir.join("File").exists());
}
