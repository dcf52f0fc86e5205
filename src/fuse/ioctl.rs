//! The ioctls by which a program that knows us names its share mode.
//!
//! Numbers and layouts are a promise, shared with `mount-scripts/latchfs.h` and
//! [`crate::client`]: type `L`, little-endian. Anything else answers `ENOTTY`, so that nobody
//! takes a file for a terminal (FUSE section 3b).

use std::sync::Arc;

use fuser::{Errno, ReplyIoctl};

use super::driver::Caller;
use super::errno::errno;
use super::opens::{ask_again, set_share};
use super::state::State;
use crate::client::{GET_HANDLE, HandleInfo, SET_DELETE, SET_SHARE};
use crate::core::ShareMode;
use crate::engine::Error;

/// Carries an ioctl out on an open file.
pub fn ioctl(
    state: &Arc<State>,
    caller: Caller,
    fh: u64,
    (command, data): (u32, &[u8]),
    reply: ReplyIoctl,
) {
    let Some(file) = state.file(fh) else { return reply.error(Errno::ENOTTY) };
    let argument = || data.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
    let done: Result<Vec<u8>, Error> = match command {
        SET_SHARE => {
            let Some(bits) = argument().and_then(|bits| u8::try_from(bits).ok()).filter(|b| *b < 8)
            else {
                return reply.error(Errno::EINVAL);
            };
            let share = ShareMode::from_bits(bits);
            return set_share(state, caller, &file, share, move |done| match done {
                Ok(()) => reply.ioctl(0, &[]),
                Err(error) => reply.error(errno(&error)),
            });
        }
        SET_DELETE => {
            let Some(delete @ (0 | 1)) = argument() else { return reply.error(Errno::EINVAL) };
            let who = state.owner(caller.pid);
            let marked = state.share.set_disposition_of_file(&who, &file.handle, delete == 1);
            if marked.is_ok()
                && let Ok(path) = state.share.path_of(&file.handle)
            {
                ask_again(state, &path);
            }
            marked.map(|()| Vec::new())
        }
        GET_HANDLE => state.share.describe(&file.handle).map(|seen| {
            let info = HandleInfo {
                handle: file.handle.id().0,
                access: seen.access.bits().into(),
                share: seen.share.bits().into(),
                delete_pending: seen.delete_pending,
            };
            info.to_bytes().to_vec()
        }),
        _ => return reply.error(Errno::ENOTTY),
    };
    match done {
        Ok(out) => reply.ioctl(0, &out),
        Err(error) => reply.error(errno(&error)),
    }
}
