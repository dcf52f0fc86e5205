//! Pages that speak of the source: the messages on the page about trouble, the picture of the
//! modules, and the list of pages in the README.

use std::fs;
use std::path::{Path, PathBuf};

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::common::pages::page;
use crate::docs::blocks::all_pages;

/// The shortest piece of a message that says something.
const PIECE_MIN: usize = 8;

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All of the source, with texts that go over several lines joined.
fn source() -> String {
    let texts =
        sources(&root().join("src")).into_iter().map(|path| fs::read_to_string(path).unwrap());
    let joined = texts.map(|text| {
        let mut parts = text.split("\\\n");
        let first = parts.next().unwrap().to_owned();
        parts.fold(first, |text, part| text + part.trim_start())
    });
    joined.collect::<Vec<_>>().join("\n")
}

/// A message without the words in capitals, which stand for something else.
fn pieces(message: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for word in message.replace("[latchfs:", "LATCHFS").split_inclusive(' ') {
        let letters = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let stands = letters.len() > 1 && !letters.chars().any(char::is_lowercase);
        if stands && !letters.starts_with("REST") {
            pieces.push(String::new());
        } else {
            pieces.last_mut().unwrap().push_str(word);
        }
    }
    let trimmed = pieces
        .iter()
        .map(|piece| piece.trim_matches([' ', '(', ')', '[', ']', ':', ',', '.', '\'']));
    trimmed.filter(|piece| piece.len() >= PIECE_MIN).map(str::to_owned).collect()
}

#[test]
fn the_messages_of_the_page_on_trouble_are_the_program_s_own() {
    let source = source();
    let page = page("docs/troubleshooting.md");
    // A heading, or the first cell of a row.
    let messages = page.lines().filter_map(|line| {
        let rest = line.strip_prefix("### `").or_else(|| line.strip_prefix("| `"))?;
        rest.split('`').next()
    });
    let messages: Vec<_> = messages.collect();
    assert!(messages.len() >= 50, "{messages:?}");
    for message in messages {
        let pieces = pieces(message);
        assert!(!pieces.is_empty(), "nothing to look for in: {message}");
        for piece in pieces {
            assert!(source.contains(&piece), "nothing in src/ says '{piece}', of: {message}");
        }
    }
}

#[test]
fn the_page_on_the_architecture_and_its_picture_have_every_module() {
    let page = page("docs/architecture.md");
    let picture = page_text_of("docs/architecture.svg");
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            let mut rows = page.lines().filter(|line| line.starts_with("| `"));
            let listed =
                rows.any(|row| row.split('|').nth(1).unwrap().contains(&format!("`{name}`")));
            assert!(listed, "the page lacks {name}");
            assert!(picture.contains(&format!("{name}/")), "the picture lacks {name}/");
        }
    }
}

/// All text of the picture.
fn page_text_of(path: &str) -> String {
    lines_of_picture(path).concat()
}

/// The texts of a picture, one for each `text` element; the picture must be well formed.
pub fn lines_of_picture(path: &str) -> Vec<String> {
    let svg = page(path);
    let mut reader = Reader::from_str(&svg);
    let mut lines = Vec::new();
    let mut inside = false;
    loop {
        match reader.read_event().unwrap_or_else(|error| panic!("{path}: {error}")) {
            Event::Start(element) if element.name().as_ref() == "text" => {
                inside = true;
                lines.push(String::new());
            }
            Event::End(element) if element.name().as_ref() == "text" => inside = false,
            Event::Text(part) if inside => {
                lines.last_mut().unwrap().push_str(&part.xml10_content());
            }
            Event::GeneralRef(name) if inside => {
                let letter = match &*name {
                    "lt" => '<',
                    "gt" => '>',
                    "amp" => '&',
                    other => panic!("{path}: {other}"),
                };
                lines.last_mut().unwrap().push(letter);
            }
            Event::Eof => return lines,
            _ => {}
        }
    }
}

#[test]
fn the_readme_leads_to_every_page() {
    let readme = page("README.md");
    for path in all_pages().iter().filter(|path| *path != "README.md") {
        assert!(readme.contains(&format!("({path}")), "README.md does not lead to {path}");
    }
}

#[test]
fn a_message_is_looked_for_without_what_differs() {
    let found = pieces("cannot listen on ADDRESS (Address in use): stop what listens there");
    assert_eq!(found, ["cannot listen on", "Address in use): stop what listens there"]);
}
