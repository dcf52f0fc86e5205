//! The layout of help: a line on the command, a line for each option, then its behaviour and an
//! example. `-h` and `--help` say the same, except where a command has more options than fit a
//! screen: there `-h` leaves the rare ones out. The program's own help has the commands in groups.
//! And `latchfs completions`: a script with which a shell completes commands and options.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::{BoolishValueParser, Resettable};
use clap::{Arg, ArgAction, Args, Command, CommandFactory};
use clap_complete::Shell;

use super::serve::HEADING;
use super::{Cli, HEADINGS, out};

/// The program with its help laid out: that of each command, and its own in groups.
pub fn laid_out(program: Command) -> Command {
    let program = each(program);
    let mut text = "{about}\n\n{usage-heading} {usage}\n\n".to_owned();
    let commands: Vec<_> = program.get_subcommands().collect();
    let mut rest = commands.as_slice();
    for (heading, count) in HEADINGS {
        // As clap marks a heading.
        writeln!(text, "\x1b[1m\x1b[4m{heading}:\x1b[0m").expect("a string takes all text");
        let (listed, after) = rest.split_at(*count);
        rest = after;
        for command in listed {
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
        .mut_args(each_argument)
        .mut_subcommands(each)
}

/// A switch takes `1`, `yes` and the like from its variable. The names of variables are not shown:
/// they follow from those of the options, and one page lists them.
fn each_argument(argument: Arg) -> Arg {
    let of_azurite = argument.get_help_heading() == Some(HEADING);
    let hidden = of_azurite || argument.is_hide_short_help_set();
    let argument = argument.hide_env(true).hide_short_help(hidden);
    if matches!(argument.get_action(), ArgAction::SetTrue) {
        return argument.value_parser(BoolishValueParser::new());
    }
    argument
}

/// Print the completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  source <(latchfs completions bash)")]
pub struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    pub fn run(&self) -> Result<ExitCode> {
        let mut command = Cli::command();
        let name = command.get_name().to_owned();
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut text);
        out::print(&String::from_utf8_lossy(&text))?;
        Ok(ExitCode::SUCCESS)
    }
}
