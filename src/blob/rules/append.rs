//! Append blobs: whether a block may be appended.
//!
//! Decides position and size conditions, the count of blocks and the seal. Leases and the general
//! conditions are checked before, in [`super::admit`].

use super::blocks::COMMITTED_MAX;
use super::denial::BlobDenial;

/// Most bytes of one append.
pub const APPEND_MAX: u64 = 100 * 1024 * 1024;

/// The two conditions of appends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AppendConditions {
    /// `x-ms-blob-condition-appendpos`: the length before the append.
    pub position: Option<u64>,
    /// `x-ms-blob-condition-maxsize`: the greatest length after the append.
    pub max_size: Option<u64>,
}

/// The append blob that is to grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appendable {
    pub length: u64,
    /// How many blocks it has.
    pub blocks: usize,
    /// Whether it is sealed.
    pub sealed: bool,
}

impl Appendable {
    /// Admits an append of `added` bytes, or refuses it.
    pub fn check_append(self, added: u64, conditions: AppendConditions) -> Result<(), BlobDenial> {
        self.check_position(conditions)?;
        let after = self.length.saturating_add(added);
        if conditions.max_size.is_some_and(|max| after > max) {
            return Err(BlobDenial::MaxBlobSizeConditionNotMet);
        }
        if self.sealed {
            return Err(BlobDenial::BlobIsSealed);
        }
        if self.blocks >= COMMITTED_MAX {
            return Err(BlobDenial::BlockCountExceedsLimit);
        }
        Ok(())
    }

    /// Admits a seal, or refuses it. Sealing again is no error.
    pub fn check_seal(self, conditions: AppendConditions) -> Result<(), BlobDenial> {
        self.check_position(conditions)
    }

    fn check_position(self, conditions: AppendConditions) -> Result<(), BlobDenial> {
        if conditions.position.is_some_and(|position| position != self.length) {
            return Err(BlobDenial::AppendPositionConditionNotMet);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOB: Appendable = Appendable { length: 10, blocks: 2, sealed: false };

    fn with(position: Option<u64>, max_size: Option<u64>) -> AppendConditions {
        AppendConditions { position, max_size }
    }

    #[test]
    fn position_and_size_follow_the_table() {
        let position = Err(BlobDenial::AppendPositionConditionNotMet);
        let size = Err(BlobDenial::MaxBlobSizeConditionNotMet);
        for (conditions, answer) in [
            (with(None, None), Ok(())),
            (with(Some(10), None), Ok(())),
            (with(Some(9), None), position.clone()),
            (with(Some(11), None), position.clone()),
            (with(None, Some(15)), Ok(())),
            (with(None, Some(14)), size.clone()),
            (with(Some(10), Some(15)), Ok(())),
            (with(Some(10), Some(14)), size),
            (with(Some(0), Some(14)), position),
        ] {
            assert_eq!(BLOB.check_append(5, conditions), answer, "{conditions:?}");
        }
    }

    #[test]
    fn a_sealed_blob_takes_no_more_and_may_be_sealed_again() {
        let sealed = Appendable { sealed: true, ..BLOB };
        assert_eq!(sealed.check_append(1, with(None, None)), Err(BlobDenial::BlobIsSealed));
        assert_eq!(sealed.check_seal(with(None, None)), Ok(()));
        assert_eq!(sealed.check_seal(with(Some(10), None)), Ok(()));
        let wrong = sealed.check_seal(with(Some(9), None));
        assert_eq!(wrong, Err(BlobDenial::AppendPositionConditionNotMet));
    }

    #[test]
    fn an_append_blob_has_at_most_50_000_blocks() {
        let last = Appendable { blocks: COMMITTED_MAX - 1, ..BLOB };
        assert_eq!(last.check_append(1, with(None, None)), Ok(()));
        let full = Appendable { blocks: COMMITTED_MAX, ..BLOB };
        let refused = full.check_append(1, with(None, None));
        assert_eq!(refused, Err(BlobDenial::BlockCountExceedsLimit));
    }
}
