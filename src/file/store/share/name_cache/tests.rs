//! Tests of cached names: when they may be used, and when the directory is read again.

use std::fs::{self, File};
use std::path::Path;

use super::*;

fn count(cache: &NameCache, dir: &Path) -> usize {
    let dir = File::open(dir).unwrap();
    let id = Stat::of(&dir).unwrap().id;
    cache.ask((&dir, id), |names| names.0.len()).unwrap()
}

fn spelling(cache: &NameCache, dir: &Path, name: &str) -> Option<String> {
    let dir = File::open(dir).unwrap();
    let id = Stat::of(&dir).unwrap().id;
    cache.ask((&dir, id), |names| names.spelling(name).map(str::to_owned)).unwrap()
}

/// Until a reading of the directory can be believed.
fn wait_until_settled(dir: &File) {
    let changed = Stat::of(dir).unwrap().changed;
    while now().since(changed) <= CHANGE_TIME_STEP {
        std::thread::yield_now();
    }
}

/// A directory and its cache.
struct Home {
    temp: tempfile::TempDir,
    dir: File,
    id: FileId,
    cache: NameCache,
}

impl Home {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let dir = File::open(temp.path()).unwrap();
        let id = Stat::of(&dir).unwrap().id;
        Self { temp, dir, id, cache: NameCache::new() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.temp.path().join(name)
    }

    fn spelling(&self, name: &str) -> Option<String> {
        spelling(&self.cache, self.temp.path(), name)
    }

    /// Knows a name that is not on disk: who reads the directory again no longer knows it.
    fn plant(&self) -> Instant {
        self.spelling("");
        let directory = self.cache.directory(self.id);
        let mut seen = directory.seen.lock().unwrap();
        seen.names.0.insert(NameKey::new("planted"), (FileKind::File, 1));
        // As if it had been read long after its last change, and just now.
        seen.as_of = seen.as_of.map(|(as_of, _)| (as_of, true));
        *seen.read.insert(Instant::now())
    }

    /// True if the directory was not read again since then. On a slow machine it may be.
    fn holds(&self, planted: Instant) -> bool {
        self.spelling("planted").is_some() || planted.elapsed() >= TRUSTED_FOR
    }

    fn create(&self, name: &str) {
        let change = self.cache.change(self.id);
        let file = File::create_new(self.path(name)).unwrap();
        change.done(&self.dir, |names| names.insert(name, &Stat::of(&file).unwrap()));
    }
}

#[test]
fn a_name_made_or_removed_elsewhere_is_seen_by_who_asks_for_it_in_any_spelling() {
    let cache = NameCache::new();
    let temp = tempfile::tempdir().unwrap();
    assert_eq!(spelling(&cache, temp.path(), "a"), None);
    for name in ["First", "Second", "Third"] {
        fs::write(temp.path().join(name), "").unwrap();
    }
    assert_eq!(spelling(&cache, temp.path(), "SECOND"), Some("Second".to_owned()));
    fs::rename(temp.path().join("First"), temp.path().join("Fourth")).unwrap();
    assert_eq!(spelling(&cache, temp.path(), "first"), None);
    assert_eq!(spelling(&cache, temp.path(), "fourth"), Some("Fourth".to_owned()));
    assert_eq!(count(&cache, temp.path()), 3);
}

#[test]
fn changes_of_our_own_are_known_at_once_and_do_not_have_the_directory_read_again() {
    let home = Home::new();
    fs::write(home.path("Old"), "").unwrap();
    let planted = home.plant();
    home.create("Own");
    assert_eq!(home.spelling("own").as_deref(), Some("Own"));
    assert!(home.holds(planted));
    let planted = home.plant();
    let change = home.cache.change(home.id);
    fs::rename(home.path("Own"), home.path("Moved")).unwrap();
    change.done(&home.dir, |names| names.rename("Own", "Moved"));
    assert_eq!((home.spelling("own"), home.spelling("moved")), (None, Some("Moved".to_owned())));
    assert!(home.holds(planted));
    let planted = home.plant();
    let change = home.cache.change(home.id);
    fs::remove_file(home.path("Moved")).unwrap();
    change.done(&home.dir, |names| names.remove("Moved"));
    assert_eq!(home.spelling("moved"), None);
    assert!(home.holds(planted));
    // What others make moves the change time: the directory is read.
    fs::write(home.path("Other"), "").unwrap();
    assert_eq!(home.spelling("other").as_deref(), Some("Other"));
}

#[test]
fn a_change_of_our_own_that_is_not_said_to_be_done_has_the_directory_read_again() {
    let home = Home::new();
    home.plant();
    let change = home.cache.change(home.id);
    fs::write(home.path("Own"), "").unwrap();
    drop(change);
    assert_eq!(home.spelling("own").as_deref(), Some("Own"));
    assert_eq!(home.spelling("planted"), None);
}

#[test]
fn changes_of_our_own_that_overlap_have_the_directory_read_again() {
    for first_ends_first in [true, false] {
        let home = Home::new();
        fs::write(home.path("Goes"), "").unwrap();
        home.plant();
        let removal = home.cache.change(home.id);
        let creation = home.cache.change(home.id);
        fs::remove_file(home.path("Goes")).unwrap();
        let file = File::create_new(home.path("Comes")).unwrap();
        let stat = Stat::of(&file).unwrap();
        let remove = || removal.done(&home.dir, |names| names.remove("Goes"));
        let create = || creation.done(&home.dir, |names| names.insert("Comes", &stat));
        if first_ends_first {
            remove();
            assert_eq!(home.spelling("goes"), None);
            create();
        } else {
            create();
            assert_eq!(home.spelling("goes"), None);
            remove();
        }
        assert_eq!(home.spelling("planted"), None);
        assert_eq!(home.spelling("comes").as_deref(), Some("Comes"));
        let planted = home.plant();
        home.create("Alone");
        assert!(home.holds(planted), "later changes are not affected");
    }
}

#[test]
fn a_name_of_our_own_that_another_removed_before_we_said_so_is_gone_when_it_is_read_again() {
    let home = Home::new();
    assert_eq!(home.spelling("own"), None);
    home.create("Own");
    fs::remove_file(home.path("Own")).unwrap();
    assert_eq!(home.spelling("own"), None);
}

#[test]
fn names_made_within_one_step_of_the_clock_are_seen() {
    let cache = NameCache::new();
    let temp = tempfile::tempdir().unwrap();
    for number in 0..200 {
        fs::write(temp.path().join(number.to_string()), "").unwrap();
        assert_eq!(count(&cache, temp.path()), number + 1);
    }
    fs::remove_file(temp.path().join("7")).unwrap();
    assert_eq!(count(&cache, temp.path()), 199);
}

#[test]
fn a_directory_that_changed_just_before_it_was_read_is_not_settled() {
    let cache = NameCache::new();
    let temp = tempfile::tempdir().unwrap();
    let dir = File::open(temp.path()).unwrap();
    let id = Stat::of(&dir).unwrap().id;
    let settled = || {
        cache.ask((&dir, id), |_| ()).unwrap();
        let directory = cache.directory(id);
        let as_of = directory.seen.lock().unwrap().as_of;
        as_of.expect("just read").1
    };
    fs::write(temp.path().join("new"), "").unwrap();
    let fresh = settled();
    let changed = Stat::of(&dir).unwrap().changed;
    let in_time = now().since(changed) <= CHANGE_TIME_STEP;
    assert!(!fresh || !in_time, "read within the step, and believed");
    wait_until_settled(&dir);
    assert!(settled());
}

#[test]
fn a_walk_in_pages_finds_each_name_once_also_while_others_come_and_go() {
    const NAMES: usize = 2_000;
    let cache = NameCache::new();
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name);
    for number in 0..NAMES {
        fs::write(path(&format!("{number:04}")), "").unwrap();
    }
    let dir = File::open(temp.path()).unwrap();
    assert_eq!(count(&cache, temp.path()), NAMES);
    let id = Stat::of(&dir).unwrap().id;
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    let mut passed = None;
    loop {
        let page = |names: &Names| names.page("", after.as_deref(), 50);
        let page = cache.ask((&dir, id), page).unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.name.clone());
        found.extend(page.into_iter().map(|listed| listed.name));
        let passing = path(&format!("{:04}-passing", found.len() / 2));
        fs::write(&passing, "").unwrap();
        if let Some(before) = passed.replace(passing) {
            fs::remove_file(before).unwrap();
        }
    }
    found.retain(|name| !name.ends_with("passing"));
    let expected: Vec<_> = (0..NAMES).map(|number| format!("{number:04}")).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_names_kept_are_bounded_and_the_oldest_directories_go() {
    let cache = NameCache::with(40);
    let temp = tempfile::tempdir().unwrap();
    let dirs: Vec<_> = (0..8).map(|n| temp.path().join(n.to_string())).collect();
    for dir in &dirs {
        fs::create_dir(dir).unwrap();
        for number in 0..9 {
            fs::write(dir.join(number.to_string()), "").unwrap();
        }
        assert_eq!(count(&cache, dir), 9);
        let table = cache.table();
        let weights: usize = table.slots.values().map(|slot| slot.weight).sum();
        assert_eq!(table.weight, weights);
        assert!(table.weight <= 40, "{}", table.weight);
    }
    // What was forgotten is read again, and one directory above the bound is still served.
    assert_eq!(count(&cache, &dirs[0]), 9);
    for number in 9..60 {
        fs::write(dirs[1].join(number.to_string()), "").unwrap();
    }
    assert_eq!(count(&cache, &dirs[1]), 60);
    assert_eq!(count(&cache, &dirs[2]), 9);
    assert!(cache.table().weight <= 40);
    // A directory that is changed and not asked about takes a place, too.
    for ino in 0..100 {
        drop(cache.change(FileId { ino, born: 1 }));
    }
    assert!(cache.table().weight <= 40);
}

#[test]
fn a_name_is_made_without_waiting_for_a_thread_that_has_the_names() {
    let home = Home::new();
    assert_eq!(home.spelling("own"), None);
    let directory = home.cache.directory(home.id);
    let reading = directory.seen.lock().unwrap();
    home.create("Own");
    drop(reading);
    assert_eq!(home.spelling("own").as_deref(), Some("Own"));
}
