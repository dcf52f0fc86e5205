//! Delete pending from end to end: every way in, what REST answers meanwhile, undone, and gone.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use latchfs::client;

use crate::common::calls::Call;
use crate::common::meeting::{Holder, Meeting, Subject};
use crate::common::served::wait_for;

const DP: &str = "SMBDeletePending";

/// A way to mark a file that `keeper` has open.
type Way = fn(file: &Subject<'_>, keeper: &Holder<'_>);

fn by_unlink(file: &Subject<'_>, _: &Holder<'_>) {
    fs::remove_file(file.path()).unwrap();
}

fn by_ioctl(_: &Subject<'_>, keeper: &Holder<'_>) {
    client::set_delete(keeper.file(), true).unwrap();
}

/// `latchfs hold --delete-on-close`, ended by the end of its input.
fn by_hold(file: &Subject<'_>, _: &Holder<'_>) {
    let path = file.path();
    let mut hold = file
        .at
        .served()
        .latchfs(&["hold", path.to_str().unwrap(), "--access", "d", "--share", "rwd"])
        .arg("--delete-on-close")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut granted = String::new();
    BufReader::new(hold.stdout.take().unwrap()).read_line(&mut granted).unwrap();
    assert!(granted.contains("\"handle\""), "{granted}");
    file.answers("ok", &[Call::Head, Call::Get]);
    drop(hold.stdin.take());
    assert!(hold.wait().unwrap().success());
    wait_for("the mark", || (file.call(Call::Head).status == 409).then_some(()));
}

fn undo_by_ioctl(_: &Subject<'_>, keeper: &Holder<'_>) {
    client::set_delete(keeper.file(), false).unwrap();
}

fn undo_by_command(file: &Subject<'_>, _: &Holder<'_>) {
    let path = file.path();
    let done = file.at.served().latchfs(&["undelete", path.to_str().unwrap()]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// From the mark to its undoing, and from the next mark to the end.
fn lives(name: &str, mark: Way, undo: Way) {
    let Some(at) = Meeting::start() else { return };
    at.directory(name);
    let file = at.file(&format!("{name}/File"));
    file.call_with(Call::SetHeaders, &[("x-ms-file-attributes", "Hidden")]).is(200);
    file.call(Call::SetMetadata).is(200);
    let before = file.call(Call::Head).is(200);
    let keeper = file.open("rw", "rwd");
    mark(&file, &keeper);
    is_pending(&file, &keeper);
    undo(&file, &keeper);
    let after = file.call(Call::Head).is(200);
    for header in [
        "etag",
        "last-modified",
        "x-ms-meta-colour",
        "x-ms-file-attributes",
        "content-type",
        "x-ms-file-id",
        "x-ms-file-creation-time",
        "content-length",
    ] {
        assert_eq!(after.header(header), before.header(header), "{header}");
    }
    assert!(is_listed(&file));
    assert_eq!(file.open_errno("rwd", "rwd"), 0);
    mark(&file, &keeper);
    goes(&file, keeper);
    assert!(!at.served().data().join(&file.name).exists());
    file.answers("ok", &[Call::Create]);
}

fn is_pending(file: &Subject<'_>, keeper: &Holder<'_>) {
    for call in Call::ASKING {
        file.call(call).refused(409, DP);
    }
    assert!(!is_listed(file));
    assert!(file.path().exists(), "the mount shows it");
    assert_eq!(file.open_errno("r", "rwd"), libc::EBUSY);
    let ids: Vec<_> = file.handles().into_iter().map(|handle| handle.id).collect();
    assert_eq!(ids, [keeper.id()]);
    file.answers("ok", &[Call::ForceClose]);
}

fn is_listed(file: &Subject<'_>) -> bool {
    let (directory, name) = file.name.split_once('/').unwrap();
    file.at.listing(directory).iter().any(|listed| listed == name)
}

/// While somebody looks: pending until the close, then gone, and nothing else in between.
fn goes(file: &Subject<'_>, keeper: Holder<'_>) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut seen = Vec::new();
            loop {
                let last = done.load(Ordering::Acquire);
                seen.push(file.call(Call::Head).status);
                if last {
                    return seen;
                }
            }
        });
        keeper.close();
        done.store(true, Ordering::Release);
        let mut seen = looking.join().unwrap();
        seen.dedup();
        assert!(seen == [409, 404] || seen == [404], "{seen:?}");
    });
}

#[test]
fn a_file_is_marked_by_unlink() {
    lives("mark-unlink", by_unlink, undo_by_ioctl);
}

#[test]
fn a_file_is_marked_by_the_ioctl() {
    lives("mark-ioctl", by_ioctl, undo_by_ioctl);
}

#[test]
fn a_file_is_marked_by_a_hold_with_delete_on_close() {
    lives("mark-hold", by_hold, undo_by_command);
}

#[test]
fn a_second_name_of_a_pending_file_is_an_ordinary_file() {
    let Some(at) = Meeting::start() else { return };
    let (file, other) = (at.file("mark-link"), at.named("mark-link-other"));
    fs::hard_link(file.path(), other.path()).unwrap();
    let keeper = file.pending();
    file.answers(DP, &[Call::Head]);
    other.answers("ok", &[Call::Head, Call::Get, Call::Put]);
    keeper.close();
    file.answers("ResourceNotFound", &[Call::Head]);
    assert_eq!(other.bytes(), b"AB23456789");
}
