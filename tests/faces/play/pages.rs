//! The page tells the truth: `docs/play.md` names every operation with its arguments, and what it
//! shows works as shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use assert_cmd::Command;
use latchfs::play::read_script;
use tempfile::TempDir;

use super::texts::{blocks, page};
use super::{play, program};

/// The texts in backticks, each of which is a word of the format.
fn quoted(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// What the reader of scripts says it would have expected in the place of `no such`; nothing if
/// nothing can stand there.
fn expected_instead(line: &str) -> BTreeSet<String> {
    let error = read_script(line).expect_err(line).to_string();
    quoted(error.split_once("expected").map_or("", |(_, expected)| expected))
}

/// Every operation, with the names of its arguments.
fn operations() -> BTreeMap<String, BTreeSet<String>> {
    let names = expected_instead(r#"{"op": "no such"}"#);
    names
        .into_iter()
        .map(|op| {
            let fields = expected_instead(&format!(r#"{{"op": "{op}", "no such": 0}}"#));
            (op, fields)
        })
        .collect()
}

#[test]
fn the_table_of_operations_is_the_one_of_the_program() {
    let page = page("docs/play.md");
    let (_, section) = page.split_once("\n## Operations\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let documented: BTreeMap<_, _> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|row| {
            let (op, rest) = row.split_once("` |").unwrap();
            (op.to_owned(), quoted(rest.split('|').next().unwrap()))
        })
        .collect();
    let known = operations();
    assert!(known.len() >= 24 && known["open"].contains("share"), "{known:?}");
    assert_eq!(documented, known);
}

#[test]
fn the_examples_of_the_page_answer_as_they_say() {
    let page = page("docs/play.md");
    let examples = blocks(&page, "json");
    assert_eq!(examples.len(), 4, "three worked examples, and one of scenarios");
    for example in examples {
        let run = play(&["--check", "--check-out", "-"], example);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{example}");
        let steps = example.matches(r#""op""#).count();
        assert_eq!(run.lines().len(), steps, "{example}");
    }
}

/// Carries out a transcript: `$ cat FILE` makes that file, `$ latchfs ...` is run, and both are
/// followed by what they print.
fn replay(transcript: &str) {
    let folder = TempDir::new().unwrap();
    let mut ran = 0;
    for part in format!("\n{transcript}").split("\n$ ").skip(1) {
        let (command, shown) = part.split_once('\n').unwrap_or((part, ""));
        let words: Vec<_> = command.split_whitespace().collect();
        match words[..] {
            ["cat", file] => fs::write(folder.path().join(file), shown).unwrap(),
            ["latchfs", ref args @ ..] => {
                let mut program = Command::from_std(program(folder.path()));
                let output = program.current_dir(folder.path()).args(args).output().unwrap();
                let printed = String::from_utf8(output.stdout).unwrap();
                assert_eq!(printed.trim_end(), shown, "$ {command}");
                assert!(output.stderr.is_empty(), "$ {command}");
                ran += 1;
            }
            _ => panic!("a transcript has no such command: {command}"),
        }
    }
    assert!(ran > 0, "the transcript runs nothing");
}

#[test]
fn the_transcript_of_the_page_is_what_happens() {
    let page = page("docs/play.md");
    let (_, rest) = page.split_once("<!-- tests/faces/play replays this -->").unwrap();
    replay(blocks(rest, "console")[0]);
}
