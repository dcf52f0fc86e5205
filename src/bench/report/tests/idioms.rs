//! Ten idioms that are right have no error, in whatever order their clients' requests come.

use super::Script;
use crate::bench::report::Level;

/// What is there before, and what two clients do.
const IDIOMS: [(&str, &str, [&str; 2]); 8] = [
    ("a loop with a condition", "S put b", ["get b; put b if=read; get b; put b if=read"; 2]),
    ("heartbeats without reads", "S put b", ["put b; put b; put b"; 2]),
    (
        "each its own properties",
        "S insert table:t/p/r",
        ["query table:t/p/r; merge=a table:t/p/r", "query table:t/p/r; merge=b table:t/p/r"],
    ),
    (
        "each its own range",
        "S put b",
        ["get=0-512 b; page=0-512 b", "get=512-600 b; page=512-600 b"],
    ),
    (
        "metadata beside content",
        "S put b",
        ["head b; meta b; head b; meta b if=last", "get b; put b if=read; get b; put b if=read"],
    ),
    ("appends", "S put b", ["get b; append b; get b; append b"; 2]),
    ("creation with a condition", "S put a", ["head b; list blob:c; put b new; get b"; 2]),
    // A lease ends unnoticed where the other client acquires it.
    (
        "a leader that is fenced",
        "S put l; S put b",
        ["acquire l; get b; put b if=read; get b; put b if=read"; 2],
    ),
];

/// All orders of the steps of two clients.
fn orders(one: &[String], other: &[String]) -> Vec<Vec<String>> {
    let (Some(first), Some(second)) = (one.first(), other.first()) else {
        return vec![[one, other].concat()];
    };
    let begun = |step: &String, rest: Vec<Vec<String>>| {
        rest.into_iter().map(|rest| [vec![step.clone()], rest].concat()).collect::<Vec<_>>()
    };
    [begun(first, orders(&one[1..], other)), begun(second, orders(one, &other[1..]))].concat()
}

fn steps(client: &str, text: &str) -> Vec<String> {
    text.split("; ").map(|step| format!("{client} {step}")).collect()
}

fn check(name: &str, before: &str, order: &[String]) {
    let script = Script::run(&format!("{before}; {}", order.join("; ")));
    let report = script.engine.report(None, Level::Error).unwrap();
    assert!(report.findings.is_empty(), "{name}: {order:?}: {:?}", report.findings);
}

#[test]
fn programs_that_are_right_have_no_error_in_any_order() {
    let mut played = 0;
    for (name, before, [one, other]) in IDIOMS {
        for order in orders(&steps("A", one), &steps("B", other)) {
            check(name, before, &order);
            played += 1;
        }
    }
    assert!(played > 500, "{played}");
}

#[test]
fn programs_that_exclude_each_other_have_no_error_in_either_order() {
    let under_a_lock = "acquire l; get b; put b; release l";
    let worker = "take queue:q/m; keep queue:q/m; done queue:q/m; send queue:q/m";
    for (before, program) in [("S put l; S put b", under_a_lock), ("S send queue:q/m", worker)] {
        for [one, other] in [["A", "B"], ["B", "A"]] {
            let order = [one, other, one].map(|client| steps(client, program)).concat();
            check(program, before, &order);
        }
    }
}
