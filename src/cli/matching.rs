//! The options that say which requests a gate or a fault applies to, and the answers that both
//! commands give.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::locate::{ServerAndOutput, ask};
use super::out::{Output, usage};
use crate::api::{Call, Removed, Requests};

/// Which requests are meant.
#[derive(Debug, Clone, Args)]
pub struct Matching {
    /// The operation, as in 'Put Blob'; * stands for any letters
    operation: String,

    /// Path of the request, such as CONTAINER/BLOB or SHARE/DIRECTORY/FILE; a CONTAINER alone means
    /// all in it; * stands for any letters but a slash, ** for any
    path: Option<String>,

    /// file, blob, queue or table
    #[arg(long, value_name = "SERVICE", env = "LATCHFS_SERVICE")]
    service: Option<String>,

    /// A header, with a pattern for its value
    #[arg(long = "header", value_name = "NAME:PATTERN", env = "LATCHFS_HEADER")]
    headers: Vec<String>,

    /// Of this account alone
    #[arg(long, value_name = "NAME", env = "LATCHFS_ACCOUNT")]
    account: Option<String>,
}

impl Matching {
    pub fn requests(&self) -> Result<Requests> {
        let header = |text: &String| {
            let Some((name, glob)) = text.split_once(':') else {
                usage!("--header '{text}': expected NAME:PATTERN, as in if-match:*");
            };
            Ok((name.trim().to_ascii_lowercase(), glob.trim().to_owned()))
        };
        Ok(Requests {
            service: self.service.clone(),
            operation: Some(self.operation.clone()),
            path: self.path.clone(),
            account: self.account.clone(),
            headers: self.headers.iter().map(header).collect::<Result<_>>()?,
        })
    }
}

/// The operation and the path, with what else there is, for a table.
pub fn words_of(requests: &Requests) -> (String, String) {
    let operation = requests.operation.clone().unwrap_or_else(|| "*".to_owned());
    let operation = match &requests.service {
        Some(service) => format!("{operation} ({service})"),
        None => operation,
    };
    let mut path = requests.path.clone().unwrap_or_else(|| "**".to_owned());
    if let Some(account) = &requests.account {
        path = format!("{path} of {account}");
    }
    for (name, glob) in &requests.headers {
        path = format!("{path}, {name}: {glob}");
    }
    (operation, path)
}

/// Writes the number of the gate or fault that was added; `kind` is the key of the JSON.
pub fn show_added(id: u64, kind: &str, output: Output) -> Result<ExitCode> {
    output.show(&json!({ kind: id }), || format!("{id}\n"))
}

/// Removes one gate or fault, or all.
pub fn remove(
    kind: &str,
    one: Option<impl Call<Answer = Removed>>,
    all: Option<impl Call<Answer = Removed>>,
    common: &ServerAndOutput,
) -> Result<ExitCode> {
    let removed = match (one, all) {
        (Some(one), _) => ask(&common.server.find()?, &one)?,
        (None, Some(all)) => ask(&common.server.find()?, &all)?,
        (None, None) => usage!("name a {kind}, or --all"),
    };
    common.output.show(&removed, String::new)
}
