//! The state tables of leases in `tables.txt`, tried cell by cell and step by step. The tests of
//! the faces try the same tables through HTTP.

use std::fmt::Debug;
use std::time::Duration;

use super::super::{
    FileLease, LeaseClass, LeaseDenial, LeaseId, LeaseKind, LeaseOn, LeaseUse, OnBlob, OnContainer,
    OnShare, ShareLease, ShareUse, TimedLease,
};
use super::{A, B, C, X, at, at_ms};
use crate::rules::Timestamp;
use crate::rules::lease::LeaseState;

/// The lines of the table that stands below a heading.
fn table(heading: &str) -> Vec<&'static str> {
    let all = include_str!("tables.txt");
    let below = all.split("\n## ").find_map(|part| part.strip_prefix(heading)).expect("the table");
    below.lines().filter(|line| line.contains(" | ")).collect()
}

/// Calls `each` with row name, column name and cell; returns how many cells there were.
fn for_each_cell(heading: &str, mut each: impl FnMut(&str, &str, &str)) -> usize {
    let mut lines = table(heading).into_iter().map(|line| line.split('|').map(str::trim));
    let columns: Vec<_> = lines.next().unwrap().skip(1).collect();
    let mut count = 0;
    for mut cells in lines {
        let row = cells.next().unwrap();
        let cells: Vec<_> = cells.collect();
        assert_eq!(cells.len(), columns.len(), "{row}");
        for (column, cell) in columns.iter().zip(cells) {
            each(row, column, cell);
            count += 1;
        }
    }
    count
}

fn refusal(denial: LeaseDenial, on: LeaseOn) -> &'static str {
    use LeaseDenial as D;
    match denial {
        D::LeaseIdMissing(named) if named == on => "missing",
        D::LeaseIdMismatchWithOperation(named) if named == on => "mismatch",
        D::LeaseNotPresentWithOperation(named) if named == on => "absent",
        D::InfiniteLeaseDurationRequired => "finite",
        D::LeaseLost(named) if named == on => "lost",
        D::LeaseAlreadyPresent => "taken",
        D::LeaseIdMismatchWithLeaseOperation(named) if named == on => "wrong ID",
        D::LeaseNotPresentWithLeaseOperation(named) if named == on => "no lease",
        D::LeaseIsBreakingAndCannotBeAcquired => "breaking, acquired",
        D::LeaseIsBreakingAndCannotBeChanged => "breaking, changed",
        D::LeaseIsBrokenAndCannotBeRenewed => "broken, renewed",
        D::InvalidDuration(named) if named == on => "bad duration",
        D::MissingDuration => "no duration",
        D::InvalidBreakPeriod => "bad period",
        other => panic!("{other:?} about a {on}"),
    }
}

fn named(letter: &str) -> Option<LeaseId> {
    match letter {
        "A" => Some(A),
        "B" => Some(B),
        "C" => Some(C),
        "-" => None,
        other => panic!("no ID {other}"),
    }
}

fn letter(id: LeaseId) -> char {
    let known = [(A, 'A'), (B, 'B'), (C, 'C'), (X, 'X')];
    known.iter().find(|(known, _)| *known == id).unwrap().1
}

fn words(row: &str) -> Vec<&str> {
    row.split_whitespace().collect()
}

fn file_in(state: &str) -> FileLease {
    match state {
        "Available" => FileLease::Available,
        "Leased(A)" => FileLease::Leased(A),
        "Broken(A)" => FileLease::Broken(A),
        other => panic!("no state {other}"),
    }
}

fn show_file(lease: FileLease) -> String {
    match lease {
        FileLease::Available => "Available".into(),
        FileLease::Leased(id) => format!("Leased({})", letter(id)),
        FileLease::Broken(id) => format!("Broken({})", letter(id)),
    }
}

#[test]
fn uses_of_a_file_follow_the_table() {
    let cells = for_each_cell("uses of a file", |row, state, expected| {
        let mut lease = file_in(state);
        let words = words(row);
        let file_use = if words[0] == "write" { LeaseUse::Write } else { LeaseUse::Read };
        let admitted = lease.check(file_use, named(words[1]));
        if admitted.is_ok() && file_use == LeaseUse::Write {
            lease.after_write();
        }
        let answer = match admitted {
            Err(denial) => refusal(denial, LeaseOn::File).to_owned(),
            Ok(()) if show_file(lease) == state => "ok".to_owned(),
            Ok(()) => format!("ok, {}", show_file(lease)),
        };
        assert_eq!(answer, expected, "{row} when {state}");
    });
    assert_eq!(cells, 6 * 3);
}

#[test]
fn actions_on_a_file_lease_follow_the_table() {
    let cells = for_each_cell("actions on a file lease", |row, state, expected| {
        let before = file_in(state);
        let mut lease = before;
        let answer = match *words(row) {
            ["acquire", id] => lease.acquire(Some(-1), named(id), X).map(|_| ()),
            ["break"] => lease.break_now(),
            ["change", from, to] => lease
                .change(named(from).unwrap(), named(to).unwrap())
                .map(|id| assert_eq!(Some(id), named(to))),
            ["release", id] => lease.release(named(id).unwrap()),
            ref other => panic!("no action {other:?}"),
        };
        match answer {
            Ok(()) => assert_eq!(show_file(lease), expected, "{row} when {state}"),
            Err(denial) => {
                assert_eq!(refusal(denial, LeaseOn::File), expected, "{row} when {state}");
                assert_eq!(lease, before, "a refusal changed the lease: {row} when {state}");
            }
        }
    });
    assert_eq!(cells, 9 * 3);
}

/// The moment at which the tables of timed leases are asked.
const NOW: i64 = 30;

fn timed_in<K: LeaseKind + Default>(state: &str) -> TimedLease<K> {
    let mut lease = TimedLease::<K>::default();
    let duration = match state {
        "Infinite(A)" => -1,
        "Expired(A)" => 30,
        _ => 60,
    };
    if state != "Available" {
        lease.acquire(Some(duration), Some(A), X, at(0)).unwrap();
    }
    match state {
        "Breaking(A)" => assert_eq!(lease.break_within(Some(20), at(20)), Ok(20)),
        "Broken(A)" => assert_eq!(lease.break_within(Some(0), at(20)), Ok(0)),
        _ => {}
    }
    assert_eq!(show(&lease, at(NOW)), state.replace("Infinite", "Leased"));
    lease
}

fn show<K: LeaseKind>(lease: &TimedLease<K>, now: Timestamp) -> String {
    let state = match lease.state(now) {
        LeaseState::Available => {
            assert_eq!(lease.id(), None);
            return "Available".into();
        }
        LeaseState::Leased => "Leased",
        LeaseState::Breaking => "Breaking",
        LeaseState::Broken => "Broken",
        LeaseState::Expired => "Expired",
    };
    format!("{state}({})", letter(lease.id().unwrap()))
}

#[test]
fn uses_of_a_share_follow_the_table() {
    let cells = for_each_cell("uses of a share", |row, state, expected| {
        let lease: ShareLease = timed_in(state);
        let words = words(row);
        let share_use = if words[0] == "delete" { ShareUse::Delete } else { ShareUse::Other };
        let answer = match lease.check(share_use, named(words[1]), at(NOW)) {
            Err(denial) => refusal(denial, LeaseOn::Share),
            Ok(()) => "ok",
        };
        assert_eq!(answer, expected, "{row} when {state}");
    });
    assert_eq!(cells, 6 * 5);
}

fn class(word: &str) -> LeaseClass {
    match word {
        "ignored" => LeaseClass::Ignored,
        "action" => LeaseClass::Action,
        "read" => LeaseClass::Read,
        "write" => LeaseClass::Write,
        "delete" => LeaseClass::Delete,
        "target" => LeaseClass::CopyTarget,
        "abort" => LeaseClass::AbortCopy,
        other => panic!("no class {other}"),
    }
}

/// Tries every use of a blob, a write being followed by `after_write`; returns the count.
fn try_uses<K: LeaseKind + Copy + Default + PartialEq>(forgets: bool) -> usize {
    for_each_cell("uses of a blob", |row, state, expected| {
        let mut lease: TimedLease<K> = timed_in(state);
        let words = words(row);
        let class = class(words[0]);
        let admitted = lease.check(class, named(words[1]), at(NOW));
        if admitted.is_ok() && matches!(class, LeaseClass::Write | LeaseClass::CopyTarget) {
            lease.after_write(at(NOW));
        }
        let after = show(&lease, at(NOW));
        let answer = match admitted {
            Err(denial) => refusal(denial, K::RULES.on).to_owned(),
            Ok(()) if lease == timed_in(state) => "ok".to_owned(),
            Ok(()) => format!("ok, {after}"),
        };
        let expected = if forgets { expected } else { expected.trim_end_matches(", Available") };
        assert_eq!(answer, expected, "{row} when {state}");
    })
}

#[test]
fn uses_of_a_blob_follow_the_table() {
    assert_eq!(try_uses::<OnBlob>(true), 20 * 6);
}

#[test]
fn uses_of_a_container_follow_the_table_and_never_forget_the_id() {
    assert_eq!(try_uses::<OnContainer>(false), 20 * 6);
}

/// Tries every cell of a table of actions; returns the count.
fn try_actions<K: LeaseKind + Copy + Default + PartialEq + Debug>(heading: &str) -> usize {
    let on = K::RULES.on;
    for_each_cell(heading, |row, state, expected| {
        let before: TimedLease<K> = timed_in(state);
        let mut lease = before;
        let mut now = at(NOW);
        let answer = match *words(row) {
            ["acquire", id] => lease.acquire(Some(15), named(id), X, now).map(|_| ()),
            ["break", period] => lease.break_within(period.parse().ok(), now).map(|_| ()),
            ["change", from, to] => lease
                .change(named(from).unwrap(), named(to).unwrap(), now)
                .map(|id| assert_eq!(Some(id), named(to))),
            ["renew", id] => lease.renew(named(id).unwrap(), now),
            ["release", id] => lease.release(named(id).unwrap()),
            ["time"] => {
                now = at(NOW + 60);
                Ok(())
            }
            ref other => panic!("no action {other:?}"),
        };
        match answer {
            Ok(()) => assert_eq!(show(&lease, now), expected, "{row} when {state}"),
            Err(denial) => {
                assert_eq!(refusal(denial, on), expected, "{row} when {state}");
                assert_eq!(lease, before, "a refusal changed the lease: {row} when {state}");
            }
        }
    })
}

#[test]
fn actions_on_a_share_lease_follow_the_table() {
    assert_eq!(try_actions::<OnShare>("actions on a share"), 13 * 5);
}

#[test]
fn actions_on_a_blob_lease_follow_the_table() {
    assert_eq!(try_actions::<OnBlob>("actions on a blob"), 14 * 5);
}

#[test]
fn actions_on_a_container_lease_follow_the_same_table() {
    assert_eq!(try_actions::<OnContainer>("actions on a blob"), 14 * 5);
}

/// Takes one step of a walk at that moment; what it answers, in the words of the table.
fn step<K: LeaseKind + Copy + Default>(
    lease: &mut TimedLease<K>,
    step: &[&str],
    now: Timestamp,
) -> String {
    let answer = match *step {
        ["acquire", seconds, id] => {
            lease.acquire(seconds.parse().ok(), named(id), X, now).map(|_| String::new())
        }
        ["renew", id] => lease.renew(named(id).unwrap(), now).map(|()| String::new()),
        ["change", from, to] => {
            lease.change(named(from).unwrap(), named(to).unwrap(), now).map(|_| String::new())
        }
        ["release", id] => lease.release(named(id).unwrap()).map(|()| String::new()),
        ["break", period] => {
            lease.break_within(period.parse().ok(), now).map(|left| left.to_string())
        }
        ["lasts", shown] => {
            let lasts = lease.duration(now).map_or("-".to_owned(), |lasts| lasts.to_string());
            assert_eq!(lasts, shown);
            Ok(String::new())
        }
        [state] => {
            assert_eq!(show(lease, now), state);
            Ok(String::new())
        }
        ref other => panic!("no step {other:?}"),
    };
    answer.unwrap_or_else(|denial| refusal(denial, K::RULES.on).to_owned())
}

fn try_walks<K: LeaseKind + Copy + Default>() -> usize {
    let rows = table("walks of a timed lease");
    for row in &rows[1..] {
        let (what, steps) = row.split_once('|').unwrap();
        let (mut lease, mut millis) = (TimedLease::<K>::default(), 0);
        for text in steps.split(';').map(str::trim) {
            if let Some(seconds) = text.strip_prefix('+') {
                let passed = Duration::from_secs_f64(seconds.parse().unwrap());
                millis += i64::try_from(passed.as_millis()).unwrap();
                continue;
            }
            let (asked, expected) = text.split_once(" -> ").unwrap_or((text, ""));
            let answer = step(&mut lease, &words(asked), at_ms(millis));
            assert_eq!(answer, expected, "{what}: {text}");
        }
    }
    rows.len() - 1
}

#[test]
fn every_timed_lease_walks_as_the_table_says() {
    assert_eq!(try_walks::<OnShare>(), 40);
    assert_eq!(try_walks::<OnBlob>(), 40);
    assert_eq!(try_walks::<OnContainer>(), 40);
}
