//! Holds that a skipped test is seen by name, and that a need named in `LATCHFS_REQUIRE` makes it
//! fail. The rules are in `common/need.rs`.

use std::env;
use std::process::{Command, Output};

use crate::common::need::{self, Need, REQUIRE, Verdict, decide, parse_required};

/// Set in the child processes below: the test then plays the one whose need is not met.
const PLAY: &str = "LATCHFS_TEST_PLAYS_A_SKIP";

fn absent() -> Result<(), String> {
    Err("nobody has that".to_owned())
}

/// Runs the test of that name alone in a process of its own, where it finds its need not met.
fn run_alone(test: &str, required: &str) -> Output {
    let this = env::current_exe().expect("a test binary knows its path");
    Command::new(this)
        .args(["--exact", test, "--test-threads=2"])
        .env(PLAY, "1")
        .env(REQUIRE, required)
        .env_remove("RUST_TEST_NOCAPTURE")
        .env_remove("RUST_TEST_THREADS")
        .output()
        .expect("a test binary can be run again")
}

#[test]
fn a_skipped_test_passes_and_is_seen_by_name_without_nocapture() {
    if env::var_os(PLAY).is_some() {
        assert!(!need::met(Need::Root, absent));
        return;
    }
    let name = "skips::a_skipped_test_passes_and_is_seen_by_name_without_nocapture";
    let output = run_alone(name, "");
    let shown = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{output:?}");
    assert!(shown.contains(&format!("SKIPPED {name}: nobody has that\n")), "{output:?}");
}

#[test]
fn a_required_need_that_is_not_met_fails_the_test() {
    if env::var_os(PLAY).is_some() {
        assert!(!need::met(Need::Root, absent));
        return;
    }
    let name = "skips::a_required_need_that_is_not_met_fails_the_test";
    let output = run_alone(name, "fuse,root");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{output:?}");
    assert!(shown.contains("needs root, which LATCHFS_REQUIRE says is there"), "{output:?}");
    assert!(run_alone(name, "fuse,clients").status.success());
}

#[test]
fn the_list_of_required_needs_takes_blanks_and_refuses_unknown_words() {
    assert_eq!(parse_required(""), Ok(vec![]));
    assert_eq!(
        parse_required("fuse, clients,,root"),
        Ok(vec![Need::Fuse, Need::Clients, Need::Root])
    );
    let why = parse_required("fuze").unwrap_err();
    assert!(why.contains("'fuze'") && why.contains("fuse, clients, root"), "{why}");
}

#[test]
fn the_verdict_depends_on_what_is_there_and_what_is_required() {
    let verdict = |present, required: &[Need]| decide("t", Need::Fuse, present, required);
    assert_eq!(verdict(Ok(()), &[Need::Fuse]), Verdict::Run);
    assert_eq!(verdict(Ok(()), &[]), Verdict::Run);
    assert_eq!(
        verdict(absent(), &[Need::Clients]),
        Verdict::Skip("SKIPPED t: nobody has that".to_owned())
    );
    assert!(matches!(verdict(absent(), &[Need::Fuse]), Verdict::Fail(_)));
}

#[test]
fn a_program_is_found_on_the_path_or_named_as_missing() {
    assert_eq!(need::on_path("sh"), Ok(()));
    let why = need::on_path("no-program-has-this-name").unwrap_err();
    assert_eq!(why, "no-program-has-this-name is not on the PATH");
}
