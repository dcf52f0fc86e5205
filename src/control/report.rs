//! Opens as people are told of them. Program names are looked up here, when somebody asks, and
//! never when a file is opened.

use std::fs;
use std::sync::Arc;

use super::protocol::{HandleRow, Refused, Why};
use super::refusal::RefusalKind;
use crate::core::lease::FileLease;
use crate::core::ranges::{LockKind, RangeLock};
use crate::core::stamp::iso;
use crate::core::{Denial, Holder, Owner, SharePath};
use crate::engine::events::{EventLog, Happening};
use crate::engine::{Clock, HandleInfo, Kind, Share, ShareDenial, Standing, SystemClock};

/// The most opens in one answer; how many more there are is said.
pub const HANDLES_MAX: usize = 10_000;

/// The most refusals that `why` tells of.
const REFUSALS_MAX: usize = 5;

/// The owner with its process, not the thread the kernel names, and its program.
fn resolved(owner: &Owner) -> Owner {
    let mut owner = owner.clone();
    if owner.pid == 0 || owner.program.is_some() {
        return owner;
    }
    (owner.pid, owner.program) = process_and_program(owner.pid);
    owner
}

/// The process of a thread, and its program, as far as they are still there.
pub fn process_and_program(tid: u32) -> (u32, Option<Arc<str>>) {
    let pid = process_of(tid).unwrap_or(tid);
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    (pid, comm.map(|name| Arc::from(name.trim_end())))
}

/// The process of a thread.
fn process_of(tid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// An open as a row.
pub fn row(share_name: &str, open: &HandleInfo) -> HandleRow {
    let owner = resolved(&open.owner);
    HandleRow {
        handle: open.id.0,
        share_name: share_name.to_owned(),
        path: open.path.to_string(),
        access: open.access.to_string(),
        share: open.share.to_string(),
        pid: owner.pid,
        program: owner.program.as_deref().map(str::to_owned),
        client: owner.client.name.clone(),
        since: iso(open.since),
        seconds: SystemClock.now().since(open.since).as_secs(),
        delete_on_close: open.delete_on_close,
        delete_pending: open.delete_pending,
    }
}

/// A refusal with the holder's program in its text, and the holder's whole row where the open is
/// still there.
pub fn refused(share: &Share, path: &SharePath, denial: &Denial) -> Refused {
    let mut holder = None;
    if let Some(in_the_way) = denial.holder() {
        let opens = share.all_handles(path, true).unwrap_or_default();
        let open = opens.iter().find(|open| open.id == in_the_way.handle);
        holder = open.map(|open| row(share.name(), open));
    }
    Refused { kind: RefusalKind::of(denial), message: in_words(denial), holder }
}

/// A refusal in words, with the holder as `named`: by its program, where that is known by now.
pub fn words(denial: &Denial, named: Option<&Holder>) -> String {
    let text = denial.to_string();
    match (denial.holder(), named) {
        (Some(holder), Some(named)) => text.replace(&holder.to_string(), &named.to_string()),
        _ => text,
    }
}

fn in_words(denial: &Denial) -> String {
    let named = denial.holder().map(|holder| {
        let owner = resolved(&holder.owner);
        Holder { owner, ..holder.clone() }
    });
    words(denial, named.as_ref())
}

/// A refusal that concerns a share as a whole: nobody's open is behind it.
pub fn refused_share(denial: &ShareDenial) -> Refused {
    Refused { kind: RefusalKind::of_share(denial), message: denial.to_string(), holder: None }
}

/// What stands in the way of a name.
pub fn why(share: &Share, path: &SharePath, events: &EventLog) -> crate::engine::Result<Why> {
    let found = share.lookup(path)?;
    let mut why = Why {
        share_name: share.name().to_string(),
        path: found.path.to_string(),
        refusals: refusals(share, &found.path, events),
        ..Why::default()
    };
    for standing in share.why(&found.path)? {
        match standing {
            Standing::DeletePending(name) => why.delete_pending |= name == found.path,
            Standing::Lease(lease) => why.leased |= matches!(lease, FileLease::Leased(_)),
            // It ends by itself; what it keeps out is told in the refusals.
            Standing::Copy(_) => {}
            Standing::ReadOnly => why.read_only = true,
            Standing::Open(open) => why.opens.push(row(share.name(), &open)),
            Standing::Lock(lock) => why.locks.push(locked(&lock)),
        }
    }
    if found.stat.kind == Kind::Directory {
        let all = share.all_handles(&found.path, true)?.len();
        // Saturating: opens come and go between the two looks.
        why.opens_below = all.saturating_sub(why.opens.len());
    }
    Ok(why)
}

fn locked(lock: &RangeLock) -> String {
    let kind = match lock.kind {
        LockKind::Shared => "shared",
        LockKind::Exclusive => "exclusive",
    };
    format!("{} ({kind}), through handle {}", lock.range, lock.handle)
}

fn refusals(share: &Share, path: &SharePath, events: &EventLog) -> Vec<String> {
    let page = events.after(0);
    let of_file = page.events.iter().rev().filter(|event| {
        event.share == *share.name() && event.path.as_str().eq_ignore_ascii_case(path.as_str())
    });
    let mut told: Vec<String> = of_file
        .filter_map(|event| match &event.what {
            Happening::Refused { operation, denial } => {
                let (who, why) = (resolved(&event.who), in_words(denial));
                Some(format!("{}: {operation} by {who}: {why}", iso(event.time)))
            }
            _ => None,
        })
        .take(REFUSALS_MAX)
        .collect();
    told.reverse();
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Client;

    #[test]
    fn a_thread_is_reported_as_its_process_with_the_program() {
        let own = std::process::id();
        let tid = std::thread::spawn(|| rustix::thread::gettid().as_raw_nonzero().get())
            .join()
            .map(|tid| u32::try_from(tid).unwrap());
        // The thread has ended: nothing is known of it any more.
        let client = Arc::new(Client { session: 1, name: "mount".into() });
        let gone = Owner { client: Arc::clone(&client), pid: tid.unwrap(), program: None };
        assert_eq!(resolved(&gone).program, None);
        let (send, receive) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            send.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            ended.recv().unwrap_err();
        });
        let pid = u32::try_from(receive.recv().unwrap()).unwrap();
        let seen = resolved(&Owner { client, pid, program: None });
        assert_eq!(seen.pid, own);
        assert!(seen.program.is_some());
        drop(end);
        thread.join().unwrap();
    }
}
