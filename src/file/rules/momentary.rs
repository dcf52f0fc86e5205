//! REST operations as momentary opens: one check, in the documented order.
//!
//! An operation holds no entry; it asks, under the file's lock, right before each step that
//! changes something. What each operation demands is the table in
//! [`super::operation`]; here the demands meet the file's state.

use super::file::FileState;
use super::file_ranges::RangeUse;
use super::operation::{Check, Demands, FileOperation, LeaseDemand, RangeDemand};
use super::ranges::ByteRange;
use super::{Denial, SharePath};
use crate::rules::lease::{FileLease, LeaseId, LeaseUse};

/// The facts that an operation is checked with: from the request, and from the disk.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// The name, spelled as on disk.
    pub path: &'a SharePath,
    /// The lease ID that came with the request.
    pub lease_id: Option<LeaseId>,
    /// A copy to the file is running.
    pub copy_pending: bool,
    /// It has the read-only attribute.
    pub read_only: bool,
    /// The bytes to be read; all, if none are named.
    pub range: Option<ByteRange>,
}

impl FileState {
    /// May the operation go ahead? The first check that refuses is the answer.
    pub fn check_operation(
        &mut self,
        operation: FileOperation,
        at: &Circumstances<'_>,
    ) -> Result<(), Denial> {
        let demands = operation.demands();
        Check::ORDER.into_iter().try_for_each(|check| self.check_one(check, &demands, at))
    }

    fn check_one(
        &mut self,
        check: Check,
        demands: &Demands,
        at: &Circumstances<'_>,
    ) -> Result<(), Denial> {
        match check {
            Check::DeletePending if demands.refused_while_pending => {
                self.check_not_pending(at.path)
            }
            Check::Lease => check_lease(self.lease(), demands.lease, at.lease_id),
            Check::PendingCopy if demands.refused_by_pending_copy && at.copy_pending => {
                Err(Denial::CopyPending)
            }
            Check::ReadOnly if demands.refused_if_read_only && at.read_only => {
                Err(Denial::ReadOnly)
            }
            Check::ShareModes => {
                // The lease was asked above: its holder is not refused by its own lease here.
                self.check_share(demands.access, demands.share)?;
                if demands.no_open_handles { self.check_nobody() } else { Ok(()) }
            }
            Check::ByteRanges => self.check_ranges(demands.ranges, at.range),
            Check::DeletePending | Check::PendingCopy | Check::ReadOnly => Ok(()),
        }
    }

    fn check_ranges(&self, demand: RangeDemand, range: Option<ByteRange>) -> Result<(), Denial> {
        match demand {
            RangeDemand::None => Ok(()),
            RangeDemand::ReadOverlap => {
                let range = range.unwrap_or(ByteRange::WHOLE);
                self.check_range(range, None, RangeUse::Read)
            }
            RangeDemand::AnyLock => self.check_no_lock(),
        }
    }
}

fn check_lease(
    lease: FileLease,
    demand: LeaseDemand,
    presented: Option<LeaseId>,
) -> Result<(), Denial> {
    let file_use = match demand {
        LeaseDemand::None => return Ok(()),
        LeaseDemand::ReadCondition => LeaseUse::Read,
        LeaseDemand::Write => LeaseUse::Write,
    };
    Ok(lease.check(file_use, presented)?)
}
