//! A load file for a running server. Its form, and what is made of it, are decided in `server/`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::ApiFailure;
use super::session::Session;

/// Makes what a load file names and the account does not have.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadInto {
    /// The absolute path of the file, which the server reads
    pub file: PathBuf,
}

/// How many objects were made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Loaded {
    pub containers: usize,
    pub blobs: usize,
    pub queues: usize,
    pub messages: usize,
    pub tables: usize,
    pub entities: usize,
    /// How many were there already and stay as they are.
    pub existed: usize,
}

impl Session {
    /// Checks all of the file, then makes what is missing.
    pub fn load(&self, LoadInto { file }: LoadInto) -> Result<Loaded, ApiFailure> {
        if !file.is_absolute() {
            let file = file.display();
            Err(format!("'file' is {file}: give an absolute path, as the server reads it"))?;
        }
        let loaded = self.serving.load(self.account.name(), &file)?;
        self.tell("load", None, file.display().to_string());
        Ok(loaded)
    }
}
