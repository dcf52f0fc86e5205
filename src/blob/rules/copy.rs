//! The record of a copy to a blob: its progress, its end, and how it is aborted.
//!
//! Decides what Abort Copy answers and which tiers a source may have. Conditions of copies are
//! decided in [`crate::rules::conditions::copy`]; the engine moves the bytes.

use serde::{Deserialize, Serialize};

use super::denial::BlobDenial;
use super::tier::{Tier, TierRecord};
use crate::rules::conditions::copy::CopyKind;
use crate::rules::copy_status::CopyStatus;
use crate::rules::{Etag, Timestamp};

/// The last copy to a blob. Any write but Put Block, Put Page and lease actions removes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CopyRecord {
    /// `x-ms-copy-id`, a GUID.
    pub id: String,
    /// The source's URL, without the secret part of its query.
    pub source: String,
    /// Whether it is done.
    pub status: CopyStatus,
    /// Bytes copied so far.
    pub done: u64,
    pub total: u64,
    pub completed: Option<Timestamp>,
    pub description: Option<String>,
    /// How a copy that is held back ends by itself; `None` if it ends with its last byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldCopy>,
}

/// The end of a copy that is held back. It is fixed when the copy begins, so that the state of the
/// blob at any moment follows from its record, after a restart too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HeldCopy {
    pub due: Timestamp,
    /// The `ETag` of the blob from then on.
    pub etag: Etag,
    /// Committed blocks of the blob from then on.
    pub blocks: u32,
}

impl CopyRecord {
    /// A copy that was done before its answer.
    pub fn done(id: String, source: String, total: u64, now: Timestamp) -> Self {
        let completed = Some(now);
        let status = CopyStatus::Success;
        Self { done: total, status, completed, ..Self::pending(id, source, total) }
    }

    /// A copy that has begun.
    pub const fn pending(id: String, source: String, total: u64) -> Self {
        let status = CopyStatus::Pending;
        Self { id, source, status, done: 0, total, completed: None, description: None, held: None }
    }

    /// The end of a copy that was held back and is over at `now`.
    pub fn ended(&self, now: Timestamp) -> Option<HeldCopy> {
        self.held.filter(|held| self.status == CopyStatus::Pending && held.due <= now)
    }

    /// `x-ms-copy-progress`.
    pub fn progress(&self) -> String {
        format!("{}/{}", self.done, self.total)
    }

    /// Ends the copy by Abort Copy.
    pub fn abort(&mut self, now: Timestamp) {
        self.status = CopyStatus::Aborted;
        self.done = 0;
        self.completed = Some(now);
    }

    /// Ends the copy by success.
    pub fn finish(&mut self, now: Timestamp) {
        self.status = CopyStatus::Success;
        self.done = self.total;
        self.completed = Some(now);
    }

    /// Ends the copy by failure.
    pub fn fail(&mut self, why: String, now: Timestamp) {
        self.status = CopyStatus::Failed;
        self.description = Some(why);
        self.completed = Some(now);
    }
}

/// Admits a source by its tier, or refuses it. The content of an archived blob cannot be read; Copy
/// Blob to an online tier (`to`) is the one copy that takes it out of the archive.
pub fn check_source_tier(
    kind: CopyKind,
    source: &TierRecord,
    to: Option<Tier>,
    now: Timestamp,
) -> Result<(), BlobDenial> {
    let online = kind == CopyKind::CopyBlob && to.is_some_and(|tier| tier != Tier::Archive);
    if source.tier(now) == Tier::Archive && !online {
        return Err(BlobDenial::BlobArchived);
    }
    Ok(())
}

/// Admits Abort Copy of the copy `id`, or refuses it. `copy` is the blob's last copy.
pub fn check_abort(copy: Option<&CopyRecord>, id: &str) -> Result<(), BlobDenial> {
    match copy {
        Some(copy) if copy.status == CopyStatus::Pending => {
            if copy.id.eq_ignore_ascii_case(id) {
                Ok(())
            } else {
                Err(BlobDenial::CopyIdMismatch)
            }
        }
        _ => Err(BlobDenial::NoPendingCopyOperation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pending_copy_of_that_id_may_be_aborted() {
        let copy = |status| {
            let mut copy = CopyRecord::pending("a1".into(), "http://source".into(), 10);
            copy.status = status;
            copy
        };
        let pending = copy(CopyStatus::Pending);
        assert_eq!(check_abort(Some(&pending), "A1"), Ok(()));
        assert_eq!(check_abort(Some(&pending), "b2"), Err(BlobDenial::CopyIdMismatch));
        for status in [CopyStatus::Success, CopyStatus::Aborted, CopyStatus::Failed] {
            for id in ["a1", "b2"] {
                let answer = check_abort(Some(&copy(status)), id);
                assert_eq!(answer, Err(BlobDenial::NoPendingCopyOperation), "{status} {id}");
            }
        }
        assert_eq!(check_abort(None, "a1"), Err(BlobDenial::NoPendingCopyOperation));
    }

    #[test]
    fn an_archived_source_is_copied_by_copy_blob_to_an_online_tier_alone() {
        const KINDS: [CopyKind; 4] = [
            CopyKind::CopyBlob,
            CopyKind::CopyBlobFromUrl,
            CopyKind::PutBlobFromUrl,
            CopyKind::PartFromUrl,
        ];
        let archived = TierRecord { explicit: Some(Tier::Archive), ..TierRecord::default() };
        let now = Timestamp(1);
        for kind in KINDS {
            for to in [None, Some(Tier::Archive), Some(Tier::Cool)] {
                let online = kind == CopyKind::CopyBlob && to == Some(Tier::Cool);
                let expected = if online { Ok(()) } else { Err(BlobDenial::BlobArchived) };
                assert_eq!(
                    check_source_tier(kind, &archived, to, now),
                    expected,
                    "{kind:?} {to:?}"
                );
                assert_eq!(check_source_tier(kind, &TierRecord::default(), to, now), Ok(()));
            }
        }
    }

    #[test]
    fn progress_is_shown_as_done_of_total() {
        let mut copy = CopyRecord::pending("a1".into(), "s".into(), 10);
        assert_eq!(copy.progress(), "0/10");
        copy.finish(Timestamp(1));
        assert_eq!((copy.progress(), copy.completed), ("10/10".to_owned(), Some(Timestamp(1))));
        let mut copy = CopyRecord::pending("a1".into(), "s".into(), 10);
        copy.done = 4;
        copy.abort(Timestamp(2));
        assert_eq!((copy.progress(), copy.status), ("0/10".to_owned(), CopyStatus::Aborted));
        let done = CopyRecord::done("a1".into(), "s".into(), 7, Timestamp(3));
        assert_eq!((done.progress(), done.status), ("7/7".to_owned(), CopyStatus::Success));
    }
}
