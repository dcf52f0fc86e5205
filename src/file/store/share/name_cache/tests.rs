//! Tests of cached names: when they may be used, with and without inotify.

use std::fs::{self, File};
use std::path::Path;

use super::*;

/// As on a file system that other hosts can change.
fn doubting() -> NameCache {
    let mut cache = NameCache::new();
    cache.trusting = false;
    cache
}

fn caches() -> [NameCache; 3] {
    [
        NameCache::new(),
        doubting(),
        NameCache::with(|| None, NAMES_MAX), // as where inotify is used up
    ]
}

fn count(cache: &NameCache, dir: &Path) -> usize {
    let dir = File::open(dir).unwrap();
    let id = Stat::of(&dir).unwrap().id;
    cache.ask((&dir, id), NamesInDoubt::All, |names| names.0.len()).unwrap()
}

fn spelling(cache: &NameCache, dir: &Path, name: &str) -> Option<String> {
    let dir = File::open(dir).unwrap();
    let id = Stat::of(&dir).unwrap().id;
    let wanted = NamesInDoubt::Spellings(name);
    cache.ask((&dir, id), wanted, |names| names.spelling(name).map(str::to_owned)).unwrap()
}

#[test]
fn a_cache_that_nobody_asks_takes_no_watches() {
    let cache = NameCache::with(|| panic!("nobody asked"), NAMES_MAX);
    drop(cache.expect(FileId { ino: 1, born: 1 }, "name").unwrap());
}

#[test]
fn a_name_made_or_removed_elsewhere_is_seen_by_who_asks_for_it_in_any_spelling() {
    for cache in caches() {
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
}

#[test]
fn a_name_of_our_own_is_known_at_once_and_again_looked_at_when_others_touch_it() {
    for cache in caches() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, path) = (File::open(temp.path()).unwrap(), temp.path().join("Own"));
        let id = Stat::of(&dir).unwrap().id;
        assert_eq!(count(&cache, temp.path()), 0);
        let expected = cache.expect(id, "Own").unwrap();
        fs::write(&path, "").unwrap();
        expected.made(&Stat::at(&dir, "Own").unwrap());
        assert_eq!(spelling(&cache, temp.path(), "own"), Some("Own".to_owned()));
        fs::remove_file(&path).unwrap();
        assert_eq!(spelling(&cache, temp.path(), "own"), None);

        // It comes to nothing, because another was first.
        let expected = cache.expect(id, "Own").unwrap();
        fs::write(&path, "").unwrap();
        drop(expected);
        assert_eq!(spelling(&cache, temp.path(), "OWN"), Some("Own".to_owned()));
    }
}

#[test]
fn a_name_of_our_own_that_another_removed_before_we_said_so_is_gone() {
    for cache in caches() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, path) = (File::open(temp.path()).unwrap(), temp.path().join("Own"));
        let id = Stat::of(&dir).unwrap().id;
        assert_eq!(count(&cache, temp.path()), 0);
        let expected = cache.expect(id, "Own").unwrap();
        fs::write(&path, "").unwrap();
        let stat = Stat::at(&dir, "Own").unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(spelling(&cache, temp.path(), "own"), None);
        expected.made(&stat);
        assert_eq!(spelling(&cache, temp.path(), "own"), None);
    }
}

#[test]
fn a_name_of_our_own_does_not_have_the_directory_read_again() {
    for cache in [NameCache::new(), doubting()] {
        let temp = tempfile::tempdir().unwrap();
        let dir = File::open(temp.path()).unwrap();
        let id = Stat::of(&dir).unwrap().id;
        assert_eq!(count(&cache, temp.path()), 0);
        // Not on disk: whoever reads the directory again no longer knows it.
        cache.slot(id).lock().unwrap().names.0.insert(NameKey::new("planted"), (FileKind::File, 1));
        for (made, name) in ["a", "b", "c"].into_iter().enumerate() {
            let expected = cache.expect(id, name).unwrap();
            fs::write(temp.path().join(name), "").unwrap();
            expected.made(&Stat::at(&dir, name).unwrap());
            assert_eq!(count(&cache, temp.path()), made + 2);
        }
    }
}

#[test]
fn without_a_watch_names_of_our_own_do_not_have_the_directory_read_again() {
    let cache = NameCache::with(|| None, NAMES_MAX);
    let temp = tempfile::tempdir().unwrap();
    for number in 0..20 {
        fs::write(temp.path().join(format!("old{number}")), "").unwrap();
    }
    assert_eq!(count(&cache, temp.path()), 20);
    let dir = fs::File::open(temp.path()).unwrap();
    let id = Stat::of(&dir).unwrap().id;
    let read_at = || cache.slot(id).lock().unwrap().read;
    let mut first = None;
    for number in 0..50 {
        let name = format!("New{number}");
        assert_eq!(spelling(&cache, temp.path(), &name.to_lowercase()), None);
        let expected = cache.expect(id, &name).unwrap();
        let file = fs::File::create(temp.path().join(&name)).unwrap();
        expected.made_in(&dir, &Stat::of(&file).unwrap());
        assert_eq!(spelling(&cache, temp.path(), &name.to_lowercase()), Some(name));
        // Before the first name, the change time may be too fresh to be believed.
        first = first.or_else(read_at);
    }
    // Unless it took longer than the names are believed.
    let slow = first.unwrap().elapsed() > TRUSTED_FOR;
    assert!(read_at() == first || slow, "the directory was read again");
    // What others make moves the change time: it is read.
    fs::write(temp.path().join("Other"), "").unwrap();
    assert_eq!(spelling(&cache, temp.path(), "other").as_deref(), Some("Other"));
}

#[test]
fn names_made_within_one_step_of_the_clock_are_seen() {
    for cache in caches() {
        let temp = tempfile::tempdir().unwrap();
        for number in 0..200 {
            fs::write(temp.path().join(number.to_string()), "").unwrap();
            assert_eq!(count(&cache, temp.path()), number + 1);
        }
        fs::remove_file(temp.path().join("7")).unwrap();
        assert_eq!(count(&cache, temp.path()), 199);
    }
}

#[test]
fn a_directory_that_changed_just_before_it_was_read_is_not_settled() {
    let cache = NameCache::with(|| None, NAMES_MAX);
    let temp = tempfile::tempdir().unwrap();
    let dir = File::open(temp.path()).unwrap();
    let id = Stat::of(&dir).unwrap().id;
    let settled = || {
        cache.ask((&dir, id), NamesInDoubt::All, |_| ()).unwrap();
        let slot = cache.slot(id);
        let as_of = slot.lock().unwrap().as_of;
        as_of.expect("just read").1
    };
    fs::write(temp.path().join("new"), "").unwrap();
    let fresh = settled();
    let changed = Stat::of(&dir).unwrap().changed;
    let in_time = now().since(changed) <= CHANGE_TIME_STEP;
    assert!(!fresh || !in_time, "read within the step, and believed");
    while now().since(changed) <= CHANGE_TIME_STEP {
        std::thread::yield_now();
    }
    assert!(settled());
}

#[test]
fn only_names_in_doubt_are_looked_at_again() {
    let cache = NameCache::new();
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("a"), "").unwrap();
    assert_eq!(count(&cache, temp.path()), 1);
    let dir = File::open(temp.path()).unwrap();
    let slot = cache.slot(Stat::of(&dir).unwrap().id);
    // A name that is not on disk stays as long as nothing puts it in doubt: nothing was re-read.
    let planted = NameKey::new("planted");
    slot.lock().unwrap().names.0.insert(planted, (FileKind::File, 1));
    fs::write(temp.path().join("b"), "").unwrap();
    assert_eq!(count(&cache, temp.path()), 3);
}

#[test]
fn a_walk_in_pages_reads_the_directory_once_also_while_names_come_and_go() {
    const NAMES: usize = 2_000;
    let cache = doubting();
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name);
    for number in 0..NAMES {
        fs::write(path(&format!("{number:04}")), "").unwrap();
    }
    let dir = File::open(temp.path()).unwrap();
    assert_eq!(count(&cache, temp.path()), NAMES);
    let id = Stat::of(&dir).unwrap().id;
    let slot = cache.slot(id);
    // Not on disk: whoever reads the directory again no longer knows it.
    slot.lock().unwrap().names.0.insert(NameKey::new("planted"), (FileKind::File, 1));
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    let mut passed = None;
    loop {
        let page = |names: &Names| names.page("", after.as_deref(), 50);
        let page = cache.ask((&dir, id), NamesInDoubt::All, page).unwrap();
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
    assert_eq!(found.len(), NAMES + 1);
    assert_eq!(found.last().map(String::as_str), Some("planted"));
}

#[test]
fn a_change_without_an_account_is_seen_by_the_change_time() {
    let cache = doubting();
    let temp = tempfile::tempdir().unwrap();
    assert_eq!(count(&cache, temp.path()), 0);
    let dir = File::open(temp.path()).unwrap();
    let slot = cache.slot(Stat::of(&dir).unwrap().id);
    let watch = slot.lock().unwrap().watch.expect("watched");
    fs::write(temp.path().join("a"), "").unwrap();
    // The event is lost, as that of another host would be.
    let taken = cache.watch.get().unwrap().take(watch, NamesInDoubt::All, usize::MAX);
    assert!(matches!(taken, Doubts::Names(names) if names.len() == 1));
    assert_eq!(count(&cache, temp.path()), 1);
}

#[test]
fn more_names_in_doubt_than_are_kept_mean_reading_again() {
    let cache = NameCache::new();
    let temp = tempfile::tempdir().unwrap();
    assert_eq!(count(&cache, temp.path()), 0);
    // Past the doubts kept for a directory, and past the kernel's queue as well.
    for number in 0..20_000 {
        fs::write(temp.path().join(number.to_string()), "").unwrap();
    }
    assert_eq!(count(&cache, temp.path()), 20_000);
    fs::write(temp.path().join("last"), "").unwrap();
    assert_eq!(count(&cache, temp.path()), 20_001);
}

#[test]
fn the_names_kept_are_bounded_and_the_oldest_directories_go() {
    let cache = NameCache::with(DirWatch::shared, 40);
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
}

#[test]
fn a_large_directory_is_not_read_in_non_blocking_mode_and_is_used_once_it_was() {
    let temp = tempfile::tempdir().unwrap();
    let large = || Stat::of(File::open(temp.path()).unwrap()).unwrap().size > NON_BLOCKING_MAX;
    let mut made = 0;
    while !large() {
        fs::write(temp.path().join(format!("{made:0200}")), "").unwrap();
        made += 1;
    }
    let (cache, dir) = (NameCache::new(), File::open(temp.path()).unwrap());
    let id = Stat::of(&dir).unwrap().id;
    let ask = || cache.ask((&dir, id), NamesInDoubt::All, |names| names.0.len());
    assert_eq!(front_end::without_waiting(ask).map(Result::unwrap), None);
    assert_eq!(ask().unwrap(), made);
    assert_eq!(front_end::without_waiting(ask).map(Result::unwrap), Some(made));
    // While another thread reads it, nobody waits for that one either.
    let slot = cache.slot(id);
    let _reading = slot.lock().unwrap();
    assert_eq!(front_end::without_waiting(ask).map(Result::unwrap), None);
}

/// Makes more names than are copied or looked at in non-blocking mode, and has the cache know them.
fn make_many(cache: &NameCache, dir: &Path) {
    for number in 0..=NON_BLOCKING_NAMES {
        fs::write(dir.join(number.to_string()), "").unwrap();
    }
    assert_eq!(count(cache, dir), NON_BLOCKING_NAMES + 1);
}

#[test]
fn in_non_blocking_mode_a_few_names_of_a_large_directory_are_copied_and_not_all() {
    let (cache, temp) = (NameCache::new(), tempfile::tempdir().unwrap());
    make_many(&cache, temp.path());
    let dir = File::open(temp.path()).unwrap();
    let id = Stat::of(&dir).unwrap().id;
    let page = |limit| cache.page((&dir, id), ("", None), limit).map(|page| page.len());
    assert_eq!(front_end::without_waiting(|| page(10)).unwrap().unwrap(), 10);
    assert!(front_end::without_waiting(|| page(usize::MAX)).is_none());
    assert_eq!(page(usize::MAX).unwrap(), NON_BLOCKING_NAMES + 1);
}

#[test]
fn in_non_blocking_mode_many_names_in_doubt_are_left_so() {
    for cache in [NameCache::new(), doubting()] {
        let temp = tempfile::tempdir().unwrap();
        make_many(&cache, temp.path());
        let dir = File::open(temp.path()).unwrap();
        let id = Stat::of(&dir).unwrap().id;
        for number in 0..=NON_BLOCKING_NAMES {
            fs::remove_file(temp.path().join(number.to_string())).unwrap();
        }
        let absent = || {
            let wanted = NamesInDoubt::Spellings("absent");
            cache.ask((&dir, id), wanted, |names| names.spelling("absent").is_some())
        };
        for _ in 0..2 {
            assert!(front_end::without_waiting(absent).is_none());
        }
        // Looked at one by one, not read again: what was planted is still known.
        cache.slot(id).lock().unwrap().names.0.insert(NameKey::new("planted"), (FileKind::File, 1));
        assert!(!absent().unwrap());
        assert_eq!(count(&cache, temp.path()), 1);
    }
}

#[test]
fn a_name_is_made_without_waiting_for_a_thread_that_has_the_names() {
    for cache in caches() {
        let temp = tempfile::tempdir().unwrap();
        let dir = File::open(temp.path()).unwrap();
        let id = Stat::of(&dir).unwrap().id;
        assert_eq!(count(&cache, temp.path()), 0);
        let slot = cache.slot(id);
        let reading = slot.lock().unwrap();
        assert!(front_end::without_waiting(|| cache.expect(id, "Own").map(drop)).is_none());
        drop(reading);
        let expected = cache.expect(id, "Own").unwrap();
        let reading = slot.lock().unwrap();
        fs::write(temp.path().join("Own"), "").unwrap();
        expected.made_in(&dir, &Stat::at(&dir, "Own").unwrap());
        drop(reading);
        assert_eq!(spelling(&cache, temp.path(), "own"), Some("Own".to_owned()));
    }
}
