//! Tests of state: small files, epochs, leftovers.

use super::*;
use crate::disk::testing::{names_in, places};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn state() -> (tempfile::TempDir, StateDir) {
    let place = tempfile::tempdir().unwrap();
    let state = StateDir::open(&place.path().join("share/.state")).unwrap();
    (place, state)
}

fn text_of(error: &StoreError) -> String {
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn entries_are_kept_over_a_restart_each_in_its_drawer() {
    for place in places() {
        let path = place.path().join("state");
        let state = StateDir::open(&path).unwrap();
        for (number, drawer) in Drawer::ALL.into_iter().enumerate() {
            state.put(drawer, "a/b", &0, Durability::Cached).unwrap();
            state.put(drawer, "a/b", &number, Durability::Synced).unwrap();
            state.put(drawer, "other", &99, Durability::Synced).unwrap();
        }
        drop(state);

        let state = StateDir::open(&path).unwrap();
        for (number, drawer) in Drawer::ALL.into_iter().enumerate() {
            assert_eq!(state.get::<usize>(drawer, "a/b").unwrap(), Some(number));
            assert!(state.remove(drawer, "other", Durability::Synced).unwrap());
            assert!(!state.remove(drawer, "other", Durability::Synced).unwrap());
            let entries = state.all::<usize>(drawer).unwrap();
            assert_eq!(entries.good, [("a/b".to_owned(), number)]);
            assert!(entries.damaged.is_empty());
            assert_eq!(names_in(path.join(drawer.folder_name())), ["a%2Fb.json"]);
        }
    }
}

#[test]
fn a_missing_entry_or_drawer_is_none() {
    let (_place, state) = state();
    assert_eq!(state.get::<u8>(Drawer::Leases, "x").unwrap(), None);
    assert!(state.all::<u8>(Drawer::Leases).unwrap().good.is_empty());
    assert!(!state.path().join("leases").exists());
}

#[test]
fn the_folder_is_its_owners_alone() {
    let (_place, state) = state();
    let mode = fs::metadata(state.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn two_cannot_hold_one_folder() {
    let (_place, state) = state();
    let path = state.path().to_owned();
    let error = StateDir::open(&path).unwrap_err();
    assert!(matches!(&error, StoreError::InUse { path: named } if *named == path));
    assert!(error.to_string().contains("in use by another process"));
    drop(state);
    StateDir::open(&path).unwrap();
}

#[test]
fn a_folder_that_gets_the_inode_of_a_removed_one_is_free() {
    let (_place, state) = state();
    let path = state.path().to_owned();
    let inode = fs::metadata(&path).unwrap().ino();
    for _ in 0..20 {
        fs::remove_dir_all(&path).unwrap();
        fs::create_dir(&path).unwrap();
        StateDir::open(&path).unwrap();
        if fs::metadata(&path).unwrap().ino() == inode {
            return;
        }
    }
    // This file system gives each folder an inode of its own: nothing to mix up.
}

#[test]
fn a_folder_in_use_is_not_swept() {
    let (_place, state) = state();
    let being_written = state.path().join(".tmp-7");
    fs::write(&being_written, b"half").unwrap();
    StateDir::open(state.path()).unwrap_err();
    assert!(being_written.exists());
}

#[test]
fn what_a_crash_left_half_written_is_gone_at_the_next_start() {
    let (_place, state) = state();
    let path = state.path().to_owned();
    state.put(Drawer::Pending, "a", &1, Durability::Synced).unwrap();
    assert_eq!(state.next_epoch().unwrap(), 1);
    drop(state);
    fs::write(path.join("pending/.tmp-0"), b"{\"v\":1,\"val").unwrap();
    fs::write(path.join(".tmp-0"), b"").unwrap();

    let state = StateDir::open(&path).unwrap();
    assert_eq!(names_in(path.join("pending")), ["a.json"]);
    assert_eq!(names_in(path), ["epoch", "pending"]);
    assert_eq!(state.next_epoch().unwrap(), 2);
}

#[test]
fn an_epoch_never_comes_back() {
    let (_place, state) = state();
    let path = state.path().to_owned();
    assert_eq!((state.next_epoch().unwrap(), state.next_epoch().unwrap()), (1, 2));
    drop(state);
    for expected in 3..10 {
        let state = StateDir::open(&path).unwrap();
        assert_eq!(state.next_epoch().unwrap(), expected);
    }
}

#[test]
fn a_damaged_or_used_up_epoch_is_an_error_and_no_fresh_start() {
    let (_place, state) = state();
    let file = state.path().join("epoch");
    for text in ["", "x", "-1", "16777215", "4294967296"] {
        fs::write(&file, text).unwrap();
        let error = state.next_epoch().unwrap_err();
        assert!(text_of(&error).contains("epoch is damaged"), "{text}: {error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    fs::write(&file, "16777214").unwrap();
    assert_eq!(state.next_epoch().unwrap(), EPOCH_MAX);
}

#[test]
fn a_damaged_entry_is_named_and_hides_no_other() {
    let (_place, state) = state();
    state.put(Drawer::Leases, "good", &7, Durability::Cached).unwrap();
    let folder = state.path().join("leases");
    fs::write(folder.join("empty.json"), b"").unwrap();
    fs::write(folder.join("newer.json"), b"{\"v\":2,\"value\":{\"new\":1}}").unwrap();
    fs::write(folder.join("wrong.json"), b"{\"v\":1,\"value\":\"text\"}").unwrap();
    fs::write(folder.join("foreign.txt"), b"").unwrap();
    fs::create_dir(folder.join("dir.json")).unwrap();

    let entries = state.all::<u32>(Drawer::Leases).unwrap();
    assert_eq!(entries.good, [("good".to_owned(), 7)]);
    let texts: Vec<_> = entries.damaged.iter().map(text_of).collect();
    assert_eq!(texts.len(), 5, "{texts:?}");
    for name in ["empty.json", "newer.json", "wrong.json", "foreign.txt", "dir.json"] {
        let place = folder.join(name).display().to_string();
        assert!(texts.iter().any(|text| text.contains(&place)), "{name}: {texts:?}");
    }

    let newer = state.get::<u32>(Drawer::Leases, "newer").unwrap_err();
    assert!(text_of(&newer).contains("version 2"), "{newer}");
    assert!(state.get::<u32>(Drawer::Leases, "wrong").is_err());
    assert_eq!(names_in(folder).len(), 6, "nothing is dropped");
}

#[test]
fn any_key_is_a_name_in_its_folder() {
    let keys = ["", ".", "..", "../../x", "a/b", ".tmp-1", "%41", "A", "a", "gr\u{fc}n", "a\0b"];
    let (_place, state) = state();
    for key in keys {
        state.put(Drawer::Share, key, &key, Durability::Cached).unwrap();
    }
    let mut found: Vec<String> = Vec::new();
    for (key, value) in state.all::<String>(Drawer::Share).unwrap().good {
        assert_eq!(key, value);
        found.push(key);
    }
    found.sort_unstable();
    let mut expected = keys.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(names_in(state.path().to_owned()), ["share"]);
}

#[test]
fn a_key_too_long_for_a_name_is_refused() {
    let (_place, state) = state();
    let put = |key: String| state.put(Drawer::Share, &key, &1, Durability::Cached);
    put("k".repeat(250)).unwrap();
    assert!(matches!(put("k".repeat(251)), Err(StoreError::NameTooLong)));
    assert!(matches!(put("/".repeat(84)), Err(StoreError::NameTooLong)));
    let long = "k".repeat(251);
    assert!(matches!(state.get::<u8>(Drawer::Share, &long), Err(StoreError::NameTooLong)));
}

#[test]
fn a_state_folder_that_cannot_be_made_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("file"), b"").unwrap();
    let below = StateDir::open(&place.path().join("file/state"));
    assert!(matches!(below, Err(StoreError::NotADirectory)), "{below:?}");
    assert!(StateDir::open(&place.path().join("file")).is_err());
}

#[test]
fn a_value_without_a_json_form_is_refused_and_the_old_one_stays() {
    let (_place, state) = state();
    state.put(Drawer::Share, "k", &1, Durability::Cached).unwrap();
    let unwritable = std::collections::HashMap::from([(vec![1], 1)]);
    assert!(state.put(Drawer::Share, "k", &unwritable, Durability::Cached).is_err());
    assert_eq!(state.get::<u8>(Drawer::Share, "k").unwrap(), Some(1));
}
