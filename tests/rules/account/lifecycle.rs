//! Creating, deleting, restoring, purging.

use latchfs::file::rules::create::{Disposition, OpenRequest};
use latchfs::file::rules::ranges::{ByteRange, LockKind, RangeLock};
use latchfs::file::rules::{Access, Denial, ShareMode, SharePath};
use latchfs::file::service::Attempt;
use latchfs::file::service::shares::{DeleteShareSnapshots, Follower, ShareChanges};
use latchfs::journal::Happening;
use latchfs::rules::Timestamp;
use std::sync::{Mutex, Weak};

use super::*;
use crate::common::names::ShareNames as _;

fn delete(engine: &FileService) -> String {
    let deleted = engine.delete_share(&somebody(), &DOCS, DeleteShareSnapshots::None).unwrap();
    deleted.unwrap().version
}

#[test]
fn a_refused_share_leaves_nothing_behind() {
    let setup = Setup::new();
    let engine = setup.open();
    let afp = NewShare { protocols: Some("AFP".to_owned()), ..NewShare::default() };
    let answer = refused(engine.create_share("docs", afp));
    assert_eq!(answer, ShareDenial::UnsupportedProtocol("AFP".to_owned()));
    let changes = ShareChanges { quota_gib: Some(0), ..ShareChanges::default() };
    let answer = refused(engine.create_share("docs", NewShare { changes, ..NewShare::default() }));
    assert_eq!(answer, ShareDenial::OutOfRangeQuota(0));
    assert!(!setup.data().join("docs").exists());
    let smb = NewShare { protocols: Some("SMB".to_owned()), ..NewShare::default() };
    engine.create_share("docs", smb).unwrap();
}

#[test]
fn a_share_that_cannot_be_served_is_taken_back() {
    let setup = Setup::new();
    let engine = setup.open();
    let state = setup.data().join(".latchfs/shares/docs");
    fs::write(&state, "in the way of a folder").unwrap();
    let error = engine.create_share("docs", NewShare::default()).unwrap_err();
    assert_eq!(error.denial(), None, "no rule refused: {error}");
    assert!(!setup.data().join("docs").exists());
    assert_eq!(refused(engine.share("docs")), ShareDenial::ShareNotFound);
    fs::remove_file(&state).unwrap();
    engine.create_share("docs", NewShare::default()).unwrap();
}

#[test]
fn a_directory_put_there_by_hand_is_a_share_too() {
    let setup = Setup::new();
    fs::create_dir_all(setup.data().join("early")).unwrap();
    let engine = setup.open();
    assert!(engine.share("early").is_ok());
    fs::create_dir(setup.data().join("late")).unwrap();
    fs::write(setup.data().join("late/file"), "x").unwrap();
    let answer = refused(engine.create_share("late", NewShare::default()));
    assert_eq!(answer, ShareDenial::ShareAlreadyExists);
    assert!(engine.share("late").unwrap().lookup(&path("file")).is_ok());
}

#[test]
fn deleting_closes_every_handle_and_says_so() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    fs::write(setup.data().join("docs/a"), "x").unwrap();
    fs::write(setup.data().join("docs/b"), "x").unwrap();
    let share = engine.share("docs").unwrap();
    let handles = ["a", "b", "b"].map(|file| open_file(&share, file, Access::RW).unwrap().handle);
    delete(&engine);
    for handle in &handles {
        let answer = share.write(handle, 0, b"late").unwrap_err();
        assert_eq!(answer.denial(), Some(&Denial::HandleClosed));
    }
    let closed: Vec<_> = setup
        .events
        .file_events()
        .into_iter()
        .filter_map(|event| match event.what {
            Happening::Closed { handle, forced: true } => Some(handle),
            _ => None,
        })
        .collect();
    for handle in &handles {
        assert!(closed.contains(&handle.id()));
    }
    assert_eq!(closed.len(), 3);
    assert_eq!(setup.events.file_events().last().unwrap().what, Happening::Removed);
}

#[test]
fn a_share_on_its_way_out_is_neither_served_nor_made_nor_deleted_again() {
    let setup = Setup::new();
    let engine = Arc::new(with_share(&setup));
    fs::write(setup.data().join("docs/file"), "x").unwrap();
    let share = engine.share("docs").unwrap();
    let (holder, waiter) =
        (open_file(&share, "file", Access::RW).unwrap(), open_file(&share, "file", Access::RW));
    let (holder, waiter) = (holder.handle, waiter.unwrap().handle);
    let range = ByteRange::new(0, 1).unwrap();
    share.lock(&holder, &[(range, LockKind::Exclusive)]).unwrap();
    // Its wait ends when the deletion closes its handle, in the middle of it.
    let (sender, seen) = std::sync::mpsc::channel();
    let during = Arc::clone(&engine);
    let completion = Box::new(move |_| {
        let answers = [
            refused(during.share("docs")),
            refused(during.create_share("docs", NewShare::default())),
            refused(during.delete_share(&somebody(), &DOCS, DeleteShareSnapshots::None)),
        ];
        sender.send(answers).unwrap();
    });
    let lock = RangeLock::smb(waiter.id(), LockKind::Exclusive, range, 0);
    share.lock_later(&waiter, lock, completion).unwrap().unwrap();
    delete(&engine);
    assert_eq!(seen.recv().unwrap(), [const { ShareDenial::ShareBeingDeleted }; 3]);
    engine.create_share("docs", NewShare::default()).unwrap();
}

#[test]
fn while_a_share_is_deleted_the_end_of_a_holder_gives_its_lock_to_nobody() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    fs::write(setup.data().join("docs/file"), "x").unwrap();
    let share = engine.share("docs").unwrap();
    let open = || open_file(&share, "file", Access::RW).unwrap().handle;
    let (holder, other) = (open(), Arc::new(open()));
    let range = ByteRange::new(0, 1).unwrap();
    share.lock(&holder, &[(range, LockKind::Exclusive)]).unwrap();
    let (sender, seen) = std::sync::mpsc::channel();
    let (asking, again) = (Arc::clone(&other), Arc::downgrade(&share));
    // Told of each handle with no lock held; whichever of the two is closed first, the other asks.
    let listen = move |_: &latchfs::file::service::ClosedHandle| {
        let share = again.upgrade().unwrap();
        let posix = RangeLock::posix(7, asking.id(), LockKind::Exclusive, range, 1);
        let smb = RangeLock::smb(asking.id(), LockKind::Exclusive, range, 0);
        let answers = [
            share.mount_lock(Attempt::Last, &asking, posix).unwrap().is_ok(),
            share.lock(&asking, &[(range, LockKind::Exclusive)]).is_ok(),
            share.lock_later(&asking, smb, Box::new(drop)).is_ok(),
        ];
        sender.send(answers).unwrap();
        Ok(Vec::new())
    };
    share.on_force_close(listen).unwrap();
    delete(&engine);
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [[false; 3]; 2]);
}

#[test]
fn a_deleted_share_comes_back_with_all_that_was_its_own() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    fs::write(setup.data().join("docs/file"), "bytes").unwrap();
    let changes = ShareChanges { quota_gib: Some(9), ..ShareChanges::default() };
    let before = engine.set_properties(&DOCS, changes).unwrap();
    let version = delete(&engine);
    assert!(!setup.data().join("docs").exists());

    let unknown = refused(engine.restore_share("docs", "0123"));
    assert_eq!(unknown, ShareDenial::ShareNotFound);
    assert_eq!(refused(engine.restore_share("docs", "../x")), ShareDenial::ShareNotFound);
    engine.restore_share("docs", &version).unwrap();
    assert_eq!(engine.properties(&DOCS).unwrap().properties, before);
    assert_eq!(fs::read(setup.data().join("docs/file")).unwrap(), b"bytes");
    let twice = refused(engine.restore_share("docs", &version));
    assert_eq!(twice, ShareDenial::ShareAlreadyExists);
}

#[test]
fn whoever_still_holds_a_deleted_share_has_it_back_when_it_is_restored() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    fs::write(setup.data().join("docs/file"), "bytes").unwrap();
    let share = engine.share("docs").unwrap();
    let version = delete(&engine);
    engine.restore_share("docs", &version).unwrap();
    assert!(Arc::ptr_eq(&share, &engine.share("docs").unwrap()));
    let opened = open_file(&share, "file", Access::R).unwrap();
    assert_eq!(share.read(&opened.handle, 0, 10).unwrap(), b"bytes");
}

#[test]
fn whoever_still_holds_a_deleted_share_does_not_act_on_the_next_one_of_its_name() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let stale = engine.share("docs").unwrap();
    delete(&engine);
    engine.create_share("docs", NewShare::default()).unwrap();
    let request = OpenRequest {
        disposition: Disposition::Create,
        ..OpenRequest::plain(Access::W, ShareMode::RWD)
    };
    let file = SharePath::new("f").unwrap();
    let gone =
        |error: latchfs::file::service::FileError| error.denial() == Some(&Denial::ShareDeleted);
    assert!(gone(stale.open(&somebody(), &file, &request).unwrap_err()));
    assert!(gone(stale.unlink(&somebody(), &file).unwrap_err()));
    assert!(gone(stale.list(&SharePath::root(), None, 1).unwrap_err()));
    assert!(!setup.data().join("docs/f").exists());
}

#[test]
fn a_taken_name_cannot_be_restored_onto() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    fs::write(setup.data().join("docs/old"), "x").unwrap();
    let version = delete(&engine);
    engine.create_share("docs", NewShare::default()).unwrap();
    assert!(engine.share("docs").unwrap().lookup(&path("old")).is_err(), "a new share is empty");
    let taken = refused(engine.restore_share("docs", &version));
    assert_eq!(taken, ShareDenial::ShareAlreadyExists);
    let second = delete(&engine);
    assert_ne!(second, version, "the clock stands still, versions differ all the same");
    engine.restore_share("docs", &version).unwrap();
    assert!(engine.share("docs").unwrap().lookup(&path("old")).is_ok());
}

#[test]
fn days_run_down_and_the_share_is_purged_when_they_are_over() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    let version = delete(&engine);
    let options =
        latchfs::file::service::shares::ListOptions { deleted: true, ..Default::default() };
    let days = || {
        let page = engine.list_shares(&options).unwrap();
        page.shares.first().map(|info| info.deleted.as_ref().unwrap().remaining_days)
    };
    assert_eq!(days(), Some(7));
    setup.clock.advance(DAY + Duration::from_secs(1));
    assert_eq!(days(), Some(6));
    setup.clock.advance(DAY * 5 + Duration::from_secs(86_400 - 2));
    assert_eq!(days(), Some(1));
    assert_eq!(engine.purge_expired().unwrap(), 0);
    setup.advance(1);
    assert_eq!(days(), None);
    assert_eq!(refused(engine.restore_share("docs", &version)), ShareDenial::ShareNotFound);
    assert_eq!(engine.purge_expired().unwrap(), 1);
    assert_eq!(fs::read_dir(setup.data().join(".latchfs/deleted")).unwrap().count(), 0);
}

#[test]
fn a_start_purges_what_is_over() {
    let setup = Setup::new();
    let engine = with_share(&setup);
    delete(&engine);
    drop(engine);
    setup.clock.advance(DAY * 7);
    drop(setup.open());
    assert_eq!(fs::read_dir(setup.data().join(".latchfs/deleted")).unwrap().count(), 0);
}

#[test]
fn without_retention_a_deleted_share_is_gone_at_once() {
    let setup = Setup { retention_days: None, ..Setup::new() };
    let engine = with_share(&setup);
    let answer = engine.delete_share(&somebody(), &DOCS, DeleteShareSnapshots::None).unwrap();
    assert_eq!(answer, None);
    let left = tree(&setup.data());
    assert!(!left.iter().any(|path| path.contains("docs")), "{left:?}");
}

#[test]
fn one_directory_served_as_it_is_is_neither_made_nor_deleted() {
    let setup = Setup::new();
    let (dir, state) = (setup.folder.path().join("mine"), setup.folder.path().join("state"));
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("file"), "x").unwrap();
    let serve = || {
        let (clock, journal) = (setup.clock.clone(), setup.events.clone());
        FileService::serve_directory("docs", &dir, Some(&state), setup.options(), clock, journal)
    };
    let engine = serve().unwrap();
    assert!(engine.share("docs").unwrap().lookup(&path("file")).is_ok());
    let changes = ShareChanges { quota_gib: Some(3), ..ShareChanges::default() };
    engine.set_properties(&DOCS, changes).unwrap();

    let answers = [
        refused(engine.create_share("other", NewShare::default())),
        refused(engine.delete_share(&somebody(), &DOCS, DeleteShareSnapshots::None)),
        refused(engine.restore_share("docs", "01")),
    ];
    assert_eq!(answers, [const { ShareDenial::OneDirectoryOnly }; 3]);
    assert!(serve().is_err(), "one server at a time");
    drop(engine);
    assert_eq!(serve().unwrap().properties(&DOCS).unwrap().properties.quota_gib, 3);
    assert_eq!(tree(&dir), ["file"], "nothing of ours in it");
}

#[test]
fn a_share_without_properties_has_those_of_its_directory() {
    let setup = Setup::new();
    fs::create_dir_all(setup.data().join("docs")).unwrap();
    let engine = setup.open();
    let first = engine.properties(&DOCS).unwrap().properties;
    assert_eq!(first.quota_gib, 5120);
    assert!(first.created > Timestamp(0));
    drop(engine);
    assert_eq!(setup.open().properties(&DOCS).unwrap().properties, first);
}

/// Notes for which share of `docs` it was told what, and whether requests found that share.
struct Noting {
    engine: Weak<FileService>,
    told: Mutex<Vec<(&'static str, bool)>>,
}

impl Noting {
    fn note(&self, what: &'static str, share: &Arc<Share>) {
        let found = self.engine.upgrade().unwrap().share("docs");
        let found = found.is_ok_and(|found| Arc::ptr_eq(&found, share));
        self.told.lock().unwrap().push((what, found));
    }
}

impl Follower for Noting {
    fn coming(&self, next: &Arc<Share>) {
        self.note("coming", next);
    }

    fn replaced(&self, now: &Arc<Share>) {
        self.note("replaced", now);
    }
}

#[test]
fn a_follower_goes_on_with_a_share_that_is_made_or_restored_under_the_name() {
    let setup = Setup::new();
    let engine = Arc::new(with_share(&setup));
    let followed = engine.follow("docs").unwrap();
    let noting = Arc::new(Noting { engine: Arc::downgrade(&engine), told: Mutex::default() });
    let weak: Weak<Noting> = Arc::downgrade(&noting);
    followed.follow(weak);
    let has_the_name = || Arc::ptr_eq(&followed.share(), &engine.share("docs").unwrap());
    let told = || std::mem::take(&mut *noting.told.lock().unwrap());

    let first = delete(&engine);
    engine.create_share("docs", NewShare::default()).unwrap();
    assert!(has_the_name());
    assert_eq!(told(), [("coming", false), ("replaced", true)]);

    // Nobody refers to the first share any more: another object serves it.
    let second = delete(&engine);
    engine.restore_share("docs", &first).unwrap();
    assert!(has_the_name());
    assert_eq!(told(), [("coming", false), ("replaced", true)]);

    // A directory that is put there by hand is a share from its first Create Share on.
    delete(&engine);
    fs::create_dir(setup.data().join("docs")).unwrap();
    let answer = engine.create_share("docs", NewShare::default());
    assert_eq!(refused(answer), ShareDenial::ShareAlreadyExists);
    assert!(has_the_name());
    assert_eq!(told(), [("coming", false), ("replaced", true)]);

    // The follower refers to this one until the next has the name: it is the same share again.
    let third = delete(&engine);
    engine.restore_share("docs", &third).unwrap();
    assert!(has_the_name());
    assert_eq!(told(), []);
    delete(&engine);
    engine.restore_share("docs", &second).unwrap();
    assert!(has_the_name());
}
