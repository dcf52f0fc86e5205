//! Opens in the form that people read.

use super::log::events_of;
use super::refusal::RefusalKind;
use super::rows::{FileExplanation, HandleRow, RefusalDetail};
use super::serving::ServedAccount;
use crate::file::rules::ranges::{LockKind, RangeLock};
use crate::file::rules::{Denial, SharePath};
use crate::file::service::{FileKind, ListedHandle, Obstacle, Share, ShareDenial};
use crate::journal::json::EventRow;
use crate::journal::programs::{Programs, resolved, words};
use crate::journal::row::{Event, FileEvent, Happening};
use crate::rules::lease::FileLease;
use crate::rules::time::iso;
use crate::rules::{Owner, Timestamp};

/// The most opens in one answer; how many more there are is said.
pub const HANDLES_MAX: usize = 10_000;

/// The most refusals that `why` tells of.
const REFUSALS_MAX: usize = 5;

/// Opens as rows. Each process is looked up once, however many opens it has.
pub fn rows<'a>(
    account: &str,
    share_name: &str,
    opens: impl IntoIterator<Item = &'a ListedHandle>,
    now: Timestamp,
) -> Vec<HandleRow> {
    let mut programs = Programs::default();
    let row =
        |open: &ListedHandle| row(account, share_name, open, &programs.resolve(&open.owner), now);
    opens.into_iter().map(row).collect()
}

fn row(
    account: &str,
    share_name: &str,
    open: &ListedHandle,
    owner: &Owner,
    now: Timestamp,
) -> HandleRow {
    HandleRow {
        handle: open.id.0,
        account: account.to_owned(),
        share_name: share_name.to_owned(),
        path: open.path.to_string(),
        access: open.access.to_string(),
        share_mode: open.share.to_string(),
        pid: owner.pid,
        program: owner.program.as_deref().map(str::to_owned),
        client: owner.client.name.clone(),
        since: iso(open.since),
        seconds: now.since(open.since).as_secs(),
        delete_on_close: open.delete_on_close,
        delete_pending: open.delete_pending,
    }
}

/// A refusal with the holder's program in its text, and the holder's whole row where the open is
/// still there.
pub fn refused(account: &str, share: &Share, path: &SharePath, denial: &Denial) -> RefusalDetail {
    let mut holder = None;
    if let Some(in_the_way) = denial.holder() {
        // Only what is below a directory takes a look at all files in use.
        let below = matches!(denial, Denial::OpenBelow(_));
        let opens = share.all_handles(path, below).unwrap_or_default();
        let open = opens.iter().find(|open| open.id == in_the_way.handle);
        holder = rows(account, share.name(), open, share.now()).pop();
    }
    RefusalDetail { kind: RefusalKind::of(denial), message: denial_words(denial), holder }
}

/// A refusal that concerns a share as a whole; it has no holder.
pub fn refused_share(denial: &ShareDenial) -> RefusalDetail {
    RefusalDetail { kind: RefusalKind::of_share(denial), message: denial.to_string(), holder: None }
}

/// Reports why a name cannot be opened.
pub fn why(
    account: &dyn ServedAccount,
    share: &Share,
    path: &SharePath,
) -> crate::file::service::Result<FileExplanation> {
    let found = share.lookup(path)?;
    let mut why = FileExplanation {
        account: account.name().to_string(),
        share_name: share.name().to_string(),
        path: found.path.to_string(),
        refusals: refusals(account, share, &found.path),
        ..FileExplanation::default()
    };
    let mut opens = Vec::new();
    for standing in share.why(&found.path)? {
        match standing {
            Obstacle::DeletePending(name) => why.delete_pending |= name == found.path,
            Obstacle::Lease(lease) => why.leased |= matches!(lease, FileLease::Leased(_)),
            // It ends by itself; what it keeps out is told in the refusals.
            Obstacle::Copy(_) => {}
            Obstacle::ReadOnly => why.read_only = true,
            Obstacle::Open(open) => opens.push(open),
            Obstacle::Lock(lock) => why.locks.push(locked(&lock)),
        }
    }
    why.opens = rows(account.name(), share.name(), &opens, share.now());
    if found.stat.kind == FileKind::Directory {
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

/// The newest refusals on a path, oldest first.
fn refusals(account: &dyn ServedAccount, share: &Share, path: &SharePath) -> Vec<EventRow> {
    let is_refused = |event: &FileEvent| {
        matches!(event.what, Happening::Refused { .. })
            && event.share == *share.name()
            && event.path.eq_ignore_ascii_case(&path.to_string())
    };
    let rows = account.journal();
    let mut newest = rows.journal().latest(REFUSALS_MAX, |row| match &*row.event {
        Event::File(event) if row.account.as_ref() == Some(rows.account()) => {
            is_refused(event).then(|| row.clone())
        }
        _ => None,
    });
    newest.reverse();
    events_of(&newest)
}

/// A refusal in words, with the holder's program.
fn denial_words(denial: &Denial) -> String {
    let owner = denial.holder().map(|holder| resolved(&holder.owner));
    words(&denial.to_string(), denial.holder(), owner.as_ref())
}
