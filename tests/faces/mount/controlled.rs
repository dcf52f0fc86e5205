//! Gates and faults that calls on the mount meet: an open waits without a worker, a signal ends its
//! wait, and a call that a fault answers has done nothing.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use latchfs::bench::Controls;
use latchfs::bench::controls::{FaultAction, Frequency, NewFault, NewGate, Point};
use latchfs::file::mount::{MountControls, MountOptions};
use latchfs::file::rules::{Access, ShareMode};
use latchfs::file::service::{Asking, ForceClosed, WhichHandles};
use latchfs::journal::{Event, Reads};

use crate::common::bench::{Gate, LIMIT, pattern, until};
use crate::mount::fixture::{Fixture, errno, open, open_errno, share_path, somebody};
use crate::mount::program::Program;

/// A mount whose calls meet these gates and faults.
fn start(change: impl FnOnce(&mut MountOptions)) -> Option<(Fixture, Arc<Controls>)> {
    let controls = Arc::new(Controls::default());
    let of = MountControls { controls: Arc::clone(&controls), account: "account".into() };
    let at = Fixture::with(|options| {
        options.controls = Some(of);
        change(options);
    })?;
    Some((at, controls))
}

fn gate(controls: &Arc<Controls>, name: &str, point: Point) -> Gate {
    let pattern = pattern("Mount Open", Some(&format!("test/{name}")));
    Gate::add(controls, NewGate { pattern, point, times: Some(1), limit: LIMIT })
}

fn fault(controls: &Controls, operation: &str, name: &str, action: FaultAction) {
    let pattern = pattern(operation, Some(&format!("test/{name}")));
    controls.faults.add(NewFault { pattern, action, frequency: Frequency::Times(1) }).unwrap();
}

fn answer(code: &'static str) -> FaultAction {
    FaultAction::Answer { status: 500, code }
}

#[test]
fn an_open_stops_before_it_is_looked_at_and_is_decided_when_it_goes_on() {
    let Some((at, controls)) = start(|_| {}) else { return };
    let path = at.make("a", "hello");
    let gate = gate(&controls, "a", Point::Received);
    thread::scope(|scope| {
        let stopped = scope.spawn(|| open(&path, Access::R).map(drop));
        gate.wait(1);
        assert_eq!(at.share.files_in_use(), 0, "it has no handle yet");
        // No latch is held: by the mount, by its name and by REST the file is there for others.
        assert_eq!(fs::read_to_string(&path).unwrap(), "hello");
        let cx = somebody();
        at.share.delete_file(Asking { cx: &cx, lease_id: None }, &share_path("a")).unwrap();
        gate.release();
        let refused = stopped.join().unwrap().unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOENT), "the file is gone by now");
    });
}

#[test]
fn a_gate_for_all_calls_stops_no_call_that_holds_its_directory() {
    let Some((at, controls)) = start(|_| {}) else { return };
    let pattern = pattern("Mount *", None);
    let new = NewGate { pattern, point: Point::Received, times: None, limit: LIMIT };
    let gate = Gate::add(&controls, new);
    let (path, moved) = (at.path("new"), at.path("moved"));
    fs::write(&path, "x").unwrap();
    fs::rename(&path, &moved).unwrap();
    fs::remove_file(&moved).unwrap();
    assert_eq!(gate.stopped(), 0);
}

#[test]
fn an_open_that_stops_when_it_is_committed_has_its_handle() {
    let Some((at, controls)) = start(|options| options.default_share = ShareMode::NONE) else {
        return;
    };
    let path = at.make("a", "hello");
    let gate = gate(&controls, "a", Point::Committed);
    thread::scope(|scope| {
        let stopped = scope.spawn(|| open(&path, Access::R));
        gate.wait(1);
        assert_eq!(open_errno(&path, Access::R), libc::EBUSY, "it shares nothing");
        gate.release();
        let file = stopped.join().unwrap().unwrap();
        assert_eq!(std::io::read_to_string(file).unwrap(), "hello");
    });
    at.idle();
    assert_eq!(open_errno(&path, Access::R), 0);
}

#[test]
fn a_signal_to_the_waiting_program_ends_the_wait() {
    let Some((at, controls)) = start(|_| {}) else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    at.make("a", "");
    let stopped = gate(&controls, "a", Point::Received);
    // A handler that raises: Python tries again after one that returns.
    program.ok("def stop(*_): raise OSError(errno.EINTR, 'interrupted')\n\
         signal.signal(signal.SIGUSR1, stop)\n");
    program.begin("os.open('a', os.O_RDONLY)");
    stopped.wait(1);
    let pid = rustix::process::Pid::from_raw(program.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::USR1).unwrap();
    assert_eq!(program.answer(), Some(Err(libc::EINTR)));
    assert_eq!(stopped.waiting(), 0, "nothing waits at the gate any more");
    // A program that is killed does not have to be released either.
    let killed = gate(&controls, "a", Point::Received);
    program.begin("os.open('a', os.O_RDONLY)");
    killed.wait(1);
    program.kill();
    until("the killed one has left", || killed.waiting() == 0);
}

#[test]
fn the_limit_of_a_gate_lets_an_open_go_on() {
    let Some((at, controls)) = start(|_| {}) else { return };
    let path = at.make("a", "");
    let pattern = pattern("Mount Open", None);
    let limit = Duration::from_millis(50);
    let gate =
        Gate::add(&controls, NewGate { pattern, point: Point::Received, times: None, limit });
    let began = Instant::now();
    assert_eq!(open_errno(&path, Access::R), 0);
    assert!(began.elapsed() >= limit && gate.stopped() == 1);
}

#[test]
fn many_opens_that_wait_keep_no_worker() {
    let Some((at, controls)) = start(|options| options.workers = 1) else { return };
    let path = at.make("a", "hello");
    let other = at.make("other", "free");
    let pattern = pattern("Mount Open", Some("test/a"));
    let point = Point::Received;
    let gate = Gate::add(&controls, NewGate { pattern, point, times: Some(20), limit: LIMIT });
    thread::scope(|scope| {
        let stopped: Vec<_> =
            (0..20).map(|_| scope.spawn(|| open(&path, Access::R).is_ok())).collect();
        gate.wait(20);
        assert_eq!(fs::read_to_string(&other).unwrap(), "free");
        fs::write(at.path("new"), "made").unwrap();
        assert_eq!(controls.gates.release(None, None, None), 20);
        assert!(stopped.into_iter().all(|one| one.join().unwrap()));
    });
}

#[test]
fn a_call_that_a_fault_answers_has_done_nothing() {
    let Some((at, controls)) = start(|_| {}) else { return };
    let path = at.make("a", "hello");
    fs::create_dir(at.path("dir")).unwrap();
    fault(&controls, "Mount Open", "a", answer("EIO"));
    fault(&controls, "Mount Create", "new", answer("ENOSPC"));
    fault(&controls, "Mount Unlink", "a", FaultAction::Answer { status: 403, code: "No" });
    fault(&controls, "Mount Unlink", "dir", answer("EBUSY"));
    fault(&controls, "Mount Rename", "a", answer("EROFS"));
    // Nothing that closes a connection can meet a call on a mount.
    fault(&controls, "Mount *", "a", FaultAction::DropBefore);
    assert_eq!(open_errno(&path, Access::R), libc::EIO);
    assert_eq!(errno(fs::write(at.path("new"), "")), libc::ENOSPC);
    assert_eq!(errno(fs::remove_file(&path)), libc::EACCES);
    assert_eq!(errno(fs::remove_dir(at.path("dir"))), libc::EBUSY);
    assert_eq!(errno(fs::rename(&path, at.path("b"))), libc::EROFS);
    let there: Vec<_> = ["a", "b", "new", "dir"].map(|name| at.root.join(name).exists()).into();
    assert_eq!(there, [true, false, false, true]);
    // Once each: the next ones are done.
    assert_eq!(fs::read_to_string(&path).unwrap(), "hello");
    fs::rename(&path, at.path("b")).unwrap();
    fs::remove_file(at.path("b")).unwrap();
    fs::write(at.path("new"), "").unwrap();
}

#[test]
fn a_delayed_call_is_done_later() {
    let Some((at, controls)) = start(|_| {}) else { return };
    let path = at.make("a", "hello");
    let time = Duration::from_millis(50);
    let calls = [
        ("Mount Open", "a"),
        ("Mount Create", "new"),
        ("Mount Rename", "new"),
        ("Mount Unlink", "a"),
    ];
    for (operation, name) in calls {
        fault(&controls, operation, name, FaultAction::Delay(time));
    }
    let slow = |call: &dyn Fn()| {
        let began = Instant::now();
        call();
        assert!(began.elapsed() >= time, "{:?}", began.elapsed());
    };
    slow(&|| drop(open(&path, Access::R).unwrap()));
    slow(&|| fs::write(at.path("new"), "").unwrap());
    slow(&|| fs::rename(at.path("new"), at.path("moved")).unwrap());
    slow(&|| fs::remove_file(&path).unwrap());
}

#[test]
fn a_delayed_call_keeps_no_worker_and_a_signal_ends_its_wait() {
    let Some((at, controls)) = start(|options| options.workers = 1) else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    let path = at.make("a", "hello");
    fault(&controls, "Mount Open", "a", FaultAction::Delay(Duration::from_hours(1)));
    program.begin("os.open('a', os.O_RDONLY)");
    until("it is met", || controls.faults.list()[0].met == 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), "hello", "the worker serves others");
    program.kill();
}

#[test]
fn writes_meet_faults_where_they_come_to_us() {
    let Some((at, controls)) = start(|options| options.passthrough = false) else { return };
    let path = at.make("a", "");
    fault(&controls, "Mount Write", "a", answer("ENOSPC"));
    assert_eq!(errno(fs::write(&path, "lost")), libc::ENOSPC);
    assert_eq!(fs::read_to_string(at.root.join("a")).unwrap(), "");
    fault(&controls, "Mount Write", "a", FaultAction::Delay(Duration::from_millis(50)));
    let began = Instant::now();
    fs::write(&path, "late").unwrap();
    assert!(began.elapsed() >= Duration::from_millis(50));
    assert_eq!(fs::read_to_string(at.root.join("a")).unwrap(), "late");
}

#[test]
fn an_open_that_waits_while_all_data_is_replaced_ends() {
    let Some((at, controls)) = start(|_| {}) else { return };
    let path = at.make("a", "");
    for (point, expected) in [(Point::Received, Some(libc::EIO)), (Point::Committed, None)] {
        let gate = gate(&controls, "a", point);
        thread::scope(|scope| {
            let stopped = scope.spawn(|| open(&path, Access::R).map(drop));
            gate.wait(1);
            controls.gates.end_all();
            // An open that is done must be answered: its handle is closed by the replacement.
            let ended = stopped.join().unwrap().err();
            assert_eq!(ended.and_then(|error| error.raw_os_error()), expected, "{point:?}");
        });
    }
}

#[test]
fn a_mount_that_ends_lets_its_opens_go() {
    let Some((at, controls)) = start(|_| {}) else { return };
    let path = at.make("a", "");
    let gate = gate(&controls, "a", Point::Received);
    let waits = thread::spawn(move || open(&path, Access::R).is_ok());
    gate.wait(1);
    drop(at);
    until("the wait is over", || waits.is_finished());
}

#[test]
fn an_open_that_waits_when_its_mount_ends_leaves_no_handle() {
    for point in [Point::Received, Point::Committed] {
        let Some((mut at, controls)) = start(|_| {}) else { return };
        let path = at.make("a", "");
        let gate = gate(&controls, "a", point);
        let waits = thread::spawn(move || open(&path, Access::R).is_ok());
        gate.wait(1);
        at.unmount_lazily();
        until("the wait is over", || waits.is_finished());
        // The fixture alone has the share: no thread of the mount is left to grant anything.
        until("the mount is gone", || Arc::strong_count(&at.share) == 1);
        assert_eq!(at.share.files_in_use(), 0, "{point:?}");
    }
}

#[test]
fn a_creation_that_waits_holds_up_no_forced_close_in_its_directory() {
    let Some((at, controls)) = start(|_| {}) else { return };
    let Some(mut program) = Program::start(&at.mnt) else { return };
    let held = open(&at.make("a", "hello"), Access::W).unwrap();
    fault(&controls, "Mount Create", "new", FaultAction::Delay(Duration::from_hours(1)));
    program.begin("os.open('new', os.O_CREAT | os.O_WRONLY)");
    until("it is met", || controls.faults.list()[0].met == 1);
    let (who, path, all) = (somebody(), share_path("a"), WhichHandles::All);
    let closed = at.share.force_close_handles(&who, &path, all, false).unwrap();
    assert_eq!(closed, ForceClosed { closed: 1, failed: 0 });
    assert_eq!(errno(held.write_at(b"after", 0)), libc::EIO);
    program.kill();
}

#[test]
fn the_journal_has_the_faults_that_calls_meet_and_gates_whose_limit_ended() {
    let Some((at, controls)) = start(|_| {}) else { return };
    let path = at.make("a", "hello");
    fault(&controls, "Mount Open", "a", answer("EIO"));
    assert_eq!(open_errno(&path, Access::R), libc::EIO);
    let pattern = pattern("Mount Open", Some("test/a"));
    let limit = Duration::from_millis(5);
    let gate = NewGate { pattern, point: Point::Received, times: Some(1), limit };
    controls.gates.add(gate).unwrap();
    assert_eq!(open_errno(&path, Access::R), 0);
    let rows = || controls.journal.after(0, 9, Reads::All).rows;
    until("the end of the wait", || rows().len() == 3);
    let rows = rows();
    let [met, stopped, went] = rows.as_slice() else { panic!("{rows:?}") };
    let Event::Fault { fault: 1, visitor } = &*met.event else { panic!("{met:?}") };
    assert_eq!((&*visitor.operation, &*visitor.path), ("Mount Open", "test/a"));
    let name = &visitor.who.identity(None).name;
    assert!(name.contains(&format!("pid {}", std::process::id())), "{visitor:?}");
    assert!(matches!(&*stopped.event, Event::Gated(at) if !at.timed_out), "{stopped:?}");
    assert!(matches!(&*went.event, Event::Released(at) if at.timed_out), "{went:?}");
}
