//! Thousands of random steps, recorded: opens and closes of one file, and locks, unlocks, reads
//! and writes through four handles. No departure is allowed here.

use super::oracle::{groups, play};
use super::player::FreshShare;

/// What a replay met.
#[derive(Debug, PartialEq, Eq, Default)]
struct Met {
    traces: usize,
    steps: usize,
    answers: usize,
    refusals: usize,
}

fn replay(name: &str) -> Met {
    let fresh = FreshShare::new();
    let mut met = Met::default();
    for group in groups(name) {
        assert!(group.trace, "{name} has lines without `seq`");
        met.traces += 1;
        for (number, (step, ours)) in (1..).zip(group.steps.iter().zip(play(&fresh, &group))) {
            met.steps += 1;
            let Some(recorded) = &step.status else { continue };
            met.answers += 1;
            met.refusals += usize::from(recorded != "STATUS_SUCCESS");
            let place = format!("{name}, seq {}, step {number}: {:?}", group.id, step.op);
            assert_eq!(ours.status, recorded, "{place}: {ours:?}");
        }
    }
    met
}

#[test]
fn random_opens_and_closes_are_answered_as_recorded() {
    let met = replay("sharemode_trace");
    assert_eq!(met, Met { traces: 150, steps: 3600, answers: 3600, refusals: 830 });
}

#[test]
fn random_locks_reads_and_writes_are_answered_as_recorded() {
    let met = replay("lock_trace");
    assert_eq!(met, Met { traces: 60, steps: 2499, answers: 2400, refusals: 998 });
}
