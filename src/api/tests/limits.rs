//! The bounds of the control surface, at each of them and past it: connections, threads, locks; and
//! panics, which keep nobody out.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread;

use super::super::calls::CALL_THREADS;
use super::super::{
    CONNECTIONS_MAX, ClientError, CloseHandles, CreateSnapshot, GetEvents, GetHolds, GetLocks,
    GetLog, GetStatus, HoldOptions, HoldRow, LockWanted, NewGate, Stop, Stopping, Unmount,
    WaitAtGate,
};
use super::{Setup, all_handles, hold, http, kind};
use crate::file::rules::{Access, ShareMode};

#[test]
fn idle_connections_make_room_and_keep_neither_a_hold_nor_a_stop_out() {
    let setup = Setup::new();
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        let mut stream = UnixStream::connect(&setup.path).unwrap();
        http(&mut stream, "GET", "/api/v1/clock", "");
        idle.push(stream);
    }
    let (_, _answer) = setup.hold(Access::R, ShareMode::RWD).unwrap();
    setup.client().ask(&GetStatus {}).unwrap();
    let Stopping { stopping } = setup.client().open(&Stop {}).unwrap().first().unwrap();
    assert_eq!(stopping, std::process::id());
    setup.wait_for(|fake| *fake.stopped.lock().unwrap());
}

#[test]
fn connections_at_work_keep_no_stop_out_and_one_hold_more_is_told_to_wait() {
    let setup = Setup::new();
    let holds: Vec<_> =
        (0..CONNECTIONS_MAX).map(|_| setup.hold(Access::R, ShareMode::RWD).unwrap()).collect();
    let error = setup.hold(Access::R, ShareMode::RWD).err().unwrap();
    assert!(error.to_string().contains("connections already"), "{error}");
    assert_eq!(kind(error), "busy");
    assert_eq!(setup.client().ask(&all_handles()).unwrap().handles.len(), CONNECTIONS_MAX);
    drop(setup.client().open(&Stop {}).unwrap());
    setup.wait_for(|fake| *fake.stopped.lock().unwrap());
    drop(holds);
    setup.wait_for(|fake| fake.share.files_in_use() == 0);
    setup.hold(Access::R, ShareMode::RWD).unwrap();
}

#[test]
fn a_panic_in_a_call_is_answered_and_the_server_goes_on() {
    let setup = Setup::new();
    for _ in 0..2 * CALL_THREADS {
        let panics = Unmount { path: "/panic".into(), lazy: false };
        assert_eq!(kind(setup.client().ask(&panics).unwrap_err()), "failed");
    }
    setup.client().ask(&GetStatus {}).unwrap();
    drop(setup.client().open(&Stop {}).unwrap());
    setup.wait_for(|fake| *fake.stopped.lock().unwrap());
}

#[test]
fn calls_that_take_all_threads_keep_no_stop_out_and_others_wait_their_turn() {
    let setup = Setup::new();
    let (release, calls) = setup.occupy_threads();
    let waits = setup.client();
    let status = thread::spawn(move || waits.ask(&GetStatus {}));
    // Neither a stop nor a wait at a gate takes a thread.
    drop(setup.client().open(&Stop {}).unwrap());
    setup.wait_for(|fake| *fake.stopped.lock().unwrap());
    let gate = WaitAtGate { id: 1, count: None, timeout_ms: None };
    assert_eq!(kind(setup.client().ask(&gate).unwrap_err()), "not_found");
    drop(release);
    for call in calls {
        call.join().unwrap();
    }
    // It has its turn, or was told that the server is busy, if that took long.
    let status = status.join().unwrap();
    assert!(status.is_ok() || kind(status.unwrap_err()) == "busy");
}

#[test]
fn work_on_every_connection_and_every_thread_keeps_no_stop_out() {
    let setup = Setup::new();
    let _holds: Vec<_> =
        (0..CONNECTIONS_MAX).map(|_| setup.hold(Access::R, ShareMode::RWD).unwrap()).collect();
    // The calls have all of the spare connections.
    let (release, calls) = setup.occupy_threads();
    let error = setup.client().ask(&GetStatus {}).unwrap_err();
    assert!(error.to_string().contains("at work already"), "{error}");
    assert_eq!(kind(error), "busy");
    drop(setup.client().open(&Stop {}).unwrap());
    setup.wait_for(|fake| *fake.stopped.lock().unwrap());
    drop(release);
    for call in calls {
        call.join().unwrap();
    }
}

#[test]
fn a_call_that_would_wait_is_refused_where_only_spare_connections_are_left() {
    let setup = Setup::new();
    let _holds: Vec<_> =
        (0..CONNECTIONS_MAX).map(|_| setup.hold(Access::R, ShareMode::RWD).unwrap()).collect();
    let client = setup.client();
    let gate = NewGate { operation: Some("Put Blob".into()), ..NewGate::default() };
    let id = client.ask(&gate).unwrap().gate;
    let wait = |timeout_ms| WaitAtGate { id, count: None, timeout_ms: Some(timeout_ms) };
    assert_eq!(kind(client.ask(&wait(0)).unwrap_err()), "timeout");
    assert_eq!(kind(client.ask(&wait(1)).unwrap_err()), "busy");
    let events = |wait_ms| GetEvents { wait_ms: Some(wait_ms), ..GetEvents::default() };
    client.ask(&events(0)).unwrap();
    assert_eq!(kind(client.ask(&events(1)).unwrap_err()), "busy");
    let log = |wait_ms| GetLog { share: None, path: None, after: 0, wait_ms };
    client.ask(&log(0)).unwrap();
    assert_eq!(kind(client.ask(&log(1)).unwrap_err()), "busy");
    assert_eq!(kind(client.open(&CreateSnapshot { share: None }).err().unwrap()), "busy");
}

#[test]
fn a_reset_whose_client_hangs_up_forgets_the_holds_that_it_closed() {
    let setup = Setup::new();
    let held = HoldOptions { while_connected: false, ..hold(Access::R, ShareMode::RWD) };
    let HoldRow { handle, .. } = setup.client().ask(&held).unwrap();
    let close = CloseHandles { share: None, handle: Some(handle) };
    assert_eq!(setup.client().ask(&close).unwrap().closed, 1);
    let holds = || setup.client().ask(&GetHolds {}).unwrap().holds;
    assert_eq!(holds().iter().map(|hold| hold.open).collect::<Vec<_>>(), [false]);
    let (release, receiver) = channel();
    *setup.fake.waits.lock().unwrap() = Some(receiver);
    let mut stream = UnixStream::connect(&setup.path).unwrap();
    let request = b"POST /api/v1/reset HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
    stream.write_all(request).unwrap();
    setup.wait_for(|fake| fake.waiting.load(Ordering::SeqCst) == 1);
    drop(stream);
    // The event loop has seen the end of the connection before it answers this.
    assert_eq!(holds().len(), 1);
    drop(release);
    setup.wait_for(|_| holds().is_empty());
}

#[test]
fn a_hold_has_its_most_locks_at_the_longest_numbers() {
    let setup = Setup::new();
    let lock = |at: u64| LockWanted { start: u64::MAX - at, length: Some(1), exclusive: false };
    let locks: Vec<_> = (1..=1024).map(lock).collect();
    let wanted = HoldOptions { locks, ..hold(Access::RW, ShareMode::RWD) };
    let _held = setup.client().open(&wanted).unwrap();
    let of = GetLocks { share: None, path: None };
    assert_eq!(setup.client().ask(&of).unwrap().locks.len(), 1024);
}

#[test]
fn a_panic_on_the_event_loop_ends_its_connection_and_keeps_no_stop_out() {
    let setup = Setup::new();
    for _ in 0..=CONNECTIONS_MAX {
        let of_panic = setup.client().of_account(Some("panic"));
        let error = of_panic.open(&hold(Access::R, ShareMode::RWD)).err().unwrap();
        assert!(matches!(error, ClientError::Gone), "{error:?}");
    }
    setup.client().ask(&GetStatus {}).unwrap();
    drop(setup.client().open(&Stop {}).unwrap());
    setup.wait_for(|fake| *fake.stopped.lock().unwrap());
}
