//! Mount, SMB and REST in one server: each refusal of one by what another has open, and what ends
//! an open of SMB.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use latchfs::file::smb::status::Status;
use latchfs::file::smb::wire::lock::{EXCLUSIVE, FAIL_IMMEDIATELY, UNLOCK};

use super::client::{COMBINATIONS, DELETE, READ, SHARE_ALL, SmbClient, WRITE};
use super::{address, serve};
use crate::common::calls::Call;
use crate::common::meeting::{BYTES, Meeting, errno};
use crate::common::program::Program;
use crate::common::rest::Rest;
use crate::common::served::{Served, wait_for};

const SMB: &[&str] = &["--smb", "127.0.0.1:0"];

/// A server with all three faces, and a client of SMB.
#[track_caller]
fn all_faces() -> Option<(Meeting, SmbClient)> {
    let at = Meeting::alone(SMB)?;
    let client = connected(at.served());
    Some((at, client))
}

fn connected(served: &Served) -> SmbClient {
    SmbClient::start(address(served), COMBINATIONS[0])
}

#[test]
fn an_smb_open_that_shares_nothing_keeps_programs_and_rest_out() {
    let Some((at, mut client)) = all_faces() else { return };
    let file = at.file("f");
    let open = client.open("f", READ | WRITE, 0).unwrap();
    assert_eq!(errno(file.descriptor("r")), libc::EBUSY);
    file.answers("SharingViolation", &[Call::Get, Call::Put, Call::Delete]);
    let told = file.call(Call::Get).text();
    assert!(told.contains("SMB 127.0.0.1"), "{told}");
    client.close(open).unwrap();
    let holder = file.open("rw", "r");
    assert_eq!(client.try_open("f", READ, SHARE_ALL), Status::SUCCESS);
    assert_eq!(client.try_open("f", WRITE, SHARE_ALL), Status::SHARING_VIOLATION);
    holder.close();
}

#[test]
fn byte_range_locks_of_smb_and_of_programs_keep_each_other_out() {
    let Some((at, mut client)) = all_faces() else { return };
    let Some(mut program) = Program::start(&at.served().mount()) else { return };
    let file = at.file("f");
    program.ok("fd = os.open('f', os.O_RDWR)");
    let open = client.open("f", READ | WRITE, SHARE_ALL).unwrap();
    let lock = |flags| [(0, 10, flags)];

    client.lock(open, &lock(EXCLUSIVE | FAIL_IMMEDIATELY)).unwrap();
    let refused = program.fails("lock(fd, SETLK, fcntl.F_WRLCK, 5, 1)");
    assert!([libc::EAGAIN, libc::EACCES].contains(&refused), "{refused}");
    file.answers("FileLockConflict", &[Call::Put]);
    client.lock(open, &lock(UNLOCK)).unwrap();

    program.ok("lock(fd, SETLK, fcntl.F_WRLCK, 5, 1)");
    let refused = client.lock(open, &lock(EXCLUSIVE | FAIL_IMMEDIATELY));
    assert_eq!(refused, Err(Status::LOCK_NOT_GRANTED));
    let waiting = client.send_lock(open, &lock(EXCLUSIVE));
    let interim = client.answer_within(waiting, Duration::from_secs(20)).unwrap();
    assert_eq!(interim.status(), Status::PENDING);
    // Others are served meanwhile.
    assert_eq!(client.read(open, 0, 2), Ok(BYTES[..2].to_vec()));
    program.ok("lock(fd, SETLK, fcntl.F_UNLCK, 5, 1)");
    assert_eq!(client.answer(waiting).status(), Status::SUCCESS);
}

#[test]
fn a_waiting_lock_is_cancelled_and_ends_with_its_handle() {
    let served = serve();
    Rest::new(served.addr(), "share").upload("f", BYTES);
    let mut client = connected(&served);
    let mut other = connected(&served);
    let [holder, waiter] = [(); 2].map(|()| client.open("f", READ | WRITE, SHARE_ALL).unwrap());
    client.lock(holder, &[(0, 1, EXCLUSIVE | FAIL_IMMEDIATELY)]).unwrap();
    for ends_by_close in [false, true] {
        let waiting = client.send_lock(waiter, &[(0, 1, EXCLUSIVE)]);
        let interim = client.answer_within(waiting, Duration::from_secs(20)).unwrap();
        assert_eq!(interim.status(), Status::PENDING);
        let status = if ends_by_close {
            client.close(waiter).unwrap();
            Status::RANGE_NOT_LOCKED
        } else {
            client.cancel(&interim.header);
            Status::CANCELLED
        };
        assert_eq!(client.answer(waiting).status(), status);
    }
    // Another client's lock is granted once the holder's connection is gone.
    let open = other.open("f", READ | WRITE, SHARE_ALL).unwrap();
    let waiting = other.send_lock(open, &[(0, 1, EXCLUSIVE)]);
    let interim = other.answer_within(waiting, Duration::from_secs(20)).unwrap();
    assert_eq!(interim.status(), Status::PENDING);
    client.cut();
    assert_eq!(other.answer(waiting).status(), Status::SUCCESS);
}

#[test]
fn a_file_marked_by_one_face_is_pending_for_all() {
    let Some((at, mut client)) = all_faces() else { return };
    let file = at.file("by-smb");
    let open = client.open("by-smb", DELETE, SHARE_ALL).unwrap();
    client.set_disposition(open, true).unwrap();
    assert_eq!(errno(file.descriptor("r")), libc::EBUSY);
    file.answers("SMBDeletePending", &[Call::Get, Call::Delete]);
    assert_eq!(client.try_open("by-smb", READ, SHARE_ALL), Status::DELETE_PENDING);
    client.set_disposition(open, false).unwrap();
    file.answers("ok", &[Call::Get]);
    client.set_disposition(open, true).unwrap();
    client.close(open).unwrap();
    assert_eq!(file.call(Call::Get).status, 404);

    let file = at.file("by-a-program");
    let keeper = file.pending();
    assert_eq!(client.try_open("by-a-program", READ, SHARE_ALL), Status::DELETE_PENDING);
    keeper.close();
    assert_eq!(client.try_open("by-a-program", READ, 7), Status::OBJECT_NAME_NOT_FOUND);
}

#[test]
fn a_leased_file_is_read_by_smb_and_not_written() {
    let served = serve();
    let rest = Rest::new(served.addr(), "share");
    rest.upload("f", BYTES);
    let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    rest.put("/share/f?comp=lease", &lease).is(201);
    let mut client = connected(&served);
    assert_eq!(client.try_open("f", READ, SHARE_ALL), Status::SUCCESS);
    assert_eq!(client.try_open("f", WRITE, SHARE_ALL), Status::SHARING_VIOLATION);
}

#[test]
fn a_read_only_file_is_not_written_by_smb() {
    let served = serve();
    let rest = Rest::new(served.addr(), "share");
    rest.upload("f", BYTES);
    let headers = [("x-ms-file-attributes", "ReadOnly")];
    rest.put("/share/f?comp=properties", &headers).is(200);
    let mut client = connected(&served);
    assert_eq!(client.try_open("f", WRITE, SHARE_ALL), Status::ACCESS_DENIED);
    let open = client.open("f", READ | DELETE, SHARE_ALL).unwrap();
    assert_eq!(client.set_disposition(open, true), Err(Status::CANNOT_DELETE));
}

#[test]
fn after_a_forced_close_the_late_write_is_refused_and_the_others_bytes_stand() {
    let served = serve();
    let rest = Rest::new(served.addr(), "share");
    rest.upload("f", BYTES);
    let mut client = connected(&served);
    let open = client.open("f", READ | WRITE, 0).unwrap();
    rest.put("/share/f?comp=forceclosehandles", &[("x-ms-handle-id", "*")]).is(200);
    rest.put_range("/share/f", 0, b"others", &[]).is(201);
    assert_eq!(client.write(open, 0, b"late"), Err(Status::FILE_CLOSED));
    assert_eq!(client.read(open, 0, 4), Err(Status::FILE_CLOSED));
    assert_eq!(rest.get("/share/f").is(200).body, b"others6789");
}

#[test]
fn a_cut_connection_frees_its_handles_within_a_second() {
    let served = serve();
    let rest = Rest::new(served.addr(), "share");
    rest.upload("f", BYTES);
    let mut client = connected(&served);
    client.open("f", READ | WRITE, 0).unwrap();
    rest.get("/share/f").refused(409, "SharingViolation");
    let cut = Instant::now();
    client.cut();
    wait_for("the handle to be free", || (rest.get("/share/f").status == 200).then_some(()));
    assert!(cut.elapsed() < Duration::from_secs(1), "{:?}", cut.elapsed());
}

#[test]
fn a_mark_by_smb_outlives_a_crash_and_the_file_is_gone_after_the_restart() {
    let args = ["--no-mount", "--no-auth", "--smb", "127.0.0.1:0"];
    let mut served = serve();
    Rest::new(served.addr(), "share").upload("f", BYTES);
    let mut client = connected(&served);
    let open = client.open("f", DELETE, SHARE_ALL).unwrap();
    client.set_disposition(open, true).unwrap();
    served.crash_and_restart(&args);
    assert_eq!(Rest::new(served.addr(), "share").get("/share/f").status, 404);
    assert!(!fs::exists(served.data().join("f")).unwrap());
}

#[test]
fn what_one_face_writes_the_others_read_at_once() {
    let Some((at, mut client)) = all_faces() else { return };
    let file = at.file("f");
    let open = client.open("f", READ | WRITE, SHARE_ALL).unwrap();
    client.write(open, 0, b"smb").unwrap();
    assert_eq!(file.bytes(), b"smb3456789");
    assert_eq!(fs::read(file.path()).unwrap(), b"smb3456789");
    at.put_range(&file.target(), 3, b"rest", &[]).is(201);
    let program = file.descriptor("rw").unwrap();
    program.write_at(b"mount", 7).unwrap();
    assert_eq!(client.read(open, 0, 100), Ok(b"smbrestmount".to_vec()));
}
