//! `latchfs completions`: a script with which a shell completes commands and options.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, out};

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
