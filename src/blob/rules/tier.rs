//! Access tiers: which tier a blob may have, and its way out of the archive.
//!
//! Decides the answers to Set Blob Tier and conditions on the time of the last change. Reads of an
//! archived blob are refused in [`super::admit`]. A tier is kept and shown; it has no effect on
//! cost or speed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::denial::BlobDenial;
use super::state::BlobType;
use crate::rules::Timestamp;
use crate::rules::conditions::{Condition, ConditionFailure, seconds};

/// A tier of block blobs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Tier {
    Hot,
    Cool,
    Cold,
    Archive,
}

/// A word that names no tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoTier {
    /// A tier of premium page blobs, which ordinary accounts do not have.
    Premium,
    /// No tier at all.
    Unknown,
}

impl FromStr for Tier {
    type Err = NoTier;

    fn from_str(text: &str) -> Result<Self, NoTier> {
        const PREMIUM: [&str; 11] =
            ["P4", "P6", "P10", "P15", "P20", "P30", "P40", "P50", "P60", "P70", "P80"];
        match text {
            "Hot" => Ok(Self::Hot),
            "Cool" => Ok(Self::Cool),
            "Cold" => Ok(Self::Cold),
            "Archive" => Ok(Self::Archive),
            _ if PREMIUM.contains(&text) => Err(NoTier::Premium),
            _ => Err(NoTier::Unknown),
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The tier of a blob.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TierRecord {
    /// The tier that was asked for; none is the account's default, Hot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explicit: Option<Tier>,
    /// When Set Blob Tier changed it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Timestamp>,
    /// The way out of the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rehydration: Option<Rehydration>,
}

/// The way out of the archive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rehydration {
    /// The tier that the blob will have.
    pub to: Tier,
    /// When it will have it.
    pub at: Timestamp,
}

/// `x-ms-access-tier-if-*` of Delete Blob: conditions on the time when the tier changed last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TierConditions {
    /// The tier changed after this date.
    pub modified_since: Option<Timestamp>,
    /// The tier did not change after this date.
    pub unmodified_since: Option<Timestamp>,
}

/// The answer of Set Blob Tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TierChange {
    /// The blob has the tier (200).
    Done,
    /// The blob leaves the archive and will have the tier (202).
    Rehydrating,
}

impl TierRecord {
    /// The tier at a moment.
    pub fn tier(&self, now: Timestamp) -> Tier {
        match self.rehydration {
            Some(rehydration) if rehydration.at <= now => rehydration.to,
            _ => self.explicit.unwrap_or(Tier::Hot),
        }
    }

    /// Whether the tier follows from the account's default.
    pub const fn is_inferred(&self) -> bool {
        self.explicit.is_none()
    }

    /// The tier that the blob will have, while it is still archived.
    pub fn pending(&self, now: Timestamp) -> Option<Tier> {
        self.rehydration.filter(|rehydration| rehydration.at > now).map(|pending| pending.to)
    }

    /// Checks conditions on the time of the last change, for a blob that was created at `created`.
    /// A tier that was never set has not changed since the blob was created. Dates have whole
    /// seconds.
    pub fn check(&self, created: Timestamp, conditions: &TierConditions) -> Result<(), BlobDenial> {
        let changed = seconds(self.changed.unwrap_or(created));
        let failed = if conditions.modified_since.is_some_and(|date| changed <= seconds(date)) {
            Condition::ModifiedSince
        } else if conditions.unmodified_since.is_some_and(|date| changed > seconds(date)) {
            Condition::UnmodifiedSince
        } else {
            return Ok(());
        };
        Err(BlobDenial::Condition(ConditionFailure::NotMet(failed)))
    }

    /// Set Blob Tier. A blob leaves the archive at `ready`, at `now` or later.
    pub fn set(
        &mut self,
        kind: BlobType,
        to: Tier,
        now: Timestamp,
        ready: Timestamp,
    ) -> Result<TierChange, BlobDenial> {
        if kind != BlobType::Block {
            return Err(BlobDenial::InvalidBlobType);
        }
        if self.pending(now).is_some_and(|pending| pending != to) {
            return Err(BlobDenial::BlobBeingRehydrated);
        }
        if self.pending(now).is_some() {
            return Ok(TierChange::Rehydrating);
        }
        let archived = self.tier(now) == Tier::Archive;
        self.changed = Some(now);
        if archived && to != Tier::Archive {
            self.explicit = Some(Tier::Archive);
            self.rehydration = Some(Rehydration { to, at: ready });
            return Ok(TierChange::Rehydrating);
        }
        self.explicit = Some(to);
        self.rehydration = None;
        Ok(TierChange::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);
    const LATER: Timestamp = Timestamp(2_000);

    fn set(record: &mut TierRecord, to: Tier) -> Result<TierChange, BlobDenial> {
        record.set(BlobType::Block, to, NOW, LATER)
    }

    #[test]
    fn words_are_tiers_of_block_blobs_or_of_premium_pages_or_nothing() {
        for tier in [Tier::Hot, Tier::Cool, Tier::Cold, Tier::Archive] {
            assert_eq!(tier.to_string().parse(), Ok(tier));
        }
        assert_eq!("P30".parse::<Tier>(), Err(NoTier::Premium));
        for text in ["", "hot", "Warm", "P5"] {
            assert_eq!(text.parse::<Tier>(), Err(NoTier::Unknown), "{text}");
        }
    }

    #[test]
    fn a_tier_is_inferred_until_it_is_set() {
        let mut record = TierRecord::default();
        assert_eq!((record.tier(NOW), record.is_inferred()), (Tier::Hot, true));
        assert_eq!(set(&mut record, Tier::Cool), Ok(TierChange::Done));
        assert_eq!((record.tier(NOW), record.is_inferred()), (Tier::Cool, false));
        assert_eq!(record.changed, Some(NOW));
    }

    #[test]
    fn a_blob_leaves_the_archive_when_its_time_has_come() {
        let mut record = TierRecord::default();
        set(&mut record, Tier::Archive).unwrap();
        assert_eq!(set(&mut record, Tier::Archive), Ok(TierChange::Done), "it is there already");
        assert_eq!(set(&mut record, Tier::Cool), Ok(TierChange::Rehydrating));
        assert_eq!((record.tier(NOW), record.pending(NOW)), (Tier::Archive, Some(Tier::Cool)));
        assert_eq!(set(&mut record, Tier::Cool), Ok(TierChange::Rehydrating), "asked again");
        assert_eq!(set(&mut record, Tier::Hot), Err(BlobDenial::BlobBeingRehydrated));
        assert_eq!((record.tier(LATER), record.pending(LATER)), (Tier::Cool, None));
        let again = record.set(BlobType::Block, Tier::Hot, LATER, LATER);
        assert_eq!(again, Ok(TierChange::Done));
        assert_eq!(record.tier(LATER), Tier::Hot);
    }

    #[test]
    fn conditions_compare_the_last_change_by_whole_seconds() {
        const SECOND: i64 = 1_000_000_000;
        let (created, changed) = (Timestamp(10 * SECOND), Timestamp(20 * SECOND + 7));
        let set = TierRecord { changed: Some(changed), ..TierRecord::default() };
        for (record, moment) in [(TierRecord::default(), created), (set, changed)] {
            for by in [-SECOND, 0, SECOND] {
                let date = Some(Timestamp(moment.0 + by));
                let since = TierConditions { modified_since: date, ..TierConditions::default() };
                assert_eq!(record.check(created, &since).is_ok(), by < 0, "{record:?} {by}");
                let not = TierConditions { unmodified_since: date, ..TierConditions::default() };
                assert_eq!(record.check(created, &not).is_ok(), by >= 0, "{record:?} {by}");
            }
            assert_eq!(record.check(created, &TierConditions::default()), Ok(()));
        }
    }

    #[test]
    fn append_and_page_blobs_have_no_tier_to_set() {
        for kind in [BlobType::Append, BlobType::Page] {
            let answer = TierRecord::default().set(kind, Tier::Cool, NOW, NOW);
            assert_eq!(answer, Err(BlobDenial::InvalidBlobType));
        }
    }
}
