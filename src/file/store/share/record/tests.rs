//! Tests of records: round trips, limits, half-done saves.

use super::super::{ETag, Stat};
use super::*;
use crate::disk::testing::{Ramfs, names_in, places};
use crate::rules::FileId;
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, IFlags, Mode, OFlags, XattrFlags};

/// A file with records, and a state folder beside it.
struct Bench {
    state: PathBuf,
    records: Records,
    file: File,
    id: FileId,
}

impl Bench {
    fn in_dir(dir: &Path) -> Self {
        fs::write(dir.join("f"), b"bytes").unwrap();
        let file = File::open(dir.join("f")).unwrap();
        let state = dir.join("state");
        Self {
            records: Records::new(&state).unwrap(),
            id: Stat::of(&file).unwrap().id,
            state,
            file,
        }
    }

    fn save(&self, record: &Record) -> Record {
        let mut record = record.clone();
        self.records.save(&self.file, self.id, &mut record).unwrap();
        record
    }

    fn load(&self) -> Result<Record, StoreError> {
        self.records.load(&self.file, self.id)
    }

    fn restarted(self) -> Self {
        Self { records: Records::new(&self.state).unwrap(), ..self }
    }

    fn sidecars(&self) -> Vec<String> {
        names_in(self.state.join("records"))
    }

    fn sidecar_name(&self) -> String {
        format!("{}-{}.json", self.id.ino, self.id.born)
    }

    fn put_sidecar(&self, text: &[u8]) {
        fs::create_dir_all(self.state.join("records")).unwrap();
        fs::write(self.state.join("records").join(self.sidecar_name()), text).unwrap();
    }

    fn attribute(&self) -> Option<String> {
        let value = xattr::get(self.file.as_fd()).unwrap()?;
        Some(String::from_utf8(value).unwrap())
    }

    fn put_attribute(&self, text: &str) {
        let flags = XattrFlags::empty();
        rustix::fs::fsetxattr(&self.file, Records::XATTR, text.as_bytes(), flags).unwrap();
    }

    fn tag(&self) -> ETag {
        ETag::of(&Stat::of(&self.file).unwrap(), &self.load().unwrap())
    }
}

fn ranges() -> RangeAccount {
    let mut account = RangeAccount::default();
    account.note(&(0..1_000), Touch::Written, Timestamp(5));
    account.note(&(512..1_024), Touch::Cleared, Timestamp(6));
    account
}

fn small() -> Record {
    Record {
        metadata: [("Owner", "me"), ("b", "2")].into_iter().collect(),
        headers: HttpHeaders {
            content_type: Some("text/plain".into()),
            content_md5: Some("1B2M2Y8AsgTpgAmY7PhCfg==".into()),
            ..HttpHeaders::default()
        },
        attributes: Some(Attributes::READ_ONLY | Attributes::ARCHIVE),
        created: Some(Timestamp(-1)),
        changed: Some(Timestamp(1_700_000_000_123_456_700)),
        permission_key: Some("1*2".into()),
        copy: Some(CopyState {
            id: "c-1".into(),
            source: "http://127.0.0.1:10004/a/s/f".into(),
            status: CopyStatus::Pending,
            progress: CopyProgress { done: 1, total: 2 },
            completion: None,
            description: None,
        }),
        ranges: Some(ranges()),
        changes: 3,
    }
}

/// With the 8 KiB of metadata a file may have.
fn large() -> Record {
    let mut record = small();
    for number in 0..8 {
        record.metadata.insert(format!("m{number}"), "v".repeat(1022));
    }
    record
}

fn same_but_for_changes(one: &Record, other: &Record) -> bool {
    let changes = other.changes;
    Record { changes, ..one.clone() } == *other
}

#[test]
fn a_file_without_a_record_has_the_default_one() {
    for place in places() {
        let bench = Bench::in_dir(place.path());
        assert!(bench.load().unwrap().is_default());
        assert!(!bench.state.exists(), "nothing is made before it is needed");
    }
}

#[test]
fn a_record_comes_back_after_a_restart_whatever_its_size() {
    for place in places() {
        let mut bench = Bench::in_dir(place.path());
        for record in [small(), large(), small(), large(), large()] {
            let saved = bench.save(&record);
            assert!(same_but_for_changes(&saved, &record));
            assert_eq!(bench.load().unwrap(), saved);
            bench = bench.restarted();
            assert_eq!(bench.load().unwrap(), saved);
        }
    }
}

#[test]
fn the_written_form_is_versioned_and_compact() {
    let record = Record { permission_key: Some("k".into()), changes: 2, ..Record::default() };
    let text = String::from_utf8(encode(None, &record)).unwrap();
    assert_eq!(text, r#"{"v":1,"permission_key":"k","changes":2}"#);
    let text = String::from_utf8(encode(Some(7), &Record::default())).unwrap();
    assert_eq!(text, r#"{"v":1,"sidecar":7}"#);
}

#[test]
fn a_small_record_is_in_the_attribute_alone() {
    let place = tempfile::tempdir().unwrap();
    let bench = Bench::in_dir(place.path());
    bench.save(&large());
    let saved = bench.save(&small());
    assert_eq!(saved.changes, small().changes);
    assert!(bench.attribute().unwrap().contains("Owner"));
    assert!(bench.sidecars().is_empty());
}

#[test]
fn a_default_record_leaves_nothing_behind() {
    for place in places() {
        let bench = Bench::in_dir(place.path());
        for record in [small(), large()] {
            bench.save(&record);
            bench.save(&Record::default());
            assert_eq!(bench.attribute(), None);
            assert!(bench.sidecars().is_empty());
            assert!(bench.load().unwrap().is_default());
        }
        bench.save(&Record::default());
    }
}

#[test]
fn every_save_of_a_change_moves_the_tag() {
    for place in places() {
        let bench = Bench::in_dir(place.path());
        let mut seen = vec![bench.tag()];
        let mut record = small();
        for size in [10, 8000, 8000, 10, 8000] {
            let turn = seen.len().to_string();
            record.metadata.insert("m", turn + &"v".repeat(size));
            record = bench.save(&record);
            let tag = bench.tag();
            assert!(!seen.contains(&tag));
            seen.push(tag);
        }
    }
}

#[test]
fn a_forgotten_file_has_no_sidecar() {
    let Some(ramfs) = Ramfs::mount() else { return };
    let bench = Bench::in_dir(ramfs.path());
    bench.save(&large());
    assert_eq!(bench.sidecars(), [bench.sidecar_name()]);
    bench.records.forget(bench.id).unwrap();
    bench.records.forget(bench.id).unwrap();
    assert!(bench.sidecars().is_empty());
}

#[test]
fn a_file_system_without_attributes_keeps_all_in_sidecars() {
    let Some(ramfs) = Ramfs::mount() else { return };
    let mut bench = Bench::in_dir(ramfs.path());
    assert!(bench.load().unwrap().is_default());
    let mut tags = vec![bench.tag()];
    let mut saved = small();
    for _ in 0..3 {
        saved = bench.save(&saved);
        tags.push(bench.tag());
    }
    assert_eq!(saved.changes, small().changes + 3);
    tags.dedup();
    assert_eq!(tags.len(), 4, "the tag moves although the inode does not");
    bench = bench.restarted();
    assert_eq!(bench.load().unwrap(), saved);
    bench.save(&Record::default());
    assert!(bench.sidecars().is_empty());
    assert!(bench.restarted().load().unwrap().is_default());
}

fn by_path(path: &Path) -> OwnedFd {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).unwrap()
}

#[test]
fn links_and_special_files_use_the_sidecar_and_leave_the_target_alone() {
    for place in places() {
        let bench = Bench::in_dir(place.path());
        let link = place.path().join("link");
        std::os::unix::fs::symlink("f", &link).unwrap();
        let pipe = place.path().join("pipe");
        rustix::fs::mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        for path in [link, pipe] {
            let fd = by_path(&path);
            let id = Stat::of(&fd).unwrap().id;
            assert!(bench.records.load(&fd, id).unwrap().is_default());
            let mut record = small();
            bench.records.save(&fd, id, &mut record).unwrap();
            assert_eq!(bench.records.load(&fd, id).unwrap(), record);
            assert_eq!(bench.sidecars().len(), 1);
            bench.records.save(&fd, id, &mut Record::default()).unwrap();
            assert!(bench.sidecars().is_empty());
        }
        assert_eq!(bench.attribute(), None);
    }
}

#[test]
fn a_path_descriptor_will_do() {
    let place = tempfile::tempdir().unwrap();
    let bench = Bench::in_dir(place.path());
    let fd = by_path(&place.path().join("f"));
    for record in [large(), small(), large(), Record::default()] {
        let mut record = record;
        bench.records.save(&fd, bench.id, &mut record).unwrap();
        assert_eq!(bench.records.load(&fd, bench.id).unwrap(), record);
        assert_eq!(bench.load().unwrap(), record);
    }
    assert!(bench.sidecars().is_empty());
}

#[test]
fn a_directory_has_a_record_like_a_file() {
    let place = tempfile::tempdir().unwrap();
    let bench = Bench::in_dir(place.path());
    let dir = File::open(place.path()).unwrap();
    let id = Stat::of(&dir).unwrap().id;
    let mut record = small();
    bench.records.save(&dir, id, &mut record).unwrap();
    assert_eq!(bench.records.load(&dir, id).unwrap(), record);
    assert!(bench.sidecars().is_empty());
}

/// Takes all the room for attributes; the names of those set, none if there is no end to it.
fn fill_with_attributes(file: &File) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for size in [4000, 3000, 500, 100, 30, 10, 1, 1, 1, 1] {
        let name = format!("user.{}", names.len());
        let value = vec![b'o'; size];
        if rustix::fs::fsetxattr(file, &name, &value, XattrFlags::empty()).is_ok() {
            names.push(name);
        }
    }
    let more = rustix::fs::fsetxattr(file, "user.x", b"", XattrFlags::empty());
    more.is_err().then_some(names)
}

#[test]
fn a_file_full_of_other_attributes_uses_the_sidecar_until_there_is_room() {
    let place = tempfile::tempdir().unwrap();
    let mut bench = Bench::in_dir(place.path());
    let Some(names) = fill_with_attributes(&bench.file) else {
        println!("SKIPPED: there is always room for attributes here");
        return;
    };
    for record in [small(), large()] {
        let saved = bench.save(&record);
        assert_eq!(bench.attribute(), None, "not even a pointer fits");
        bench = bench.restarted();
        assert_eq!(bench.load().unwrap(), saved);
    }
    bench.save(&Record::default());
    assert!(bench.sidecars().is_empty() && bench.load().unwrap().is_default());

    bench.save(&large());
    for name in names {
        rustix::fs::fremovexattr(&bench.file, &name).unwrap();
    }
    let saved = bench.save(&small());
    assert!(bench.sidecars().is_empty());
    assert_eq!(bench.restarted().load().unwrap(), saved);
}

#[test]
fn a_crash_before_the_switch_leaves_the_old_record() {
    let place = tempfile::tempdir().unwrap();
    let bench = Bench::in_dir(place.path());
    let saved = bench.save(&small());
    // On the way to a sidecar: a temporary file, then the sidecar, but no pointer yet.
    let temporary = bench.state.join("records/.tmp-0");
    bench.put_sidecar(&encode(None, &large()));
    fs::write(&temporary, b"{\"v\":1,").unwrap();
    let bench = bench.restarted();
    assert!(!temporary.exists());
    assert_eq!(bench.load().unwrap(), saved);
    // The left-over goes with the next save.
    bench.save(&saved);
    assert!(bench.sidecars().is_empty());
}

#[test]
fn a_crash_after_the_switch_leaves_the_new_record() {
    let place = tempfile::tempdir().unwrap();
    let bench = Bench::in_dir(place.path());
    // To a sidecar, from nothing: written, not yet pointed to.
    bench.put_sidecar(&encode(None, &large()));
    let bench = bench.restarted();
    assert_eq!(bench.load().unwrap(), large());
    // Back to the attribute: set, the sidecar not yet removed.
    bench.put_attribute(str::from_utf8(&encode(None, &small())).unwrap());
    assert_eq!(bench.load().unwrap(), small());
    let bench = bench.restarted();
    assert_eq!(bench.load().unwrap(), small());
    // To the default: the empty record set, the sidecar not yet removed.
    bench.put_attribute("{\"v\":1}");
    let bench = bench.restarted();
    assert!(bench.load().unwrap().is_default());
    // The sidecar removed, the attribute not yet.
    bench.records.forget(bench.id).unwrap();
    assert!(bench.restarted().load().unwrap().is_default());
}

#[test]
fn a_default_record_does_not_bring_an_outdated_sidecar_back() {
    let place = tempfile::tempdir().unwrap();
    let bench = Bench::in_dir(place.path());
    bench.save(&small());
    bench.put_sidecar(&encode(None, &large()));
    let bench = bench.restarted();
    bench.save(&Record::default());
    assert!(bench.restarted().load().unwrap().is_default());
}

fn damage(result: Result<Record, StoreError>) -> String {
    match result {
        Err(error @ StoreError::Damaged { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lost_sidecar_is_reported_and_can_be_replaced() {
    let place = tempfile::tempdir().unwrap();
    let bench = Bench::in_dir(place.path());
    bench.put_attribute("{\"v\":1,\"sidecar\":4}");
    let text = damage(bench.load());
    assert!(text.contains(&bench.sidecar_name()) && text.contains("missing"), "{text}");
    let saved = bench.save(&small());
    assert_eq!(bench.load().unwrap(), saved);
}

#[test]
fn a_record_that_cannot_be_understood_is_reported() {
    let place = tempfile::tempdir().unwrap();
    let bench = Bench::in_dir(place.path());
    for text in
        ["", "x", "{}", "[1]", "{\"v\":1,\"changes\":-1}", "{\"v\":1,\"metadata\":{\"a\":1}}"]
    {
        bench.put_attribute(text);
        let said = damage(bench.load());
        assert!(said.contains(&format!("inode {}", bench.id.ino)), "{said}");
    }
    bench.put_attribute("{\"v\":1,\"sidecar\":1}");
    bench.put_sidecar(b"{\"v\":1,\"metada");
    let bench = bench.restarted();
    assert!(damage(bench.load()).contains(&bench.sidecar_name()));
}

#[test]
fn a_newer_version_is_refused_with_its_number_and_new_fields_are_ignored() {
    let place = tempfile::tempdir().unwrap();
    let bench = Bench::in_dir(place.path());
    bench.put_attribute("{\"v\":2,\"metadata\":[\"another\",\"form\"]}");
    let text = damage(bench.load());
    assert!(text.contains("version 2") && text.contains("newer"), "{text}");
    bench.put_attribute("{\"v\":1,\"changes\":5,\"colour\":\"red\"}");
    assert_eq!(bench.load().unwrap(), Record { changes: 5, ..Record::default() });
}

#[test]
fn the_counter_of_changes_cannot_overflow() {
    let Some(ramfs) = Ramfs::mount() else { return };
    let bench = Bench::in_dir(ramfs.path());
    let saved = bench.save(&Record { changes: u64::MAX, ..small() });
    assert_eq!(bench.load().unwrap(), saved);
}

#[test]
fn a_foreign_file_among_the_sidecars_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let bench = Bench::in_dir(place.path());
    bench.put_sidecar(&encode(None, &small()));
    fs::write(bench.state.join("records/notes.txt"), b"").unwrap();
    let bench = bench.restarted();
    assert_eq!(bench.load().unwrap(), small());
    assert_eq!(bench.sidecars().len(), 2);
}

#[test]
fn an_identity_from_before_1970_has_a_sidecar_too() {
    let Some(ramfs) = Ramfs::mount() else { return };
    let bench = Bench::in_dir(ramfs.path());
    let id = FileId { ino: 5, born: -7 };
    let mut record = small();
    bench.records.save(&bench.file, id, &mut record).unwrap();
    let records = Records::new(&bench.state).unwrap();
    assert_eq!(records.load(&bench.file, id).unwrap(), record);
}

#[test]
fn an_immutable_file_refuses_and_gets_no_sidecar() {
    let place = tempfile::tempdir().unwrap();
    let bench = Bench::in_dir(place.path());
    let before = rustix::fs::ioctl_getflags(&bench.file).unwrap_or(IFlags::empty());
    if rustix::fs::ioctl_setflags(&bench.file, before | IFlags::IMMUTABLE).is_err() {
        println!("SKIPPED: a file cannot be made immutable here");
        return;
    }
    let saved = bench.records.save(&bench.file, bench.id, &mut small());
    let cleared = bench.records.save(&bench.file, bench.id, &mut Record::default());
    rustix::fs::ioctl_setflags(&bench.file, before).unwrap();
    assert!(matches!(saved, Err(StoreError::PermissionDenied)), "{saved:?}");
    assert!(matches!(cleared, Err(StoreError::PermissionDenied)), "{cleared:?}");
    assert!(bench.sidecars().is_empty());
}

#[test]
fn a_state_folder_that_cannot_be_written_is_an_error_and_keeps_the_old_record() {
    let Some(ramfs) = Ramfs::mount() else { return };
    let bench = Bench::in_dir(ramfs.path());
    fs::write(&bench.state, b"in the way").unwrap();
    let refused = bench.records.save(&bench.file, bench.id, &mut small());
    assert!(matches!(refused, Err(StoreError::NotADirectory)), "{refused:?}");
    fs::remove_file(&bench.state).unwrap();
    assert!(bench.load().unwrap().is_default());
}
