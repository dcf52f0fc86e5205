//! `latchfs mk` and `latchfs rm`: making what holds objects, and deleting.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

use super::list::names_in;
use super::{AccountOf, Ask, Demands, Refusal, Session, on_object, path_of};
use crate::cli::out::Output;
use crate::control::address::Address;
use crate::core::service::ServiceKind;

/// Make a container, queue, table, share or directory
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs mk blob:docs\n  latchfs mk queue:jobs")]
pub struct Mk {
    #[arg(help = "blob:CONTAINER, queue:NAME, table:TABLE, file:SHARE[/DIRECTORY], \
                  SHARE:/DIRECTORY, or a path on a mount")]
    object: PathBuf,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: AccountOf,
}

/// The forms of an address that can be deleted.
const DELETED_FORM: &str = "blob:CONTAINER[/NAME], queue:NAME[/ID], table:TABLE[/PARTITION/ROW], \
                            file:SHARE[/PATH], SHARE:/PATH, or a path on a mount";

/// Delete a blob, message, entity or file, or what holds them
///
/// A blob goes with its snapshots. A container, queue, table or share is deleted with all that it
/// holds, and only with --recursive; so is a directory that is not empty. Exits 1 if the ETag is
/// another one, 16 if somebody else holds it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs rm blob:docs/a.txt\n  latchfs rm -r queue:jobs")]
pub struct Rm {
    #[arg(help = DELETED_FORM)]
    object: PathBuf,

    /// A container, queue, table, share or directory with all that it holds
    #[arg(short, long)]
    recursive: bool,

    /// The pop receipt of a message, as `latchfs get` printed it
    #[arg(long, value_name = "RECEIPT", env = "LATCHFS_RECEIPT")]
    receipt: Option<String>,

    #[command(flatten)]
    demands: Demands,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: AccountOf,
}

impl Mk {
    /// Makes it.
    pub fn run(&self) -> Result<ExitCode> {
        on_object(&self.object, &self.server, |session, object| self.make(session, object))
    }

    fn make(&self, session: &Session, object: &Address) -> Result<ExitCode> {
        let path = path_of(object);
        let put = |query| Ask { query, ..Ask::new(object.service(), "PUT", path.clone()) };
        session.ask(match object {
            Address::Container(_) => put(&[("restype", "container")]),
            Address::Queue(_) => put(&[]),
            Address::File { path, .. } if path.is_empty() => put(&[("restype", "share")]),
            Address::File { .. } => put(&[("restype", "directory")]),
            Address::Table(name) => Ask {
                body: json!({ "TableName": name }).to_string().into_bytes(),
                ..Ask::new(ServiceKind::Table, "POST", "Tables")
            },
            other => bail!("{other} cannot be made: expected a container, queue, table or share"),
        })?;
        self.output.show(&json!({ "created": object.to_string() }), String::new)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Rm {
    /// Deletes it.
    pub fn run(&self) -> Result<ExitCode> {
        let server = if self.recursive { self.server.for_deletion() } else { self.server.clone() };
        on_object(&self.object, &server, |session, object| self.remove(session, object))
    }

    fn remove(&self, session: &Session, object: &Address) -> Result<ExitCode> {
        let mut ask = Ask::new(object.service(), "DELETE", path_of(object));
        ask.headers = self.demands.headers();
        if self.demands.if_match.is_some() {
            match object {
                Address::Blob { .. } | Address::Entity { .. } => {}
                other => bail!("{other} has no ETag to compare: only blobs and entities have"),
            }
        }
        let receipt;
        match object {
            Address::Blob { .. } => {
                ask.headers.push(("x-ms-delete-snapshots", "include".into()));
            }
            Address::Entity { .. } => {
                if self.demands.if_match.is_none() {
                    ask.headers.push(("if-match", "*".into()));
                }
            }
            Address::Message { .. } => {
                let given = self.receipt.as_deref();
                let given = given.context("a message is deleted with its --receipt")?;
                receipt = [("popreceipt", given)];
                ask.query = &receipt;
            }
            Address::File { path, .. } if !path.is_empty() => {
                if is_directory(session, object)? {
                    if self.recursive {
                        self.empty(session, object)?;
                    }
                    ask.query = &[("restype", "directory")];
                }
            }
            whole => {
                if !self.recursive {
                    bail!("{whole} is deleted with all that it holds: add --recursive");
                }
                match whole {
                    Address::Container(_) => ask.query = &[("restype", "container")],
                    Address::File { .. } => ask.query = &[("restype", "share")],
                    Address::Table(name) => ask.path = format!("Tables('{name}')"),
                    Address::Queue(_) => {}
                    other => bail!("{other} cannot be deleted: expected {DELETED_FORM}"),
                }
            }
        }
        session.ask(ask)?;
        self.output.show(&json!({ "deleted": object.to_string() }), String::new)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Deletes the entries of a directory. Stops at the first entry that another client holds.
    fn empty(&self, session: &Session, directory: &Address) -> Result<()> {
        let Address::File { share, path } = directory else { return Ok(()) };
        for (below, is_directory) in names_in(session, share, path)? {
            let mut ask = Ask::new(ServiceKind::File, "DELETE", path_of(&below));
            ask.headers = self.demands.headers();
            if is_directory {
                self.empty(session, &below)?;
                ask.query = &[("restype", "directory")];
            }
            session.ask(ask).with_context(|| below.to_string())?;
        }
        Ok(())
    }
}

/// Whether there is a directory of that name.
fn is_directory(session: &Session, object: &Address) -> Result<bool> {
    let query = &[("restype", "directory")];
    let ask = Ask { query, ..Ask::new(ServiceKind::File, "HEAD", path_of(object)) };
    match session.ask(ask) {
        Ok(_) => Ok(true),
        Err(error) if error.is::<Refusal>() => Ok(false),
        Err(error) => Err(error),
    }
}
