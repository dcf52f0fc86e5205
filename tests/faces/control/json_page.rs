//! `docs/api.md` names the fields that commands print as JSON, and no others.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use super::fixture::{Folder, json, latchfs};
use crate::common::pages::{page, section};

/// The words in backticks of a cell, without those in parentheses.
fn words(cell: &str, nested: bool) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut depth = 0;
    for (at, part) in cell.split('`').enumerate() {
        if at % 2 == 1 {
            if (depth == 0 || nested) && part != "null" {
                found.insert(part.to_owned());
            }
            continue;
        }
        depth += part.matches('(').count();
        depth = depth.saturating_sub(part.matches(')').count());
    }
    found
}

/// The second cell of the row about a command.
fn row<'a>(page: &'a str, command: &str) -> &'a str {
    let wanted = format!("`{command}`");
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let mut cells = rows.map(|line| line.trim_matches('|').split(" | ").collect::<Vec<_>>());
    let found = cells.find(|cells| cells[0].trim().split(", ").any(|cell| cell == wanted));
    found.unwrap_or_else(|| panic!("the page has no row about {command}"))[1]
}

/// Fails unless the keys of an answer are those that the row names.
#[track_caller]
fn has_exactly(page: &str, command: &str, answer: &Value) {
    let answer = if let Value::Array(rows) = answer { &rows[0] } else { answer };
    let keys: BTreeSet<_> = answer.as_object().expect("an object").keys().cloned().collect();
    let (named, all) = (words(row(page, command), false), words(row(page, command), true));
    let unnamed: Vec<_> = keys.difference(&all).collect();
    assert!(unnamed.is_empty(), "{command} prints what the page does not name: {unnamed:?}");
    let missing: Vec<_> = named.difference(&keys).collect();
    assert!(missing.is_empty(), "the page names what {command} does not print: {missing:?}");
}

#[test]
fn the_page_on_json_names_the_fields_of_commands_and_no_others() {
    let folder = Folder::new();
    let _server = folder.start(&["serve", "--no-mount", "--share", "docs"]);
    let page = page("docs/api.md");
    let page = section(&page, "JSON of commands");
    let socket = folder.socket();
    let ask = |arguments: &[&str]| json(&folder.ask(&[arguments, &["--json"]].concat()));
    std::fs::write(folder.join("text"), "hello").unwrap();
    let file = folder.join("text").to_str().unwrap().to_owned();
    ask(&["put", "file:docs/a", &file]);
    let mut hold = latchfs(folder.path())
        .args(["hold", "docs:/a", "--for", "60s", "--control", socket.to_str().unwrap()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(hold.stdout.take().unwrap()).read_line(&mut line).unwrap();
    has_exactly(page, "hold", &serde_json::from_str(&line).unwrap());
    // Rows that refer to others: all of theirs, and more.
    let own = words(row(page, "handles"), false);
    let held = &ask(&["handles"])[0];
    for name in words(row(page, "hold"), false).union(&own).filter(|name| *name != "hold") {
        assert!(held.get(name).is_some(), "no {name} in {held}");
    }
    has_exactly(page, "mk", &serde_json::json!({ "created": "", "deleted": "" }));
    assert!(ask(&["mk", "blob:photos"]).get("created").is_some());
    let put = ask(&["put", "blob:photos/a", &file]);
    assert_eq!(put.as_object().unwrap().len(), 2, "{put}");
    for (command, arguments) in [
        ("history", &["history", "blob:photos/a"][..]),
        ("lease break", &["lease", "break", "blob:photos/a"]),
        ("status", &["status"]),
        ("clock", &["clock", "show"]),
        ("doctor", &["doctor"]),
        ("health", &["health"]),
        ("shares list", &["shares", "list"]),
        ("connection-string", &["connection-string"]),
        ("ls", &["ls", "blob:photos"]),
        ("sas", &["sas", "blob:photos/a"]),
    ] {
        let arguments = [arguments, &["--json"]].concat();
        // No server is asked by the doctor.
        let output =
            if command == "doctor" { folder.run(&arguments) } else { folder.ask(&arguments) };
        let answer = serde_json::from_slice(&output.stdout);
        let answer = answer.unwrap_or_else(|error| panic!("{command}: {error}: {output:?}"));
        has_exactly(page, command, &answer);
    }
    has_exactly(page, "shares create", &serde_json::json!({ "created": "", "deleted": "" }));
    assert_eq!(ask(&["shares", "create", "more"])["created"], "more");
    assert_eq!(ask(&["shares", "delete", "more"])["deleted"], "more");
    let taken = ask(&["snapshot", "create"]);
    has_exactly(page, "snapshot create", &taken);
    assert_eq!(ask(&["snapshot", "list"])[0], taken["snapshot"]);
    let stamp = taken["snapshot"].as_str().unwrap();
    has_exactly(page, "snapshot delete", &ask(&["snapshot", "delete", stamp]));
    ask(&["gate", "add", "Get Blob"]);
    has_exactly(page, "gate list", &ask(&["gate", "list"]));
    ask(&["fault", "add", "Get Blob", "--answer", "503:ServerBusy"]);
    has_exactly(page, "fault list", &ask(&["fault", "list"]));
    hold.kill().unwrap();
    hold.wait().unwrap();
}
