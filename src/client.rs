//! For programs that know latchfs: name the share mode of a descriptor on the mount.
//!
//! ```no_run
//! use latchfs::client;
//! use latchfs::file::rules::ShareMode;
//!
//! let file = std::fs::File::open("/mnt/share/report.xlsx")?;
//! client::set_share(&file, ShareMode::NONE)?; // EBUSY if somebody else has it open
//! println!("handle {}", client::handle(&file)?.handle);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The numbers are a promise: `mount-scripts/latchfs.h` has them for C.

#![warn(missing_docs)]
#![allow(unsafe_code, reason = "an ioctl has no safe call")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::file::rules::ShareMode;

/// `_IOW('L', 1, u32)`: what this open tolerates, as bits: 1 read, 2 write, 4 delete.
pub const SET_SHARE: u32 = 0x4004_4C01;

/// `_IOW('L', 2, u32)`: 1 marks the file for deletion, 0 takes the mark away.
pub const SET_DELETE: u32 = 0x4004_4C02;

/// `_IOR('L', 3, struct latchfs_handle)`: what the open is in latchfs's table.
pub const GET_HANDLE: u32 = 0x8018_4C03;

/// An open, as latchfs's table has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandleInfo {
    /// The identity that `latchfs handles` shows.
    pub handle: u64,
    /// Bits: 1 read, 2 write, 4 delete.
    pub access: u32,
    /// The share mode, in the same bits.
    pub share: u32,
    /// The name it was opened by is marked for deletion.
    pub delete_pending: bool,
}

impl HandleInfo {
    /// As it travels: handle, access, share, pending, and four bytes to spare.
    pub fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.handle.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.access.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.share.to_le_bytes());
        bytes[16..20].copy_from_slice(&u32::from(self.delete_pending).to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; 24]) -> Self {
        let word = |at: usize| {
            u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes are four bytes"))
        };
        Self {
            handle: u64::from(word(0)) | u64::from(word(4)) << 32,
            access: word(8),
            share: word(12),
            delete_pending: word(16) != 0,
        }
    }
}

/// Changes what this open tolerates, at once or not at all: `EBUSY` if another open is in the way.
pub fn set_share(file: impl AsFd, share: ShareMode) -> io::Result<()> {
    let bits = u32::from(share.bits());
    // SAFETY: SET_SHARE reads four bytes, which `bits` has and which outlive the call.
    check(unsafe { libc::ioctl(file.as_fd().as_raw_fd(), SET_SHARE.into(), &raw const bits) })
}

/// Marks the file for deletion when its last open closes, or takes the mark away.
pub fn set_delete(file: impl AsFd, delete: bool) -> io::Result<()> {
    let delete = u32::from(delete);
    // SAFETY: SET_DELETE reads four bytes, which `delete` has and which outlive the call.
    check(unsafe { libc::ioctl(file.as_fd().as_raw_fd(), SET_DELETE.into(), &raw const delete) })
}

/// The entry of this open in latchfs's table; `ENOTTY` on a file that is not on a latchfs mount.
pub fn handle(file: impl AsFd) -> io::Result<HandleInfo> {
    let mut bytes = [0_u8; 24];
    // SAFETY: GET_HANDLE writes 24 bytes, which `bytes` has and which outlive the call.
    let done =
        unsafe { libc::ioctl(file.as_fd().as_raw_fd(), GET_HANDLE.into(), bytes.as_mut_ptr()) };
    check(done).map(|()| HandleInfo::from_bytes(bytes))
}

fn check(done: libc::c_int) -> io::Result<()> {
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_survives_the_way_through_the_kernel() {
        let info = HandleInfo { handle: 1 << 40 | 7, access: 3, share: 0, delete_pending: true };
        assert_eq!(HandleInfo::from_bytes(info.to_bytes()), info);
    }

    #[test]
    fn the_numbers_are_those_of_the_ioctl_encoding() {
        let number = |direction: u32, size: u32, nr: u32| {
            direction << 30 | size << 16 | u32::from(b'L') << 8 | nr
        };
        assert_eq!(SET_SHARE, number(1, 4, 1));
        assert_eq!(SET_DELETE, number(1, 4, 2));
        assert_eq!(GET_HANDLE, number(2, 24, 3));
    }

    #[test]
    fn a_file_elsewhere_has_no_handle() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(handle(&file).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }
}
