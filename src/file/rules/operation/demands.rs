//! The table of demands: what each REST operation asks of a file or directory.
//!
//! Whether the file grants the demands is decided by the share check, the leases and the byte-range
//! locks (docs/semantics.md, "REST operations against opens").

use super::super::{Access, ShareMode};
use super::FileOperation;

/// The demands of an operation on a file or directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the yes-or-no columns of one table")]
pub struct Demands {
    /// The access of the momentary open.
    pub access: Access,
    /// Its share mode: everything, except for a lease.
    pub share: ShareMode,
    /// Any handle on the file or directory refuses, whatever it shares, attribute-only ones too.
    pub no_open_handles: bool,
    /// Any handle below the directory refuses.
    pub no_handles_below: bool,
    /// Refused while the file or directory is delete pending; for a new name, while the directory
    /// it is to stand in is.
    pub refused_while_pending: bool,
    /// The demand on the file's lease.
    pub lease: LeaseDemand,
    /// Refused while a copy to the file is running.
    pub refused_by_pending_copy: bool,
    /// Refused if the file or directory has the read-only attribute.
    pub refused_if_read_only: bool,
    /// Which byte-range locks refuse it.
    pub ranges: RangeDemand,
}

/// The demand of an operation on a file's lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LeaseDemand {
    /// Nothing; the request carries no ID for this file, or is a lease action itself.
    None,
    /// No ID is needed; one that is sent must match.
    ReadCondition,
    /// The ID is needed while the file is leased. On a new name any ID is refused, since there is
    /// no lease to match.
    Write,
}

/// Which byte-range locks stand in an operation's way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RangeDemand {
    None,
    /// An exclusive lock that overlaps the bytes read.
    ReadOverlap,
    /// Any lock anywhere in the file.
    AnyLock,
}

/// Asks nothing at all.
const NOTHING: Demands = Demands {
    access: Access::NONE,
    share: ShareMode::RWD,
    no_open_handles: false,
    no_handles_below: false,
    refused_while_pending: false,
    lease: LeaseDemand::None,
    refused_by_pending_copy: false,
    refused_if_read_only: false,
    ranges: RangeDemand::None,
};

/// Asks only that the thing is not delete pending: "any FileREST operation".
const LIVE: Demands = Demands { refused_while_pending: true, ..NOTHING };

/// Reads a file's attributes, which no handle can deny. A lease ID in the request is a condition
/// (docs/semantics.md, "Leases").
const LOOK: Demands = Demands { lease: LeaseDemand::ReadCondition, ..LIVE };

/// Reads a file's bytes as the source of another operation: the ID of the request, if any, is the
/// target's.
const SOURCE: Demands = Demands { access: Access::R, ranges: RangeDemand::ReadOverlap, ..LIVE };

/// Changes a file that exists: needs the lease ID. Refused while a copy to the file is pending, and
/// if the file is read-only.
const CHANGE: Demands = Demands {
    access: Access::W,
    lease: LeaseDemand::Write,
    refused_by_pending_copy: true,
    refused_if_read_only: true,
    ..LIVE
};

/// Changes a file's bytes: on top of that, no byte of it may be locked.
const CHANGE_BYTES: Demands = Demands { ranges: RangeDemand::AnyLock, ..CHANGE };

const WRITE_DELETE: Access = Access::from_bits(Access::W.bits() | Access::D.bits());

impl FileOperation {
    /// The access and share mode of the momentary open.
    pub const fn wants(self) -> (Access, ShareMode) {
        let Demands { access, share, .. } = self.demands();
        (access, share)
    }

    /// The table of docs/semantics.md, "REST operations against opens".
    #[expect(clippy::match_same_arms, reason = "each row has its own source")]
    pub const fn demands(self) -> Demands {
        match self {
            // Succeed even under share none, but not while pending.
            Self::GetFileProperties => LOOK,
            // Refused by an exclusive lock on the bytes asked for.
            Self::GetFile => {
                Demands { access: Access::R, ranges: RangeDemand::ReadOverlap, ..LOOK }
            }
            // No content moves.
            Self::ListRanges => Demands { access: Access::R, ..LOOK },
            // Carrying attributes it is the way to clear the read-only bit; a resize writes
            // content.
            Self::SetFileProperties { resize, attributes } => Demands {
                refused_if_read_only: !attributes,
                ranges: if resize { RangeDemand::AnyLock } else { RangeDemand::None },
                ..CHANGE
            },
            // Not affected by byte ranges.
            Self::SetFileMetadata => CHANGE,
            Self::PutRange | Self::ClearRange => CHANGE_BYTES,
            // It reads as Get File and Copy File do.
            Self::CopySource => SOURCE,
            // An ID for a file that does not exist fails; a pending directory takes no new
            // children.
            Self::CreateFileNew => Demands { lease: LeaseDemand::Write, ..LIVE },
            Self::CreateFileOver => Demands { access: WRITE_DELETE, ..CHANGE_BYTES },
            // As Create File over, but for the header.
            Self::CopyDestinationOver { ignore_read_only } => Demands {
                access: WRITE_DELETE,
                refused_if_read_only: !ignore_read_only,
                ..CHANGE_BYTES
            },
            // Locks need handles, and there may be none.
            Self::DeleteFile => Demands { access: Access::D, no_open_handles: true, ..CHANGE },
            // As Delete File, but for the header.
            Self::RenameTarget { ignore_read_only } => Demands {
                access: Access::D,
                no_open_handles: true,
                refused_if_read_only: !ignore_read_only,
                ..CHANGE
            },
            // The read-only attribute protects only the target; no content moves.
            Self::RenameSource => {
                Demands { access: Access::D, refused_if_read_only: false, ..CHANGE }
            }
            // The copy itself, authorised at its start; a handle or a lock that came
            // since stops it as it would stop any write.
            Self::CopyStep => Demands {
                refused_by_pending_copy: false,
                refused_if_read_only: false,
                ..CHANGE_BYTES
            },
            // The copy is what it ends: neither that nor what the copy did to the attributes can
            // stop it.
            Self::AbortCopy => {
                Demands { refused_by_pending_copy: false, refused_if_read_only: false, ..CHANGE }
            }
            // One open with all access that shares R; not while a copy is pending.
            Self::LeaseAcquire => Demands {
                access: Access::RWD,
                share: ShareMode::R,
                refused_by_pending_copy: true,
                ..LIVE
            },
            // Only the lease changes; not while a copy is pending.
            Self::LeaseOther => Demands { refused_by_pending_copy: true, ..LIVE },
            // Handles below block it.
            Self::RenameDirectory => Demands { access: Access::D, no_handles_below: true, ..LIVE },
            // Refused by a pending directory of that name, or above it.
            Self::CreateDirectory => LIVE,
            // A handle on it refuses; nor may it be read-only.
            Self::DeleteDirectory => Demands {
                access: Access::D,
                no_open_handles: true,
                refused_if_read_only: true,
                ..LIVE
            },
            // By analogy with files; directories have no leases.
            Self::GetDirectoryProperties => LIVE,
            // By analogy with files; the read-only attribute keeps writers off files only.
            Self::SetDirectoryProperties | Self::SetDirectoryMetadata => {
                Demands { access: Access::W, ..LIVE }
            }
        }
    }
}
