//! Tests of snapshots: what is kept, what is left alone, half-done ones.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Timespec, Timestamps, XattrFlags};

use super::*;

const NOW: Timestamp = Timestamp(1_767_607_200_123_456_789);
const NOW_STAMP: &str = "2026-01-05T10:00:00.1234567Z";

struct Setup {
    _dir: tempfile::TempDir,
    share: PathBuf,
    snapshots: Snapshots,
}

fn setup() -> Setup {
    let dir = tempfile::tempdir().unwrap();
    let share = dir.path().join("share");
    fs::create_dir(&share).unwrap();
    let snapshots = Snapshots::at(dir.path().join("state/snapshots"));
    Setup { _dir: dir, share, snapshots }
}

fn go_on(_: CloneProgress) -> Control {
    Control::Continue
}

impl Setup {
    fn create(&self, now: Timestamp) -> Result<SnapshotName, SnapshotError> {
        self.snapshots.create(&self.share, now, &mut go_on)
    }

    fn hidden(&self) -> Vec<String> {
        let mut names = tree::names(&self.snapshots.dir).unwrap();
        names.retain(|name| name.starts_with('.'));
        names
    }
}

fn set_times(path: &Path, seconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: 987_654_321 };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

fn set_xattr(path: &Path, value: &str) {
    rustix::fs::setxattr(path, "user.latchfs", value.as_bytes(), XattrFlags::empty()).unwrap();
}

/// A description of a tree: for each path its mode, size, times, bytes or link text, attribute.
fn picture(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(path) = pending.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let mut value = [0; 64];
        let size = rustix::fs::lgetxattr(&path, "user.latchfs", &mut value[..]).unwrap_or(0);
        let body = if meta.is_file() && meta.len() < 1 << 20 {
            format!("{:?}", fs::read(&path).unwrap())
        } else if meta.is_symlink() {
            format!("{:?}", fs::read_link(&path).unwrap())
        } else {
            String::new()
        };
        let length = if meta.is_dir() { 0 } else { meta.len() };
        let line = format!(
            "{:o} {length} m{}.{} {body} {:?}",
            meta.mode(),
            meta.mtime(),
            meta.mtime_nsec(),
            &value[..size]
        );
        seen.insert(path.strip_prefix(root).unwrap().to_owned(), line);
        if meta.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    seen
}

/// A tree with one of everything.
fn furnish(share: &Path) {
    let deep = share.join("Größe/日本語/🦀");
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir(share.join("empty")).unwrap();
    fs::write(deep.join("file é.txt"), "deep").unwrap();
    fs::write(share.join("read-only"), "kept").unwrap();
    set_xattr(&share.join("read-only"), "of a file");
    fs::set_permissions(share.join("read-only"), fs::Permissions::from_mode(0o444)).unwrap();
    set_xattr(&share.join("empty"), "of a directory");
    set_xattr(share, "of the root");
    symlink("../../outside", share.join("dangling")).unwrap();
    symlink("/etc", share.join("absolute")).unwrap();
    let sparse = File::create_new(share.join("sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    for at in [0, 1 << 29, (1 << 30) - 4096] {
        sparse.write_all_at(&[9; 4096], at).unwrap();
    }
    fs::set_permissions(share.join("empty"), fs::Permissions::from_mode(0o555)).unwrap();
    for (seconds, path) in (1_000_000_000..).zip(picture(share).into_keys()) {
        set_times(&share.join(path), seconds);
    }
}

#[test]
fn a_snapshot_is_the_tree_as_it_was() {
    let setup = setup();
    furnish(&setup.share);
    let before = picture(&setup.share);
    let mut last = CloneProgress::default();
    let name = setup
        .snapshots
        .create(&setup.share, NOW, &mut |done| {
            last = done;
            Control::Continue
        })
        .unwrap();
    assert_eq!(picture(&setup.share), before, "the source is left alone");

    let copy = setup.snapshots.path(&name);
    let shown = picture(&copy);
    assert_eq!(shown, before);
    assert!(shown.contains_key(Path::new("Größe/日本語/🦀/file é.txt")));
    let sparse = fs::metadata(copy.join("sparse")).unwrap();
    assert!(sparse.blocks() * 512 < 1 << 20, "holes stay holes");
    assert_eq!((last.directories_done, last.files_done), (5, 5));
    assert_eq!(last.bytes_done, (1 << 30) + 8);
    assert!(setup.hidden().is_empty());

    // Later changes do not reach it.
    fs::write(setup.share.join("new"), "x").unwrap();
    fs::remove_file(setup.share.join("read-only")).unwrap();
    fs::write(setup.share.join("Größe/日本語/🦀/file é.txt"), "other").unwrap();
    assert_eq!(picture(&copy), before);
}

#[test]
fn reading_for_a_snapshot_does_not_count_as_access() {
    let setup = setup();
    fs::create_dir(setup.share.join("dir")).unwrap();
    fs::write(setup.share.join("dir/file"), "x").unwrap();
    symlink("dir", setup.share.join("link")).unwrap();
    // Access no later than the last change: any read would be noted, even with `relatime`.
    let paths = ["dir/file", "dir", "link", ""];
    for path in paths {
        set_times(&setup.share.join(path), 1_000_000_000);
    }
    let name = setup.create(NOW).unwrap();
    for path in paths {
        let accessed = |root: &Path| fs::symlink_metadata(root.join(path)).unwrap().atime();
        // The link's own text has to be read, which the kernel may note.
        if path != "link" {
            assert_eq!(accessed(&setup.share), 1_000_000_000, "/{path}");
        }
        assert_eq!(accessed(&setup.snapshots.path(&name)), 1_000_000_000, "copy of /{path}");
    }
}

#[test]
fn hard_links_stay_hard_links_within_the_snapshot() {
    let setup = setup();
    fs::create_dir_all(setup.share.join("a/b")).unwrap();
    fs::write(setup.share.join("one"), "linked").unwrap();
    fs::hard_link(setup.share.join("one"), setup.share.join("a/two")).unwrap();
    fs::hard_link(setup.share.join("one"), setup.share.join("a/b/three")).unwrap();
    fs::write(setup.share.join("alone"), "linked").unwrap();
    let name = setup.create(NOW).unwrap();
    let meta = |path: &str| fs::metadata(setup.snapshots.path(&name).join(path)).unwrap();
    assert_eq!(meta("one").ino(), meta("a/two").ino());
    assert_eq!(meta("one").ino(), meta("a/b/three").ino());
    assert_eq!(meta("one").nlink(), 3, "no name of ours is left");
    assert_eq!(meta("alone").nlink(), 1);
    let live = fs::metadata(setup.share.join("one")).unwrap();
    assert_eq!(live.nlink(), 3);
    assert_ne!(live.ino(), meta("one").ino());
}

#[test]
fn special_files_are_skipped_and_links_not_followed() {
    let setup = setup();
    let fifo = setup.share.join("fifo");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(setup.share.join("socket")).unwrap();
    let outside = setup.share.with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "s").unwrap();
    symlink(&outside, setup.share.join("way-out")).unwrap();
    let mut skipped = 0;
    let name = setup
        .snapshots
        .create(&setup.share, NOW, &mut |done| {
            skipped = done.skipped;
            Control::Continue
        })
        .unwrap();
    assert_eq!(skipped, 2);
    let copy = setup.snapshots.path(&name);
    assert_eq!(tree::names(&copy).unwrap(), ["way-out"]);
    assert!(copy.join("way-out").is_symlink());
}

#[test]
fn a_tree_deeper_than_a_path_may_be_long_is_copied_and_deleted() {
    const LEVELS: usize = 60;
    let setup = setup();
    // 60 names of 100 characters: past the 4,096 bytes one path may have.
    let long = CString::new("d".repeat(100)).unwrap();
    let mut dir = tree::open_root(&setup.share).unwrap();
    for _ in 0..LEVELS {
        rustix::fs::mkdirat(&dir, &*long, Mode::RWXU).unwrap();
        dir = tree::descend(&dir, Path::new("d".repeat(100).as_str())).unwrap();
    }
    let mut directories = 0;
    let name = setup
        .snapshots
        .create(&setup.share, NOW, &mut |done| {
            directories = done.directories_done;
            Control::Continue
        })
        .unwrap();
    assert_eq!(directories, LEVELS as u64 + 1);
    setup.snapshots.delete(&name).unwrap();
    assert!(setup.snapshots.list().unwrap().is_empty() && setup.hidden().is_empty());
    // The temporary directory's own removal works by paths.
    let parent = tree::open_root(setup.share.parent().unwrap()).unwrap();
    tree::remove(&parent, "share").unwrap();
    assert!(!setup.share.exists());
}

#[test]
fn descriptors_do_not_grow_with_depth() {
    let setup = setup();
    fs::create_dir_all(setup.share.join("d/".repeat(250))).unwrap();
    let mut most = 0;
    let of_ours = |link: PathBuf| link.starts_with(setup.share.parent().unwrap());
    setup
        .snapshots
        .create(&setup.share, NOW, &mut |_| {
            let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
            let ours = open.filter_map(|fd| fs::read_link(fd.path()).ok());
            most = most.max(ours.filter(|link| of_ours(link.clone())).count());
            Control::Continue
        })
        .unwrap();
    assert!((1..=12).contains(&most), "{most}");
}

#[test]
fn names_are_stamps_and_differ_within_a_tick() {
    let setup = setup();
    let first = setup.create(NOW).unwrap();
    let second = setup.create(Timestamp(NOW.0 + 10)).unwrap();
    let third = setup.create(NOW).unwrap();
    assert_eq!(first.as_str(), NOW_STAMP);
    assert_eq!(second.as_str(), "2026-01-05T10:00:00.1234568Z");
    assert_eq!(third.as_str(), "2026-01-05T10:00:00.1234569Z");
    let earlier = setup.create(Timestamp(0)).unwrap();
    assert_eq!(setup.snapshots.list().unwrap(), [earlier, first.clone(), second, third]);
    assert_eq!(first.taken(), Timestamp(NOW.0 / 100 * 100));
}

#[test]
fn only_a_full_stamp_is_a_name() {
    assert!(SnapshotName::parse(NOW_STAMP).is_some());
    for text in ["", "..", "2026-01-05T10:00:00Z", "9999-12-31T23:59:59.9999999Z", "../x"] {
        assert_eq!(SnapshotName::parse(text), None, "{text}");
    }
}

#[test]
fn cancelling_leaves_nothing() {
    let setup = setup();
    furnish(&setup.share);
    let before = picture(&setup.share);
    for steps in 0..8 {
        let mut left = steps;
        let answer = setup.snapshots.create(&setup.share, NOW, &mut |_| {
            left -= 1;
            if left < 0 { Control::Cancel } else { Control::Continue }
        });
        assert!(matches!(answer, Err(SnapshotError::Cancelled)), "{steps}");
        assert!(tree::names(&setup.snapshots.dir).unwrap().is_empty());
    }
    assert_eq!(picture(&setup.share), before);
    setup.create(NOW).unwrap();
}

#[test]
fn what_a_crash_left_is_never_listed_and_is_swept() {
    let setup = setup();
    let kept = setup.create(NOW).unwrap();
    for mark in [NEW, LINKS, OLD] {
        let half = setup.snapshots.dir.join(format!("{mark}2026-01-05T11:00:00.0000000Z"));
        fs::create_dir_all(half.join("locked/below")).unwrap();
        fs::write(half.join("locked/file"), "x").unwrap();
        fs::set_permissions(half.join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
    }
    assert_eq!(setup.snapshots.list().unwrap().len(), 1);
    setup.snapshots.sweep().unwrap();
    assert!(setup.hidden().is_empty());
    assert_eq!(setup.snapshots.list().unwrap(), [kept]);
}

#[test]
fn the_limit_is_reached_and_not_passed() {
    let setup = setup();
    fs::create_dir_all(&setup.snapshots.dir).unwrap();
    for second in 0..SNAPSHOTS_MAX - 1 {
        let at = Timestamp(i64::try_from(second).unwrap() * 1_000_000_000);
        fs::create_dir(setup.snapshots.path(&SnapshotName::of(at))).unwrap();
    }
    let last = setup.create(NOW).unwrap();
    assert_eq!(setup.snapshots.list().unwrap().len(), SNAPSHOTS_MAX);
    let refused = setup.create(NOW);
    assert!(matches!(refused, Err(SnapshotError::TooMany)));
    assert_eq!(setup.snapshots.list().unwrap().len(), SNAPSHOTS_MAX);
    assert!(setup.hidden().is_empty());
    setup.snapshots.delete(&last).unwrap();
    setup.create(NOW).unwrap();
}

#[test]
fn a_deleted_snapshot_is_gone_and_cannot_be_deleted_twice() {
    let setup = setup();
    furnish(&setup.share);
    let name = setup.create(NOW).unwrap();
    // A removal that had failed before.
    fs::create_dir_all(setup.snapshots.dir.join(format!("{OLD}{name}/rest"))).unwrap();
    setup.snapshots.delete(&name).unwrap();
    assert!(tree::names(&setup.snapshots.dir).unwrap().is_empty());
    assert!(matches!(setup.snapshots.delete(&name), Err(StoreError::NotFound)));
}

#[test]
fn an_error_names_the_file_and_leaves_nothing() {
    let setup = setup();
    let nested = Snapshots::at(setup.share.join("inside"));
    let answer = nested.create(&setup.share, NOW, &mut go_on);
    assert!(matches!(answer, Err(SnapshotError::Nested(_))));
    assert!(!setup.share.join("inside").exists());
    let gone = setup.snapshots.create(&setup.share.join("gone"), NOW, &mut go_on);
    assert!(matches!(gone, Err(SnapshotError::Store(StoreError::NotFound))));
    let entry = SnapshotError::at(Path::new("a/b"), StoreError::PermissionDenied.into());
    assert_eq!(entry.to_string(), "/a/b: permission denied in the backing directory");
}

#[test]
fn two_at_once_take_two_names() {
    let setup = setup();
    furnish(&setup.share);
    let names: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| setup.create(NOW).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_ne!(names[0], names[1]);
    assert_eq!(setup.snapshots.list().unwrap().len(), 2);
}
