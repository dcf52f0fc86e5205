//! The layout of help: a line on the command, a line for each option, then its behaviour and an
//! example. `-h` and `--help` say the same, except where a command has more options than fit a
//! screen: there `-h` leaves the rare ones out. The program's own help has the commands in groups.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::Resettable;

/// The commands by what they are for, each in one group.
pub const GROUPS: [(&str, &[&str]); 5] = [
    ("Run", &["serve", "mount", "unmount", "stop", "health", "doctor", "completions"]),
    ("Look", &["status", "handles", "why", "history", "events", "report"]),
    ("Hold and close", &["hold", "run", "close-handle", "lease", "undelete"]),
    (
        "Data",
        &[
            "ls",
            "mk",
            "put",
            "get",
            "rm",
            "shares",
            "snapshot",
            "load",
            "connection-string",
            "sas",
            "token",
        ],
    ),
    ("Test bench", &["clock", "gate", "fault", "state", "client", "explore"]),
];

/// The program with its help laid out: that of each command, and its own in groups.
pub fn laid_out(program: Command) -> Command {
    let program = each(program);
    let mut text = "{about}\n\n{usage-heading} {usage}\n\n".to_owned();
    for (group, names) in GROUPS {
        // As clap marks a heading.
        writeln!(text, "\x1b[1m\x1b[4m{group}:\x1b[0m").expect("a string takes all text");
        for command in names.iter().filter_map(|name| program.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let name = command.get_name();
            writeln!(text, "  {name:17}  {about}").expect("a string takes all text");
        }
    }
    program.help_template(text.trim_end().to_owned() + "{after-help}")
}

/// Lays the help of a command and of all below it out.
fn each(command: Command) -> Command {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let more = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let more = more.strip_prefix(&about).unwrap_or(&more).trim().to_owned();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let below: Vec<_> = [more, after].into_iter().filter(|part| !part.is_empty()).collect();
    command
        .long_about(Resettable::Reset)
        .after_help(below.join("\n\n"))
        // The names follow from those of the options, and one page lists them.
        .mut_args(|argument| argument.hide_env(true))
        .mut_subcommands(each)
}
