//! Opens that a connection keeps: granted, waited for, released.
//!
//! Decides how an open is asked for in words, and that byte ranges are locked all or none: a hold
//! whose locks are refused is closed again. What is granted is decided by the engine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection::{ControlConnection, RequestFailure, share_mode};
use super::events::FOLLOW_WAIT_MAX;
use super::protocol::{ControlAnswer, HoldRequest, HoldRow, LockWanted};
use crate::file::rules::create::{Disposition, OpenRequest};
use crate::file::rules::ranges::{ByteRange, LockKind};
use crate::file::rules::{Access, Denial};
use crate::file::service::{FileError, Handle, Share};
use crate::rules::Context;

/// The most opens that one connection holds.
pub const HOLDS_MAX: usize = 1024;

/// The most byte ranges that one hold locks.
pub const LOCKS_MAX: usize = 1024;

/// How long a request waits for a handle whose descriptor was closed and whose release is on its
/// way: the kernel tells of a close a little late.
const RELEASE_WAIT: Duration = Duration::from_millis(100);

impl ControlConnection {
    /// Opens a file and keeps the open.
    pub(super) fn hold(&mut self, hold: &HoldRequest) -> Result<ControlAnswer, RequestFailure> {
        if self.holds.len() >= HOLDS_MAX {
            return Err(RequestFailure::busy(format!(
                "one connection holds at most {HOLDS_MAX} opens"
            )));
        }
        let (share, path) = self.target(hold.share_name.as_deref(), &hold.path)?;
        let request = open_request(hold)?;
        let locks = ranges(&hold.locks)?;
        let mut owner = self.owner.clone();
        owner.program.get_or_insert_with(|| "latchfs hold".into());
        let cx = Context::local(share.now(), owner, "hold");
        let opened = match share.open_waiting(&cx, &path, &request, RELEASE_WAIT) {
            Ok(opened) => opened,
            Err(error) => return Err(RequestFailure::Refused(share, path, error)),
        };
        if !locks.is_empty()
            && let Err(error) = share.lock(&opened.handle, &locks)
        {
            close(&share, &opened.handle);
            return Err(RequestFailure::Refused(share, path, error));
        }
        let granted = HoldRow {
            handle: opened.handle.id().0,
            account: self.account.name().to_string(),
            share_name: share.name().to_string(),
            path: opened.path.to_string(),
            access: request.rights.access().to_string(),
            share_mode: request.share.to_string(),
        };
        self.holds.push((share, opened.handle));
        Ok(ControlAnswer::Held(granted))
    }

    /// Waits while a hold is open, at most for `patience`.
    pub(super) fn holding(
        &self,
        handle: u64,
        patience: Duration,
    ) -> Result<ControlAnswer, RequestFailure> {
        let (share, held) = self.held(handle)?;
        let end = Instant::now() + patience.min(FOLLOW_WAIT_MAX);
        let journal = self.account.journal().journal();
        loop {
            // The number first: a forced close that comes after the look is a row after it.
            let newest = journal.newest();
            if share.path_of(held).is_err() {
                return Ok(ControlAnswer::Holding { open: false });
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(ControlAnswer::Holding { open: true });
            }
            journal.wait(newest, left);
        }
    }

    fn held(&self, handle: u64) -> Result<(&Arc<Share>, &Handle), RequestFailure> {
        let held = self.holds.iter().find(|(_, held)| held.id().0 == handle);
        let missing =
            || RequestFailure::missing(format!("handle {handle} is not held by this connection"));
        let (share, held) = held.ok_or_else(missing)?;
        Ok((share, held))
    }

    pub(super) fn release(&mut self, handle: u64) -> Result<ControlAnswer, RequestFailure> {
        self.held(handle)?;
        let at = self.holds.iter().position(|(_, held)| held.id().0 == handle);
        let (share, held) = self.holds.swap_remove(at.unwrap_or_default());
        match share.close(&held) {
            Ok(()) => Ok(ControlAnswer::Holding { open: true }),
            Err(FileError::Denied(Denial::HandleClosed)) => {
                Ok(ControlAnswer::Holding { open: false })
            }
            Err(error) => Err(RequestFailure::system(format!("closing handle {handle}: {error}"))),
        }
    }
}

/// Closes a hold whose client gets no answer about the close.
pub(super) fn close(share: &Share, handle: &Handle) {
    match share.close(handle) {
        // Closed by force: the open has ended already.
        Ok(()) | Err(FileError::Denied(Denial::HandleClosed)) => {}
        Err(error) => log::error!("closing handle {}: {error}", handle.id()),
    }
}

fn ranges(wanted: &[LockWanted]) -> Result<Vec<(ByteRange, LockKind)>, String> {
    if wanted.len() > LOCKS_MAX {
        return Err(format!("a hold locks at most {LOCKS_MAX} byte ranges"));
    }
    let range = |one: &LockWanted| {
        let kind = if one.exclusive { LockKind::Exclusive } else { LockKind::Shared };
        let range = match one.length {
            Some(length) => ByteRange::new(one.start, length),
            None => ByteRange::from_posix(one.start, u64::MAX),
        };
        range.map(|range| (range, kind)).map_err(|error| error.to_string())
    };
    wanted.iter().map(range).collect()
}

fn open_request(hold: &HoldRequest) -> Result<OpenRequest, String> {
    let access = Access::parse(&hold.access)
        .ok_or_else(|| format!("access '{}': expected letters r, w, d, or none", hold.access))?;
    let mut request = OpenRequest::plain(access, share_mode(&hold.share_mode)?);
    request.options.delete_on_close = hold.delete_on_close;
    request.disposition = match hold.disposition.as_deref().unwrap_or("open") {
        "open" => Disposition::Open,
        "create" => Disposition::Create,
        "open-if" => Disposition::OpenIf,
        "overwrite" => Disposition::Overwrite,
        "overwrite-if" => Disposition::OverwriteIf,
        "supersede" => Disposition::Supersede,
        other => {
            return Err(format!(
                "disposition '{other}': expected open, create, open-if, overwrite, overwrite-if \
                 or supersede"
            ));
        }
    };
    Ok(request)
}
