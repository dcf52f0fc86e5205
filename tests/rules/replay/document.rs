//! Holds the list of departures that people read, in `docs/semantics.md`, and the one that the
//! replay uses together: the same rules, the same scenarios, both ways.

use std::collections::{BTreeMap, BTreeSet};

use super::departures::{Departure, RULES};
use super::oracle::text;

const HEADING: &str = "## Where latchfs differs from the recording";

/// Rules by name, each with the scenarios it is behind.
type Departures = BTreeMap<String, BTreeSet<String>>;

/// The first two cells of each row of the table: a rule, empty where it is the one above, and
/// where it departs.
fn rows(document: &str) -> Vec<(String, String)> {
    let (_, section) = document.split_once(HEADING).expect("the document has the section");
    let section = section.split("\n## ").next().unwrap_or(section);
    let rows = section.lines().filter_map(|line| line.strip_prefix('|'));
    rows.skip(2)
        .map(|row| {
            let mut cells = row.split('|').map(|cell| cell.trim().to_owned());
            let rule = cells.next().unwrap_or_default();
            (rule.trim_matches('`').to_owned(), cells.next().unwrap_or_default())
        })
        .collect()
}

/// What the document lists, and apart from it the rows about the matrix.
fn written(document: &str) -> (Departures, Vec<String>) {
    let mut written = Departures::new();
    let mut matrix = Vec::new();
    let mut rule = String::new();
    for (name, place) in rows(document) {
        if !name.is_empty() {
            rule = name;
        }
        let scenarios = written.entry(rule.clone()).or_default();
        if place.contains("disposition_matrix") {
            matrix.push(place);
        } else {
            scenarios.extend(place.split(", ").map(str::to_owned));
        }
    }
    (written, matrix)
}

#[test]
fn the_document_and_the_replay_name_the_same_departures() {
    let listed: Departures = RULES
        .iter()
        .map(|rule| {
            let scenarios = rule.steps.iter().map(|Departure(scenario, ..)| *scenario);
            (rule.id.to_owned(), scenarios.map(str::to_owned).collect())
        })
        .collect();
    assert_eq!(listed.len(), RULES.len(), "each rule has a name of its own");
    let (written, matrix) = written(&text("docs/semantics.md"));
    assert_eq!(written, listed);

    let counts: Vec<_> = RULES.iter().flat_map(|rule| rule.matrix_rows).collect();
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    let counts: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let expected = format!("`disposition_matrix`, {total} rows: {}", counts.join(", "));
    assert_eq!(matrix, [expected]);
}

#[test]
fn every_rule_says_why_and_where_it_is_from() {
    for rule in RULES {
        assert!(rule.why.ends_with('.'), "{}: {}", rule.id, rule.why);
        let cited = ["MS-FSA", "MS-FSCC", "docs/semantics.md"]
            .iter()
            .any(|page| rule.source.contains(page));
        assert!(cited, "{}: {}", rule.id, rule.source);
    }
}

#[test]
fn a_row_without_a_rule_belongs_to_the_one_above() {
    let document = format!(
        "{HEADING}\n\n| rule | where |\n|---|---|\n| `one` | aa1, aa2 | x |\n| | aa3 | y |\n\
         | `two` | aa4 |\n\n## Another\n\n| `three` | aa5 |\n"
    );
    let (written, _) = written(&document);
    let shape: Vec<_> = written.iter().map(|(rule, ids)| (rule.as_str(), ids.len())).collect();
    assert_eq!(shape, [("one", 3), ("two", 1)]);
}
