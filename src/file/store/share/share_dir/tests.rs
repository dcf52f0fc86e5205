//! Each operation of the namespace, and what case does to it.

use std::fs;
use std::sync::Barrier;

use tempfile::TempDir;

use super::super::FileKind;
use super::*;

pub(super) fn share(case: Case) -> (TempDir, ShareDir) {
    let temp = tempfile::tempdir().unwrap();
    let share = ShareDir::open(temp.path(), case).unwrap();
    (temp, share)
}

pub(super) fn path(text: &str) -> SharePath {
    SharePath::new(text).unwrap()
}

pub(super) fn found(share: &ShareDir, text: &str) -> String {
    share.lookup(&path(text)).unwrap().path.as_str().to_owned()
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(answer: Result<T, StoreError>, why: &str) {
    let error = answer.expect_err("refused");
    assert_eq!(format!("{error:?}"), why);
}

#[test]
fn a_path_is_found_in_any_spelling_and_answered_as_on_disk() {
    let (temp, share) = share(Case::Insensitive);
    fs::create_dir_all(temp.path().join("Dir/Süb")).unwrap();
    fs::write(temp.path().join("Dir/Süb/File.TXT"), "x").unwrap();
    for spelling in ["Dir/Süb/File.TXT", "dir/süb/file.txt", "DIR/SÜB/FILE.txt"] {
        assert_eq!(found(&share, spelling), "Dir/Süb/File.TXT");
    }
    let file = share.lookup(&path("dir/süb/FILE.TXT")).unwrap();
    assert_eq!((file.stat.kind, file.stat.size), (FileKind::File, 1));
    let root = share.lookup(&SharePath::root()).unwrap();
    assert!(root.path.is_root() && root.stat.kind == FileKind::Directory);
}

#[test]
fn a_miss_says_whether_the_name_or_its_parent_is_missing() {
    for case in [Case::Insensitive, Case::Sensitive] {
        let (temp, share) = share(case);
        fs::create_dir(temp.path().join("Dir")).unwrap();
        fs::write(temp.path().join("file"), "").unwrap();
        for (text, why) in [
            ("none", "NotFound"),
            ("Dir/none", "NotFound"),
            ("none/x", "ParentNotFound"),
            ("Dir/none/x", "ParentNotFound"),
            ("file/x", "ParentNotFound"),
            ("file/x/y", "ParentNotFound"),
        ] {
            assert_refused(share.lookup(&path(text)), why);
            assert_refused(share.stat(&path(text)), why);
            assert_refused(share.open_file(&path(text), OpenFor::Read), why);
        }
        assert_refused(share.lookup(&path(&"x".repeat(256))), "NameTooLong");
        // However long the path is.
        assert_refused(share.lookup(&path(&"x/".repeat(5000))), "ParentNotFound");
        assert_refused(share.create_file(&path("none/x"), 0o644), "ParentNotFound");
        assert_refused(share.create_dir(&path("file/x"), 0o755), "ParentNotFound");
    }
}

#[test]
fn of_two_spellings_the_exact_one_wins_and_else_the_first_in_byte_order() {
    let (temp, share) = share(Case::Insensitive);
    for name in ["b", "B", "aB", "Ab"] {
        fs::write(temp.path().join(name), name).unwrap();
    }
    assert_eq!(found(&share, "b"), "b");
    assert_eq!(found(&share, "B"), "B");
    assert_eq!(found(&share, "ab"), "Ab");
    assert_eq!(found(&share, "AB"), "Ab");
    assert_eq!(found(&share, "aB"), "aB");
}

#[test]
fn with_case_sensitivity_spellings_are_names_of_their_own() {
    let (_temp, share) = share(Case::Sensitive);
    share.create_file(&path("a"), 0o644).unwrap();
    assert_refused(share.lookup(&path("A")), "NotFound");
    share.create_file(&path("A"), 0o644).unwrap();
    let ids = ["a", "A"].map(|name| share.lookup(&path(name)).unwrap().stat.id);
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn a_name_is_not_made_beside_another_spelling_of_itself() {
    let (temp, share) = share(Case::Insensitive);
    fs::write(temp.path().join("Taken"), "").unwrap();
    fs::write(temp.path().join("other"), "").unwrap();
    for name in ["Taken", "taken", "TAKEN"] {
        let name = path(name);
        assert_refused(share.create_file(&name, 0o644), "AlreadyExists");
        assert_refused(share.create_dir(&name, 0o755), "AlreadyExists");
        assert_refused(share.create_symlink(&name, "x"), "AlreadyExists");
        assert_refused(share.link(&path("other"), &name), "AlreadyExists");
        let renamed = share.rename(&path("other"), &name, RenameHow::NoReplace);
        assert_refused(renamed, "AlreadyExists");
    }
    let renamed = share.rename(&path("other"), &path("taken"), RenameHow::Replace);
    assert_refused(renamed, "AlreadyExists");
    assert_eq!(share.list(&SharePath::root(), None, 9).unwrap().len(), 2);
}

#[test]
fn of_many_who_make_one_name_in_different_spellings_one_succeeds() {
    let (_temp, share) = share(Case::Insensitive);
    for round in 0..20 {
        let barrier = Barrier::new(4);
        let made = std::thread::scope(|scope| {
            let names = ["name", "Name", "nAme", "NAME"].map(|name| format!("{name}{round}"));
            let makers = names.map(|name| {
                let (share, barrier) = (&share, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    share.create_file(&path(&name), 0o644).is_ok()
                })
            });
            makers.map(|maker| maker.join().unwrap())
        });
        assert_eq!(made.iter().filter(|made| **made).count(), 1, "{made:?}");
    }
}

#[test]
fn directories_open_for_reading_but_not_for_writing() {
    let (_temp, share) = share(Case::Insensitive);
    let made = share.create_dir(&path("dir"), 0o700).unwrap();
    assert_eq!((made.kind, made.mode & 0o777), (FileKind::Directory, 0o700));
    for how in [OpenFor::Read, OpenFor::Path] {
        let fd = share.open_file(&path("dir"), how).unwrap();
        assert_eq!(Stat::of(fd).unwrap().id, made.id);
        assert!(share.open_file(&SharePath::root(), how).is_ok());
    }
    let refused = share.open_file(&path("dir"), OpenFor::Write);
    assert_refused(refused, "IsADirectory");
    let refused = share.open_file(&path("DIR"), OpenFor::Read);
    assert_refused(refused, "NotFound");
}

#[test]
fn a_symbolic_link_is_itself_and_not_its_target() {
    let (_temp, share) = share(Case::Insensitive);
    share.create_file(&path("target"), 0o644).unwrap();
    let made = share.create_symlink(&path("Link"), "target").unwrap();
    assert_eq!(made.kind, FileKind::Symlink);
    assert_eq!(share.lookup(&path("link")).unwrap().stat, made);
    assert_eq!(share.read_link(&path("Link")).unwrap(), "target");
    assert_refused(share.open_file(&path("Link"), OpenFor::Read), "NotFound");
    let itself = share.open_file(&path("Link"), OpenFor::Path).unwrap();
    assert_eq!(Stat::of(itself).unwrap().id, made.id);
    assert_refused(share.list(&path("Link"), None, 1), "NotADirectory");
    assert!(share.read_link(&path("target")).is_err());
}

#[test]
fn a_fifo_does_not_hold_up_who_opens_it() {
    let (temp, share) = share(Case::Insensitive);
    let fifo = temp.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(fifo).status();
    assert!(made.unwrap().success());
    assert_eq!(share.stat(&path("fifo")).unwrap().kind, FileKind::Special);
    assert!(share.open_file(&path("fifo"), OpenFor::Read).is_ok());
}

#[test]
fn a_rename_replaces_or_exchanges_only_when_told() {
    let (_temp, share) = share(Case::Insensitive);
    let (a, b) = (path("a"), path("b"));
    let (_, first) = share.create_file(&a, 0o644).unwrap();
    let (_, second) = share.create_file(&b, 0o644).unwrap();
    assert_refused(share.rename(&a, &b, RenameHow::NoReplace), "AlreadyExists");
    share.rename(&a, &b, RenameHow::Exchange).unwrap();
    assert_eq!(share.lookup(&path("A")).unwrap().stat.id, second.id);
    assert_eq!(share.lookup(&path("B")).unwrap().stat.id, first.id);
    share.rename(&a, &b, RenameHow::Replace).unwrap();
    assert_eq!(share.lookup(&path("B")).unwrap().stat.id, second.id);
    assert_refused(share.lookup(&path("A")), "NotFound");
}

#[test]
fn a_rename_can_change_the_case_alone() {
    let (_temp, share) = share(Case::Insensitive);
    share.create_file(&path("name"), 0o644).unwrap();
    share.create_dir(&path("dir"), 0o755).unwrap();
    let rename = |from: &str, to: &str, how| share.rename(&path(from), &path(to), how);
    rename("name", "Name", RenameHow::NoReplace).unwrap();
    assert_eq!(found(&share, "name"), "Name");
    rename("Name", "NAME", RenameHow::Replace).unwrap();
    assert_eq!(found(&share, "name"), "NAME");
    rename("dir", "Dir", RenameHow::NoReplace).unwrap();
    assert_eq!(found(&share, "dir"), "Dir");
    // In another directory it is another name.
    share.create_file(&path("Dir/name"), 0o644).unwrap();
    let moved = rename("NAME", "Dir/NAME", RenameHow::NoReplace);
    assert_refused(moved, "AlreadyExists");
}

#[test]
fn a_removal_of_another_file_than_meant_is_refused() {
    let (_temp, share) = share(Case::Insensitive);
    let (a, dir) = (path("a"), path("dir"));
    let (_, old) = share.create_file(&a, 0o644).unwrap();
    let made = share.create_dir(&dir, 0o755).unwrap();
    share.remove_file(&a, old.id).unwrap();
    assert_refused(share.remove_file(&a, old.id), "NotFound");
    let (_, new) = share.create_file(&a, 0o644).unwrap();
    assert_refused(share.remove_file(&a, old.id), "Replaced");
    assert_refused(share.remove_dir(&dir, old.id), "Replaced");
    assert_eq!(share.stat(&a).unwrap().id, new.id);
    assert_refused(share.remove_file(&dir, made.id), "IsADirectory");
    assert_refused(share.remove_dir(&a, new.id), "NotADirectory");
    share.remove_dir(&dir, made.id).unwrap();
    assert_refused(share.lookup(&dir), "NotFound");
}

#[test]
fn a_directory_with_entries_is_not_empty_and_not_removed() {
    let (temp, share) = share(Case::Insensitive);
    let dir = path("dir");
    let made = share.create_dir(&dir, 0o755).unwrap();
    assert!(share.is_empty(&dir).unwrap());
    fs::write(temp.path().join("dir/.x"), "").unwrap();
    assert!(!share.is_empty(&dir).unwrap());
    assert_refused(share.remove_dir(&dir, made.id), "NotEmpty");
    assert_refused(share.is_empty(&path("dir/.x")), "NotADirectory");
    assert_refused(share.is_empty(&path("none")), "NotFound");
}

#[test]
fn the_root_stays() {
    let (_temp, share) = share(Case::Insensitive);
    let root = SharePath::root();
    let id = share.stat(&root).unwrap().id;
    assert_refused(share.remove_dir(&root, id), "PermissionDenied");
    let moved = share.rename(&root, &path("x"), RenameHow::Replace);
    assert_refused(moved, "PermissionDenied");
    assert_refused(share.create_dir(&root, 0o755), "AlreadyExists");
    assert!(ShareDir::open(Path::new("/nonexistent/share"), Case::Sensitive).is_err());
}
