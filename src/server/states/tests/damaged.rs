//! A saved state that is damaged: it is refused with the path of its own file, and nothing is
//! changed.

use std::path::PathBuf;

use super::*;
use crate::file::service::shares::{DeleteShareSnapshots, ShareRef};

/// A data directory with something old in it, and the saved state `saved`, which has a deleted
/// share.
fn prepare_all(data: &Path) -> Bench {
    let bench = Bench::open(data);
    bench.furnish("saved");
    for account in bench.accounts.iter() {
        account.file().create_share("gone", NewShare::default()).unwrap();
        let gone = ShareRef::new("gone");
        account.file().delete_share(&bench.cx(), &gone, DeleteShareSnapshots::None).unwrap();
    }
    bench.states.save("saved").unwrap();
    bench.states.reset().unwrap();
    bench.furnish("old");
    bench
}

/// The files of the account `two` in the saved state that must be sound.
fn saved_files(bench: &Bench) -> Vec<PathBuf> {
    let account = bench.root.folder().join("states/saved/accounts/two");
    let deleted = fs::read_dir(account.join("deleted")).unwrap().next().unwrap().unwrap().path();
    let files = [
        "blob.db",
        "queue.db",
        "table.db",
        "shares/saved/epoch",
        "shares/saved/share/properties.json",
        "services/service/queue.json",
    ];
    let deleted = [deleted.join("when"), deleted.join("state/epoch")];
    files.map(|file| account.join(file)).into_iter().chain(deleted).collect()
}

fn assert_refused(bench: &Bench, path: &Path, how: &str) {
    let said = bench.states.restore("saved").unwrap_err().to_string();
    assert!(said.contains(&path.display().to_string()), "{how} {}: {said}", path.display());
    assert_eq!(bench.accounts.halted(), None, "{how}");
    assert_eq!(bench.whole(), "old", "{how}");
}

#[test]
fn a_damaged_file_of_a_saved_state_is_named_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let bench = prepare_all(&folder.path().join("data"));
    for path in saved_files(&bench) {
        let good = fs::read(&path).unwrap();
        let mut torn = good.clone();
        // Behind the first page, if it is a database.
        let from = if torn.len() > 4096 { 4096 } else { 0 };
        torn[from..].fill(0xFF);
        for (how, bytes) in [("empty", &b""[..]), ("garbage", b"garbage"), ("torn", &torn)] {
            fs::write(&path, bytes).unwrap();
            assert_refused(&bench, &path, how);
        }
        fs::write(&path, good).unwrap();
    }
    bench.states.restore("saved").unwrap();
    assert_eq!(bench.whole(), "saved");
}

#[test]
fn a_saved_state_that_lost_a_part_is_refused_and_one_without_a_list_of_parts_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let bench = prepare_all(&folder.path().join("data"));
    let state = bench.root.folder().join("states/saved");
    let account = state.join("accounts/two");
    let aside = folder.path().join("aside");
    for part in ["blob.db", "queue.db", "table.db", "files/saved", "shares/saved"] {
        fs::rename(account.join(part), &aside).unwrap();
        assert_refused(&bench, &account.join(part), "missing");
        fs::rename(&aside, account.join(part)).unwrap();
    }
    for part in ["accounts", "accounts/two", "accounts/two/files"] {
        fs::rename(state.join(part), &aside).unwrap();
        assert_refused(&bench, &state.join(part), "missing");
        fs::rename(&aside, state.join(part)).unwrap();
    }
    // As earlier versions wrote it.
    let text = fs::read(state.join("state.json")).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert!(manifest.as_object_mut().unwrap().remove("parts").is_some());
    fs::write(state.join("state.json"), manifest.to_string()).unwrap();
    bench.states.restore("saved").unwrap();
    assert_eq!(bench.whole(), "saved");
}

#[test]
fn a_damaged_state_does_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let bench = prepare_all(&folder.path().join("data"));
    bench.states.save("other").unwrap();
    let manifest = bench.root.folder().join("states/saved/state.json");
    fs::write(&manifest, "").unwrap();
    for why in ["EOF", "it is missing"] {
        let listed = bench.states.list().unwrap();
        let [Ok(other), Err(damaged)] = &listed[..] else { panic!("{listed:?}") };
        assert_eq!((other.name.as_str(), damaged.name.as_str()), ("other", "saved"));
        let said = format!("{} is damaged: {why}", manifest.display());
        assert!(damaged.why.starts_with(&said), "{}", damaged.why);
        assert_refused(&bench, &manifest, why);
        let _ = fs::remove_file(&manifest);
    }
}
