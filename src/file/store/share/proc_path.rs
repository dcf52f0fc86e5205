//! A path that names an open file itself, for system calls that take no descriptor.

use std::os::fd::{AsFd, AsRawFd};

/// The way to the file of a descriptor, an `O_PATH` one too. It leads to the very file, whatever
/// has become of its name; a symbolic link behind it is not followed. Good while it is open.
pub fn proc_path(fd: impl AsFd) -> String {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
}
