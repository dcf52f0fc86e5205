//! The ioctls by which a program names the share mode of its open, marks its file for deletion and
//! learns its handle.
//!
//! Numbers and layouts are stable, and shared with `mount-scripts/latchfs.h` and
//! [`crate::client`]: type `L`, little-endian. Other requests are refused with `ENOTTY`, so that no
//! program takes a file for a terminal.

use std::sync::Arc;

use fuser::{Errno, ReplyIoctl};

use super::driver::Requester;
use super::errno::errno;
use super::opens::{ask_again, set_share};
use super::state::State;
use crate::client::{GET_HANDLE, HandleInfo, SET_DELETE, SET_SHARE};
use crate::file::rules::ShareMode;
use crate::file::service::FileError;

/// Carries an ioctl out on an open file.
pub fn ioctl(
    state: &Arc<State>,
    caller: Requester,
    fh: u64,
    (command, data): (u32, &[u8]),
    reply: ReplyIoctl,
) {
    let Some(file) = state.files.get(fh) else { return reply.error(Errno::ENOTTY) };
    let argument = || data.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
    match command {
        SET_SHARE => {
            let Some(bits) = argument().and_then(|bits| u8::try_from(bits).ok()).filter(|b| *b < 8)
            else {
                return reply.error(Errno::EINVAL);
            };
            let share = ShareMode::from_bits(bits);
            set_share(state, caller, &file, share, |set| answer(set.map(|_| Vec::new()), reply));
        }
        SET_DELETE => {
            let Some(delete @ (0 | 1)) = argument() else { return reply.error(Errno::EINVAL) };
            let asked = Arc::clone(state);
            let mark = move |attempt| {
                let cx = asked.context(caller.pid, "ioctl");
                let marked = asked.share().mount_mark(attempt, &cx, &file.handle, delete == 1)?;
                Some(marked.map(|path| {
                    ask_again(&asked, &path);
                    Vec::new()
                }))
            };
            state.park.until(mark, |marked| answer(marked, reply));
        }
        GET_HANDLE => {
            let described = state.share().describe(&file.handle).map(|seen| {
                let info = HandleInfo {
                    handle: file.handle.id().0,
                    access: seen.access.bits().into(),
                    share: seen.share.bits().into(),
                    delete_pending: seen.delete_pending,
                };
                info.to_bytes().to_vec()
            });
            answer(described, reply);
        }
        _ => reply.error(Errno::ENOTTY),
    }
}

fn answer(done: Result<Vec<u8>, FileError>, reply: ReplyIoctl) {
    match done {
        Ok(out) => reply.ioctl(0, &out),
        Err(error) => reply.error(errno(&error)),
    }
}
