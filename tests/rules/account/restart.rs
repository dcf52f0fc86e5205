//! What a start finds: everything that was acknowledged, whatever a crash left beside it.

use latchfs::file::service::shares::{DeleteShareSnapshots, ListOptions, ShareChanges};
use latchfs::file::store::share::Metadata;
use latchfs::rules::lease::LeaseState;
use latchfs::rules::policy::StoredPolicy;

use super::*;

#[test]
fn all_that_was_set_is_there_after_a_restart() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let metadata: Metadata = [("Cat", "tabby")].into_iter().collect();
    engine.set_metadata(&DOCS, metadata).unwrap();
    let policy = StoredPolicy { id: "p".to_owned(), ..StoredPolicy::default() };
    engine.set_policies(&DOCS, vec![policy]).unwrap();
    let changes = ShareChanges { quota_gib: Some(4), ..ShareChanges::default() };
    engine.set_properties(&DOCS, changes).unwrap();
    engine.lease(&DOCS, acquire(-1, None)).unwrap();
    let before = engine.properties(&DOCS).unwrap();
    drop(engine);
    assert_eq!(setup.open().properties(&DOCS).unwrap(), before);
}

#[test]
fn deleted_shares_are_known_and_restored_after_a_restart() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let changes = ShareChanges { quota_gib: Some(4), ..ShareChanges::default() };
    engine.set_properties(&DOCS, changes).unwrap();
    engine.delete_share(&somebody(), &DOCS, DeleteShareSnapshots::None).unwrap();
    let options = ListOptions { deleted: true, ..ListOptions::default() };
    let before = engine.list_shares(&options).unwrap();
    drop(engine);
    let engine = setup.open();
    assert_eq!(engine.list_shares(&options).unwrap(), before);
    let info = &before.shares[0];
    assert_eq!(info.properties.quota_gib, 4);
    engine.restore_share("docs", &info.deleted.as_ref().unwrap().version).unwrap();
    assert_eq!(engine.properties(&DOCS).unwrap().properties, info.properties);
}

/// Set in the child process below: where the data root is.
const PLAY: &str = "LATCHFS_TEST_PLAYS_A_KILLED_SERVER";

/// What the killed server had acknowledged.
fn change_much(engine: &FileService) {
    let changes = ShareChanges { quota_gib: Some(4), ..ShareChanges::default() };
    engine.create_share("docs", NewShare { changes, ..NewShare::default() }).unwrap();
    engine.lease(&DOCS, acquire(-1, None)).unwrap();
    engine.create_snapshot(&DOCS, None, &mut go_on).unwrap();
    engine.create_share("gone", NewShare::default()).unwrap();
    let gone = ShareRef::new("gone");
    engine.delete_share(&somebody(), &gone, DeleteShareSnapshots::None).unwrap();
}

#[test]
fn what_was_acknowledged_survives_the_kill_of_the_server() {
    let clock = Arc::new(ManualClock::new(START));
    if let Some(data) = std::env::var_os(PLAY) {
        let (options, journal) = (FileOptions::default(), AccountJournal::default());
        change_much(&FileService::open(Path::new(&data), options, clock, journal).unwrap());
        // No destructor runs.
        std::process::abort();
    }
    let setup = Setup::new();
    let name = "account::restart::what_was_acknowledged_survives_the_kill_of_the_server";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(PLAY, setup.data())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), None, "ended by a signal: {output:?}");

    let engine = setup.open();
    let info = engine.properties(&DOCS).unwrap();
    assert_eq!((info.properties.quota_gib, info.lease.state), (4, LeaseState::Leased));
    assert_eq!(engine.snapshots("docs").unwrap().len(), 1);
    let options = ListOptions { deleted: true, prefix: "gone", ..ListOptions::default() };
    let page = engine.list_shares(&options).unwrap();
    let version = &page.shares[0].deleted.as_ref().unwrap().version;
    engine.restore_share("gone", version).unwrap();
}

#[test]
fn half_written_files_of_a_killed_server_are_swept() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let stamp = engine.create_snapshot(&DOCS, None, &mut go_on).unwrap().0;
    drop(engine);
    let hidden = setup.data().join(".latchfs");
    let state = hidden.join("shares/docs");
    fs::write(state.join("share/.tmp-0"), "{\"v\":1,\"val").unwrap();
    fs::create_dir_all(state.join("snapshots/2020-01-01T00:00:00.0000000Z/records")).unwrap();
    fs::create_dir(hidden.join("snapshots/docs/.new-2026-01-05T10:00:00.0000001Z")).unwrap();
    fs::create_dir(hidden.join("deleted/.new-docs@01")).unwrap();

    let engine = setup.open();
    assert_eq!(engine.snapshots("docs").unwrap(), [stamp]);
    let left = tree(&setup.data());
    let half = |path: &&String| path.contains(".tmp-") || path.contains(".new-");
    assert_eq!(left.iter().find(half), None);
    assert!(!left.iter().any(|path| path.contains("2020-01-01")), "{left:?}");
}

#[test]
fn a_snapshot_cut_short_keeps_the_properties_that_the_share_had_at_the_next_start() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let stamp = engine.create_snapshot(&DOCS, None, &mut go_on).unwrap().0;
    drop(engine);
    let state = setup.data().join(".latchfs/shares/docs/share");
    let name = |path: &std::path::PathBuf| path.to_string_lossy().contains("properties-");
    let entries = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path());
    let own: Vec<PathBuf> = entries.filter(name).collect();
    assert_eq!(own.len(), 1, "{own:?}");
    fs::remove_file(&own[0]).unwrap();

    let engine = setup.open();
    let before = engine.properties(&DOCS).unwrap().properties.quota_gib;
    let changes =
        ShareChanges { quota_gib: Some(u64::from(before) + 1), ..ShareChanges::default() };
    engine.set_properties(&DOCS, changes).unwrap();
    drop(engine);
    let engine = setup.open();
    let quota = |at: &ShareRef<'_>| engine.properties(at).unwrap().properties.quota_gib;
    assert_eq!((quota(&DOCS), quota(&DOCS.at(&stamp))), (before + 1, before));
}

#[test]
fn damaged_properties_do_not_keep_a_share_from_its_owner() {
    let setup = Setup::new();
    drop(with_share(&setup));
    let file = setup.data().join(".latchfs/shares/docs/share/properties.json");
    fs::write(&file, "{\"v\":1,\"val").unwrap();
    let engine = setup.open();
    assert_eq!(engine.properties(&DOCS).unwrap().properties.quota_gib, 5120);
    assert_eq!(fs::read(&file).unwrap(), b"{\"v\":1,\"val", "left for a person to look at");
    let changes = ShareChanges { quota_gib: Some(4), ..ShareChanges::default() };
    engine.set_properties(&DOCS, changes).unwrap();
    drop(engine);
    assert_eq!(setup.open().properties(&DOCS).unwrap().properties.quota_gib, 4);
}

#[test]
fn a_share_somebody_holds_beyond_its_server_is_not_opened_twice() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let share = engine.share("docs").unwrap();
    drop(engine);
    assert!(setup.try_open().is_err());
    drop(share);
    assert!(setup.open().share("docs").is_ok());
}

#[test]
fn a_share_with_a_damaged_epoch_is_left_out_and_the_others_are_served() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    engine.create_share("other", NewShare::default()).unwrap();
    engine.create_share("gone", NewShare::default()).unwrap();
    let gone = ShareRef::new("gone");
    let deleted =
        engine.delete_share(&somebody(), &gone, DeleteShareSnapshots::None).unwrap().unwrap();
    drop(engine);
    let state = setup.data().join(".latchfs");
    let epoch = state.join("shares/docs/epoch");
    let when = state.join(format!("deleted/gone@{}/when", deleted.version));
    let good = [&epoch, &when].map(|path| std::fs::read(path).unwrap());
    for bad in ["", "garbage"] {
        for path in [&epoch, &when, &state.join("epoch")] {
            std::fs::write(path, bad).unwrap();
        }
        let engine = setup.open();
        let note = &engine.left_out()["docs"];
        let said = format!("share docs is not served: {} is damaged", epoch.display());
        assert!(note.starts_with(&said), "{note}");
        assert!(engine.share("docs").is_err());
        assert!(engine.share("other").is_ok());
        assert!(engine.restore_share("gone", &deleted.version).is_err());
        assert!(engine.create_share("docs", NewShare::default()).is_err());
        assert_eq!(std::fs::read_to_string(&epoch).unwrap(), bad);
    }
    for (path, good) in [&epoch, &when].into_iter().zip(good) {
        std::fs::write(path, good).unwrap();
    }
    let engine = setup.open();
    assert!(engine.left_out().is_empty() && engine.share("docs").is_ok());
    engine.restore_share("gone", &deleted.version).unwrap();
}
