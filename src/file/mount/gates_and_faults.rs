//! Applies gates and faults to calls on the mount.
//!
//! Decides which calls gates and faults can name, and which errno a fault answers with. Which gates
//! and faults apply to a call is decided in [`crate::bench::controls`]. A call that waits is
//! parked: no worker waits with it, and a signal to its thread ends the wait. Only opens of
//! existing files have gates: the kernel holds the directory of a file that is created or removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fuser::Errno;

use super::driver::Requester;
use super::errno::named;
use super::park::Waited;
use super::state::State;
use crate::bench::Controls;
use crate::bench::controls::{EndedAtGate, FaultAction, Point, Stopped, Visitor};
use crate::bench::explore::{Entry, Step};
use crate::file::rules::SharePath;
use crate::file::rules::footprint;
use crate::journal::Event;
use crate::journal::programs::process_and_program;
use crate::rules::asked::Asked;
use crate::rules::pattern::PatternSubject;
use crate::rules::service::ServiceKind;
use crate::rules::who::{ClientBy, Who};

/// A call that gates or faults can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MountCall {
    /// `open(2)` of a file that exists.
    Open,
    /// `open(2)` that makes a file.
    Create,
    Unlink,
    Rename,
    /// `write(2)`, where the kernel does not write to the backing file itself.
    Write,
}

impl MountCall {
    pub const ALL: [Self; 5] = [Self::Open, Self::Create, Self::Unlink, Self::Rename, Self::Write];

    /// Its name in gates and faults.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "Mount Open",
            Self::Create => "Mount Create",
            Self::Unlink => "Mount Unlink",
            Self::Rename => "Mount Rename",
            Self::Write => "Mount Write",
        }
    }

    /// Whether gates can stop it. The kernel holds the directory during the other calls.
    pub const fn can_stop(self) -> bool {
        matches!(self, Self::Open)
    }
}

/// The gates and faults of the server that a mount belongs to.
#[derive(Clone, Debug)]
pub struct MountControls {
    pub controls: Arc<Controls>,
    /// The account of the share.
    pub account: Arc<str>,
}

/// Whether any gate or fault is there.
pub fn are_set(state: &State) -> bool {
    state.options.controls.as_ref().is_some_and(|of| of.controls.are_set())
}

/// Applies gates and faults to a call. `go_on` is called once: usually at once, or when the call is
/// released; its argument is the error to answer with.
pub fn arrive(
    state: &Arc<State>,
    call: MountCall,
    caller: Requester,
    path: &SharePath,
    go_on: impl FnOnce(&Arc<State>, Result<(), Errno>) + Send + 'static,
) {
    let Some(of) = state.options.controls.as_ref().filter(|of| of.controls.are_set()) else {
        return go_on(state, Ok(()));
    };
    let place = place(state, path);
    let stopped = match turn(of, call, &place, caller) {
        Entry::Passes => stop(of, Point::Received, call, &place, caller),
        Entry::Waits(place, staged) => Some(of.controls.staged(place, staged)),
        Entry::Ends => return go_on(state, Err(Errno::EIO)),
    };
    match stopped {
        None => befall(state, of, call, caller, &place, go_on),
        Some(stopped) => {
            let (again, of) = (Arc::clone(state), of.clone());
            wait(state, caller, stopped, move |waited| match waited {
                Ok(()) => befall(&again, &of, call, caller, &place, go_on),
                Err(errno) => go_on(&again, Err(errno)),
            });
        }
    }
}

/// Holds back the answer of a call that is done, if a gate at [`Point::Committed`] stops it.
/// `answer` is called once, also after a signal: the call is done.
pub fn leave(
    state: &Arc<State>,
    call: MountCall,
    caller: Requester,
    path: &SharePath,
    answer: impl FnOnce(&Arc<State>) + Send + 'static,
) {
    let of = state.options.controls.as_ref().filter(|of| of.controls.gates.are_set());
    let place = || place(state, path);
    match of.and_then(|of| stop(of, Point::Committed, call, &place(), caller)) {
        None => answer(state),
        Some(stopped) => {
            let again = Arc::clone(state);
            wait(state, caller, stopped, move |_| answer(&again));
        }
    }
}

/// The fault that a call meets.
fn befall(
    state: &Arc<State>,
    of: &MountControls,
    call: MountCall,
    caller: Requester,
    place: &str,
    go_on: impl FnOnce(&Arc<State>, Result<(), Errno>) + Send + 'static,
) {
    let possible =
        |action: &FaultAction| matches!(action, FaultAction::Answer { .. } | FaultAction::Delay(_));
    let met = of.controls.faults.meet_of(&seen(of, call, place), possible);
    if let Some(fault) = &met {
        let visitor = visitor(of, call, place, caller);
        let event = Event::Fault { fault: fault.id, visitor: Box::new(visitor) };
        of.controls.journal.push(Some(Arc::clone(&of.account)), event);
    }
    match met.map(|fault| fault.action) {
        Some(FaultAction::Answer { status, code }) => go_on(state, Err(errno(status, code))),
        Some(FaultAction::Delay(time)) => {
            let (again, ended) = (Arc::clone(state), of.controls.faults.delayed());
            // Without a sender the server is gone.
            let has_ended = move || ended.has_changed().unwrap_or(true);
            let is_over = has_ended.clone();
            state.park.wait(caller.pid, time, is_over, move |waited| match waited {
                Waited::Interrupted => go_on(&again, Err(Errno::EINTR)),
                Waited::ToTheEnd if has_ended() => go_on(&again, Err(Errno::EIO)),
                Waited::ToTheEnd => go_on(&again, Ok(())),
            });
        }
        _ => go_on(state, Ok(())),
    }
}

/// Waits at a gate. A call that waits while all data is replaced ends with `EIO`, as its handle
/// would.
fn wait(
    state: &Arc<State>,
    caller: Requester,
    mut stopped: Stopped,
    then: impl FnOnce(Result<(), Errno>) + Send + 'static,
) {
    let limit = stopped.limit();
    let ended = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&ended);
    let is_over = move || {
        let end = stopped.end();
        ends.store(end == Some(Err(EndedAtGate)), Ordering::Release);
        end.is_some()
    };
    state.park.wait(caller.pid, limit, is_over, move |waited| {
        then(match waited {
            Waited::Interrupted => Err(Errno::EINTR),
            Waited::ToTheEnd if ended.load(Ordering::Acquire) => Err(Errno::EIO),
            Waited::ToTheEnd => Ok(()),
        });
    });
}

fn stop(
    of: &MountControls,
    point: Point,
    call: MountCall,
    place: &str,
    caller: Requester,
) -> Option<Stopped> {
    if !call.can_stop() {
        return None;
    }
    of.controls.stop(point, &seen(of, call, place), || visitor(of, call, place, caller))
}

/// A call of an exploration's client waits for its turn. An open changes what others may do.
fn turn(of: &MountControls, call: MountCall, place: &str, caller: Requester) -> Entry {
    if !call.can_stop() {
        return Entry::Passes;
    }
    let step = || {
        let (share, path) = place.split_once('/').unwrap_or((place, ""));
        Step {
            operation: call.name().to_owned(),
            object: format!("{}:{place}", ServiceKind::File),
            fingerprint: 0,
            footprint: footprint::written(footprint::file(&of.account, share, path)),
            can_drop: false,
        }
    };
    let (who, visitor) = (Who::default(), || visitor(of, call, place, caller));
    of.controls.enter_stage(&who, Some(caller.pid), visitor, step)
}

fn visitor(of: &MountControls, call: MountCall, place: &str, caller: Requester) -> Visitor {
    let name = match process_and_program(caller.pid) {
        (pid, Some(program)) => format!("{program} (pid {pid})"),
        (pid, None) => format!("pid {pid}"),
    };
    let (operation, path) = (call.name().to_owned(), place.to_owned());
    let (service, account) = (ServiceKind::File, Arc::clone(&of.account));
    Visitor {
        service,
        account,
        operation,
        path,
        who: Who::named(&name, ClientBy::Process),
        client_request: None,
        user_agent: None,
        asked: Asked::default(),
    }
}

/// The share and the path in it, as gates and faults name them.
fn place(state: &State, path: &SharePath) -> String {
    format!("{}{path}", state.share().name())
}

fn seen<'a>(of: &'a MountControls, call: MountCall, place: &'a str) -> PatternSubject<'a> {
    PatternSubject {
        service: ServiceKind::File,
        operation: call.name(),
        documented: call.name(),
        account: &of.account,
        path: place,
        header: &|_| None,
    }
}

/// The errno that a fault answers with: the one that its code names, or the one nearest to its
/// status.
fn errno(status: u16, code: &str) -> Errno {
    named(code).unwrap_or(match status {
        401 | 403 => Errno::EACCES,
        404 => Errno::ENOENT,
        409 | 412 => Errno::EBUSY,
        507 => Errno::ENOSPC,
        _ => Errno::EIO,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_the_errno_of_its_code_or_the_one_nearest_to_its_status() {
        let codes = [(500, "ENOSPC"), (404, "EIO"), (404, "NotFound"), (503, "ServerBusy")];
        let errnos = codes.map(|(status, code)| errno(status, code).code());
        assert_eq!(errnos, [libc::ENOSPC, libc::EIO, libc::ENOENT, libc::EIO]);
    }
}
