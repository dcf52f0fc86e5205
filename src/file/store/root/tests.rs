//! Tests of root: shares, soft delete, half-done moves.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::disk::DataRoot;
use crate::file::store::share::{Control, SnapshotName};
use crate::rules::Timestamp;

const NOW: Timestamp = Timestamp(1_767_607_200_000_000_000);
const VERSION: &str = "01D0";

struct Setup {
    dir: tempfile::TempDir,
    root: Option<ShareRoot>,
}

impl Setup {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Some(ShareRoot::open(&dir.path().join("data")).unwrap());
        Self { dir, root }
    }

    fn root(&self) -> &ShareRoot {
        self.root.as_ref().unwrap()
    }

    /// The root as the next server opens it.
    fn reopen(&mut self) -> &ShareRoot {
        self.root = None;
        self.root = Some(ShareRoot::open(&self.path("")).unwrap());
        self.root()
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join("data").join(below)
    }

    /// The share `demo` with a file, state and a snapshot.
    fn furnish(&self) -> SnapshotName {
        let root = self.root();
        root.create_share("demo").unwrap();
        fs::write(self.path("demo/file"), "bytes").unwrap();
        fs::create_dir_all(root.state_path("demo").unwrap()).unwrap();
        fs::write(root.state_path("demo").unwrap().join("leases"), "{}").unwrap();
        let snapshots = root.snapshots("demo").unwrap();
        snapshots.create(&self.path("demo"), NOW, &mut |_| Control::Continue).unwrap()
    }

    fn is_whole(&self, name: &SnapshotName) -> bool {
        let root = self.root();
        root.shares().unwrap() == ["demo"]
            && fs::read_to_string(self.path("demo/file")).is_ok_and(|text| text == "bytes")
            && root.state_path("demo").unwrap().join("leases").is_file()
            && root.snapshots("demo").unwrap().list().unwrap() == std::slice::from_ref(name)
            && root.deleted().unwrap().0.is_empty()
            && tree::names(&self.path(".latchfs/deleted")).unwrap().is_empty()
    }

    fn is_deleted_as_a_whole(&self) -> bool {
        let root = self.root();
        let entry = self.path(".latchfs/deleted/demo@01D0");
        let mut inside = tree::names(&entry).unwrap();
        inside.sort();
        root.shares().unwrap().is_empty()
            && !root.state_path("demo").unwrap().exists()
            && !self.path(".latchfs/snapshots/demo").exists()
            && inside == ["share", "snapshots", "state", "when"]
            && root.deleted().unwrap().0.len() == 1
    }
}

#[test]
fn share_names_are_those_of_the_service() {
    let longest = "a".repeat(63);
    for name in ["abc", "123", "a-b", "a1-b2-c3", &longest] {
        assert!(is_share_name(name), "{name}");
    }
    let too_long = "a".repeat(64);
    for name in [
        "", "ab", "-abc", "abc-", "a--b", "Abc", "a_b", "a.b", "a/b", "..", "...", ".latchfs",
        "größe", "a b c", &too_long,
    ] {
        assert!(!is_share_name(name), "{name}");
        assert!(matches!(
            ShareRoot::share_path(Setup::new().root(), name),
            Err(RootError::ShareName(_))
        ));
    }
}

#[test]
fn a_root_is_made_with_a_private_hidden_folder() {
    let setup = Setup::new();
    let hidden = fs::metadata(setup.path(".latchfs")).unwrap();
    assert_eq!(hidden.permissions().mode() & 0o777, 0o700);
    assert!(setup.root().shares().unwrap().is_empty());
    let root = setup.path("").canonicalize().unwrap();
    let state = setup.root().state_path("demo").unwrap();
    assert_eq!(state, root.join(".latchfs/shares/demo"));
}

#[test]
fn two_servers_cannot_serve_one_root() {
    let mut setup = Setup::new();
    let second = ShareRoot::open(&setup.path("")).unwrap_err();
    assert!(matches!(second, RootError::Data(DataRootError::Served(_))));
    let path = setup.path("").canonicalize().unwrap();
    assert!(second.to_string().starts_with(path.to_str().unwrap()));
    setup.reopen();
}

#[test]
fn the_directory_of_a_share_is_claimed_by_one_server_under_any_name() {
    let (one, other) = (Setup::new(), Setup::new());
    one.root().create_share("docs").unwrap();
    std::os::unix::fs::symlink(one.path("docs"), other.path("linked")).unwrap();
    let claim = one.root().claim("docs").unwrap();
    assert!(claim.is_some());
    let second = other.root().claim("linked").unwrap_err();
    assert!(matches!(second, RootError::Data(DataRootError::Served(_))), "{second}");
    assert!(SingleShare::open(&one.path("docs"), Some(&other.path("state"))).is_err());
    drop(claim);
    assert!(other.root().claim("linked").unwrap().is_some());
}

#[test]
fn directories_that_are_no_shares_are_ignored() {
    let setup = Setup::new();
    for name in ["Upper", "ab", "a--b", "under_score", "plain"] {
        fs::create_dir(setup.path(name)).unwrap();
    }
    fs::write(setup.path("a-file"), "").unwrap();
    setup.root().create_share("made").unwrap();
    assert_eq!(setup.root().shares().unwrap(), ["made", "plain"]);
    assert_eq!(setup.root().shares().unwrap(), ["made", "plain"]);
    assert_eq!(lock(&setup.root().warned).len(), 4);
}

#[test]
fn a_new_share_of_the_same_name_is_not_touched_by_the_deleted_one() {
    let mut setup = Setup::new();
    setup.furnish();
    setup.root().delete_share("demo", VERSION, NOW).unwrap();
    setup.root().create_share("demo").unwrap();
    fs::write(setup.path("demo/new"), "new").unwrap();
    setup.reopen();
    assert_eq!(tree::names(&setup.path("demo")).unwrap(), ["new"]);
    assert!(setup.root().snapshots("demo").unwrap().list().unwrap().is_empty());

    let taken = setup.root().restore_share("demo", VERSION).unwrap_err();
    let says = StoreError::AlreadyExists.to_string();
    assert!(taken.to_string().ends_with(&says), "{taken}");
    assert_eq!(setup.root().deleted().unwrap().0.len(), 1, "and is still there");
    let same = setup.root().delete_share("demo", VERSION, NOW).unwrap_err();
    assert!(same.to_string().ends_with(&says), "{same}");
    setup.root().delete_share("demo", "01D1", NOW).unwrap();
    assert_eq!(setup.root().deleted().unwrap().0.len(), 2);
}

#[test]
fn missing_shares_and_bad_versions_are_refused() {
    let setup = Setup::new();
    setup.root().create_share("demo").unwrap();
    assert!(setup.root().delete_share("other", VERSION, NOW).is_err());
    let too_long = "0".repeat(33);
    for version in ["", "a/b", "..", "a@b", ".", &too_long] {
        let answer = setup.root().delete_share("demo", version, NOW);
        assert!(matches!(answer, Err(RootError::Version(_))), "{version}");
    }
    assert_eq!(setup.root().shares().unwrap(), ["demo"]);
    assert!(tree::names(&setup.path(".latchfs/deleted")).unwrap().is_empty());
}

/// Places in the root, and names in a deleted share's folder, in the order of a deletion.
const MOVES: [(&str, &str); 3] = [
    ("demo", "share"),
    (".latchfs/shares/demo", "state"),
    (".latchfs/snapshots/demo", "snapshots"),
];

#[test]
fn a_deletion_cut_short_anywhere_is_completed() {
    for moved in 0..=MOVES.len() {
        let mut setup = Setup::new();
        setup.furnish();
        setup.root = None;
        let entry = setup.path(".latchfs/deleted/demo@01D0");
        fs::create_dir(&entry).unwrap();
        fs::write(entry.join("when"), "2026-01-05T10:00:00.0000000Z").unwrap();
        fs::write(entry.join("deleting"), "").unwrap();
        for (place, part) in &MOVES[..moved] {
            fs::rename(setup.path(place), entry.join(part)).unwrap();
        }
        setup.reopen();
        assert!(setup.is_deleted_as_a_whole(), "{moved} moved");
    }
}

#[test]
fn a_restore_cut_short_anywhere_is_completed() {
    for moved in 0..=MOVES.len() {
        let mut setup = Setup::new();
        let snapshot = setup.furnish();
        setup.root().delete_share("demo", VERSION, NOW).unwrap();
        setup.root = None;
        let entry = setup.path(".latchfs/deleted/demo@01D0");
        fs::write(entry.join("restoring"), "").unwrap();
        for (place, part) in MOVES.iter().rev().take(moved) {
            fs::rename(entry.join(part), setup.path(place)).unwrap();
        }
        setup.reopen();
        assert!(setup.is_whole(&snapshot), "{moved} moved");
    }
}

#[test]
fn a_deletion_not_yet_announced_did_not_happen() {
    let mut setup = Setup::new();
    let snapshot = setup.furnish();
    fs::create_dir(setup.path(".latchfs/deleted/.new-demo@01D0")).unwrap();
    fs::write(setup.path(".latchfs/deleted/.new-demo@01D0/deleting"), "").unwrap();
    setup.reopen();
    assert!(setup.is_whole(&snapshot));
}

#[test]
fn a_purge_cut_short_is_completed_and_never_seen() {
    let mut setup = Setup::new();
    let snapshot = setup.furnish();
    fs::create_dir_all(setup.path(".latchfs/deleted/.old-demo@01D0/share/rest")).unwrap();
    assert!(setup.root().deleted().unwrap().0.is_empty());
    setup.reopen();
    assert!(setup.is_whole(&snapshot));
}

#[test]
fn remains_of_a_failed_deletion_do_not_reach_a_new_share() {
    let setup = Setup::new();
    setup.furnish();
    // As if the second move had failed in this very process.
    let entry = setup.path(".latchfs/deleted/demo@01D0");
    fs::create_dir(&entry).unwrap();
    fs::write(entry.join("when"), "2026-01-05T10:00:00.0000000Z").unwrap();
    fs::write(entry.join("deleting"), "").unwrap();
    fs::rename(setup.path("demo"), entry.join("share")).unwrap();
    setup.root().create_share("demo").unwrap();
    assert!(!setup.root().state_path("demo").unwrap().exists());
    assert!(setup.root().snapshots("demo").unwrap().list().unwrap().is_empty());
    assert!(!entry.join("deleting").exists());
}

#[test]
fn half_made_snapshots_are_removed_at_open() {
    let mut setup = Setup::new();
    let snapshot = setup.furnish();
    let half = setup.path(".latchfs/snapshots/demo/.new-2026-01-05T11:00:00.0000000Z");
    fs::create_dir_all(half.join("dir")).unwrap();
    setup.reopen();
    assert!(!half.exists());
    assert!(setup.is_whole(&snapshot));
}

#[test]
fn a_damaged_moment_is_told() {
    let setup = Setup::new();
    setup.furnish();
    setup.root().delete_share("demo", VERSION, NOW).unwrap();
    fs::write(setup.path(".latchfs/deleted/demo@01D0/when"), "soon").unwrap();
    let (good, damaged) = setup.root().deleted().unwrap();
    assert!(good.is_empty());
    let [error] = &damaged[..] else { panic!("{damaged:?}") };
    assert!(error.to_string().contains("when is damaged: 'soon' is not a timestamp"), "{error}");
}

#[test]
fn a_single_directory_is_served_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let (share, state) = (dir.path().join("Any Name"), dir.path().join("state"));
    fs::create_dir(&share).unwrap();
    fs::write(share.join("file"), "x").unwrap();
    let before = fs::metadata(&share).unwrap().modified().unwrap();
    let single = SingleShare::open(&share, Some(&state)).unwrap();
    let snapshots = single.snapshots();
    let name = snapshots.create(single.share_path(), NOW, &mut |_| Control::Continue).unwrap();
    assert!(snapshots.path(&name).starts_with(&state));
    assert!(single.state_path().starts_with(&state));
    assert_eq!(tree::names(&share).unwrap(), ["file"]);
    assert_eq!(fs::metadata(&share).unwrap().modified().unwrap(), before);

    let second = SingleShare::open(&share, Some(&state));
    assert!(matches!(second, Err(RootError::Data(DataRootError::Served(_)))));
    // The directory itself is locked: another state makes no second server of it.
    let elsewhere = dir.path().join("elsewhere");
    let second = SingleShare::open(&share, Some(&elsewhere)).unwrap_err();
    assert!(matches!(second, RootError::Data(DataRootError::Served(_))));
    assert!(!elsewhere.exists());
    let inside = SingleShare::open(&share, Some(&share.join("a/b")));
    assert!(matches!(inside, Err(RootError::StateInShare(_))));
    assert!(!share.join("a").exists());
    assert!(SingleShare::open(&share.join("file"), Some(&state)).is_err());
    assert!(SingleShare::open(&share.join("gone"), Some(&state)).is_err());
}

#[test]
fn the_rights_of_a_state_folder_the_user_chose_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (share, state) = (dir.path().join("share"), dir.path().join("state"));
    fs::create_dir(&share).unwrap();
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    SingleShare::open(&share, Some(&state)).unwrap();
    let mode = fs::metadata(&state).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
}

#[test]
fn the_default_state_follows_from_path_and_environment() {
    let at = |share: &str, xdg: Option<&str>, home: Option<&str>| {
        single::default_state(Path::new(share), xdg.map(Into::into), home.map(Into::into))
    };
    let xdg = at("/srv/My Data", Some("/state"), Some("/users/me")).unwrap();
    assert_eq!(xdg.parent().unwrap(), Path::new("/state/latchfs"));
    let name = xdg.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("MyData-") && name.len() == "MyData-".len() + 16);
    let home = at("/srv/My Data", Some("relative"), Some("/users/me")).unwrap();
    assert_eq!(home, Path::new("/users/me/.local/state/latchfs").join(name));
    let other = at("/other/My Data", None, Some("/users/me")).unwrap();
    assert_ne!(other, home);
    assert!(at("/", Some("/state"), None).is_ok());
    assert!(matches!(at("/srv", None, None), Err(RootError::NoHome)));
}

#[test]
fn the_commands_in_the_message_move_the_data_of_the_first_version() {
    let old = tempfile::tempdir().unwrap();
    let shares_before = ShareRoot::open(old.path()).unwrap();
    shares_before.create_share("docs").unwrap();
    shares_before.create_share("other").unwrap();
    fs::write(old.path().join("docs/a.txt"), "hello").unwrap();
    drop(shares_before);
    let message = DataRoot::open(old.path()).unwrap_err().to_string();
    let commands: Vec<_> = message.lines().filter(|line| line.starts_with("  ")).collect();
    let done = std::process::Command::new("sh").arg("-c").arg(commands.join("\n")).status();
    assert!(done.unwrap().success(), "{message}");
    let root = DataRoot::open(old.path()).unwrap();
    let account = "devstoreaccount1";
    let (files, state) = (root.files_path(account), root.state_path(account));
    let shares = ShareRoot::open_at(&files, &state).unwrap();
    assert_eq!(shares.shares().unwrap(), ["docs", "other"]);
    assert_eq!(fs::read_to_string(files.join("docs/a.txt")).unwrap(), "hello");
}
