//! Looks at variables `LATCHFS_*` that no option reads: one that is nearly an option's is refused,
//! since it is misspelt, and another one is warned of. Those of tests, of client packages and of
//! Kubernetes are left alone.

use std::collections::BTreeSet;
use std::env;

use anyhow::{Result, bail};
use clap::Command;

/// The prefix of every variable of latchfs.
const PREFIX: &str = "LATCHFS_";

/// Variables that are no option's: old names, marks between processes, and those of tests and of
/// the packages in `clients/`.
const OTHERS: [&str; 10] = [
    "LATCHFS_BINARY",
    "LATCHFS_BLESS",
    "LATCHFS_DAEMON_CHILD",
    "LATCHFS_FILES",
    "LATCHFS_FULL",
    "LATCHFS_LISTEN",
    "LATCHFS_REQUIRE",
    "LATCHFS_STEPS",
    "LATCHFS_TOKEN",
    "LATCHFS_URL",
];

/// The prefixes of the variables of tests and benchmarks.
const FOR_TESTS: [&str; 4] = ["LATCHFS_BENCH_", "LATCHFS_LOAD_", "LATCHFS_MODEL_", "LATCHFS_TEST_"];

/// Whether Kubernetes sets the variable in every pod beside a Service named `latchfs` or
/// `latchfs-...`, in the form of Docker's links.
fn is_kubernetes(name: &str) -> bool {
    name.ends_with("_SERVICE_HOST") || name.ends_with("_PORT") || name.contains("_PORT_")
}

/// Variables of 0.1 whose options are read from the command line only: one that was set for another
/// command would delete or close what nobody asked for.
const ARGUMENT_ONLY: [(&str, &str); 5] = [
    ("LATCHFS_DELETE_ON_CLOSE", "--delete-on-close"),
    ("LATCHFS_DISPOSITION", "--disposition"),
    ("LATCHFS_LAZY", "--lazy"),
    ("LATCHFS_RESET", "--reset"),
    ("LATCHFS_SNAPSHOTS", "--snapshots"),
];

/// A variable of 0.1 whose option has another name now, while its own name means something else.
const RENAMED: [&str; 2] = ["LATCHFS_LOOSE", "LATCHFS_NO_AUTH"];

/// Refuses a variable that is misspelt, and warns of one that no option of any command reads.
pub fn check(command: &Command) -> Result<()> {
    let [old, new] = RENAMED;
    if env::var_os(old).is_some() {
        bail!("{old} is called {new} now: rename it");
    }
    for (variable, option) in ARGUMENT_ONLY {
        if env::var_os(variable).is_some() {
            bail!("no option reads the variable {variable}: unset it, and give {option} itself");
        }
    }
    let mut known: BTreeSet<String> = OTHERS.iter().map(ToString::to_string).collect();
    collect(command, &mut known);
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut ignored = Vec::new();
    for (name, near) in unknown(names, &known) {
        match near {
            Some(near) => bail!("no option reads the variable {name}: did you mean {near}?"),
            None => ignored.push(name),
        }
    }
    if !ignored.is_empty() {
        eprintln!("latchfs: no option reads {}: ignored", ignored.join(", "));
    }
    Ok(())
}

fn collect(command: &Command, known: &mut BTreeSet<String>) {
    let variables = command.get_arguments().filter_map(|argument| argument.get_env());
    known.extend(variables.map(|name| name.to_string_lossy().into_owned()));
    command.get_subcommands().for_each(|below| collect(below, known));
}

/// The names with the prefix that are not known, each with the known name that it is nearly.
fn unknown(
    names: impl Iterator<Item = String>,
    known: &BTreeSet<String>,
) -> Vec<(String, Option<String>)> {
    let for_tests = |name: &str| FOR_TESTS.iter().any(|prefix| name.starts_with(prefix));
    let unknown = names.filter(|name| {
        let ours = name.starts_with(PREFIX) && !is_kubernetes(name);
        ours && !known.contains(name) && !for_tests(name)
    });
    let with_near = unknown.map(|name| {
        let near = known.iter().map(|other| (distance(&name, other), other)).min();
        let near = near.filter(|(distance, _)| *distance <= 3).map(|(_, other)| other.clone());
        (name, near)
    });
    with_near.collect()
}

/// How many letters must be changed, added or left out to make one text the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, theirs) in other.iter().enumerate() {
            let change = diagonal + usize::from(letter != *theirs);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_variable_is_found_with_the_one_that_was_meant() {
        let known = ["LATCHFS_DATA", "LATCHFS_SHARE"].map(str::to_owned).into();
        let find = |name: &str| unknown(std::iter::once(name.to_owned()), &known);
        assert_eq!(find("LATCHFS_DATA"), []);
        assert_eq!(find("OTHER"), []);
        let near = Some("LATCHFS_DATA".to_owned());
        assert_eq!(find("LATCHFS_DTAA"), [("LATCHFS_DTAA".to_owned(), near)]);
        assert_eq!(find("LATCHFS_SOMETHING"), [("LATCHFS_SOMETHING".to_owned(), None)]);
    }

    #[test]
    fn the_variables_of_a_kubernetes_service_named_latchfs_are_not_misspelt() {
        let find = |name: &str| unknown(std::iter::once(name.to_owned()), &BTreeSet::new());
        for name in [
            "LATCHFS_PORT",
            "LATCHFS_PORT_10000_TCP",
            "LATCHFS_PORT_10000_TCP_ADDR",
            "LATCHFS_PORT_10000_TCP_PORT",
            "LATCHFS_PORT_10000_TCP_PROTO",
            "LATCHFS_SERVICE_HOST",
            "LATCHFS_SERVICE_PORT",
            "LATCHFS_SERVICE_PORT_BLOB",
            "LATCHFS_BLOB_SERVICE_HOST",
            "LATCHFS_BLOB_PORT_10000_TCP",
        ] {
            assert_eq!(find(name), [], "{name}");
        }
        for name in ["LATCHFS_PORTS", "LATCHFS_SERVICE", "LATCHFS_SERVICE_HOSTS"] {
            assert_eq!(find(name).len(), 1, "{name}");
        }
    }
}
