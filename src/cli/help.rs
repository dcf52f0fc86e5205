//! The layout of help: a line on the command, a line for each option, then its behaviour and an
//! example. `-h` and `--help` say the same, except where a command has more options than fit a
//! screen: there `-h` leaves the rare ones out.

use clap::Command;
use clap::builder::Resettable;

/// Lays the help of a command and of all below it out.
pub fn laid_out(command: Command) -> Command {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let more = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let more = more.strip_prefix(&about).unwrap_or(&more).trim().to_owned();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let below: Vec<_> = [more, after].into_iter().filter(|part| !part.is_empty()).collect();
    command
        .long_about(Resettable::Reset)
        .after_help(below.join("\n\n"))
        // Which variables there are is news; what they hold may be a key.
        .mut_args(|argument| argument.hide_env_values(true))
        .mut_subcommands(laid_out)
}
