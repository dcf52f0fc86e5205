//! Reads the repository and holds its house rules, each with the reason and the cure:
//!
//! - [`arrows`]: which folder may use which, and what rules must not touch;
//! - [`lines`]: file headers, lengths, banned words, `unsafe`;
//! - [`repo`]: scripts, changelog, owner, links between documents, paths of a build machine.
//!
//! A checker is a function from a file to its violations, tested beside it on samples that break
//! the rule. The tests here run all of them over the tree as it is.

mod arrows;
mod lines;
mod repo;
mod tree;

use tree::{File, Violation};

/// Fails with every violation, one a line.
fn hold(violations: &[Violation]) {
    let list: Vec<_> = violations.iter().map(ToString::to_string).collect();
    assert!(list.is_empty(), "{} violation(s):\n{}\n", list.len(), list.join("\n"));
}

/// The violations of every file that `wanted` lets through.
fn over(wanted: impl Fn(&File) -> bool, check: impl Fn(&File) -> Vec<Violation>) -> Vec<Violation> {
    let files = tree::files();
    let checked: Vec<_> = files.iter().filter(|file| wanted(file)).collect();
    assert!(!checked.is_empty(), "the rule met no file at all");
    checked.into_iter().flat_map(check).collect()
}

/// The text of one file.
fn text<'a>(files: &'a [File], path: &str) -> &'a str {
    files.iter().find(|file| file.path == path).map_or("", |file| file.text.as_str())
}

#[test]
fn folders_use_only_what_the_design_lets_them() {
    let files = tree::files();
    let source: Vec<_> = files.iter().filter(|file| file.is_rust_in("src")).collect();
    assert!(source.len() > 100, "the sources were not found");
    hold(&arrows::check(&source));
}

#[test]
fn rules_do_no_io_and_ask_no_clock() {
    hold(&over(|file| file.is_rust_in("src"), arrows::check_purity));
}

#[test]
fn every_source_file_opens_by_saying_what_it_decides() {
    hold(&over(File::is_rust, lines::check_header));
}

#[test]
fn files_and_lines_stay_readable() {
    hold(&over(File::is_rust, lines::check_lengths));
}

#[test]
fn unsafe_stays_in_its_files() {
    hold(&over(|file| file.is_rust_in("src"), lines::check_unsafe));
}

#[test]
fn nothing_unfinished_is_left_in_the_source() {
    hold(&over(File::is_rust, lines::check_banned));
}

#[test]
fn scripts_can_be_run_as_they_are() {
    hold(&over(|_| true, repo::check_script));
}

#[test]
fn the_changelog_speaks_of_this_version() {
    let files = tree::files();
    hold(&repo::check_changelog(text(&files, "CHANGELOG.md"), text(&files, "Cargo.toml")));
}

#[test]
fn one_owner_is_named_everywhere() {
    let files = tree::files();
    let manifest = text(&files, "Cargo.toml");
    // The samples of the rule itself name others.
    hold(&over(|file| !file.is_rust(), |file| repo::check_owner(file, manifest)));
}

#[test]
fn links_between_documents_lead_somewhere() {
    let files = tree::files();
    hold(&over(|file| file.has_suffix("md"), |file| repo::check_links(file, &files)));
}

#[test]
fn no_path_of_a_build_machine_is_left_in_the_tree() {
    hold(&over(|_| true, repo::check_machine_paths));
}
