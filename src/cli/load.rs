//! `latchfs load`: a load file for a running server. What is made of it is decided in
//! `server/load`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::locate::AccountAndOutput;
use super::out;
use crate::api::{ApiClient, LoadInto, Loaded};
use crate::server::load_schema;

const EXAMPLE: &str = r#"Example:
  echo '{"queues": [{"name": "jobs", "messages": ["one"]}]}' > load.json
  latchfs load load.json"#;

/// Make the containers, queues and tables of a file
///
/// The file is JSON: containers with blobs, queues with messages, tables with entities. All of it
/// is checked before anything is made. What exists stays as it is, and an existing queue gets no
/// messages. `latchfs serve --load FILE` does the same at a start, and again after each reset.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct LoadCommand {
    /// The file; blobs that are files are found from its folder
    #[arg(required_unless_present = "schema")]
    file: Option<PathBuf>,

    /// Print the JSON schema of the file
    #[arg(long, conflicts_with = "file")]
    schema: bool,

    #[command(flatten)]
    common: AccountAndOutput,
}

impl LoadCommand {
    pub fn run(&self) -> Result<ExitCode> {
        let Some(file) = &self.file else {
            out::print(&format!("{:#}\n", load_schema().as_value()))?;
            return Ok(ExitCode::SUCCESS);
        };
        let file = absolute(file)?;
        let control = self.common.server.server.find()?;
        let server = ApiClient::new(&control).of_account(self.common.server.account.as_deref());
        let loaded = server.ask(&LoadInto { file })?;
        self.common.output.show(&loaded, || words(&loaded))
    }
}

fn absolute(file: &Path) -> Result<PathBuf> {
    file.canonicalize().with_context(|| file.display().to_string())
}

fn words(loaded: &Loaded) -> String {
    let Loaded { containers, blobs, queues, messages, tables, entities, existed } = loaded;
    format!(
        "made {containers} containers, {blobs} blobs, {queues} queues, {messages} messages, \
         {tables} tables, {entities} entities; {existed} existed\n"
    )
}
