//! Every pair of opens: 64 (access, share) pairs held, against 64 for a second open, on a file and
//! on a directory; every single right; every disposition.

use std::collections::BTreeMap;

use super::departures::RULES;
use super::oracle::{Opening, Stage, rows};

const SUCCESS: &str = "STATUS_SUCCESS";
const VIOLATION: &str = "STATUS_SHARING_VIOLATION";

/// Rights that the recording user was refused by the server's permissions, which say nothing of
/// share modes.
const NOT_GRANTED_TO_THE_RECORDER: [&str; 3] = ["DELETE_CHILD", "WRITE_OWNER", "GENERIC_ALL"];

fn opening<'a>(conn: &'a str, access: &'a str, share: &'a str) -> Opening<'a> {
    Opening { conn, access, share, disp: "OPEN" }
}

/// Every row of a table of pairs, answer by answer; both opens by the connections given.
fn replay_pairs(name: &str, stage: &Stage, conns: [&str; 2]) {
    let rows = rows(name, ["access1", "share1", "access2", "share2", "status2"]);
    assert_eq!(rows.len(), 8 * 8 * 8 * 8);
    let mut count = BTreeMap::<&str, usize>::new();
    for [access1, share1, access2, share2, recorded] in &rows {
        let first = opening(conns[0], access1, share1);
        let second = opening(conns[1], access2, share2);
        let ours = stage.second(first, second);
        assert_eq!(ours, recorded, "{access1} sharing {share1}, then {access2} sharing {share2}");
        *count.entry(ours).or_default() += 1;
    }
    assert_eq!(count, BTreeMap::from([(SUCCESS, 1321), (VIOLATION, 2775)]));
}

#[test]
fn every_pair_of_opens_of_a_file_is_answered_as_recorded() {
    replay_pairs("sharemode_matrix", &Stage::with_file(), ["A", "B"]);
}

#[test]
fn every_pair_of_opens_of_a_directory_is_answered_as_recorded() {
    replay_pairs("sharemode_matrix_dir", &Stage::with_directory(), ["A", "B"]);
}

#[test]
fn one_connection_conflicts_with_itself_as_two_do() {
    replay_pairs("sharemode_matrix", &Stage::with_file(), ["A", "A"]);
    replay_pairs("sharemode_matrix_dir", &Stage::with_directory(), ["A", "A"]);
}

#[test]
fn each_right_counts_as_read_write_delete_or_nothing_as_recorded() {
    let stage = Stage::with_file();
    let rows = rows(
        "access_bits",
        [
            "bit",
            "hold_share_none_then_READ",
            "hold_share_none_then_WRITE",
            "hold_share_none_then_DELETE",
            "needs_share_from_holder(none held by R/W/D-sharing holder)",
            "conflicts_when_holder_denies_R",
            "denies_W",
            "denies_D",
            "holder_R_vs_second_share_none",
        ],
    );
    let (refused, probed): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| row[1].starts_with("open failed"));
    let refused: Vec<_> = refused.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(refused, NOT_GRANTED_TO_THE_RECORDER);
    assert_eq!(probed.len(), 16);
    for [right, then_r, then_w, then_d, needs, no_r, no_w, no_d, share_none] in probed {
        let second = |first, second, recorded: &str| {
            let ours = stage.second(first, second);
            assert_eq!(ours, format!("STATUS_{recorded}"), "{right}: {first:?}, {second:?}");
            ours
        };
        for (access, recorded) in [("R", then_r), ("W", then_w), ("D", then_d)] {
            second(opening("A", right, "-"), opening("B", access, "RWD"), recorded);
        }
        let mut denied = String::new();
        for (letter, rest, recorded) in [("R", "WD", no_r), ("W", "RD", no_w), ("D", "RW", no_d)] {
            // The holder needs an access that counts, and the second open shares it.
            let ours = second(opening("A", "R", rest), opening("B", right, "RWD"), recorded);
            denied.push_str(if ours == VIOLATION { letter } else { "" });
        }
        assert_eq!(if denied.is_empty() { "-" } else { &denied }, needs, "{right}");
        second(opening("A", "R", "RWD"), opening("B", right, "-"), share_none);
    }
}

/// The rule of the specification in its own words, on the letters of the tables: nothing of the
/// code under test is asked.
fn violates(access1: &str, share1: &str, access2: &str, share2: &str) -> bool {
    let within = |access: &str, share: &str| access.chars().all(|right| share.contains(right));
    let counts = |access: &str| !access.is_empty();
    counts(access1) && counts(access2) && !(within(access2, share1) && within(access1, share2))
}

/// The access that a disposition implies where the name exists.
fn implied(disposition: &str) -> &'static str {
    match disposition {
        "OPEN" | "OPEN_IF" | "CREATE" => "",
        "OVERWRITE" | "OVERWRITE_IF" => "W",
        "SUPERSEDE" => "WD",
        other => panic!("no disposition: {other}"),
    }
}

#[test]
fn every_disposition_against_every_open_follows_the_recording_or_the_stricter_rule() {
    let stage = Stage::with_file();
    let rows = rows(
        "disposition_matrix",
        ["access1", "share1", "disposition2", "access2", "share2", "status2"],
    );
    assert_eq!(rows.len(), 64 * 6 * 4 * 4);
    let mut departed = BTreeMap::<&str, usize>::new();
    for [access1, share1, disp, access2, share2, recorded] in &rows {
        let letters = |set: &str| set.replace('-', "");
        let checked = letters(access2) + implied(disp);
        let refused = violates(&letters(access1), &letters(share1), &checked, &letters(share2));
        let expected = match disp.as_str() {
            "CREATE" => "STATUS_OBJECT_NAME_COLLISION",
            _ if refused => VIOLATION,
            _ => SUCCESS,
        };
        if expected != recorded {
            assert_eq!((recorded.as_str(), expected), (SUCCESS, VIOLATION), "only ever stricter");
            *departed.entry(disp).or_default() += 1;
        }
        let second = Opening { conn: "B", access: access2, share: share2, disp };
        let ours = stage.second(opening("A", access1, share1), second);
        assert_eq!(ours, expected, "{access1} sharing {share1}, then {second:?}");
    }
    let listed: BTreeMap<_, _> = RULES.iter().flat_map(|rule| rule.matrix_rows).copied().collect();
    assert_eq!(departed, listed);
    assert_eq!(departed.values().sum::<usize>(), 737);
}
