//! The report on short programs, each written as a script, and its bounds.

mod idioms;
mod overwritten;
mod repeated;
mod script;
mod sections;

pub use script::Script;

/// The findings of a script, as `rule level`, without what was never tested.
fn judged(script: &str) -> Vec<String> {
    Script::run(script).findings()
}

/// Checks that each script has exactly these findings.
fn check(table: &[(&str, &[&str])]) {
    for (script, expected) in table {
        assert_eq!(judged(script), *expected, "{script}");
    }
}
