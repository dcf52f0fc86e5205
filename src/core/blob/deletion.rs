//! Delete Blob: which states of the blob it removes.
//!
//! Decides the answers to the header `x-ms-delete-snapshots` with and without a snapshot or
//! version in the URL. The retention policy of the account decides how long a removed state is
//! kept.

use super::denial::BlobDenial;

/// `x-ms-delete-snapshots`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeleteSnapshots {
    /// The blob and its snapshots.
    Include,
    /// The snapshots alone.
    Only,
}

/// The kind of state that the URL of a Delete Blob names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Named {
    /// The blob.
    Base,
    /// A snapshot.
    Snapshot,
    /// An older version.
    OldVersion,
    /// The current version, by its ID.
    CurrentVersion,
}

/// The states that a Delete Blob removes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Removal {
    /// The one state that the URL names: the base, a snapshot or an older version.
    Named,
    /// All snapshots, not the base.
    Snapshots,
    /// The base and all snapshots.
    All,
}

/// Decides which states a Delete Blob removes, or refuses it.
pub const fn plan(
    named: Named,
    header: Option<DeleteSnapshots>,
    has_snapshots: bool,
) -> Result<Removal, BlobDenial> {
    match (named, header) {
        (Named::Snapshot | Named::OldVersion | Named::CurrentVersion, Some(_)) => {
            Err(BlobDenial::DeleteSnapshotsOfSnapshot)
        }
        (Named::CurrentVersion, None) => Err(BlobDenial::OperationNotAllowedOnRootBlob),
        (Named::Base, None) if has_snapshots => Err(BlobDenial::SnapshotsPresent),
        (Named::Base | Named::Snapshot | Named::OldVersion, None) => Ok(Removal::Named),
        (Named::Base, Some(DeleteSnapshots::Only)) => Ok(Removal::Snapshots),
        (Named::Base, Some(DeleteSnapshots::Include)) => Ok(Removal::All),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_follow_the_table() {
        let of_snapshot = Err(BlobDenial::DeleteSnapshotsOfSnapshot);
        let root = Err(BlobDenial::OperationNotAllowedOnRootBlob);
        let include = Some(DeleteSnapshots::Include);
        let only = Some(DeleteSnapshots::Only);
        for (named, header, has_snapshots, answer) in [
            (Named::Base, None, false, Ok(Removal::Named)),
            (Named::Base, None, true, Err(BlobDenial::SnapshotsPresent)),
            (Named::Base, include, false, Ok(Removal::All)),
            (Named::Base, include, true, Ok(Removal::All)),
            (Named::Base, only, false, Ok(Removal::Snapshots)),
            (Named::Base, only, true, Ok(Removal::Snapshots)),
            (Named::Snapshot, None, true, Ok(Removal::Named)),
            (Named::Snapshot, include, true, of_snapshot.clone()),
            (Named::Snapshot, only, true, of_snapshot.clone()),
            (Named::OldVersion, None, true, Ok(Removal::Named)),
            (Named::OldVersion, include, true, of_snapshot.clone()),
            (Named::OldVersion, only, true, of_snapshot.clone()),
            (Named::CurrentVersion, None, false, root.clone()),
            (Named::CurrentVersion, None, true, root),
            (Named::CurrentVersion, include, true, of_snapshot),
        ] {
            let shown = format!("{named:?} {header:?} {has_snapshots}");
            assert_eq!(plan(named, header, has_snapshots), answer, "{shown}");
        }
    }
}
