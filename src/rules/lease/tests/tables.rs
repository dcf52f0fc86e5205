//! The state tables of leases, written out as data, and tried cell by cell.
//!
//! A cell is `ok`, the state that follows, or a refusal by a short name. `missing`, `mismatch`,
//! `absent`, `lost` and `finite` are failed conditions (412 in REST), the others conflicts (409).

use super::super::{
    FileLease, LeaseClass, LeaseDenial, LeaseId, LeaseKind, LeaseOn, LeaseUse, OnBlob, OnContainer,
    OnShare, ShareLease, ShareUse, TimedLease,
};
use super::{A, B, C, X, at};
use crate::rules::Timestamp;
use crate::rules::lease::LeaseState;

const FILE_USES: &str = "
use      | Available | Leased(A) | Broken(A)
write A  | absent    | ok        | lost
write B  | absent    | mismatch  | absent
write -  | ok        | missing   | ok, Available
read A   | absent    | ok        | lost
read B   | absent    | mismatch  | absent
read -   | ok        | ok        | ok
";

const FILE_ACTIONS: &str = "
action     | Available    | Leased(A)      | Broken(A)
acquire -  | Leased(X)    | taken          | Leased(X)
acquire A  | Leased(A)    | Leased(A)      | Leased(A)
acquire B  | Leased(B)    | taken          | Leased(B)
break      | no lease     | Broken(A)      | Broken(A)
change A B | no lease     | Leased(B)      | no lease
change B A | no lease     | Leased(A)      | no lease
change B C | no lease     | wrong ID       | no lease
release A  | no lease     | Available      | Available
release B  | no lease     | wrong ID       | wrong ID
";

const SHARE_USES: &str = "
use      | Available | Leased(A) | Breaking(A) | Broken(A) | Expired(A)
delete A | absent    | ok        | ok          | lost      | lost
delete B | absent    | mismatch  | mismatch    | absent    | absent
delete - | ok        | missing   | missing     | ok        | ok
other A  | absent    | ok        | ok          | lost      | lost
other B  | absent    | mismatch  | mismatch    | absent    | absent
other -  | ok        | ok        | ok          | ok        | ok
";

const SHARE_ACTIONS: &str = "
action     | Available | Leased(A)   | Breaking(A)        | Broken(A)  | Expired(A)
acquire -  | Leased(X) | taken       | taken              | Leased(X)  | Leased(X)
acquire A  | Leased(A) | Leased(A)   | breaking, acquired | Leased(A)  | Leased(A)
acquire B  | Leased(B) | taken       | taken              | Leased(B)  | Leased(B)
break 0    | no lease  | Broken(A)   | Broken(A)          | Broken(A)  | Broken(A)
break 5    | no lease  | Breaking(A) | Breaking(A)        | Broken(A)  | Broken(A)
change A B | no lease  | Leased(B)   | breaking, changed  | no lease   | no lease
change B A | no lease  | Leased(A)   | breaking, changed  | no lease   | no lease
change B C | no lease  | wrong ID    | wrong ID           | no lease   | no lease
renew A    | no lease  | Leased(A)   | broken, renewed    | broken, renewed | Leased(A)
renew B    | no lease  | wrong ID    | wrong ID           | wrong ID   | wrong ID
release A  | no lease  | Available   | Available          | Available  | Available
release B  | no lease  | wrong ID    | wrong ID           | wrong ID   | wrong ID
time       | Available | Expired(A)  | Broken(A)          | Broken(A)  | Expired(A)
";

/// Where blobs and containers differ from shares: renew and release where no ID is known, and a
/// change that proposes the ID of a breaking lease.
const BLOB_ACTIONS: &str = "
action     | Available | Leased(A)   | Breaking(A)        | Broken(A)  | Expired(A)
acquire -  | Leased(X) | taken       | taken              | Leased(X)  | Leased(X)
acquire A  | Leased(A) | Leased(A)   | breaking, acquired | Leased(A)  | Leased(A)
acquire B  | Leased(B) | taken       | taken              | Leased(B)  | Leased(B)
break -    | no lease  | Breaking(A) | Breaking(A)        | Broken(A)  | Broken(A)
break 0    | no lease  | Broken(A)   | Broken(A)          | Broken(A)  | Broken(A)
break 5    | no lease  | Breaking(A) | Breaking(A)        | Broken(A)  | Broken(A)
change A B | no lease  | Leased(B)   | breaking, changed  | no lease   | no lease
change B A | no lease  | Leased(A)   | wrong ID           | no lease   | no lease
change B C | no lease  | wrong ID    | wrong ID           | no lease   | no lease
renew A    | wrong ID  | Leased(A)   | broken, renewed    | broken, renewed | Leased(A)
renew B    | wrong ID  | wrong ID    | wrong ID           | wrong ID   | wrong ID
release A  | wrong ID  | Available   | Available          | Available  | Available
release B  | wrong ID  | wrong ID    | wrong ID           | wrong ID   | wrong ID
time       | Available | Expired(A)  | Broken(A)          | Broken(A)  | Expired(A)
";

/// `Infinite(A)` is Leased(A) with an infinite lease.
const BLOB_USES: &str = "
use       | Available | Leased(A) | Infinite(A) | Breaking(A) | Broken(A)     | Expired(A)
ignored - | ok        | ok        | ok          | ok          | ok            | ok
ignored A | ok        | ok        | ok          | ok          | ok            | ok
ignored B | ok        | ok        | ok          | ok          | ok            | ok
action -  | ok        | ok        | ok          | ok          | ok            | ok
action B  | ok        | ok        | ok          | ok          | ok            | ok
read -    | ok        | ok        | ok          | ok          | ok            | ok
read A    | absent    | ok        | ok          | ok          | lost          | lost
read B    | absent    | mismatch  | mismatch    | mismatch    | absent        | absent
write -   | ok        | missing   | missing     | missing     | ok, Available | ok, Available
write A   | absent    | ok        | ok          | ok          | lost          | lost
write B   | absent    | mismatch  | mismatch    | mismatch    | absent        | absent
delete -  | ok        | missing   | missing     | missing     | ok            | ok
delete A  | absent    | ok        | ok          | ok          | lost          | lost
delete B  | absent    | mismatch  | mismatch    | mismatch    | absent        | absent
target -  | ok        | missing   | missing     | missing     | ok, Available | ok, Available
target A  | absent    | finite    | ok          | finite      | lost          | lost
target B  | absent    | mismatch  | mismatch    | mismatch    | absent        | absent
abort -   | ok        | ok        | missing     | ok          | ok            | ok
abort A   | absent    | ok        | ok          | ok          | lost          | lost
abort B   | absent    | mismatch  | mismatch    | mismatch    | absent        | absent
";

/// Calls `each` with row name, column name and cell; returns how many cells there were.
fn for_each_cell(table: &str, mut each: impl FnMut(&str, &str, &str)) -> usize {
    let mut lines = table.trim().lines().map(|line| line.split('|').map(str::trim));
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
        D::LeaseIdMismatchWithFileOperation if on == LeaseOn::File => "mismatch",
        D::LeaseIdMismatchWithShareOperation if on == LeaseOn::Share => "mismatch",
        D::LeaseNotPresentWithFileOperation if on == LeaseOn::File => "absent",
        D::LeaseNotPresentWithShareOperation if on == LeaseOn::Share => "absent",
        D::LeaseIdMismatchWithBlobOperation if on == LeaseOn::Blob => "mismatch",
        D::LeaseIdMismatchWithContainerOperation if on == LeaseOn::Container => "mismatch",
        D::LeaseNotPresentWithBlobOperation if on == LeaseOn::Blob => "absent",
        D::LeaseNotPresentWithContainerOperation if on == LeaseOn::Container => "absent",
        D::InfiniteLeaseDurationRequired => "finite",
        D::LeaseLost(named) if named == on => "lost",
        D::LeaseAlreadyPresent => "taken",
        D::LeaseIdMismatchWithLeaseOperation(named) if named == on => "wrong ID",
        D::LeaseNotPresentWithLeaseOperation(named) if named == on => "no lease",
        D::LeaseIsBreakingAndCannotBeAcquired => "breaking, acquired",
        D::LeaseIsBreakingAndCannotBeChanged => "breaking, changed",
        D::LeaseIsBrokenAndCannotBeRenewed => "broken, renewed",
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
    let cells = for_each_cell(FILE_USES, |row, state, expected| {
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
    let cells = for_each_cell(FILE_ACTIONS, |row, state, expected| {
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
    let cells = for_each_cell(SHARE_USES, |row, state, expected| {
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

/// Tries every cell of [`BLOB_USES`], writes being followed by `after_write`; returns the count.
fn try_uses<K: LeaseKind + Copy + Default>(forgets: bool) -> usize {
    for_each_cell(BLOB_USES, |row, state, expected| {
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
            Ok(()) if after == state.replace("Infinite", "Leased") => "ok".to_owned(),
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
fn try_actions<K: LeaseKind + Copy + Default + PartialEq + std::fmt::Debug>(table: &str) -> usize {
    let on = K::RULES.on;
    for_each_cell(table, |row, state, expected| {
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
    assert_eq!(try_actions::<OnShare>(SHARE_ACTIONS), 13 * 5);
}

#[test]
fn actions_on_a_blob_lease_follow_the_table() {
    assert_eq!(try_actions::<OnBlob>(BLOB_ACTIONS), 14 * 5);
}

#[test]
fn actions_on_a_container_lease_follow_the_same_table() {
    assert_eq!(try_actions::<OnContainer>(BLOB_ACTIONS), 14 * 5);
}
