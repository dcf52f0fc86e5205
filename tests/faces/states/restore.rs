//! Save and restore: what comes back equal, and what never comes again.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::{Duration, Instant};

use latchfs::api::{
    ApiClient, ClientError, DeleteState, GetClock, GetGates, GetStates, NewGate, RefusalKind,
    RestoreState, SaveState, TurnClock, WaitAtGate,
};
use latchfs::bench::StateError;
use latchfs::clock::{SystemClock, TimeSource};
use latchfs::file::rules::ShareMode;
use latchfs::rules::service::ServiceKind;
use latchfs::rules::time::parse_iso;
use latchfs::server::HoldOptions;

use super::fixture::{ACCOUNTS, LEASE, LONG, address, builder, clients, element, keep, listed};
use crate::common::http::ask_as_it_is;
use crate::common::need;

#[test]
fn a_restored_state_is_equal_for_every_service_of_every_account() {
    let folder = tempfile::tempdir().unwrap();
    let before = {
        let server = builder().data(folder.path()).start().unwrap();
        for client in clients(&server) {
            client.furnish();
            client.furnish_more();
        }
        let before = clients(&server).map(|client| client.picture());
        server.save_state("full").unwrap();
        for client in clients(&server) {
            client.change();
        }
        assert_ne!(clients(&server).map(|client| client.picture()), before);
        server.restore_state("full").unwrap();
        assert_eq!(clients(&server).map(|client| client.picture()), before);
        server.reset().unwrap();
        before
    };
    // Also after a restart, and more than once.
    let server = builder().data(folder.path()).start().unwrap();
    for _ in 0..2 {
        server.restore_state("full").unwrap();
        let [first, second] = clients(&server);
        assert_eq!([first.picture(), second.picture()], before);
        first.use_all();
    }
}

#[test]
fn receipts_leases_and_blocks_of_a_restored_state_can_be_used() {
    let server = builder().start().unwrap();
    let [client, _] = clients(&server);
    client.furnish();
    let got = client.queue("GET", "/jobs/messages?visibilitytimeout=60", b"").is(200).text();
    let (id, receipt) = (element(&got, "MessageId"), element(&got, "PopReceipt"));
    server.save_state("held").unwrap();
    let delete = format!("/jobs/messages/{id}?popreceipt={}", receipt.replace('+', "%2B"));
    client.queue("DELETE", &delete, b"").is(204);
    client.blob("DELETE", "/box/long", &[("x-ms-lease-id", LEASE)], b"").is(202);
    client.blob("DELETE", "/box?restype=container", &[], b"").is(202);
    server.restore_state("held").unwrap();
    client.queue("DELETE", &delete, b"").is(204);
    client.blob("DELETE", "/box/long", &[], b"").refused(412, "LeaseIdMissing");
    let renew = [("x-ms-lease-action", "renew"), ("x-ms-lease-id", LEASE)];
    client.blob("PUT", "/box/long?comp=lease", &renew, b"").is(200);
    assert_eq!(client.blob("GET", "/box/long", &[], b"").is(200).body, vec![7; LONG]);
    let list = b"<BlockList><Latest>QUFB</Latest></BlockList>";
    client.blob("PUT", "/box/parts?comp=blocklist", &[], list).is(201);
    assert_eq!(client.blob("GET", "/box/parts", &[], b"").is(200).body, vec![3; 70_000]);
    client.file("DELETE", "/docs/dir/a.txt", &[], b"").refused(412, "LeaseIdMissing");
    client.file("DELETE", "/docs/dir/a.txt", &[("x-ms-lease-id", LEASE)], b"").is(202);
}

#[test]
fn nothing_that_was_issued_after_a_save_comes_again_after_the_restore() {
    let server = builder().start().unwrap();
    let [client, _] = clients(&server);
    let control = ApiClient::new(&server.control());
    // The clock stands: only counters make a difference.
    control.ask(&TurnClock { freeze: Some(true), ..TurnClock::default() }).unwrap();
    client.furnish();
    server.save_state("start").unwrap();
    let mut seen = BTreeSet::new();
    for round in 0..3 {
        for issued in client.issue() {
            assert!(seen.insert(issued.clone()), "round {round}: {issued} came before");
        }
        server.restore_state("start").unwrap();
    }
}

#[test]
fn nothing_that_was_issued_comes_again_after_a_restart_and_a_restore() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = BTreeSet::new();
    for round in 0..2 {
        let server = builder().data(folder.path().join("data")).start().unwrap();
        let [client, _] = clients(&server);
        if round == 0 {
            let control = ApiClient::new(&server.control());
            control.ask(&TurnClock { freeze: Some(true), ..TurnClock::default() }).unwrap();
            client.furnish();
            server.save_state("start").unwrap();
        } else {
            server.restore_state("start").unwrap();
        }
        for issued in client.issue() {
            assert!(seen.insert(issued.clone()), "round {round}: {issued} came before");
        }
    }
}

#[test]
fn resets_and_restores_do_not_push_stamps_ahead_of_the_clock() {
    let server = builder().start().unwrap();
    let [client, _] = clients(&server);
    // More seconds than a server may be ahead, by far.
    for round in 0..30 {
        if round % 2 == 0 {
            server.reset().unwrap();
        } else {
            server.save_state("cycle").unwrap();
            server.restore_state("cycle").unwrap();
        }
        client.blob("PUT", &format!("/box{round}?restype=container"), &[], b"").is(201);
        let table = format!(r#"{{"TableName":"rows{round}"}}"#);
        client.table("POST", "/Tables", &[], table.as_bytes()).is(201);
    }
    let block = [("x-ms-blob-type", "BlockBlob")];
    client.blob("PUT", "/box29/blob", &block, b"").is(201);
    let taken = client.blob("PUT", "/box29/blob?comp=snapshot", &[], b"").is(201);
    let entity = br#"{"PartitionKey":"p","RowKey":"r"}"#;
    let entity = client.table("POST", "/rows29", &[], entity).is(201).text();
    let entity: serde_json::Value = serde_json::from_str(&entity).unwrap();
    let now = SystemClock.now();
    for stamp in [taken.header("x-ms-snapshot"), entity["Timestamp"].as_str().unwrap()] {
        let ahead = parse_iso(stamp).unwrap().since(now);
        assert!(ahead < Duration::from_secs(5), "{stamp} is {ahead:?} ahead");
    }
}

#[test]
fn a_data_directory_that_was_copied_without_its_links_is_restored() {
    let folder = tempfile::tempdir().unwrap();
    let [data, copy] = ["data", "copy"].map(|name| folder.path().join(name));
    let server = builder().data(&data).start().unwrap();
    let [client, _] = clients(&server);
    client.furnish();
    server.save_state("start").unwrap();
    drop(server);
    // As `cp -r`, which makes two files of one with two names.
    let copied = Command::new("cp").arg("-r").args([&data, &copy]).status().unwrap();
    assert!(copied.success());
    let server = builder().data(&copy).start().unwrap();
    let [client, _] = clients(&server);
    server.restore_state("start").unwrap();
    assert_eq!(client.blob("GET", "/box/long", &[], b"").is(200).body, vec![7; LONG]);
    client.blob("DELETE", "/box/long", &[("x-ms-lease-id", LEASE)], b"").is(202);
    server.restore_state("start").unwrap();
    assert_eq!(client.blob("GET", "/box/long", &[], b"").is(200).body, vec![7; LONG]);
}

#[test]
fn a_restore_sets_the_clock_as_it_was_and_ends_gated_requests() {
    let server = builder().start().unwrap();
    let [client, _] = clients(&server);
    client.furnish();
    let control = ApiClient::new(&server.control());
    let show = || control.ask(&GetClock {}).unwrap();
    server.save_state("running").unwrap();
    control.ask(&TurnClock { advance_ms: Some(60_000), ..TurnClock::default() }).unwrap();
    control.ask(&TurnClock { freeze: Some(true), ..TurnClock::default() }).unwrap();
    let frozen = show();
    server.save_state("frozen").unwrap();
    // The lease of a minute has run out, and is in force again with the clock.
    let delete = || client.blob("PUT", "/box/long?comp=metadata", &[], b"");
    delete().is(200);
    let gated = ["received", "committed"].map(|at| {
        let (path, at) = (Some(format!("box/{at}")), Some(at.to_owned()));
        let id = control.ask(&NewGate { path, at: at.clone(), ..NewGate::default() }).unwrap().gate;
        let mut connection = keep(&server, ServiceKind::Blob);
        let target = format!("/box/{}", at.unwrap());
        let gated = std::thread::spawn(move || {
            let kind = [("x-ms-blob-type", "BlockBlob")];
            connection.ask_of("first", "PUT", &target, &kind, b"late")
        });
        let wait = WaitAtGate { id, count: Some(1), timeout_ms: Some(20_000) };
        assert_eq!(control.ask(&wait).unwrap().waiting, 1);
        gated
    });
    server.restore_state("running").unwrap();
    for gated in gated {
        gated.join().unwrap().expect_err("it is not carried out on the new data, or answered");
    }
    let names = client.blob("GET", "/box?restype=container&comp=list", &[], b"").is(200).text();
    assert!(!names.contains("<Name>received") && !names.contains("<Name>committed"), "{names}");
    let clock = show();
    assert!(!clock.frozen && clock.now[..16] == clock.system[..16], "{clock:?}");
    delete().refused(412, "LeaseIdMissing");
    let gates = control.ask(&GetGates {}).unwrap().gates;
    assert!(gates.len() == 2 && gates.iter().all(|gate| gate.waiting.is_empty()), "{gates:?}");
    server.restore_state("frozen").unwrap();
    assert_eq!((show().now, show().frozen), (frozen.now, true));
}

#[test]
fn a_mount_in_use_shows_the_files_of_the_restored_state() {
    if !need::fuse() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let server = builder().mount("docs", place.path()).start().unwrap();
    let mount = place.path().canonicalize().unwrap();
    std::fs::create_dir(mount.join("dir")).unwrap();
    std::fs::write(mount.join("dir/a.txt"), "first").unwrap();
    std::fs::write(mount.join("pending.txt"), "x").unwrap();
    std::fs::hard_link(mount.join("dir/a.txt"), mount.join("link.txt")).unwrap();
    std::os::unix::fs::symlink("dir/a.txt", mount.join("symlink")).unwrap();
    let pending = std::fs::File::open(mount.join("pending.txt")).unwrap();
    std::fs::remove_file(mount.join("pending.txt")).unwrap();
    assert!(mount.join("pending.txt").exists(), "it is delete pending");
    server.save_state("first").unwrap();
    drop(pending);
    std::fs::write(mount.join("dir/a.txt"), "second").unwrap();
    std::fs::write(mount.join("new.txt"), "new").unwrap();
    let mut reading = std::fs::File::open(mount.join("dir/a.txt")).unwrap();
    let locked = std::fs::File::options().write(true).open(mount.join("new.txt")).unwrap();
    locked.lock().unwrap();
    let options = HoldOptions { share_mode: ShareMode::RWD, ..HoldOptions::new("docs", "new.txt") };
    let hold = server.hold(&options).unwrap();
    server.restore_state("first").unwrap();
    assert!(hold.was_closed());
    assert_eq!(listed(&mount), ["dir", "link.txt", "symlink"]);
    for name in ["dir/a.txt", "link.txt", "symlink"] {
        assert_eq!(std::fs::read_to_string(mount.join(name)).unwrap(), "first", "{name}");
    }
    let errno = |done: std::io::Result<usize>| done.unwrap_err().raw_os_error();
    assert_eq!(errno(reading.read(&mut [0; 5])), Some(libc::EIO));
    assert_eq!(errno(locked.write_at(b"x", 0)), Some(libc::EIO));
    // The copies of a hard-linked file are one file.
    std::fs::write(mount.join("link.txt"), "third").unwrap();
    assert_eq!(std::fs::read_to_string(mount.join("dir/a.txt")).unwrap(), "third");
    server.restore_state("first").unwrap();
    assert_eq!(std::fs::read_to_string(mount.join("dir/a.txt")).unwrap(), "first");
}

#[test]
fn a_state_is_replaced_listed_and_deleted_by_its_name() {
    let server = builder().start().unwrap();
    let [client, _] = clients(&server);
    client.furnish();
    let control = ApiClient::new(&server.control());
    let save = |name: &str| control.ask(&SaveState { name: name.to_owned() });
    let list = || control.ask(&GetStates {}).unwrap().states;
    let name = "a.b-c_1";
    let saved = save(name).unwrap();
    assert_eq!(saved.name, name);
    assert_eq!(list(), [saved]);
    client.blob("PUT", "/more?restype=container", &[], b"").is(201);
    let saved = save(name).unwrap();
    assert_eq!(list(), [saved]);
    server.reset().unwrap();
    let restore = || control.ask(&RestoreState { name: name.to_owned() });
    let delete = || control.ask(&DeleteState { name: name.to_owned() });
    assert_eq!(restore().unwrap().restored, name);
    assert_eq!(client.names()["containers"], ["box", "more"]);
    assert_eq!(delete().unwrap().deleted, name);
    assert_eq!(list(), []);
    let kind = |error: ClientError| match error {
        ClientError::Refused(refused) => refused.kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(delete().unwrap_err()), RefusalKind::NotFound);
    assert_eq!(kind(restore().unwrap_err()), RefusalKind::NotFound);
    for wrong in [".a", "a/b", &"a".repeat(65)] {
        assert_eq!(kind(save(wrong).unwrap_err()), RefusalKind::Invalid);
    }
    assert!(server.save_state("").is_err() && save("").is_err());
    assert_eq!(client.names()["containers"], ["box", "more"], "refusals change nothing");
}

#[test]
fn clients_that_write_all_the_time_meet_no_other_answer_than_try_again() {
    let server = builder().start().unwrap();
    let [client, _] = clients(&server);
    client.furnish();
    server.save_state("start").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let addresses = [ServiceKind::Blob, ServiceKind::File].map(|kind| address(&server, kind));
    std::thread::scope(|scope| {
        let stop = &stop;
        for [blob, file] in [addresses; 2] {
            scope.spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let ask = |addr: std::net::SocketAddr, method, target, headers: &[_]| {
                        let host = addr.to_string();
                        let got = ask_as_it_is(addr, &host, method, target, headers, b"");
                        (got.status, got.text())
                    };
                    let kind = ("x-ms-blob-type", "BlockBlob");
                    let put = ask(blob, "PUT", "/first/box/race", &[kind]);
                    assert!(matches!(put.0, 201 | 503), "{put:?}");
                    let new = [("x-ms-type", "file"), ("x-ms-content-length", "5")];
                    let put = ask(file, "PUT", "/first/docs/race", &new);
                    assert!(matches!(put.0, 201 | 503), "{put:?}");
                    let got = ask(file, "GET", "/first/docs/dir/a.txt", &[]);
                    assert!(matches!(got.0, 200 | 503), "{got:?}");
                }
            });
        }
        for _ in 0..10 {
            server.restore_state("start").unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(client.blob("GET", "/box/small", &[], b"").is(200).text(), "hello");
}

#[test]
fn an_existing_directory_is_neither_saved_nor_reset() {
    let source = tempfile::tempdir().unwrap();
    std::fs::write(source.path().join("precious"), "mine").unwrap();
    let state = tempfile::tempdir().unwrap();
    let data = latchfs::server::Data::Existing {
        source: source.path().to_owned(),
        name: "docs".to_owned(),
        state: Some(state.path().join("state")),
    };
    let server = latchfs::Server::builder().with(|options| options.data = data).start().unwrap();
    assert!(matches!(server.reset(), Err(StateError::ExistingDirectory)));
    assert!(matches!(server.save_state("a"), Err(StateError::ExistingDirectory)));
    assert!(matches!(server.restore_state("a"), Err(StateError::ExistingDirectory)));
    assert_eq!(listed(source.path()), ["precious"]);
}

#[test]
#[ignore = "it measures: run it alone, with --nocapture"]
fn a_save_and_a_restore_of_many_objects_are_timed() {
    let folder = tempfile::tempdir().unwrap();
    let server = builder().data(folder.path()).start().unwrap();
    let count = 10_000;
    super::fixture::fill(&server, folder.path(), count);
    let timed = |what: &str, work: &dyn Fn()| {
        let start = Instant::now();
        work();
        println!("{what} of {count} files, blobs and entities: {:?}", start.elapsed());
    };
    timed("save", &|| drop(server.save_state("many").unwrap()));
    timed("reset", &|| server.reset().unwrap());
    timed("restore", &|| server.restore_state("many").unwrap());
    let mut blob = keep(&server, ServiceKind::Blob);
    blob.ask_of(ACCOUNTS[0], "GET", "/many/9999", &[], b"").unwrap().is(200);
}
