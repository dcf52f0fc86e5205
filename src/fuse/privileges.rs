//! Set-id bits and file capabilities: removed before an unprivileged user can write.

use std::os::fd::AsFd;

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::engine::file::{Kind, Stat, proc_path};

const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o0010;
const CAPABILITY: &str = "security.capability";

/// Takes set-user-id, set-group-id (where the group may execute; otherwise it means mandatory
/// locking) and capabilities from a file.
pub fn strip(fd: impl AsFd) -> std::io::Result<()> {
    let stat = Stat::of(&fd).map_err(std::io::Error::other)?;
    if stat.kind != Kind::File {
        return Ok(());
    }
    let mut mode = stat.mode & !SET_USER_ID;
    if mode & GROUP_EXECUTE != 0 {
        mode &= !SET_GROUP_ID;
    }
    let name = proc_path(&fd);
    if mode != stat.mode {
        rustix::fs::chmod(&name, Mode::from_raw_mode(mode & 0o7777))?;
    }
    match rustix::fs::removexattr(&name, CAPABILITY) {
        // None there, none possible, or not ours to remove: a file we cannot give capabilities.
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
