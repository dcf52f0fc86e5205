//! REST operations as momentary opens: which there are, and in which order they are checked.
//!
//! What each one asks of the file it touches is the table of [`FileOperation::demands`]. An
//! operation with two ends (copy, rename, Put Range from URL) has a row for each.
//!
//! Not here: whether names and parents exist, whether a directory is empty, and whether a copy is
//! running.

mod demands;
#[cfg(test)]
mod tests;

pub use demands::{Demands, LeaseDemand, RangeDemand};

/// A REST operation, from the point of view of one file or directory it touches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FileOperation {
    GetFileProperties,
    GetFile,
    ListRanges,
    SetFileProperties {
        /// It names a new length.
        resize: bool,
        /// It carries `x-ms-file-attributes`.
        attributes: bool,
    },
    SetFileMetadata,
    PutRange,
    ClearRange,
    /// Create File under a free name; also Copy File and Rename to one.
    CreateFileNew,
    /// Create File over an existing file.
    CreateFileOver,
    DeleteFile,
    /// The file that Copy File reads.
    CopySource,
    /// The existing file that Copy File overwrites.
    CopyDestinationOver {
        /// `x-ms-file-copy-ignore-readonly` is true.
        ignore_read_only: bool,
    },
    /// The next bytes of a copy that is under way, on the destination.
    CopyStep,
    /// Abort Copy File, on the destination.
    AbortCopy,
    LeaseAcquire,
    /// Lease File: change, release, break.
    LeaseOther,
    /// The file that Rename File moves.
    RenameSource,
    /// The existing file that a rename replaces.
    RenameTarget {
        /// `x-ms-file-rename-ignore-readonly` is true.
        ignore_read_only: bool,
    },
    /// The directory that Rename Directory moves.
    RenameDirectory,
    CreateDirectory,
    DeleteDirectory,
    GetDirectoryProperties,
    SetDirectoryProperties,
    SetDirectoryMetadata,
}

/// The checks on an operation once its file is found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Check {
    /// The file is delete pending.
    DeletePending,
    /// The lease ID is missing or wrong.
    Lease,
    /// A copy to the file is running.
    PendingCopy,
    /// The file has the read-only attribute.
    ReadOnly,
    /// An SMB handle denies the access, or is open at all.
    ShareModes,
    /// An SMB client has locked bytes.
    ByteRanges,
}

impl Check {
    /// The order in which they are made; the first that refuses is the answer.
    pub const ORDER: [Self; 6] = [
        Self::DeletePending,
        Self::Lease,
        Self::PendingCopy,
        Self::ReadOnly,
        Self::ShareModes,
        Self::ByteRanges,
    ];
}

impl FileOperation {
    /// Every operation, with every combination of its flags, once.
    pub const ALL: [Self; 29] = [
        Self::GetFileProperties,
        Self::GetFile,
        Self::ListRanges,
        Self::SetFileProperties { resize: false, attributes: false },
        Self::SetFileProperties { resize: false, attributes: true },
        Self::SetFileProperties { resize: true, attributes: false },
        Self::SetFileProperties { resize: true, attributes: true },
        Self::SetFileMetadata,
        Self::PutRange,
        Self::ClearRange,
        Self::CreateFileNew,
        Self::CreateFileOver,
        Self::DeleteFile,
        Self::CopySource,
        Self::CopyDestinationOver { ignore_read_only: false },
        Self::CopyDestinationOver { ignore_read_only: true },
        Self::CopyStep,
        Self::AbortCopy,
        Self::LeaseAcquire,
        Self::LeaseOther,
        Self::RenameSource,
        Self::RenameTarget { ignore_read_only: false },
        Self::RenameTarget { ignore_read_only: true },
        Self::RenameDirectory,
        Self::CreateDirectory,
        Self::DeleteDirectory,
        Self::GetDirectoryProperties,
        Self::SetDirectoryProperties,
        Self::SetDirectoryMetadata,
    ];
}
