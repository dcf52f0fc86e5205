//! Set-id bits and file capabilities: removed before an unprivileged user can write.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::file::service::{FileError, FileKind, Stat, StoreError, proc_path};

const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o0010;
const CAPABILITY: &str = "security.capability";

/// As [`strip`], before the file is cut or grown: the size stays if this fails.
pub fn strip_to_resize(fd: &OwnedFd) -> Result<(), FileError> {
    strip(fd).map_err(|source| FileError::Store(StoreError::Io { what: "set-id bits", source }))
}

/// Takes set-user-id, set-group-id (where the group may execute; otherwise it means mandatory
/// locking) and capabilities from a file.
pub fn strip(fd: impl AsFd) -> std::io::Result<()> {
    let stat = Stat::of(&fd).map_err(std::io::Error::other)?;
    if stat.kind != FileKind::File {
        return Ok(());
    }
    let mut mode = stat.mode & !SET_USER_ID;
    if mode & GROUP_EXECUTE != 0 {
        mode &= !SET_GROUP_ID;
    }
    let name = proc_path(&fd);
    if mode != stat.mode {
        match rustix::fs::chmod(&name, Mode::from_raw_mode(mode & 0o7777)) {
            // Another user's file, and this process is not root: when it writes or cuts the file,
            // the kernel takes the bits away.
            Ok(()) | Err(Errno::PERM) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    match rustix::fs::removexattr(&name, CAPABILITY) {
        // None there, none possible, or not ours to remove: a file we cannot give capabilities.
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
