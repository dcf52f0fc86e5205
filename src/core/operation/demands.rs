//! The table of demands: what each REST operation asks of a file or directory.
//!
//! Says what is needed; whether the file grants it is decided by the share check, the leases and
//! the byte ranges.
//!
//! Sources: LOCKING section 2 (access), 3.4 and 3.9 (delete pending, read-only), 4.1 (leases),
//! 6.5-6.8 (byte ranges), 7.9 (copies).

use super::Operation;
use crate::core::{Access, ShareMode};

/// What an operation asks of the file or directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the yes-or-no columns of one table")]
pub struct Demands {
    /// The access of the momentary open.
    pub access: Access,
    /// Its share mode: everything, except for a lease (LOCKING 2.1, 2.4).
    pub share: ShareMode,
    /// Any handle on the file or directory refuses, whatever it shares, attribute-only ones too.
    pub no_open_handles: bool,
    /// Any handle below the directory refuses.
    pub no_handles_below: bool,
    /// Refused while the file or directory is delete pending; for a new name, while the directory
    /// it is to stand in is.
    pub refused_while_pending: bool,
    /// What it asks of the file's lease.
    pub lease: LeaseDemand,
    /// Refused while a copy to the file is running.
    pub refused_by_pending_copy: bool,
    /// Refused if the file or directory has the read-only attribute.
    pub refused_if_read_only: bool,
    /// Which byte-range locks refuse it.
    pub ranges: RangeDemand,
}

/// What an operation asks of a file's lease.
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
    /// None.
    None,
    /// An exclusive lock that overlaps the bytes read (LOCKING 6.6).
    ReadOverlap,
    /// Any lock anywhere in the file (LOCKING 6.5).
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

/// Asks only that the thing is not delete pending: "any FileREST operation" (LOCKING 3.4).
const LIVE: Demands = Demands { refused_while_pending: true, ..NOTHING };

/// Looks at a file's attributes, which no handle can deny (LOCKING 2.2); an ID sent along is a
/// condition (4.1).
const LOOK: Demands = Demands { lease: LeaseDemand::ReadCondition, ..LIVE };

/// Reads a file's bytes as the source of another operation: the ID of the request, if any, is the
/// target's (LOCKING 4.1 "Needs none").
const SOURCE: Demands = Demands { access: Access::R, ranges: RangeDemand::ReadOverlap, ..LIVE };

/// Changes a file that exists: needs the lease ID (LOCKING 4.1), not while a copy to it runs
/// (7.9), not if it is read-only (3.9).
const CHANGE: Demands = Demands {
    access: Access::W,
    lease: LeaseDemand::Write,
    refused_by_pending_copy: true,
    refused_if_read_only: true,
    ..LIVE
};

/// Changes a file's bytes: on top of that, no byte of it may be locked (LOCKING 6.5, 6.7).
const CHANGE_BYTES: Demands = Demands { ranges: RangeDemand::AnyLock, ..CHANGE };

const WRITE_DELETE: Access = Access::from_bits(Access::W.bits() | Access::D.bits());

impl Operation {
    /// The access and share mode of the momentary open.
    pub const fn wants(self) -> (Access, ShareMode) {
        let Demands { access, share, .. } = self.demands();
        (access, share)
    }

    /// The table. Access is from LOCKING 2.2 throughout; a row says what else decides it.
    #[expect(clippy::match_same_arms, reason = "each row has its own source")]
    pub const fn demands(self) -> Demands {
        match self {
            // 3.6: a pending file is left out of the listing, the listing itself goes on.
            Self::ListDirectory => NOTHING,
            // 2.2: succeed even under share none; 3.4: but not while pending; 6.8.
            Self::GetFileProperties | Self::GetFileMetadata => LOOK,
            // 6.6: an exclusive lock on the bytes asked for.
            Self::GetFile => {
                Demands { access: Access::R, ranges: RangeDemand::ReadOverlap, ..LOOK }
            }
            // 6.8: no content moves.
            Self::ListRanges => Demands { access: Access::R, ..LOOK },
            // C3: carrying attributes it is the way to clear the read-only bit; 6.7: a resize
            // writes content.
            Self::SetFileProperties { resize, attributes } => Demands {
                refused_if_read_only: !attributes,
                ranges: if resize { RangeDemand::AnyLock } else { RangeDemand::None },
                ..CHANGE
            },
            // 6.7: not affected by byte ranges.
            Self::SetFileMetadata => CHANGE,
            // 6.5, 6.7.
            Self::PutRange | Self::ClearRange | Self::PutRangeFromUrlTarget => CHANGE_BYTES,
            // 2.2: reads by Get File; Copy File likewise (6.6).
            Self::PutRangeFromUrlSource | Self::CopySource => SOURCE,
            // 4.1: an ID for a file that does not exist fails; 3.10: a pending directory takes no
            // new children.
            Self::CreateFileNew => Demands { lease: LeaseDemand::Write, ..LIVE },
            // 3.9, 4.1, 6.7.
            Self::CreateFileOver => Demands { access: WRITE_DELETE, ..CHANGE_BYTES },
            // 3.9, 4.1, 6.7: as Create File over, but for the header.
            Self::CopyDestinationOver { ignore_read_only } => Demands {
                access: WRITE_DELETE,
                refused_if_read_only: !ignore_read_only,
                ..CHANGE_BYTES
            },
            // 3.8, 3.9. Locks need handles, and there may be none.
            Self::DeleteFile => Demands { access: Access::D, no_open_handles: true, ..CHANGE },
            // 3.9, 4.1 (`x-ms-destination-lease-id`): as Delete File, but for the header.
            Self::RenameTarget { ignore_read_only } => Demands {
                access: Access::D,
                no_open_handles: true,
                refused_if_read_only: !ignore_read_only,
                ..CHANGE
            },
            // 3.9 names only the target; 4.1 (`x-ms-source-lease-id`); 6.7: no content moves.
            Self::RenameSource => {
                Demands { access: Access::D, refused_if_read_only: false, ..CHANGE }
            }
            // 7.9: it is the copy itself, let through at its start; a handle or a lock that came
            // since stops it as it would stop any write (6.7).
            Self::CopyStep => Demands {
                refused_by_pending_copy: false,
                refused_if_read_only: false,
                ..CHANGE_BYTES
            },
            // 4.1, 7.9: it is the copy that it ends, so neither that nor what the copy did to the
            // attributes can stop it; 6.7 does not name it.
            Self::AbortCopy => {
                Demands { refused_by_pending_copy: false, refused_if_read_only: false, ..CHANGE }
            }
            // 2.4: one open with all access that shares R; 4.1: not while a copy is pending.
            Self::LeaseAcquire => Demands {
                access: Access::RWD,
                share: ShareMode::R,
                refused_by_pending_copy: true,
                ..LIVE
            },
            // 2.2: only the lease record changes; 4.1 as above.
            Self::LeaseOther => Demands { refused_by_pending_copy: true, ..LIVE },
            // 3.11: handles below block it.
            Self::RenameDirectory => Demands { access: Access::D, no_handles_below: true, ..LIVE },
            // 3.10: a pending directory of that name, or above it.
            Self::CreateDirectory => LIVE,
            // 2.2: a handle on it refuses (C9); SMB-RULES 2, dr16: nor may it be read-only.
            Self::DeleteDirectory => Demands {
                access: Access::D,
                no_open_handles: true,
                refused_if_read_only: true,
                ..LIVE
            },
            // 2.2, by analogy with files; directories have no leases.
            Self::GetDirectoryProperties | Self::GetDirectoryMetadata => LIVE,
            // 2.2, by analogy with files; 1.9 keeps writers off read-only files, not directories.
            Self::SetDirectoryProperties | Self::SetDirectoryMetadata => {
                Demands { access: Access::W, ..LIVE }
            }
            // 3.4: the cure for a pending file works on one.
            Self::ListHandles | Self::ForceCloseHandles => NOTHING,
            // 2.2; 4.1: share operations ignore file leases.
            Self::ShareLevel => NOTHING,
            // 2.2: a snapshot is a read-only copy, none of this applies.
            Self::SnapshotRead => NOTHING,
        }
    }
}
