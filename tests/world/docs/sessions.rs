//! Sessions at a terminal, as pages show them, are carried out and compared.
//!
//! On a page, `$ ` starts a command and what follows is what it shows. All sessions of a page, or
//! of one section of it, are one, in one shell. A block of another language is a file if the line
//! before it says under which name to save it.

use std::path::Path;

use crate::common::need::{self, Need};
use crate::common::pages::page;
use crate::docs::blocks::{Block, blocks_of};
use crate::docs::shown::fits;
use crate::docs::terminal::Terminal;

/// Where `tests/run` installs the Python SDK.
const CLIENTS: &str = "tests/.cache/clients/bin";

/// The commands of a session, each with what it shows.
fn steps(session: &str) -> Vec<(&str, &str)> {
    let mut steps = Vec::new();
    let mut rest = session;
    while let Some(text) = rest.strip_prefix("$ ") {
        let end = text.find("\n$ ").map_or(text.len(), |at| at + 1);
        let (step, after) = text.split_at(end);
        steps.push(step.split_once('\n').unwrap_or((step, "")));
        rest = after;
    }
    assert!(rest.is_empty(), "a session starts with a command: {rest}");
    steps
}

/// The name under which the reader is asked to save a block.
fn saved_as<'a>(block: &Block<'a>) -> Option<&'a str> {
    block.before.split_once("ave this as `")?.1.split('`').next()
}

/// Carries out what the page shows; how many commands that were.
fn replay(path: &str, programs: &[&Path]) -> usize {
    let page = page(path);
    carry_out(path, &blocks_of(&page), programs)
}

/// Carries out what one section of the page shows.
fn replay_section(path: &str, section: &str) -> usize {
    let page = page(path);
    let mut blocks = blocks_of(&page);
    blocks.retain(|block| block.section == section);
    carry_out(path, &blocks, &[])
}

fn carry_out(path: &str, blocks: &[Block<'_>], programs: &[&Path]) -> usize {
    let mut terminal = Terminal::start(programs);
    let mut count = 0;
    for block in blocks {
        if let Some(name) = saved_as(block) {
            terminal.write(name, block.text);
        }
        if block.language != "console" {
            continue;
        }
        for (command, shown) in steps(block.text) {
            let done = terminal.run(command, |seen| fits(shown, seen));
            if let Err(seen) = done {
                panic!(
                    "{path}:{}\n$ {command}\nis to show\n{shown}\n\nand shows\n{seen}",
                    block.line
                );
            }
            count += 1;
        }
    }
    count
}

/// A terminal can be had, and a mount.
#[track_caller]
fn can_replay() -> bool {
    need::fuse() && ["script", "bash", "curl"].into_iter().all(need::client)
}

#[test]
fn the_walk_of_a_new_user_happens_as_shown() {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join(CLIENTS);
    let installed = || {
        let there = clients.join("python").exists().then_some(());
        there.ok_or_else(|| "the Python SDK is not installed: tests/run does that".to_owned())
    };
    if can_replay() && need::met(Need::Clients, installed) {
        assert!(replay("docs/getting-started.md", &[&clients]) >= 15);
    }
}

#[test]
fn share_modes_are_set_as_shown() {
    if can_replay() && ["python3", "flock"].into_iter().all(need::client) {
        let count = replay_section("docs/semantics.md", "Six ways to set a share mode");
        assert!(count >= 20);
    }
}

#[test]
fn races_happen_on_demand_as_shown() {
    if can_replay() {
        assert!(replay("docs/reproduce.md", &[]) >= 85);
    }
}

#[test]
fn a_test_in_any_language_goes_as_shown() {
    if can_replay() {
        assert!(replay("docs/testing.md", &[]) >= 20);
    }
}

#[test]
fn the_http_api_answers_as_shown() {
    if can_replay() {
        assert!(replay("docs/api.md", &[]) >= 60);
    }
}

#[test]
fn a_session_is_read_command_by_command() {
    let session = "$ a b\none\n  two\n\n$ c\n$ d\nthree";
    assert_eq!(steps(session), [("a b", "one\n  two\n\n"), ("c", ""), ("d", "three")]);
}
