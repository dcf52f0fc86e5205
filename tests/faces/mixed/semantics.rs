//! `docs/semantics.md` tells the truth: its examples are replayed on a mount and over HTTP, and its
//! tables of opens and of REST operations against them are tried row by row.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::common::calls::Call;
use crate::common::meeting::{Meeting, elements, errno};
use crate::common::need;
use crate::common::pages::{blocks, page, section};
use crate::common::served::{LATCHFS, wait_for};

const PAGE: &str = "docs/semantics.md";

/// What ends the output of a command; no command prints it.
const END: &str = "--- the command has ended ---";

/// A shell on the mount, fed one command at a time. Killed when dropped.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Shell {
    fn start(dir: &Path) -> Self {
        let bin = Path::new(LATCHFS).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut child = Command::new("sh")
            .current_dir(dir)
            .env("PATH", path)
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    /// Runs a command in the shell itself, so that what it opens with `exec` stays open.
    fn run(&mut self, command: &str) -> String {
        // A plain `exec` changes the shell's own descriptors: no braces around it.
        let line = match command.strip_prefix("exec ") {
            Some(_) => format!("{command}\necho; echo '{END}'\n"),
            None => format!("{{ {command}\n}} 2>&1\necho; echo '{END}'\n"),
        };
        self.input.write_all(line.as_bytes()).unwrap();
        let mut text = String::new();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the shell ended: {text}");
            if line.trim_end() == END {
                return text.trim_end().to_owned();
            }
            text.push_str(&line);
        }
    }

    /// How many descriptors it has on files below `dir`.
    fn opens_below(&self, dir: &Path) -> usize {
        let open = fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap();
        open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
            .filter(|target| target.starts_with(dir))
            .count()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends what a line with `rest` asks for; the answer as the page shows it.
fn rest(at: &Meeting, folder: &str, line: &str) -> String {
    let mut words = line.split_whitespace();
    let (method, name) = (words.next().unwrap(), words.next().unwrap_or_default());
    if method == "LIST" {
        let names = at.listing(folder).join(" ");
        return format!("200 {names}").trim_end().to_owned();
    }
    let mut body = "";
    let mut headers = Vec::new();
    for (key, value) in words.map(|word| word.split_once(':').unwrap()) {
        if key == "body" {
            body = value;
        } else {
            headers.push((key, value));
        }
    }
    let got = at.ask(method, &format!("/share/{folder}/{name}"), &headers, body.as_bytes());
    let closed = got.header("x-ms-number-of-handles-closed");
    let more = match (got.code(), closed, method) {
        ("", "", "GET") => got.text().trim_end().to_owned(),
        ("", "", _) => String::new(),
        ("", closed, _) => format!("closed {closed}"),
        (code, _, _) => code.to_owned(),
    };
    format!("{} {more}", got.status).trim_end().to_owned()
}

/// Carries a transcript out in a directory of its own.
fn replay(at: &Meeting, folder: &str, transcript: &str) {
    at.directory(folder);
    let dir = at.path(folder);
    let mut shell = Shell::start(&dir);
    for part in format!("\n{transcript}").split("\n$ ").skip(1) {
        let (command, shown) = part.split_once('\n').unwrap_or((part, ""));
        let seen = match command.strip_prefix("rest ") {
            Some(line) => {
                // What a program had open ends a little after the program.
                wait_for("closed descriptors to be released", || {
                    let listed = at.handles(folder, true).len();
                    // One that was closed by force is the shell's alone.
                    (listed <= shell.opens_below(&dir)).then_some(())
                });
                rest(at, folder, line)
            }
            None => shell.run(command),
        };
        assert_eq!(seen, shown, "$ {command}\nin\n{transcript}");
    }
}

#[test]
fn the_examples_of_the_page_happen_as_shown() {
    if !need::client("python3") {
        return;
    }
    let rules = ["--share-rule", "*.xlsx=none", "--share-rule", "*.doc=r"];
    let Some(at) = Meeting::alone(&rules) else { return };
    let page = page(PAGE);
    let examples = blocks(section(&page, "Examples"), "console");
    assert_eq!(examples.len(), 11, "the page has as many examples as are replayed here");
    for (number, example) in examples.into_iter().enumerate() {
        assert!(example.contains("$ rest "), "an example without REST:\n{example}");
        replay(&at, &format!("example-{number}"), example);
    }
}

/// The rows of the table whose header starts so, cell by cell.
fn table(header: &str) -> Vec<Vec<String>> {
    let page = page(PAGE);
    let (_, rows) = page.split_once(&format!("\n| {header}")).unwrap();
    let rows = rows.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

/// Reads `RW, shares none`.
fn open_of(text: &str) -> (String, String) {
    let (access, share) = text.split_once(", shares ").unwrap();
    (access.to_lowercase(), share.to_lowercase())
}

#[test]
fn the_table_of_two_opens_is_what_happens() {
    let Some(at) = Meeting::start() else { return };
    let rows = table("first open | second open | answer |");
    assert_eq!(rows.len(), 5);
    for (number, row) in rows.iter().enumerate() {
        let file = at.file(&format!("semantics-opens-{number}"));
        let ((access, share), then) = (open_of(&row[0]), open_of(&row[1]));
        let first = file.open(&access, &share);
        let refused = row[2].starts_with("refused");
        let errno = if refused { libc::EBUSY } else { 0 };
        assert_eq!(file.open_errno(&then.0, &then.1), errno, "{row:?}");
        first.close();
        assert_eq!(file.open_errno(&then.0, &then.1), 0, "{row:?}, closed");
    }
}

#[test]
fn the_table_of_operations_by_share_mode_is_what_happens() {
    let columns: [&[Call]; 5] = [
        &[Call::Get, Call::Ranges],
        &[Call::Put, Call::SetHeaders, Call::Resize, Call::SetMetadata],
        &[Call::Create, Call::CopyOnto],
        &[Call::RenameFrom],
        &[Call::Delete, Call::RenameOnto],
    ];
    let Some(at) = Meeting::start() else { return };
    let rows = table("the handle shares |");
    assert_eq!(rows.len(), 8);
    for row in &rows {
        let share = row[0].to_lowercase();
        assert_eq!(row.len(), 1 + columns.len());
        for (cell, calls) in row[1..].iter().zip(columns) {
            for call in calls {
                let file = at.file(&format!("semantics-{share}-{call:?}"));
                let _holder = file.open("rw", &share);
                let wanted = if cell == "yes" { "ok" } else { "SharingViolation" };
                file.answers(wanted, &[*call]);
            }
        }
    }
}

#[test]
fn a_file_that_is_emptied_keeps_its_metadata_on_the_mount_and_loses_it_by_create_file() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("semantics-emptied");
    let colour = || file.shown("x-ms-meta-colour");
    let id = file.shown("x-ms-file-id");
    file.call(Call::SetMetadata).is(200);
    fs::File::create(file.path()).unwrap();
    assert_eq!((colour().as_str(), file.shown("content-length").as_str()), ("blue", "0"));
    at.wait_idle("semantics-emptied");
    file.call(Call::Create).is(201);
    assert_eq!((colour().as_str(), file.shown("x-ms-file-id")), ("", id));
}

#[test]
fn a_refused_name_collision_and_a_pending_one_are_told_apart_on_each_face() {
    let Some(at) = Meeting::start() else { return };
    let file = at.file("semantics-taken");
    let create = || errno(fs::File::create_new(file.path()));
    assert_eq!(create(), libc::EEXIST);
    let _keeper = file.pending();
    assert_eq!(create(), libc::EEXIST);
    assert_eq!(errno(fs::File::create(file.path())), libc::EBUSY);
    file.answers("SMBDeletePending", &[Call::Create]);
    let text = file.call(Call::Create).text();
    assert_eq!(elements(&text, "Code"), ["SMBDeletePending"]);
}
