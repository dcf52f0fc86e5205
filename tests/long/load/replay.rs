//! The log of events, gone through from the first to the last: who had what open at each moment,
//! and whether anything was granted that what was open excludes.
//!
//! The rule is written out here: two opens of one file may stand beside each
//! other if one of them has no access at all, or each one's access lies within what the other
//! one shares.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

/// What the log told.
#[derive(Debug, Default)]
pub struct Replayed {
    pub granted: u64,
    pub refused: u64,
    pub changed: u64,
    pub forced: u64,
    /// How often an open was granted beside another one of the same file.
    pub beside: u64,
    /// Pairs that exclude each other and were granted all the same.
    pub conflicts: Vec<String>,
}

/// An open: letters of what it may do, and of what it tolerates.
#[derive(Debug, Clone)]
struct Open {
    access: String,
    share: String,
}

fn excludes(one: &Open, other: &Open) -> bool {
    let letters = |text: &str| if text == "none" { String::new() } else { text.to_owned() };
    let outside = |access: &str, share: &str| {
        let share = letters(share);
        access.chars().any(|letter| !share.contains(letter))
    };
    let (access, other_access) = (letters(&one.access), letters(&other.access));
    !access.is_empty()
        && !other_access.is_empty()
        && (outside(&access, &other.share) || outside(&other_access, &one.share))
}

fn text(line: &Value, field: &str) -> String {
    line[field].as_str().unwrap_or_else(|| panic!("no {field} in {line}")).to_owned()
}

fn handle(line: &Value) -> u64 {
    line["handle"].as_u64().unwrap_or_else(|| panic!("no handle in {line}"))
}

/// Goes through the log, which must be in order and end with nothing open. Numbers are missing
/// where the journal has requests; a missing grant or close shows in what is open.
pub fn replay(log: &Path) -> Replayed {
    let lines = BufReader::new(File::open(log).unwrap()).lines();
    let lines = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    let mut told = Replayed::default();
    let mut files: HashMap<String, HashMap<u64, Open>> = HashMap::new();
    let mut last = 0;
    for line in lines {
        let line: Value = line;
        let seq = line["seq"].as_u64().unwrap();
        assert!(seq > last, "an event after {last} is out of order: {line}");
        last = seq;
        match text(&line, "event").as_str() {
            "granted" => {
                let new = Open { access: text(&line, "access"), share: text(&line, "share_mode") };
                let opens = files.entry(text(&line, "file")).or_default();
                told.granted += 1;
                told.beside += u64::from(!opens.is_empty());
                told.note_conflicts(&line, &new, opens.values());
                assert!(opens.insert(handle(&line), new).is_none(), "granted twice: {line}");
            }
            "share-changed" => {
                let opens = files.entry(text(&line, "file")).or_default();
                let id = handle(&line);
                let open = opens.get_mut(&id).unwrap_or_else(|| panic!("not open: {line}"));
                open.share = text(&line, "share_mode");
                let now = open.clone();
                let others = opens.iter().filter(|(other, _)| **other != id).map(|(_, open)| open);
                told.changed += 1;
                told.note_conflicts(&line, &now, others);
            }
            kind @ ("closed" | "force-closed") => {
                told.forced += u64::from(kind == "force-closed");
                let file = text(&line, "file");
                let opens = files.entry(file.clone()).or_default();
                assert!(opens.remove(&handle(&line)).is_some(), "closed, but not open: {line}");
                if opens.is_empty() {
                    files.remove(&file);
                }
            }
            "refused" => told.refused += 1,
            _ => {}
        }
    }
    assert!(files.is_empty(), "still open at the end: {files:?}");
    told
}

impl Replayed {
    fn note_conflicts<'a>(
        &mut self,
        line: &Value,
        new: &Open,
        others: impl Iterator<Item = &'a Open>,
    ) {
        for other in others.filter(|other| excludes(new, other)) {
            self.conflicts.push(format!("{line} beside {other:?}"));
        }
    }
}

#[test]
fn a_conflict_in_the_log_is_found() {
    let line = |seq: u64, event: &str, rest: &str| {
        format!("{{\"seq\":{seq},\"event\":\"{event}\",\"file\":\"1-1\",{rest}}}\n")
    };
    let open = |handle: u64, access: &str, share: &str| {
        format!("\"handle\":{handle},\"access\":\"{access}\",\"share_mode\":\"{share}\"")
    };
    let cases = [
        ("r", "rwd", "w", "rwd", 0),
        ("r", "r", "w", "rwd", 1),
        ("w", "rwd", "r", "r", 1),
        ("none", "none", "rw", "none", 0),
        ("rw", "rw", "d", "rw", 1),
    ];
    for (access, share, other_access, other_share, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let text = line(1, "granted", &open(1, access, share))
            + &line(2, "granted", &open(2, other_access, other_share))
            + &line(3, "closed", "\"handle\":1")
            + &line(4, "granted", &open(3, "none", "rwd"))
            + &line(5, "force-closed", "\"handle\":2")
            + &line(6, "share-changed", "\"handle\":3,\"share_mode\":\"none\"")
            + &line(7, "closed", "\"handle\":3");
        std::fs::write(&log, text).unwrap();
        assert_eq!(replay(&log).conflicts.len(), expected, "{access} {share} {other_access}");
    }
}
