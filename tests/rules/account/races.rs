//! Several threads make and delete one share: it is there as a whole or not at all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use latchfs::file::service::shares::{DeleteShareSnapshots, FileServiceError, ShareChanges};

use super::*;

const THREADS: usize = 4;
const ROUNDS: usize = 25;

/// A refusal that another thread at the same name explains.
fn is_expected(error: &FileServiceError) -> bool {
    matches!(
        error.denial(),
        Some(
            ShareDenial::ShareAlreadyExists
                | ShareDenial::ShareBeingDeleted
                | ShareDenial::ShareNotFound
        )
    )
}

fn race(setup: &Setup) {
    let engine = setup.open();
    let (made, gone) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let count = |counter: &AtomicUsize, answer: Result<(), FileServiceError>| match answer {
        Ok(()) => drop(counter.fetch_add(1, Ordering::Relaxed)),
        Err(error) => assert!(is_expected(&error), "{error:?}"),
    };
    thread::scope(|scope| {
        for turn in 0..THREADS {
            let (engine, made, gone, count) = (&engine, &made, &gone, &count);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    if (turn + round) % 2 == 0 {
                        let changes =
                            ShareChanges { quota_gib: Some(77), ..ShareChanges::default() };
                        let new = NewShare { changes, ..NewShare::default() };
                        count(made, engine.create_share("docs", new).map(drop));
                    } else {
                        let how = DeleteShareSnapshots::None;
                        count(gone, engine.delete_share(&somebody(), &DOCS, how).map(drop));
                    }
                    if let Ok(info) = engine.properties(&DOCS) {
                        assert_eq!(info.properties.quota_gib, 77, "never half a share");
                    }
                }
            });
        }
    });
    let (made, gone) = (made.into_inner(), gone.into_inner());
    let there = engine.share("docs").is_ok();
    assert_eq!(made, gone + usize::from(there));
    assert!(made > 0);
    let hidden = setup.data().join(".latchfs");
    assert_eq!(setup.data().join("docs").is_dir(), there);
    assert_eq!(hidden.join("shares/docs").is_dir(), there);
    let kept = if setup.retention_days.is_some() { gone } else { 0 };
    assert_eq!(fs::read_dir(hidden.join("deleted")).unwrap().count(), kept);
}

#[test]
fn a_share_made_and_deleted_by_several_at_once_is_never_half_there() {
    race(&Setup::new());
}

#[test]
fn the_same_where_deleted_shares_are_gone_at_once() {
    race(&Setup { retention_days: None, ..Setup::new() });
}
