//! `latchfs mk` and `latchfs rm`: making what holds objects, and deleting.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use serde_json::json;

use super::list::{content_of, is_directory, names_in};
use super::{
    AccountAndOutput, ConditionArgs, ServiceRefusal, Session, StorageRequest, on_object, path_of,
};
use crate::api::ObjectAddress;
use crate::cli::out::usage;
use crate::rules::service::ServiceKind;

/// Make a container, queue, table, share or directory
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  latchfs mk blob:docs\n  latchfs mk queue:jobs")]
pub struct Mk {
    #[arg(help = "blob:CONTAINER, queue:NAME, table:TABLE, file:SHARE[/DIRECTORY], \
                  SHARE:/DIRECTORY, or a path on a mount")]
    object: PathBuf,

    #[command(flatten)]
    common: AccountAndOutput,
}

/// The status of an answer that says nothing, as that of a queue which was there before.
const NO_CONTENT: u16 = 204;

/// The forms of an address that can be deleted.
const DELETED_FORM: &str = "blob:CONTAINER[/NAME], queue:NAME[/ID], table:TABLE[/PARTITION/ROW], \
                            file:SHARE[/PATH], SHARE:/PATH, or a path on a mount";

/// Delete a blob, message, entity or file, or what holds them
///
/// A blob goes with its snapshots. A container, queue, table or share is deleted with all that it
/// holds, and only with --recursive; so is a directory that is not empty. Exits 1 if the ETag is
/// another one or the lease is over, 16 if somebody else holds it.
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
    demands: ConditionArgs,

    #[command(flatten)]
    common: AccountAndOutput,
}

impl Mk {
    pub fn run(&self) -> Result<ExitCode> {
        on_object(&self.object, &self.common.server, |session, object| self.make(session, object))
    }

    fn make(&self, session: &Session, object: &ObjectAddress) -> Result<ExitCode> {
        let path = path_of(object);
        let put = |query| StorageRequest {
            query,
            ..StorageRequest::new(object.service(), "PUT", path.clone())
        };
        let got = session.ask(match object {
            ObjectAddress::Container(_) => put(&[("restype", "container")]),
            ObjectAddress::Queue(_) => put(&[]),
            ObjectAddress::File { path, .. } if path.is_empty() => put(&[("restype", "share")]),
            ObjectAddress::File { .. } => put(&[("restype", "directory")]),
            ObjectAddress::Table(name) => StorageRequest {
                body: json!({ "TableName": name }).to_string().into_bytes(),
                ..StorageRequest::new(ServiceKind::Table, "POST", "Tables")
            },
            other => usage!("{other} cannot be made: expected a container, queue, table or share"),
        });
        let got = got?;
        // A queue alone may be made again; the service then answers that there is nothing to do.
        if got.status() == NO_CONTENT && matches!(object, ObjectAddress::Queue(_)) {
            bail!("{object}: the queue exists already");
        }
        self.common.output.show(&json!({ "created": object.to_string() }), String::new)
    }
}

impl Rm {
    pub fn run(&self) -> Result<ExitCode> {
        let server = if self.recursive {
            self.common.server.for_deletion()
        } else {
            self.common.server.clone()
        };
        on_object(&self.object, &server, |session, object| self.remove(session, object))
    }

    fn remove(&self, session: &Session, object: &ObjectAddress) -> Result<ExitCode> {
        let mut ask = StorageRequest::new(object.service(), "DELETE", path_of(object));
        ask.headers = self.demands.headers();
        if self.demands.if_match.is_some() {
            match object {
                ObjectAddress::Blob { .. } | ObjectAddress::Entity { .. } => {}
                other => usage!("{other} has no ETag to compare: only blobs and entities have"),
            }
        }
        let receipt;
        match object {
            ObjectAddress::Blob { .. } => {
                ask.headers.push(("x-ms-delete-snapshots", "include".into()));
            }
            ObjectAddress::Entity { .. } => {
                if self.demands.if_match.is_none() {
                    ask.headers.push(("if-match", "*".into()));
                }
            }
            ObjectAddress::Message { .. } => {
                let given = self.receipt.as_deref();
                let given = given.context("a message is deleted with its --receipt")?;
                receipt = [("popreceipt", given)];
                ask.query = &receipt;
            }
            ObjectAddress::File { share, path } if !path.is_empty() => {
                if is_directory(session, share, path)? == Some(true) {
                    if self.recursive {
                        self.empty(session, object)?;
                    }
                    ask.query = &[("restype", "directory")];
                }
            }
            whole => {
                match whole {
                    ObjectAddress::Container(_) => ask.query = &[("restype", "container")],
                    ObjectAddress::File { .. } => ask.query = &[("restype", "share")],
                    ObjectAddress::Table(name) => ask.path = format!("Tables('{name}')"),
                    ObjectAddress::Queue(_) => {}
                    other => usage!("{other} cannot be deleted: expected {DELETED_FORM}"),
                }
                if !self.recursive {
                    return Err(needs_recursive(session, whole));
                }
            }
        }
        session.ask(ask).map_err(|mut error| {
            if let Some(refusal) = error.downcast_mut::<ServiceRefusal>()
                && refusal.code == "DirectoryNotEmpty"
            {
                refusal.message = needs_recursive(session, object).to_string();
            }
            error
        })?;
        self.common.output.show(&json!({ "deleted": object.to_string() }), String::new)
    }

    /// Deletes the entries of a directory. Stops at the first entry that another client holds.
    fn empty(&self, session: &Session, directory: &ObjectAddress) -> Result<()> {
        let ObjectAddress::File { share, path } = directory else { return Ok(()) };
        for (below, is_directory) in names_in(session, share, path)? {
            let mut ask = StorageRequest::new(ServiceKind::File, "DELETE", path_of(&below));
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

/// The error where something was not deleted because of what it holds.
fn needs_recursive(session: &Session, object: &ObjectAddress) -> anyhow::Error {
    match content_of(session, object) {
        Ok(content) => {
            let them = if content.starts_with("1 ") { "it" } else { "them" };
            anyhow!("not deleted: {object} has {content}; --recursive deletes {them} too")
        }
        Err(error) => error,
    }
}
