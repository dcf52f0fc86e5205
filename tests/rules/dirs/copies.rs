//! Copy File and Abort Copy File.

use std::io::{Seek, SeekFrom, Write};

use latchfs::file::rules::ranges::{ByteRange, LockKind};
use latchfs::file::rules::{Attributes, Denial};
use latchfs::file::service::{
    Control, CopyOptions, CopyProgress, CopyProperty, CopyStatus, FileProperties, Metadata,
    RestRename, Result, Started, TimeChange,
};
use latchfs::rules::Timestamp;

use crate::dirs::fixture::{Fixture, asking, caller, copy_file, denial, path};

fn options(id: &str) -> CopyOptions {
    CopyOptions { id: id.into(), source: "http://here/demo/from".into(), ..CopyOptions::default() }
}

fn go_on(_: CopyProgress) -> Control {
    Control::Continue
}

fn copy(it: &Fixture, from: &str, to: &str, options: &CopyOptions) -> Result<FileProperties> {
    let who = caller("rest");
    let source = (it.share(), &path(from));
    copy_file(it.share(), asking(&who), source, &path(to), options)
}

/// A file too long for one step, whose extents are its own.
fn long(it: &Fixture, name: &str) -> Vec<u8> {
    let bytes: Vec<u8> = (0..9_u32 << 20).map(|at| (at % 251) as u8).collect();
    it.file(name, &bytes);
    bytes
}

/// Starts the copy of a long file. Where the file system shares extents it is done at once, and
/// there is nothing under way to look at: none then.
fn start_long(it: &Fixture, to: &str, id: &str) -> Option<latchfs::file::service::PendingFileCopy> {
    long(it, "long");
    let who = caller("rest");
    let source = (it.share(), &path("long"));
    let started = it.share().start_copy(asking(&who), source, &path(to), &options(id));
    let Started { copied, rest } = started.unwrap();
    if rest.is_none() {
        assert_eq!(copied.copy().unwrap().status, CopyStatus::Success);
        eprintln!("SKIPPED: this file system shares extents, no copy is ever under way");
    }
    rest
}

#[test]
fn a_copy_has_the_bytes_and_the_metadata_and_says_where_it_comes_from() {
    let it = Fixture::new();
    it.folder("Sub");
    it.file("from", b"hello");
    let metadata: Metadata = [("a", "1")].into_iter().collect();
    let rename = RestRename {
        metadata: Some(&metadata),
        content_type: Some("text/plain"),
        ..RestRename::default()
    };
    it.share().rest_rename(&caller("rest"), &path("from"), &path("from2"), &rename).unwrap();
    let copied = copy(&it, "FROM2", "sub/to", &options("1")).unwrap();
    assert_eq!(copied.path, path("Sub/to"));
    assert_eq!(copied.copy().unwrap().status, CopyStatus::Success);
    assert_eq!(copied.copy().unwrap().progress, CopyProgress { done: 5, total: 5 });
    assert_eq!(copied.copy().unwrap().source, "http://here/demo/from");
    assert!(copied.copy().unwrap().completion.is_some());
    assert_eq!(copied.smb().attributes, Attributes::ARCHIVE);
    assert_eq!(it.bytes("Sub/to"), b"hello");
    let record = xattr(&it, "Sub/to");
    assert!(record.contains("\"a\":\"1\"") && record.contains("text/plain"), "{record}");
}

/// The record as it lies on disk.
fn xattr(it: &Fixture, name: &str) -> String {
    let mut value = vec![0; 4096];
    let file = std::fs::File::open(it.on_disk(name)).unwrap();
    let length = rustix::fs::fgetxattr(&file, "user.latchfs", &mut value[..]).unwrap();
    String::from_utf8(value[..length].to_vec()).unwrap()
}

#[test]
fn a_copy_takes_its_properties_from_where_it_is_told() {
    let it = Fixture::new();
    it.file("from", b"hello");
    it.file("to", b"old and longer");
    let id = it.share().stat(&path("to")).unwrap().id;
    it.read_only("from");
    let metadata: Metadata = [("b", "2")].into_iter().collect();
    let options = CopyOptions {
        metadata: Some(metadata),
        attributes: CopyProperty::Source,
        set_archive: true,
        created: TimeChange::At(Timestamp(1_000)),
        written: TimeChange::Source,
        ..options("1")
    };
    let copied = copy(&it, "from", "to", &options).unwrap();
    assert_eq!(copied.id(), id, "it is overwritten, not replaced");
    assert_eq!(copied.smb().attributes, Attributes::READ_ONLY | Attributes::ARCHIVE);
    assert_eq!(copied.smb().created, Timestamp(1_000));
    assert_eq!(copied.smb().written, it.share().stat(&path("from")).unwrap().written);
    assert_eq!(it.bytes("to"), b"hello");
    assert!(xattr(&it, "to").contains("\"b\":\"2\""));
}

#[test]
fn a_copy_needs_a_source_and_a_place() {
    let it = Fixture::new();
    it.folder("dir");
    it.file("from", b"");
    let refused = |from, to| denial(copy(&it, from, to, &options("1")));
    assert_eq!(refused("none", "to"), Denial::NotFound);
    assert_eq!(refused("dir", "to"), Denial::IsDirectory);
    assert_eq!(refused("from", "dir"), Denial::IsDirectory);
    assert_eq!(refused("from", "no/such"), Denial::PathNotFound);
    std::os::unix::fs::symlink("from", it.on_disk("link")).unwrap();
    assert_eq!(refused("from", "link"), Denial::NameTaken);
    assert!(!it.exists("to"));
}

#[test]
fn a_copy_onto_itself_changes_the_record_alone() {
    let it = Fixture::new();
    it.file("file", b"hello");
    let copied = copy(&it, "file", "FILE", &options("1")).unwrap();
    assert_eq!(copied.copy().unwrap().status, CopyStatus::Success);
    assert_eq!(it.bytes("file"), b"hello");
}

#[test]
fn a_copy_crosses_shares() {
    let (one, other) = (Fixture::new(), Fixture::new());
    let bytes = long(&one, "from");
    let who = caller("rest");
    let source = (one.share(), &path("from"));
    let copied = copy_file(other.share(), asking(&who), source, &path("to"), &options("1"));
    assert_eq!(copied.unwrap().copy().unwrap().status, CopyStatus::Success);
    assert_eq!(other.bytes("to"), bytes);
}

#[test]
fn locked_bytes_refuse_either_end() {
    let it = Fixture::new();
    it.file("one", b"12345");
    it.file("two", b"12345");
    let handle = it.open("one", "rw", "rwd");
    let range = ByteRange::new(1, 1).unwrap();
    it.share().lock(&handle, &[(range, LockKind::Exclusive)]).unwrap();
    let locked = |answer| matches!(denial(answer), Denial::RangeLocked { .. });
    assert!(locked(copy(&it, "one", "two", &options("1"))));
    assert!(locked(copy(&it, "two", "one", &options("1"))));
    it.share().unlock(&handle, &[range]).unwrap();
    it.share().lock(&handle, &[(range, LockKind::Shared)]).unwrap();
    copy(&it, "one", "two", &options("1")).unwrap();
    assert!(locked(copy(&it, "two", "one", &options("1"))));
}

#[test]
fn a_long_copy_is_done_in_stretches_and_tells_how_far_it_is() {
    let it = Fixture::new();
    let Some(copying) = start_long(&it, "to", "1") else { return };
    assert_eq!(it.bytes("to"), vec![0; 9 << 20], "not copied yet, it reads as zeros");
    let mut seen = Vec::new();
    let done = it.share().finish_copy(Some(it.share()), copying, &mut |progress| {
        seen.push(progress);
        Control::Continue
    });
    let total = 9 << 20;
    let at = |done| CopyProgress { done, total };
    assert_eq!(seen, [at(4 << 20), at(8 << 20)]);
    let done = done.unwrap();
    let state = done.copy().unwrap();
    assert_eq!((state.status, state.progress), (CopyStatus::Success, at(total)));
    assert!(it.bytes("to") == it.bytes("long"));
}

#[test]
fn a_handle_that_comes_in_between_ends_a_copy_that_it_denies() {
    let it = Fixture::new();
    let Some(copying) = start_long(&it, "to", "1") else { return };
    let mut handle = None;
    let ended = it.share().finish_copy(Some(it.share()), copying, &mut |_| {
        handle.get_or_insert_with(|| it.open("to", "r", "r"));
        Control::Continue
    });
    assert!(matches!(denial(ended), Denial::SharingViolation { .. }));
    let record = xattr(&it, "to");
    assert!(record.contains("failed") && record.contains("sharing violation"), "{record}");
    it.share().close(&handle.unwrap()).unwrap();
    it.file("small", b"1");
    copy(&it, "small", "to", &options("2")).unwrap();
}

#[test]
fn a_source_that_changes_or_is_denied_ends_the_copy() {
    let it = Fixture::new();
    let Some(copying) = start_long(&it, "to", "1") else { return };
    let ended = it.share().finish_copy(Some(it.share()), copying, &mut |_| {
        let mut file = std::fs::File::options().write(true).open(it.on_disk("long")).unwrap();
        file.seek(SeekFrom::Start(8 << 20)).unwrap();
        file.write_all(b"changed").unwrap();
        Control::Continue
    });
    assert_eq!(denial(ended), Denial::CopySourceChanged);
    let Some(copying) = start_long(&it, "to", "2") else { return };
    let mut handle = None;
    let ended = it.share().finish_copy(Some(it.share()), copying, &mut |_| {
        handle.get_or_insert_with(|| it.open("long", "r", "none"));
        Control::Continue
    });
    assert!(matches!(denial(ended), Denial::SharingViolation { .. }));
}

#[test]
fn a_copy_can_be_ended_by_whoever_watches_it() {
    let it = Fixture::new();
    let Some(copying) = start_long(&it, "to", "1") else { return };
    let ended = it.share().finish_copy(Some(it.share()), copying, &mut |_| Control::Cancel);
    assert_eq!(denial(ended), Denial::Cancelled);
    assert!(it.share().why(&path("to")).unwrap().is_empty());
}

#[test]
fn a_copy_given_up_or_left_by_a_dead_process_keeps_nobody_from_the_file() {
    let mut it = Fixture::new();
    it.file("small", b"1");
    let Some(copying) = start_long(&it, "to", "1") else { return };
    std::mem::forget(copying); // As a process that dies: nothing is taken back.
    it.restart();
    copy(&it, "small", "to", &options("2")).unwrap();
    let Some(copying) = start_long(&it, "to", "3") else { return };
    drop(copying);
    copy(&it, "small", "to", &options("4")).unwrap();
    let who = caller("rest");
    let abort = it.share().abort_copy(asking(&who), &path("to"), "3");
    assert_eq!(denial(abort), Denial::NoPendingCopy);
}

#[test]
fn an_aborted_copy_does_not_end_the_next_one() {
    let it = Fixture::new();
    let Some(first) = start_long(&it, "to", "1") else { return };
    let (share, who) = (it.share(), caller("rest"));
    share.abort_copy(asking(&who), &path("to"), "1").unwrap();
    let Some(second) = start_long(&it, "to", "2") else { return };
    let ended = share.finish_copy(Some(share), first, &mut go_on);
    assert_ne!(ended.map(|copied| copied.copy().unwrap().status).ok(), Some(CopyStatus::Success));
    let done = share.finish_copy(Some(share), second, &mut go_on).unwrap();
    assert_eq!(done.copy().unwrap().status, CopyStatus::Success);
    assert!(it.bytes("to") == it.bytes("long"));
}
