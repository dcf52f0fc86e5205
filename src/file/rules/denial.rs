//! Why something was refused: one variant per documented rule, naming the holder.
//!
//! A refusal is data. It has three spellings, each one exhaustive table elsewhere: errno for the
//! mount, FileREST code for REST, NTSTATUS for SMB clients. What went wrong below the rules (disk
//! full, no permission) is a store error, never one of these.

use super::Holder;
use super::ranges::{LockKind, RangeLock};
use super::share::Clash;
use crate::rules::lease::LeaseDenial;
use crate::rules::metadata::MetadataError;

/// Why it was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// An open's share mode and the access asked for exclude each other, or the other way round.
    #[error("{}: {holder}", clash_text(*.clash))]
    SharingViolation {
        /// Which half of the rule.
        clash: Clash,
        /// The open in the way.
        holder: Box<Holder>,
    },
    /// The same for the directory of a new name, which a rename opens for a moment. No handle of
    /// the mount causes it: a directory is opened there for R, and shares everything.
    #[error("in the directory of the new name, {}: {holder}", clash_text(*.clash))]
    ParentShared {
        /// Which half of the rule.
        clash: Clash,
        /// The open of the directory in the way.
        holder: Box<Holder>,
    },
    /// An operation that suffers no open at all met one.
    #[error("the file is open: {0}")]
    Open(Box<Holder>),
    /// A lease gives its holder alone the right to write and delete.
    #[error("the file is leased: only the lease's holder may write or delete it, through REST")]
    Leased,
    /// A directory cannot be renamed over open files.
    #[error("a file below the directory is open: {0}")]
    OpenBelow(Box<Holder>),
    /// The name is marked for deletion.
    #[error("the file is marked for deletion and is removed when its last handle closes: {0}")]
    DeletePending(Box<Holder>),
    /// The directory that should hold the new name is marked for deletion (dp58, dp61).
    #[error("the directory is marked for deletion and takes no new entry: {holder}")]
    ParentDeletePending {
        /// An open that keeps the directory alive.
        holder: Box<Holder>,
        /// The entry was to be moved in, not created.
        renaming: bool,
    },
    /// A byte-range lock covers what was to be read or written.
    #[error("{}", range_text(.lock, .holder.as_deref()))]
    RangeLocked {
        /// The lock in the way.
        lock: RangeLock,
        /// The open it was taken through.
        holder: Option<Box<Holder>>,
    },
    /// A byte-range lock was asked for that another one excludes.
    #[error("{}", range_text(.lock, .holder.as_deref()))]
    LockNotGranted {
        /// The lock in the way.
        lock: RangeLock,
        /// The open it was taken through.
        holder: Option<Box<Holder>>,
    },
    /// Unlock of a range that this open has not locked just so (br08).
    #[error("no lock of exactly that range is held by this handle")]
    RangeNotLocked,
    /// A range that runs past 2^64 (br21).
    #[error("the range runs past the largest offset")]
    InvalidLockRange,
    /// The waiting lock request was cancelled (br29).
    #[error("the waiting lock request was cancelled")]
    Cancelled,
    /// More lock requests wait on the file than are allowed to.
    #[error("too many lock requests are waiting on this file")]
    TooManyWaiting,
    #[error(transparent)]
    Lease(#[from] LeaseDenial),
    /// The read-only attribute forbids writing.
    #[error("the file is read-only")]
    ReadOnly,
    /// The read-only attribute forbids deleting.
    #[error("the file is read-only and cannot be deleted")]
    CannotDelete,
    /// A hidden file is overwritten without naming that attribute (di13).
    #[error("the file is hidden, and the request to overwrite it does not say so")]
    HiddenMismatch,
    /// The handle was not opened for this (dp05, di17).
    #[error("the handle was not opened with the access this needs")]
    AccessDenied,
    /// The handle was closed, or never was.
    #[error("the handle is closed")]
    HandleClosed,
    /// Nothing of that name.
    #[error("no such file or directory")]
    NotFound,
    /// A directory on the path is missing.
    #[error("a directory on the path does not exist")]
    PathNotFound,
    /// The name is taken, pending or not (di11, dp09).
    #[error("the name is taken")]
    NameTaken,
    /// A file was asked for, a directory is there.
    #[error("it is a directory")]
    IsDirectory,
    /// A directory was asked for, a file is there.
    #[error("it is not a directory")]
    NotDirectory,
    /// The directory has entries, pending ones included (dp34, dr12).
    #[error("the directory is not empty")]
    DirectoryNotEmpty,
    /// Options or arguments that contradict each other (dp04, dr11).
    #[error("{0}")]
    InvalidParameter(&'static str),
    /// An operation that this kind of file does not have (br40).
    #[error("not possible on a directory")]
    NotOnDirectory,
    /// A read that starts at or past the end.
    #[error("the read starts past the end of the file")]
    EndOfFile,
    /// A request names bytes that the file does not have.
    #[error("the range lies outside the file, which has {size} bytes")]
    InvalidRange {
        /// How many bytes it has.
        size: u64,
    },
    /// More bytes than one request may carry.
    #[error("a request carries at most {max} bytes")]
    BodyTooLarge {
        /// How many it may carry.
        max: u64,
    },
    /// A length that no file may have.
    #[error("a file has at most {max} bytes")]
    FileTooLarge {
        /// How many it may have.
        max: u64,
    },
    /// Metadata that is not allowed.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// A copy to the file is under way.
    #[error("a copy to this file is under way")]
    CopyPending,
    /// Abort of a copy that has ended, or never was.
    #[error("no copy to this file is under way")]
    NoPendingCopy,
    /// Abort of a running copy under another copy's ID.
    #[error("the copy under way to this file has another ID")]
    CopyIdMismatch,
    /// The source of a running copy is not what it was when the copy began.
    #[error("the source of the copy changed while it was copied")]
    CopySourceChanged,
    /// A difference to a snapshot that does not have this file under this name.
    #[error("the file was made anew or moved here since the previous snapshot was taken")]
    OtherGeneration,
    /// The share's root cannot be deleted or renamed.
    #[error("the root of a share cannot be deleted or renamed")]
    ShareRoot,
    /// The share was deleted while its caller still held it.
    #[error("the share was deleted")]
    ShareDeleted,
    /// A reset or a restore replaces the share, or has replaced it since its caller found it.
    #[error("the state of the server is being replaced: try again")]
    ShareReplaced,
    /// More opens than one file may have.
    #[error("too many handles are open on this file")]
    TooManyHandles,
}

impl Denial {
    /// The open in the way, where one is.
    pub fn holder(&self) -> Option<&Holder> {
        match self {
            Self::SharingViolation { holder, .. }
            | Self::ParentShared { holder, .. }
            | Self::Open(holder)
            | Self::OpenBelow(holder)
            | Self::DeletePending(holder)
            | Self::ParentDeletePending { holder, .. } => Some(holder),
            Self::RangeLocked { holder, .. } | Self::LockNotGranted { holder, .. } => {
                holder.as_deref()
            }
            _ => None,
        }
    }
}

fn clash_text(clash: Clash) -> &'static str {
    match clash {
        Clash::AccessDenied => {
            "sharing violation: the share mode of an open handle excludes this access"
        }
        Clash::ShareDenied => {
            "sharing violation: this share mode excludes the access of an open handle"
        }
    }
}

fn range_text(lock: &RangeLock, holder: Option<&Holder>) -> String {
    let by = holder.map_or_else(|| format!("pid {}", lock.pid), ToString::to_string);
    let kind = match lock.kind {
        LockKind::Shared => "shared",
        LockKind::Exclusive => "exclusive",
    };
    format!("{} {} locked ({kind}): {by}", lock.range, lock.range.verb())
}
