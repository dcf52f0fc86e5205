//! Delete Blob: which states of the blob it removes.
//!
//! Decides the answers to the header `x-ms-delete-snapshots` with and without a snapshot or
//! version in the URL. The retention policy of the account decides how long a removed state is
//! kept.

use super::denial::BlobDenial;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeleteBlobSnapshots {
    /// The blob and its snapshots.
    Include,
    Only,
}

/// The kind of state that the URL of a Delete Blob names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeletionTarget {
    Base,
    Snapshot,
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
    named: DeletionTarget,
    header: Option<DeleteBlobSnapshots>,
    has_snapshots: bool,
) -> Result<Removal, BlobDenial> {
    match (named, header) {
        (
            DeletionTarget::Snapshot | DeletionTarget::OldVersion | DeletionTarget::CurrentVersion,
            Some(_),
        ) => Err(BlobDenial::DeleteSnapshotsOfSnapshot),
        (DeletionTarget::CurrentVersion, None) => Err(BlobDenial::OperationNotAllowedOnRootBlob),
        (DeletionTarget::Base, None) if has_snapshots => Err(BlobDenial::SnapshotsPresent),
        (DeletionTarget::Base | DeletionTarget::Snapshot | DeletionTarget::OldVersion, None) => {
            Ok(Removal::Named)
        }
        (DeletionTarget::Base, Some(DeleteBlobSnapshots::Only)) => Ok(Removal::Snapshots),
        (DeletionTarget::Base, Some(DeleteBlobSnapshots::Include)) => Ok(Removal::All),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_follow_the_table() {
        let of_snapshot = Err(BlobDenial::DeleteSnapshotsOfSnapshot);
        let root = Err(BlobDenial::OperationNotAllowedOnRootBlob);
        let include = Some(DeleteBlobSnapshots::Include);
        let only = Some(DeleteBlobSnapshots::Only);
        for (named, header, has_snapshots, answer) in [
            (DeletionTarget::Base, None, false, Ok(Removal::Named)),
            (DeletionTarget::Base, None, true, Err(BlobDenial::SnapshotsPresent)),
            (DeletionTarget::Base, include, false, Ok(Removal::All)),
            (DeletionTarget::Base, include, true, Ok(Removal::All)),
            (DeletionTarget::Base, only, false, Ok(Removal::Snapshots)),
            (DeletionTarget::Base, only, true, Ok(Removal::Snapshots)),
            (DeletionTarget::Snapshot, None, true, Ok(Removal::Named)),
            (DeletionTarget::Snapshot, include, true, of_snapshot.clone()),
            (DeletionTarget::Snapshot, only, true, of_snapshot.clone()),
            (DeletionTarget::OldVersion, None, true, Ok(Removal::Named)),
            (DeletionTarget::OldVersion, include, true, of_snapshot.clone()),
            (DeletionTarget::OldVersion, only, true, of_snapshot.clone()),
            (DeletionTarget::CurrentVersion, None, false, root.clone()),
            (DeletionTarget::CurrentVersion, None, true, root),
            (DeletionTarget::CurrentVersion, include, true, of_snapshot),
        ] {
            let shown = format!("{named:?} {header:?} {has_snapshots}");
            assert_eq!(plan(named, header, has_snapshots), answer, "{shown}");
        }
    }
}
