//! List Handles and Force Close Handles over what the mount has open (behaviours 112-118).

use std::fs;
use std::io::Write as _;

use crate::common::calls::Call;
use crate::common::http::Got;
use crate::common::meeting::{Holder, Meeting, Subject, elements, errno, listed};
use crate::common::program::Program;

/// Force Close Handles of one handle, or of all (`*`); how many were closed.
fn force_close(file: &Subject<'_>, which: &str, more: &[(&str, &str)]) -> String {
    let got = ask_to_close(file, which, more).is(200);
    assert_eq!(got.header("x-ms-number-of-handles-failed"), "0");
    got.header("x-ms-number-of-handles-closed").to_owned()
}

fn ask_to_close(file: &Subject<'_>, which: &str, more: &[(&str, &str)]) -> Got {
    let mut headers = vec![("x-ms-handle-id", which)];
    headers.extend_from_slice(more);
    file.at.put(&format!("{}?comp=forceclosehandles", file.target()), &headers)
}

const RECURSIVE: (&str, &str) = ("x-ms-recursive", "true");

#[test]
fn b112_each_handle_is_listed_with_its_holder_and_its_access() {
    let Some(at) = Meeting::start() else { return };
    let Some(mut program) = Program::start(&at.served().mount()) else { return };
    at.directory("b112");
    let file = at.file("b112/File");
    let mine = file.open("r", "rwd");
    program.ok("fd = os.open('b112/file', os.O_RDWR)");
    let got = file.call(Call::ListHandles).is(200);
    let handles = listed(&got);
    assert_eq!(handles.len(), 2, "{handles:?}");
    let id = file.shown("x-ms-file-id");
    for handle in &handles {
        assert_eq!((handle.path.as_str(), handle.file_id.as_str()), ("b112/File", id.as_str()));
        assert!(handle.opened.ends_with(" GMT") && handle.opened.len() == 29, "{handle:?}");
        assert_eq!(handle.session, handles[0].session, "one mount is one session");
    }
    assert_eq!(handles[0].id, mine.id());
    assert_ne!(handles[1].id, mine.id());
    assert_eq!(handles[0].access, ["Read"]);
    assert_eq!(handles[1].access, ["Read", "Write"]);
    let me = format!("(pid {})", std::process::id());
    assert!(handles[0].client.contains(&me), "{handles:?}");
    let other = format!("python3 (pid {})", program.id());
    assert!(handles[1].client.starts_with(&other), "{handles:?}");
    let parent = at.get("/share/b112?restype=directory").is(200);
    assert_eq!(elements(&got.text(), "ParentId")[0], parent.header("x-ms-file-id"));
    assert_eq!(elements(&got.text(), "ClientIp")[0], "127.0.0.1");
}

#[test]
fn b113_handles_below_a_directory_are_listed_on_request_only() {
    let Some(at) = Meeting::start() else { return };
    let directory = at.directory("b113");
    at.directory("b113/sub");
    let below = at.file("b113/sub/file").open("r", "rwd");
    let own = fs::File::open(directory.path()).unwrap();
    let alone = at.handles("b113", false);
    assert_eq!(alone.len(), 1, "{alone:?}");
    let all: Vec<_> = at.handles("b113", true).into_iter().map(|handle| handle.id).collect();
    assert!(all.len() == 2 && all.contains(&alone[0].id) && all.contains(&below.id()), "{all:?}");
    drop(own);
}

#[test]
fn b114_pages_of_handles_lead_on_without_repeating_one() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b114");
    let opened: Vec<_> = (0..5).map(|_| file.open("r", "rwd")).collect();
    let target = format!("{}?comp=listhandles", file.target());
    at.get(&format!("{target}&maxresults=0")).is(400);
    let (mut seen, mut marker) = (Vec::new(), String::new());
    loop {
        let got = at.get(&format!("{target}&maxresults=1{marker}")).is(200);
        seen.extend(listed(&got).iter().map(|handle| handle.id));
        let next = elements(&got.text(), "NextMarker").pop().unwrap();
        if next.is_empty() {
            break;
        }
        marker = format!("&marker={next}");
    }
    let mut ids: Vec<_> = opened.iter().map(Holder::id).collect();
    ids.sort_unstable();
    assert_eq!(seen, ids);
}

// The errno and that locks go at once are choices of the mount.
#[test]
fn b115_a_closed_handle_is_dead_and_its_share_mode_and_locks_are_gone() {
    let Some(at) = Meeting::start() else { return };
    let Some(mut program) = Program::start(&at.served().mount()) else { return };
    let file = at.file("b115");
    program.ok("fd = os.open('b115', os.O_RDWR)");
    program.ok("lock(fd, SETLK, fcntl.F_WRLCK, 0, 5)");
    file.answers("FileLockConflict", &[Call::Put]);
    program.ok("fcntl.ioctl(fd, 0x40044C01, struct.pack('<I', 0))");
    file.answers("SharingViolation", &[Call::Put]);
    let id = file.handles()[0].id.to_string();
    assert_eq!(force_close(&file, &id, &[]), "1");
    file.answers("ok", &[Call::Put, Call::Get]);
    assert_eq!(program.fails("os.pwrite(fd, b'late', 0)"), libc::EIO);
    assert_eq!(program.fails("os.ftruncate(fd, 0)"), libc::EIO);
    assert_eq!(file.bytes(), b"AB23456789");
    assert!(file.handles().is_empty());
}

#[test]
fn b116_an_unknown_handle_closes_nothing() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b116");
    assert_eq!(force_close(&file, "*", &[]), "0");
    let holder = file.open("rw", "rwd");
    let elsewhere = at.file("b116-other").open("r", "rwd");
    assert_eq!(force_close(&file, "1", &[]), "0");
    assert_eq!(force_close(&file, &elsewhere.id().to_string(), &[]), "0");
    holder.file().write_all(b"x").unwrap();
    assert_eq!(file.handles().len(), 1);
}

#[test]
fn b117_a_file_has_no_handles_below_it_to_close() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b117");
    let _holder = file.open("r", "rwd");
    ask_to_close(&file, "*", &[RECURSIVE]).is(400);
    assert_eq!(file.handles().len(), 1);
}

#[test]
fn b118_a_renamed_file_keeps_its_identity_in_the_list_of_handles() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("b118");
    let _holder = file.open("r", "rwd");
    let before = file.handles().remove(0);
    let renamed = file.beside("-new");
    assert_eq!(errno(fs::rename(file.path(), renamed.path())), 0);
    let after = renamed.handles().remove(0);
    assert_eq!((after.id, &after.file_id), (before.id, &before.file_id));
    assert_eq!(after.path, "b118-new");
}
