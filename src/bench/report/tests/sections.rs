//! What is one finding, what a report since a mark has, ignore rules, identities and bounds.

use super::Script;
use crate::bench::report::{Engine, Finding, Level, MARKS_MAX, ReportRule};
use crate::rules::who::ClientBy;

const LOST: &str = "S put b; A get b; B put b; A put b;";

fn only(script: &Script) -> Finding {
    let [finding] = <[Finding; 1]>::try_from(script.report().findings).unwrap();
    finding
}

#[test]
fn a_finding_shows_the_rows_that_make_it_up() {
    let finding = only(&Script::run(LOST));
    let rows = finding.evidence.iter();
    let rows: Vec<_> = rows
        .map(|row| {
            let etag = row.etag.as_deref().unwrap_or_default();
            (row.seq, &*row.client, &*row.operation, etag)
        })
        .collect();
    assert_eq!(
        rows,
        [(2, "A", "Get Blob", "v1"), (3, "B", "Put Blob", "v2"), (4, "A", "Put Blob", "v3")]
    );
    assert_eq!(finding.clients, ["A", "B"]);
    assert_eq!(finding.operations, ["Get Blob", "Put Blob"]);
    assert_eq!(finding.object, "blob:c/b");
    assert_eq!(
        finding.message,
        "A read it, B changed it, and A overwrote the change without a condition"
    );
}

#[test]
fn objects_of_one_shape_are_one_finding() {
    let mut script = Script::run("");
    for number in 0..517 {
        script.go_on(&LOST.replace(" b", &format!(" order-{number}.json")));
    }
    let finding = only(&script);
    assert_eq!((finding.count, &*finding.object), (517, "blob:c/order-*.json"));
    assert_eq!(finding.evidence[0].object, "blob:c/order-0.json");
    for (name, findings) in [("worker-1", 2), ("worker-2", 2), ("reader", 3)] {
        script.go_on(&LOST.replace('B', name));
        assert_eq!(script.report().findings.len(), findings, "other clients, another finding");
    }
}

#[test]
fn a_weak_identity_gives_hints_alone() {
    for (by, expected) in [
        (ClientBy::Key, "lost-update error"),
        (ClientBy::Thread, "lost-update error"),
        (ClientBy::Process, "lost-update hint"),
        (ClientBy::Address, "lost-update hint"),
    ] {
        assert_eq!(Script::run_by(LOST, by).findings(), [expected], "{by:?}");
    }
}

#[test]
fn nothing_is_held_against_a_client_across_a_barrier() {
    for barrier in ["reset", "mark two"] {
        let script = Script::run(&format!("S put b; A get b; B put b; {barrier}; A put b"));
        assert_eq!(script.findings(), [""; 0], "{barrier}");
    }
}

#[test]
fn a_report_since_a_mark_has_what_was_found_after_it() {
    let mut script = Script::run(&format!("{LOST} mark one; {LOST} mark two; A put b; mark one"));
    let since = |script: &Script, mark| {
        let report = script.engine.report(mark, Level::Hint)?;
        let counts: Vec<_> =
            report.findings.iter().map(|one| (one.count, one.mark.clone())).collect();
        Some((report.requests, counts))
    };
    assert_eq!(since(&script, None), Some((9, vec![(2, None)])));
    assert_eq!(since(&script, Some("two")), Some((1, vec![])));
    // The latest mark of a name.
    assert_eq!(since(&script, Some("one")), Some((0, vec![])));
    script.go_on(LOST);
    assert_eq!(since(&script, Some("one")), Some((4, vec![(1, Some("one".into()))])));
    assert_eq!(since(&script, Some("three")), None);
}

#[test]
fn the_oldest_mark_is_forgotten_and_its_findings_stay() {
    let mut script = Script::run(&format!("mark first; {LOST}"));
    for number in 1..MARKS_MAX {
        script.engine.barrier(Some(&number.to_string()));
    }
    assert!(script.engine.report(Some("first"), Level::Hint).is_some());
    script.engine.barrier(Some("one more"));
    assert!(script.engine.report(Some("first"), Level::Hint).is_none());
    assert_eq!(script.findings(), ["lost-update error"]);
}

#[test]
fn a_level_leaves_the_lower_ones_out() {
    let script = Script::run(&format!("{LOST} A put d empty; B get d; A put d; A put e new;"));
    let levels = |level| {
        let report = script.engine.report(None, level).unwrap();
        report.findings.iter().map(|one| one.level).collect::<Vec<_>>()
    };
    assert_eq!(levels(Level::Error), [Level::Error]);
    assert_eq!(levels(Level::Warn), [Level::Error, Level::Warn]);
    assert_eq!(levels(Level::Info), [Level::Error, Level::Warn, Level::Info]);
}

#[test]
fn an_ignore_rule_hides_the_findings_that_it_covers() {
    let rule = ReportRule::LostUpdate;
    for (lost, object, hidden) in [
        (1, "blob:c/b1", true),
        (1, "blob:c/*", true),
        (1, "blob:*", false),
        (1, "blob:**", true),
        // One of two objects.
        (2, "blob:c/b1", false),
        (2, "blob:c/*", true),
    ] {
        let mut script = Script::run("");
        for number in 1..=lost {
            script.go_on(&LOST.replace(" b", &format!(" b{number}")));
        }
        let ignore = script.engine.sections.ignore(rule, object.to_owned(), "shown".to_owned());
        let report = script.report();
        assert_eq!(report.findings.is_empty(), hidden, "{object}");
        assert_eq!(report.ignored, u64::from(hidden));
        assert!(script.engine.sections.heed(ignore.unwrap().id));
        assert_eq!(script.report().findings.len(), 1);
    }
    let mut script = Script::run(LOST);
    script.engine.sections.ignore(ReportRule::File, "**".to_owned(), String::new());
    assert_eq!(script.findings(), ["lost-update error"], "another rule");
    assert!(!script.engine.sections.heed(9));
}

#[test]
fn what_could_be_refused_and_never_was_is_told_once_for_a_container() {
    let script = Script::run(
        "A put a new; A put b new; A put b new; A get b; A put b if=read; A delete b if=read; \
         A acquire a; S send queue:q/m; A take queue:q/m; A done queue:q/m; A meta a if=last; \
         A get a; B put a if=*; A put a if=read",
    );
    let report = script.engine.report(None, Level::Info).unwrap();
    let never = report.findings.iter().filter(|one| one.rule == ReportRule::NeverTested);
    let never: Vec<_> = never.map(|one| format!("{}: {}", one.object, one.message)).collect();
    assert_eq!(
        never,
        [
            // Put Blob was refused by a condition in this container.
            "blob:c: Set Blob Metadata could be refused once (condition), and never was",
            "blob:c: Lease Blob could be refused once (lease), and never was",
            "queue:q: Delete Message could be refused once (receipt), and never was",
        ]
    );
}

#[test]
fn ten_thousand_clients_are_looked_at() {
    let mut script = Script::run("S put b");
    for number in 0..10_000 {
        script.go_on(&format!("c{number} get b; c{number} put b if=read"));
    }
    script.go_on(LOST);
    assert_eq!(
        (script.findings(), script.report().incomplete),
        (vec!["lost-update error".into()], false)
    );
}

#[test]
fn a_report_beyond_its_bound_says_that_it_is_incomplete() {
    let mut script = Script::run("");
    script.engine = Engine::remembering(4);
    script.go_on("A put a; A put b; A put c; A put d; A put a");
    assert!(!script.report().incomplete);
    script.go_on("A put one-more");
    assert!(script.report().incomplete);
    // The next test is looked at again; what the run has missed stays said.
    script.go_on("mark two;");
    script.go_on(LOST);
    assert_eq!(script.findings(), ["lost-update error"]);
    assert!(script.report().incomplete);
}
