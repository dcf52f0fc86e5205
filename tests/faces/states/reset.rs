//! A reset: everything is gone at once, for clients that stay connected and mounts that stay.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use latchfs::api::{
    Action, ApiClient, CloseHandles, GetClock, GetFaults, GetGates, GetHandles, GetLeases,
    GetLocks, GetMessages, GetPending, GetStatus, NewFault, NewGate, Requests, Reset, TurnClock,
    WaitAtGate,
};
use latchfs::rules::service::ServiceKind;
use latchfs::server::HoldOptions;

use super::fixture::{ACCOUNTS, builder, clients, keep, listed};
use crate::common::need;
use crate::common::served::wait_for;

fn empty(shares: &[&str]) -> BTreeMap<&'static str, Vec<String>> {
    let shares = shares.iter().map(|name| (*name).to_owned()).collect();
    let none = Vec::new;
    BTreeMap::from([
        ("containers", none()),
        ("queues", none()),
        ("tables", none()),
        ("shares", shares),
    ])
}

#[test]
fn a_reset_empties_every_service_of_every_account_under_connected_clients() {
    let server = builder().start().unwrap();
    let mut kept = [ServiceKind::Blob, ServiceKind::Queue, ServiceKind::Table, ServiceKind::File]
        .map(|kind| (kind, keep(&server, kind)));
    for client in clients(&server) {
        client.furnish();
        client.file("PUT", "/other?restype=share", &[], b"").is(201);
        let cors = b"<StorageServiceProperties><Cors /></StorageServiceProperties>";
        client.blob("PUT", "/?restype=service&comp=properties", &[], cors).is(202);
    }
    server.reset().unwrap();
    let [first, second] = clients(&server);
    assert_eq!(first.names(), empty(&["docs"]));
    assert_eq!(second.names(), empty(&[]));
    assert!(first.files("docs").is_empty());
    first.file("GET", "/docs/dir/a.txt", &[], b"").is(404);
    first.blob("GET", "/box/small", &[], b"").refused(404, "ContainerNotFound");
    for (kind, connection) in &mut kept {
        let list = if *kind == ServiceKind::Table { "/Tables" } else { "/?comp=list" };
        let answer = connection.ask_of(ACCOUNTS[0], "GET", list, &[], b"").unwrap().is(200);
        assert!(!answer.text().contains("box"), "{}", answer.text());
    }
    // Everything can be made again, under the same names.
    for client in clients(&server) {
        client.furnish();
    }
    assert_eq!(first.blob("GET", "/box/small", &[], b"").is(200).text(), "hello");
}

#[test]
fn no_etag_and_no_receipt_comes_a_second_time_after_a_reset() {
    let server = builder().start().unwrap();
    let [client, _] = clients(&server);
    let control = ApiClient::new(&server.control());
    let mut seen = BTreeSet::new();
    for round in 0..4 {
        // The clock goes back with each reset.
        control.ask(&TurnClock { advance_ms: Some(3_600_000), ..TurnClock::default() }).unwrap();
        control.ask(&TurnClock { freeze: Some(true), ..TurnClock::default() }).unwrap();
        for issued in client.furnish() {
            assert!(seen.insert(issued.clone()), "round {round}: {issued} came before");
        }
        server.reset().unwrap();
    }
}

#[test]
fn a_reset_ends_gated_requests_removes_gates_and_faults_and_sets_the_clock_back() {
    let server = builder().start().unwrap();
    let [client, _] = clients(&server);
    client.furnish();
    let control = ApiClient::new(&server.control());
    let gate = NewGate { operation: Some("Put Blob".to_owned()), ..NewGate::default() };
    let id = control.ask(&gate).unwrap().gate;
    control.ask(&TurnClock { advance_ms: Some(3_600_000), ..TurnClock::default() }).unwrap();
    let mut connection = keep(&server, ServiceKind::Blob);
    let gated = std::thread::spawn(move || {
        let kind = [("x-ms-blob-type", "BlockBlob")];
        connection.ask_of("first", "PUT", "/box/late", &kind, b"late")
    });
    let wait = WaitAtGate { id, count: Some(1), timeout_ms: Some(20_000) };
    assert_eq!(control.ask(&wait).unwrap().waiting, 1);
    assert!(control.ask(&Reset {}).unwrap().reset);
    gated.join().unwrap().expect_err("it is not carried out on the new data");
    assert_eq!(control.ask(&GetGates {}).unwrap().gates, []);
    let clock = control.ask(&GetClock {}).unwrap();
    assert!(!clock.frozen && clock.now[..16] == clock.system[..16], "{clock:?}");
}

#[test]
fn a_mount_that_is_reset_stays_and_its_descriptors_and_holds_end() {
    if need::fuse() {
        mount_is_reset(true);
    }
}

#[test]
fn a_mount_without_passthrough_is_reset_as_well() {
    if need::fuse() {
        mount_is_reset(false);
    }
}

fn mount_is_reset(passthrough: bool) {
    let place = tempfile::tempdir().unwrap();
    let builder = builder().mount("docs", place.path());
    let server = builder.with(|options| options.mount.passthrough = passthrough).start().unwrap();
    let mount = place.path().canonicalize().unwrap();
    std::fs::create_dir(mount.join("dir")).unwrap();
    std::fs::write(mount.join("dir/a.txt"), "hello").unwrap();
    std::fs::write(mount.join("b.txt"), "hello").unwrap();
    let mut reading = std::fs::File::open(mount.join("dir/a.txt")).unwrap();
    let writing = std::fs::File::options().write(true).open(mount.join("b.txt")).unwrap();
    let directory = std::fs::File::open(mount.join("dir")).unwrap();
    let hold = server.hold(&HoldOptions::new("docs", "dir/a.txt")).unwrap_err();
    assert!(hold.to_string().contains("open"), "{hold}");
    let held = HoldOptions {
        share_mode: latchfs::file::rules::ShareMode::RWD,
        ..HoldOptions::new("docs", "b.txt")
    };
    let hold = server.hold(&held).unwrap();
    assert_eq!(listed(&mount), ["b.txt", "dir"]);
    // A program that is in a directory of the mount.
    let mut inside = std::process::Command::new("sh");
    inside.args(["-c", "read line; ls . 2>&1; ls .."]).current_dir(mount.join("dir"));
    inside.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let inside = inside.spawn().unwrap();
    server.reset().unwrap();
    assert!(hold.was_closed());
    assert!(listed(&mount).is_empty());
    assert!(!mount.join("b.txt").exists());
    let errno = |done: std::io::Result<usize>| done.unwrap_err().raw_os_error();
    reading.seek(SeekFrom::Start(0)).ok();
    assert_eq!(errno(reading.read(&mut [0; 5])), Some(libc::EIO));
    assert_eq!(errno(writing.write_at(b"x", 0)), Some(libc::EIO));
    let seen = rustix::fs::statat(&directory, "a.txt", rustix::fs::AtFlags::empty());
    let seen = seen.unwrap_err();
    assert!(matches!(seen, rustix::io::Errno::STALE | rustix::io::Errno::NOENT), "{seen}");
    let listed_inside = String::from_utf8(inside.wait_with_output().unwrap().stdout).unwrap();
    assert!(!listed_inside.contains("a.txt"), "{listed_inside}");
    drop((reading, writing, directory));
    // It is a share like any other.
    std::fs::write(mount.join("b.txt"), "again").unwrap();
    let [client, _] = clients(&server);
    assert_eq!(client.file("GET", "/docs/b.txt", &[], b"").is(200).text(), "again");
    let mut file = std::fs::File::options().append(true).open(mount.join("b.txt")).unwrap();
    file.write_all(b"!").unwrap();
    assert_eq!(client.file("GET", "/docs/b.txt", &[], b"").is(200).text(), "again!");
}

/// A descriptor that a forced close must cut off: it is open for writing, and has written.
fn writer(mount: &Path, name: &str) -> std::fs::File {
    let mut options = std::fs::File::options();
    let file = options.write(true).create_new(true).open(mount.join(name)).unwrap();
    file.write_all_at(b"before", 0).unwrap();
    file
}

#[test]
fn after_a_reset_and_a_restore_every_forced_close_still_cuts_descriptors_off() {
    if !need::fuse() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let server = builder().mount("docs", place.path()).start().unwrap();
    let mount = place.path().canonicalize().unwrap();
    let [client, _] = clients(&server);
    let control = ApiClient::new(&server.control());
    let is_cut_off = |file: &std::fs::File, by: &str| {
        let refused = file.write_at(b"after!", 0).map_err(|error| error.raw_os_error());
        assert_eq!(refused, Err(Some(libc::EIO)), "{by}");
    };
    server.save_state("empty").unwrap();
    let reset = || server.reset().unwrap();
    let restore = || server.restore_state("empty").unwrap();
    let delete = || drop(client.file("DELETE", "/docs?restype=share", &[], b"").is(202));
    let ends: [(&str, &dyn Fn()); 4] =
        [("reset", &reset), ("restore", &restore), ("reset", &reset), ("deletion", &delete)];
    for (round, (name, end_all)) in ends.into_iter().enumerate() {
        let one = writer(&mount, "one");
        assert_eq!(control.ask(&CloseHandles::default()).unwrap().closed, 1);
        is_cut_off(&one, &format!("close-handle in round {round}"));
        let two = writer(&mount, "two");
        let all = [("x-ms-handle-id", "*")];
        let closed = client.file("PUT", "/docs/two?comp=forceclosehandles", &all, b"").is(200);
        assert_eq!(closed.header("x-ms-number-of-handles-closed"), "1");
        is_cut_off(&two, &format!("Force Close Handles in round {round}"));
        let three = writer(&mount, "three");
        end_all();
        is_cut_off(&three, &format!("{name} in round {round}"));
    }
}

#[test]
#[ignore = "it measures: run it alone, with --nocapture"]
fn a_reset_of_many_objects_is_timed() {
    let folder = tempfile::tempdir().unwrap();
    let server = builder().data(folder.path()).start().unwrap();
    let count = 10_000;
    super::fixture::fill(&server, folder.path(), count);
    let start = Instant::now();
    server.reset().unwrap();
    let took = start.elapsed();
    println!("reset of {count} files, blobs and entities: {took:?}");
    let [client, _] = clients(&server);
    assert_eq!(client.names(), empty(&["docs"]));
}

#[test]
fn what_is_held_can_be_looked_at_while_everything_is_reset() {
    let server = builder().start().unwrap();
    let [client, _] = clients(&server);
    let stop = AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let control = ApiClient::new(&server.control());
            let mut looks = 0;
            while !stop.load(Ordering::Relaxed) {
                control.ask(&GetHandles::default()).unwrap();
                control.ask(&GetLocks { share: None, path: None }).unwrap();
                control.ask(&GetPending {}).unwrap();
                control.ask(&GetLeases {}).unwrap();
                control.ask(&GetMessages { queue: None }).unwrap();
                control.ask(&GetStatus {}).unwrap();
                looks += 1;
            }
            looks
        });
        for _ in 0..40 {
            client.furnish();
            server.reset().unwrap();
            if looker.is_finished() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        looker.join().unwrap()
    });
    assert!(looks > 0, "nobody looked");
}

#[test]
fn a_reset_ends_delayed_calls_of_the_mount_and_requests_and_waits_for_none() {
    if !need::fuse() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let server = builder().mount("docs", place.path()).start().unwrap();
    let [client, _] = clients(&server);
    client.furnish();
    let mount = place.path().canonicalize().unwrap();
    std::fs::write(mount.join("old"), "").unwrap();
    let control = ApiClient::new(&server.control());
    for operation in ["Mount Create", "Put Blob"] {
        let requests = Requests { operation: Some(operation.to_owned()), ..Requests::default() };
        control.ask(&NewFault::new(requests, &Action::DelayMs(3_600_000))).unwrap();
    }
    let mut connection = keep(&server, ServiceKind::Blob);
    let put = std::thread::spawn(move || {
        let kind = [("x-ms-blob-type", "BlockBlob")];
        connection.ask_of("first", "PUT", "/box/late", &kind, b"late")
    });
    let late = mount.join("late");
    let create = std::thread::spawn(move || std::fs::write(late, "late"));
    wait_for("both are delayed", || {
        let met = control.ask(&GetFaults {}).unwrap().faults.iter().map(|one| one.met).sum::<u64>();
        (met == 2).then_some(())
    });
    assert!(control.ask(&Reset {}).unwrap().reset);
    put.join().unwrap().expect_err("it is not carried out on the new data");
    let created = create.join().unwrap().unwrap_err();
    assert_eq!(created.raw_os_error(), Some(libc::EIO));
    assert!(listed(&mount).is_empty());
}
