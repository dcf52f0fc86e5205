//! Tests the help of every command, and writes `docs/command-line.md` from it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use clap::{Command, CommandFactory};

use super::serve::HEADING;
use super::{Cli, help};

/// The most lines that fit a screen.
const LINES_MAX: usize = 48;

/// How wide help is at most.
const COLUMNS: usize = 100;

/// Commands with more options than fit a screen: their `-h` leaves the rare ones out.
const LONG: [&str; 2] = ["latchfs serve", "latchfs mount"];

/// Options that no variable stands for: they make a command another one.
const WITHOUT_VARIABLE: [&str; 4] = ["env", "help", "schema", "version"];

/// Options that are read from the command line only: a variable that was set for another command
/// would make these delete or close more than was asked for.
const ARGUMENT_ONLY: [(&str, &str); 9] = [
    ("latchfs close-handle", "all"),
    ("latchfs fault remove", "all"),
    ("latchfs gate remove", "all"),
    ("latchfs hold", "delete-on-close"),
    ("latchfs hold", "disposition"),
    ("latchfs rm", "recursive"),
    ("latchfs serve", "reset"),
    ("latchfs shares delete", "snapshots"),
    ("latchfs unmount", "lazy"),
];

/// Commands that print JSON whatever is asked for, or what is not theirs.
const WITHOUT_JSON: [&str; 2] = ["latchfs run", "latchfs completions"];

/// Variables that are no option's: for tests, benchmarks and packages, and the old names of two.
const OTHER_VARIABLES: [&str; 7] = [
    "LATCHFS_BINARY",
    "LATCHFS_BLESS",
    "LATCHFS_FILES",
    "LATCHFS_FULL",
    "LATCHFS_LISTEN",
    "LATCHFS_REQUIRE",
    "LATCHFS_TEST_SEED",
];

const PAGE: &str = "docs/command-line.md";

const HEAD: &str = "\
# The command line

<!-- Written by a test from the program's own help. To renew it:
     LATCHFS_BLESS=1 cargo test --lib cli::reference -->

For people who look up a command: the help of each, as `latchfs COMMAND --help` prints it. Answers
are tables on a terminal and tab-separated lines off it; `--json` gives one line of JSON, whose
fields are [listed with the API](api.md#json-of-commands). Nothing is coloured off a terminal, nor
with `NO_COLOR` set. Messages go to standard error, a line each. Variables that set options are on
[the page on configuration](configuration.md).

Commands other than `serve` and `mount` ask a running server over its control socket, which only its
owner and root may use. A command finds the server by its PATH, if that is on a mount; else by the
working directory (on a mount, with `./latchfs-data` or `./latchfs-mnt` in it, or where the only
server with data in memory was started); else it uses the only running server of this user, and
names it on standard error, unless the command deletes data. `--control` overrides this.

What a service holds has an address, the same for every command: `blob:CONTAINER/NAME`,
`queue:NAME/ID`, `table:TABLE/PARTITION/ROW`, `file:SHARE/PATH`; the beginning of one is what holds
the rest. `ls`, `mk`, `put`, `get` and `rm` use the services' own endpoints, with the account's key.

Exit status:

- 0: done; the answer is yes.
- 1: the answer is no. Nothing to close, no mark, no lease, no message; something in the way
  (`why`), another ETag (`put`, `rm`), something missing (`doctor`), an order that fails
  (`explore`).
- 2: the command could not be carried out, or the arguments make no sense.
- 3: a held handle was closed by force (`hold`).
- 16: somebody else holds what was asked for (`hold`, `shares delete`, `put`, `get`, `rm`).

`run` exits as its command does.
";

/// The words of every command, and the command.
fn commands() -> Vec<(Vec<String>, Command)> {
    fn add(found: &mut Vec<(Vec<String>, Command)>, above: &[String], command: &Command) {
        let words = [above, &[command.get_name().to_owned()]].concat();
        found.push((words.clone(), command.clone()));
        shown(command).for_each(|below| add(found, &words, below));
    }
    let mut found = Vec::new();
    add(&mut found, &[], &help::laid_out(Cli::command()));
    found
}

/// The commands below one, without those that only the program itself starts.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set())
}

/// The output of the program with that flag.
fn printed(words: &[String], flag: &str) -> String {
    let command = help::laid_out(Cli::command()).term_width(COLUMNS);
    let arguments = words.iter().map(String::as_str).chain([flag]);
    let text = command.try_get_matches_from(arguments).unwrap_err().render().to_string();
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (words, _) in commands() {
        let text = printed(&words, "--help");
        write!(page, "\n## {}\n\n```text\n{text}\n```\n", words.join(" ")).unwrap();
    }
    page
}

#[test]
fn the_page_on_configuration_has_every_variable_and_no_other() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let page = fs::read_to_string(path).unwrap();
    let words = page.split(|letter: char| !letter.is_ascii_uppercase() && letter != '_');
    let ours = words.filter(|word| word.starts_with("LATCHFS_") && word.len() > 8);
    let listed: BTreeSet<_> = ours.filter(|word| !OTHER_VARIABLES.contains(word)).collect();
    let commands = commands();
    let options = commands.iter().flat_map(|(_, command)| command.get_arguments());
    let known: BTreeSet<_> = options.filter_map(|option| option.get_env()?.to_str()).collect();
    let missing: Vec<_> = known.difference(&listed).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
    let wrong: Vec<_> = listed.difference(&known).collect();
    assert!(wrong.is_empty(), "on the page, and no variable: {wrong:?}");
}

#[test]
fn the_help_of_every_command_fits_a_screen_and_has_an_example() {
    for (words, _) in commands() {
        let name = words.join(" ");
        for flag in ["-h", "--help"] {
            let text = printed(&words, flag);
            let lines = text.lines().count();
            // The program's own help is a list of its commands, a line each.
            let long = (flag == "--help" && LONG.contains(&name.as_str())) || name == "latchfs";
            assert!(long || lines <= LINES_MAX, "{name} {flag} has {lines} lines:\n{text}");
            assert!(text.contains("Example"), "{name} {flag} has no example:\n{text}");
        }
    }
}

#[test]
fn every_option_can_be_set_by_a_variable_unless_it_widens_what_is_removed() {
    for (words, command) in commands() {
        let words = words.join(" ");
        for option in command.get_arguments().filter(|argument| argument.get_long().is_some()) {
            let long = option.get_long().unwrap();
            let variable = option.get_env().and_then(|variable| variable.to_str());
            let named = variable.is_some_and(|variable| variable.starts_with("LATCHFS_"));
            // Azurite has no variables for them.
            let azurite = option.get_help_heading() == Some(HEADING);
            let free = WITHOUT_VARIABLE.contains(&long) || azurite;
            let argument_only = ARGUMENT_ONLY.contains(&(&words, long));
            assert!(named || free || argument_only, "--{long} of {words} has no variable");
            assert!(!(named && argument_only), "--{long} of {words} has a variable");
        }
    }
}

#[test]
fn every_answer_can_be_had_as_json() {
    // One that has commands answers by itself only without one.
    for (words, command) in commands().into_iter().filter(|(_, one)| !one.has_subcommands()) {
        let words = words.join(" ");
        let answers = !WITHOUT_JSON.contains(&words.as_str());
        let json = command.get_arguments().any(|option| option.get_long() == Some("json"));
        assert_eq!(json, answers, "{words}");
    }
}

#[test]
fn the_page_on_the_command_line_says_what_the_program_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = page();
    if env::var_os("LATCHFS_BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "{PAGE} differs from the help of the program. To renew it: \
         LATCHFS_BLESS=1 cargo test --lib cli::reference"
    );
}
