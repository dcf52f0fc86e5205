//! Set-id bits and file capabilities: taken away before somebody without privilege can write.

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::core::SharePath;
use crate::engine::{Kind, OpenFor, Share, Stat, proc_path};

const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o0010;
const CAPABILITY: &str = "security.capability";

/// Takes set-user-id, set-group-id (where the group may execute; otherwise it means mandatory
/// locking) and capabilities from a file.
pub fn strip(share: &Share, path: &SharePath, stat: &Stat) -> std::io::Result<()> {
    if stat.kind != Kind::File {
        return Ok(());
    }
    let mut mode = stat.mode & !SET_USER_ID;
    if mode & GROUP_EXECUTE != 0 {
        mode &= !SET_GROUP_ID;
    }
    let fd = share.backing(path, OpenFor::Path).map_err(std::io::Error::other)?;
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
