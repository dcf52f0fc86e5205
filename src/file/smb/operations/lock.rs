//! LOCK: byte ranges, taken, waited for and given back.
//!
//! Decides which combinations of flags are legal (MS-SMB2 3.3.5.14). Who gets a range is decided by
//! the service, which answers a waiting request when it can.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Answer, Call, Done, Turns, Wait};
use crate::file::rules::Denial;
use crate::file::rules::ranges::{ByteRange, LockKind, RangeLock};
use crate::file::smb::connection::on_pool;
use crate::file::smb::status::Status;
use crate::file::smb::wire::lock::{
    EXCLUSIVE, FAIL_IMMEDIATELY, LockRange, LockRequest, SHARED, UNLOCK,
};

/// What a request asks for.
enum Asked {
    Unlock(Vec<ByteRange>),
    /// All or none, at once.
    Lock(Vec<(ByteRange, LockKind)>),
    /// One, which may wait.
    Wait(ByteRange, LockKind),
}

pub async fn lock(call: Call, turns: Turns) -> Result<Done, Status> {
    let asked = asked(&LockRequest::parse(&call.message)?.ranges)?;
    call.file()?;
    let (sender, answer) = oneshot::channel();
    let open = Arc::clone(call.open()?);
    let begun = on_pool(move || {
        let file = call.file()?;
        let (share, handle) = (&file.share, &file.handle);
        let waits = match asked {
            Asked::Unlock(ranges) => share.unlock(handle, &ranges).map(|()| None),
            Asked::Lock(wanted) => share.lock(handle, &wanted).map(|()| None),
            Asked::Wait(range, kind) => {
                let lock = RangeLock::smb(handle.id(), kind, range, 0);
                // The receiver is gone only with the connection.
                share.lock_later(handle, lock, Box::new(move |got| drop(sender.send(got))))
            }
        };
        drop(turns);
        Ok::<_, Status>(waits?)
    });
    let Some(ticket) = begun.await?? else { return Ok(Done::Now(Answer::done())) };
    let cancel = move || {
        drop(tokio::task::spawn_blocking(move || {
            open.file().is_ok_and(|file| file.share.cancel_lock(&file.handle, ticket))
        }));
    };
    let answer = async {
        // Without an answer the share is gone.
        let got = answer.await.unwrap_or(Err(Denial::HandleClosed));
        got.map_err(|denial| Status::from(&denial)).into()
    };
    Ok(Done::Waits(Wait { answer: Box::pin(answer), cancel: Box::new(cancel) }))
}

fn asked(ranges: &[LockRange]) -> Result<Asked, Status> {
    let byte_range = |one: &LockRange| {
        ByteRange::new(one.offset, one.length).map_err(|_| Status::INVALID_LOCK_RANGE)
    };
    let first = ranges.first().ok_or(Status::INVALID_PARAMETER)?;
    if first.flags == UNLOCK {
        if ranges.iter().any(|one| one.flags != UNLOCK) {
            return Err(Status::INVALID_PARAMETER);
        }
        return ranges.iter().map(byte_range).collect::<Result<_, _>>().map(Asked::Unlock);
    }
    let kind = |one: &LockRange| match one.flags & !FAIL_IMMEDIATELY {
        SHARED => Ok(LockKind::Shared),
        EXCLUSIVE => Ok(LockKind::Exclusive),
        _ => Err(Status::INVALID_PARAMETER),
    };
    if first.flags & FAIL_IMMEDIATELY == 0 {
        // Only one range may wait.
        let [one] = ranges else { return Err(Status::INVALID_PARAMETER) };
        return Ok(Asked::Wait(byte_range(one)?, kind(one)?));
    }
    if ranges.iter().any(|one| one.flags & FAIL_IMMEDIATELY == 0) {
        return Err(Status::INVALID_PARAMETER);
    }
    let wanted = ranges.iter().map(|one| Ok((byte_range(one)?, kind(one)?)));
    wanted.collect::<Result<_, _>>().map(Asked::Lock)
}
