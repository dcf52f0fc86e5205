//! Opens as people are told of them.

use super::protocol::{HandleRow, Refused, Why};
use super::refusal::RefusalKind;
use crate::core::lease::FileLease;
use crate::core::ranges::{LockKind, RangeLock};
use crate::core::stamp::iso;
use crate::core::{Denial, SharePath};
use crate::engine::events::{EventLog, Happening};
use crate::engine::programs::{resolved, told};
use crate::engine::{Clock, HandleInfo, Kind, Share, ShareDenial, Standing, SystemClock};

/// The most opens in one answer; how many more there are is said.
pub const HANDLES_MAX: usize = 10_000;

/// The most refusals that `why` tells of.
const REFUSALS_MAX: usize = 5;

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
    Refused { kind: RefusalKind::of(denial), message: told(denial), holder }
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
    let mut lines: Vec<String> = of_file
        .filter_map(|event| match &event.what {
            Happening::Refused { operation, denial } => {
                let (who, why) = (resolved(&event.who), told(denial));
                Some(format!("{}: {operation} by {who}: {why}", iso(event.time)))
            }
            _ => None,
        })
        .take(REFUSALS_MAX)
        .collect();
    lines.reverse();
    lines
}
