//! Every command of ours that a page names is one of the program's, with the options it is named
//! with; so is every option that is named alone.
//!
//! What the program has is read from its own help.

use std::collections::BTreeMap;
use std::process::Command;

use crate::common::pages::page;
use crate::common::served::LATCHFS;
use crate::docs::blocks::{Block, all_pages, blocks_of};

/// Options of other programs that pages name without the program.
const OTHERS: [&str; 6] = [
    "--device",
    "--env",
    "--no-default-features",
    "--security-opt",
    "--client-protection",
    "--latchfs-schedule",
];

/// The help of every command, by its words: `latchfs`, `latchfs shares`, `latchfs shares list`.
struct Helps(BTreeMap<String, String>);

impl Helps {
    fn read() -> Self {
        let mut helps = Self(BTreeMap::new());
        helps.add(&["latchfs"]);
        helps
    }

    fn add(&mut self, words: &[&str]) {
        let run = Command::new(LATCHFS).args(&words[1..]).arg("--help").output().unwrap();
        assert!(run.status.success(), "{words:?} has no help");
        let text = String::from_utf8(run.stdout).unwrap();
        for below in subcommands(&text) {
            self.add(&[words, &[below]].concat());
        }
        self.0.insert(words.join(" "), text);
    }

    /// What is wrong with a command, if anything is.
    fn fault(&self, command: &[&str]) -> Option<String> {
        let mut name = "latchfs".to_owned();
        let mut rest = &command[1..];
        while let Some((first, after)) = rest.split_first() {
            let longer = format!("{name} {first}");
            if !self.0.contains_key(&longer) {
                break;
            }
            (name, rest) = (longer, after);
        }
        let help = &self.0[&name];
        let wants_more = help.contains("\nCommands:\n") && name != "latchfs";
        match rest.first() {
            Some(word) if name == "latchfs" && !word.starts_with('-') => {
                return Some(format!("there is no command '{word}'"));
            }
            Some(word) if wants_more && !word.starts_with('-') => {
                return Some(format!("'{name}' has no command '{word}'"));
            }
            _ => {}
        }
        let own = rest.iter().take_while(|word| **word != "--");
        let mut options = own.filter(|word| word.starts_with('-') && word.len() > 1);
        let missing = options.find(|option| !names(help, option.split('=').next().unwrap()))?;
        Some(format!("'{name}' has no option '{missing}'"))
    }
}

/// The commands that a help lists.
fn subcommands(help: &str) -> Vec<&str> {
    // The program has its commands in groups.
    let list = help.split_once("\nCommands:\n").or_else(|| help.split_once("\nRun:\n"));
    let Some((_, list)) = list else { return Vec::new() };
    let lines = list.lines().take_while(|line| !line.is_empty());
    lines.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next()).collect()
}

/// True if the help names the option, and not only a longer one.
fn names(help: &str, option: &str) -> bool {
    let part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    help.match_indices(option)
        .any(|(at, _)| !help[..at].ends_with(part) && !help[at + option.len()..].starts_with(part))
}

/// The commands of ours in a line of shell.
fn commands_of(line: &str) -> Vec<Vec<&str>> {
    let line = line.split(" # ").next().unwrap();
    // Where another command may start.
    let pieces = line.split(['|', ';', '&', '(', ')', '"', '\'', '`', '>']);
    pieces
        .map(|piece| piece.split_whitespace().collect::<Vec<_>>())
        .filter_map(|words| {
            let before = ["until", "while", "if", "!", "$", "exec", "time"];
            let start = words.iter().position(|word| !before.contains(word))?;
            let program = words[start].rsplit('/').next()?;
            (program == "latchfs").then(|| words[start..].to_vec())
        })
        .collect()
}

/// What a page gives as code, a line each, with its line number: blocks and code in the text.
fn code_of(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_block = false;
    for (number, line) in (1..).zip(page.lines()) {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.map(|span| (number, span.to_owned())));
        }
    }
    let shell = |block: &&Block<'_>| ["sh", "console", "text"].contains(&block.language);
    for block in blocks_of(page).iter().filter(shell) {
        for (number, line) in (block.line + 1..).zip(block.text.lines()) {
            let command = match block.language {
                "console" => line.strip_prefix("$ "),
                // Help: its examples are indented.
                "text" => line.strip_prefix("  ").filter(|line| line.starts_with("latchfs ")),
                _ => Some(line),
            };
            found.extend(command.map(|command| (number, command.to_owned())));
        }
    }
    found
}

/// Words that stand for what the reader puts there.
fn is_placeholder(word: &str) -> bool {
    word.len() > 1 && word.chars().all(|letter| letter.is_ascii_uppercase())
}

#[test]
fn every_command_that_a_page_names_is_there_with_its_options() {
    let helps = Helps::read();
    let mut faults = Vec::new();
    let mut count = 0;
    for path in all_pages() {
        for (number, line) in code_of(&page(&path)) {
            for command in commands_of(&line) {
                if command.get(1).is_some_and(|word| is_placeholder(word)) {
                    continue;
                }
                count += 1;
                let fault = helps.fault(&command);
                faults.extend(fault.map(|fault| format!("{path}:{number}: {fault}: {line}")));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 100, "only {count} commands were found");
}

#[test]
fn every_option_that_a_page_names_alone_is_somebody_s() {
    let helps = Helps::read();
    let mut faults = Vec::new();
    for path in all_pages() {
        let page = page(&path);
        for (number, span) in code_of(&page).iter().filter(|(_, span)| span.starts_with("--")) {
            let option = span.split([' ', '=', ':']).next().unwrap();
            let known = helps.0.values().any(|help| names(help, option));
            if option.len() > 2 && !known && !OTHERS.contains(&option) {
                faults.push(format!("{path}:{number}: there is no option '{option}'"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_command_that_is_not_there_is_found() {
    let helps = Helps::read();
    let fault = |line: &str| helps.fault(&commands_of(line)[0]);
    assert_eq!(fault("latchfs hold a --share none --for 3s &"), None);
    assert_eq!(fault("x=$(latchfs shares create docs --quota=1)"), None);
    assert_eq!(fault("until latchfs run --share r -- cp --parents a b; do"), None);
    assert!(fault("latchfs holt a").unwrap().contains("no command 'holt'"));
    assert!(fault("latchfs shares make a").unwrap().contains("no command 'make'"));
    assert!(fault("latchfs hold a --shar none").unwrap().contains("no option '--shar'"));
    assert_eq!(commands_of("cat latchfs-mnt/a.txt # latchfs"), Vec::<Vec<&str>>::new());
}
