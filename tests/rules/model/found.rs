//! What random runs and reviews found, each as a small story.

use std::fs;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use latchfs::file::rules::create::{Disposition, OpenRequest, Options};
use latchfs::file::rules::ranges::{ByteRange, LockKind, RangeLock};
use latchfs::file::rules::{Access, ShareMode};
use latchfs::file::service::{Case, FileError, Handle, Share};
use latchfs::journal::AccountJournal;

use crate::common::asking::{caller, open_share, path};
use crate::common::names::ShareNames as _;

struct Fresh {
    share: Share,
    folder: tempfile::TempDir,
}

fn fresh() -> Fresh {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().join("share");
    fs::create_dir(&root).expect("a folder for the share");
    let events = AccountJournal::default();
    let share = open_share(&root, &folder.path().join("state"), Case::Insensitive, events);
    Fresh { share, folder }
}

impl Fresh {
    fn open(&self, name: &str, options: Options) -> Handle {
        let request = OpenRequest {
            disposition: Disposition::OpenIf,
            options,
            ..OpenRequest::plain(Access::RWD, ShareMode::RWD)
        };
        self.share
            .open(&caller("test"), &path(name), &request)
            .expect("nobody is in the way")
            .handle
    }

    /// From now on no deletion can be written down.
    fn break_the_disk(&self) {
        fs::write(self.folder.path().join("state/pending"), "in the way").expect("a file");
    }
}

#[test]
fn a_close_lets_the_next_one_in_though_the_disk_fails() {
    let fresh = fresh();
    let last = fresh.open("f", Options::default());
    let deleting = fresh.open("f", Options { delete_on_close: true, ..Options::default() });
    let range = ByteRange::new(0, 10).expect("a range");
    fresh.share.lock(&deleting, &[(range, LockKind::Exclusive)]).expect("the first lock");
    let (sender, answer) = mpsc::channel();
    let lock = RangeLock::smb(last.id(), LockKind::Exclusive, range, 0);
    let completion = Box::new(move |got| sender.send(got).expect("somebody listens"));
    fresh.share.lock_later(&last, lock, completion).expect("it may wait").expect("it waits");
    fresh.break_the_disk();
    let closed = fresh.share.close(&deleting);
    assert!(matches!(closed, Err(FileError::Store(_))), "{closed:?}");
    let got = answer.recv_timeout(Duration::from_secs(30)).expect("an answer");
    assert_eq!(got, Ok(()));
}

#[test]
fn a_mark_that_cannot_be_kept_is_not_made() {
    let fresh = fresh();
    let handle = fresh.open("f", Options::default());
    fresh.break_the_disk();
    assert!(matches!(fresh.share.set_disposition(&handle, true), Err(FileError::Store(_))));
    assert!(matches!(fresh.share.unlink(&caller("test"), &path("f")), Err(FileError::Store(_))));
    assert!(!fresh.share.standard(&handle).expect("it is open").delete_pending);
    fresh.share.close(&handle).expect("closed");
    assert!(fresh.share.lookup(&path("f")).is_ok(), "it was told that nothing was deleted");
}

#[test]
fn a_mark_that_cannot_be_taken_back_stays() {
    let fresh = fresh();
    let handle = fresh.open("f", Options::default());
    fresh.share.set_disposition(&handle, true).expect("marked");
    let pending = fresh.folder.path().join("state/pending");
    fs::rename(&pending, fresh.folder.path().join("aside")).expect("moved");
    fresh.break_the_disk();
    assert!(fresh.share.set_disposition(&handle, false).is_err());
    assert!(fresh.share.undelete(&caller("test"), &path("f")).is_err());
    assert!(fresh.share.standard(&handle).expect("it is open").delete_pending);
}

#[test]
fn those_who_are_told_of_a_change_may_act_on_the_share_at_once() {
    let fresh = Arc::new(fresh());
    let (holder, waiter) =
        (fresh.open("f", Options::default()), fresh.open("f", Options::default()));
    let range = ByteRange::new(0, 10).expect("a range");
    fresh.share.lock(&holder, &[(range, LockKind::Exclusive)]).expect("the first lock");
    let (seen, acting) = (Arc::new(Mutex::new(false)), Arc::clone(&fresh));
    let noted = Arc::clone(&seen);
    let completion = Box::new(move |_| {
        let renamed = acting.share.rename(&caller("told"), &path("f"), &path("g"), false);
        *noted.lock().unwrap() = renamed.is_ok();
    });
    let lock = RangeLock::smb(waiter.id(), LockKind::Exclusive, range, 0);
    fresh.share.lock_later(&waiter, lock, completion).expect("it may wait").expect("it waits");
    fresh.share.close(&holder).expect("closed");
    assert!(*seen.lock().unwrap(), "called, and let through");
}
