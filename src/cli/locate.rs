//! Finds the server that a command asks, and the file, share and account that it names.
//!
//! The server, in this order: `--control`; the mount that the path lies on; the mount that the
//! working directory lies on; the data directory, which is `LATCHFS_DATA` or `./latchfs-data`; what
//! is mounted on `./latchfs-mnt`; the only server with data in memory that was started here; the
//! only server of this user that runs, unless there is a `./latchfs-data`. Commands that delete
//! data do not take the last.
//!
//! A path is one on a mount, `file:SHARE/PATH`, or `[ACCOUNT/]NAME:/PATH` as commands print it;
//! with `--share-name` a path from the root of that share.

use std::env;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use serde::Serialize;

use super::out::{Output, usage};
use super::serve::{DATA_DIR, MOUNT_DIR, RunningServer, control_of, running};
use super::{EXIT_BUSY, EXIT_FAILED, out, time};
use crate::api::{ApiClient, Call, ClientError, GetStatus, ObjectAddress, PrintedFile};
use crate::file::mount::mounts;
use crate::file::rules::name::is_share_name;
use crate::rules::service::ServiceKind;
use crate::server;

/// How to find the server.
#[derive(Debug, Clone, Default, Args)]
pub struct Socket {
    /// Control socket of the server [default: that of the mount, or of ./latchfs-data]
    #[arg(long, value_name = "SOCKET", env = "LATCHFS_CONTROL")]
    pub control: Option<PathBuf>,

    /// Whether the command deletes data: the server must be near or named.
    #[arg(skip)]
    deletes: bool,
}

/// How to find the server, and how to answer.
#[derive(Debug, Args)]
pub struct ServerAndOutput {
    #[command(flatten)]
    pub output: Output,

    #[command(flatten)]
    pub server: Socket,
}

/// How to find a server by a path.
#[derive(Debug, Clone, Default, Args)]
pub struct ServerByPath {
    /// A path on a mount of the server, or its data directory
    path: Option<PathBuf>,

    #[command(flatten)]
    server: Socket,
}

/// How to find an account of a server by a path, and how to answer.
#[derive(Debug, Args)]
pub struct AccountByPath {
    #[command(flatten)]
    pub output: Output,

    /// Account [default: the server's first]
    #[arg(long, value_name = "NAME", env = "LATCHFS_ACCOUNT")]
    account: Option<String>,

    #[command(flatten)]
    server: ServerByPath,
}

impl AccountByPath {
    /// The server that is meant, and the account: the one that was named, or that of the mount.
    pub fn find(&self) -> Result<(PathBuf, Option<String>)> {
        self.server.find_account(self.account.as_deref())
    }
}

/// How to find an account of a server.
#[derive(Debug, Clone, Default, Args)]
pub struct AccountOf {
    #[command(flatten)]
    pub server: Socket,

    /// Account [default: the server's first]
    #[arg(long, value_name = "NAME", env = "LATCHFS_ACCOUNT")]
    pub account: Option<String>,
}

/// How to find an account of a server, and how to answer.
#[derive(Debug, Args)]
pub struct AccountAndOutput {
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub server: AccountOf,
}

/// How to find a share of a server, and how to answer.
#[derive(Debug, Args)]
pub struct WhereAndOutput {
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub server: Where,
}

/// How to find a share of a server.
#[derive(Debug, Clone, Default, Args)]
pub struct Where {
    #[command(flatten)]
    pub of: AccountOf,

    /// Share name; paths are then paths within the share
    #[arg(long, value_name = "NAME", env = "LATCHFS_SHARE_NAME")]
    pub share_name: Option<String>,
}

/// A file of a share, and the server that has it.
#[derive(Debug)]
pub struct LocatedFile {
    pub control: PathBuf,
    /// The account; none for the server's first.
    pub account: Option<String>,
    /// The share.
    pub share_name: Option<String>,
    /// The path within it.
    pub path: String,
}

impl LocatedFile {
    /// A client of the server, about the account.
    pub fn client(&self) -> ApiClient {
        ApiClient::new(&self.control).of_account(self.account.as_deref())
    }

    /// Asks the server. [`refused`] tells of a refusal.
    pub fn ask<C: Call>(&self, call: &C) -> Result<C::Answer> {
        Ok(self.client().ask(call)?)
    }

    /// The file as the API names it.
    pub fn object(&self) -> String {
        match (&self.share_name, self.path.trim_matches('/')) {
            (Some(share), path) => format!("file:{share}/{path}"),
            (None, _) => "share:".to_owned(),
        }
    }

    /// The accounts of the server.
    pub fn accounts(&self) -> Result<AccountNames> {
        Ok(AccountNames(self.ask(&GetStatus {})?.accounts))
    }
}

/// The accounts of a server, by name.
pub struct AccountNames(Vec<String>);

impl AccountNames {
    /// A file as commands print it; with its account where the server has several.
    pub fn file(&self, account: &str, share: &str, path: &str) -> String {
        if self.0.len() > 1 {
            format!("{account}/{share}:{path}")
        } else {
            format!("{share}:{path}")
        }
    }

    /// Where the server has several accounts: which one was asked, and how to ask the others.
    pub fn hint(&self, asked: Option<&str>) -> Option<String> {
        let first = self.0.first()?;
        let asked = asked.unwrap_or(first);
        let others: Vec<_> =
            self.0.iter().map(String::as_str).filter(|name| *name != asked).collect();
        let all = others.join(" or ");
        (!others.is_empty()).then(|| format!("this is account {asked}; --account asks {all}"))
    }
}

impl Where {
    /// The server, share and file that `path` names.
    pub fn target(&self, path: &Path) -> Result<LocatedFile> {
        self.find(path)?.with_context(|| {
            let share = path.to_str().filter(|name| is_share_name(name) && !path.exists());
            let share = share.map(|name| format!(", and the share itself as {name}:/"));
            format!(
                "{} is not on a latchfs mount: name a path on one, or a file of a share as \
                 NAME:/PATH{}",
                path.display(),
                share.unwrap_or_default()
            )
        })
    }

    /// The server, share and file that `path` names; `None` if the path is not on a mount.
    pub fn find(&self, path: &Path) -> Result<Option<LocatedFile>> {
        let text = |path: &Path| {
            let text = path.to_str().map(str::to_owned);
            text.ok_or_else(|| anyhow!("{}: names on a share are UTF-8", path.display()))
        };
        if let Some(printed) = path.to_str().and_then(PrintedFile::read) {
            return Ok(Some(LocatedFile {
                control: self.socket()?,
                account: self.of.account_of(path, printed.account)?,
                share_name: Some(printed.share),
                path: printed.path,
            }));
        }
        if self.share_name.is_some() {
            let (share_name, account) = (self.share_name.clone(), self.of.account.clone());
            let (control, path) = (self.socket()?, text(path)?);
            return Ok(Some(LocatedFile { control, account, share_name, path }));
        }
        let real = real_path(path)?;
        let found = mounts::of_path(&real).and_then(|mount| Some((mount.origin()?, mount.path)));
        let Some((origin, root)) = found else { return Ok(None) };
        let control = match self.of.server.control.clone().or(origin.control) {
            Some(control) => control,
            None => self.socket()?,
        };
        let inside = real.strip_prefix(&root).unwrap_or(&real);
        let account = self.of.account_of(path, origin.account)?;
        let share_name = Some(origin.share);
        Ok(Some(LocatedFile { control, account, share_name, path: text(inside)? }))
    }

    /// The server, share and file that `path` names. Without a path, a share as a whole: the one
    /// that was named, that of the working directory, or the only one.
    pub fn target_or_share(&self, path: Option<&Path>) -> Result<LocatedFile> {
        if let Some(path) = path {
            return self.target(path);
        }
        let control = self.socket()?;
        let here = env::current_dir().context("the working directory")?;
        let origin = mounts::of_path(&here).and_then(|mount| mount.origin());
        let here = origin.filter(|origin| origin.control.as_ref() == Some(&control));
        let (there, name) = here.map(|origin| (origin.account, origin.share)).unzip();
        let share_name = self.share_name.clone().or(name);
        let account = self.of.account.clone().or(there.flatten());
        Ok(LocatedFile { control, account, share_name, path: String::new() })
    }

    /// All that the account has, or all of the share that was named.
    pub fn everything(&self) -> Result<LocatedFile> {
        Ok(LocatedFile {
            control: self.socket()?,
            account: self.of.account.clone(),
            share_name: self.share_name.clone(),
            path: String::new(),
        })
    }

    /// The server that is meant where no path says so.
    pub fn socket(&self) -> Result<PathBuf> {
        self.of.server.find()
    }
}

/// The blob, message, entity or what holds them that the text names; `None` if it is about files.
pub fn object(path: &Path) -> Option<ObjectAddress> {
    let address = path.to_str().and_then(ObjectAddress::read)?;
    (address.service() != ServiceKind::File).then_some(address)
}

impl AccountOf {
    /// For a command that deletes data: see [`Socket::for_deletion`].
    pub fn for_deletion(&self) -> Self {
        Self { server: self.server.for_deletion(), ..self.clone() }
    }

    /// The account of a path that may name one; an option that names another is refused.
    fn account_of(&self, path: &Path, there: Option<String>) -> Result<Option<String>> {
        // `sas` takes a key behind the name.
        let wanted = self.account.as_deref().and_then(|account| account.split(':').next());
        if let (Some(there), Some(wanted)) = (&there, wanted)
            && there != wanted
        {
            let path = path.display();
            usage!(
                "{path} is of the account {there}, and --account or LATCHFS_ACCOUNT names \
                 {wanted}: leave one out"
            );
        }
        Ok(there.or_else(|| self.account.clone()))
    }

    /// Asks the server about the account. [`refused`] tells of a refusal.
    pub fn ask<C: Call>(&self, call: &C) -> Result<C::Answer> {
        let client = ApiClient::new(&self.server.find()?);
        Ok(client.of_account(self.account.as_deref()).ask(call)?)
    }
}

impl ServerByPath {
    /// The server that is meant.
    pub fn find(&self) -> Result<PathBuf> {
        Ok(self.find_account(None)?.0)
    }

    fn find_account(&self, account: Option<&str>) -> Result<(PathBuf, Option<String>)> {
        let of = AccountOf { server: self.server.clone(), account: account.map(str::to_owned) };
        let Some(path) = &self.path else { return Ok((self.server.find()?, of.account)) };
        if let Some(control) = beside(path) {
            return Ok((control, of.account));
        }
        let found = Where { of, share_name: None }.find(path)?;
        let found = found.with_context(|| {
            format!(
                "{} leads to no server: name a path on a mount, the data directory of a server, \
                 or the directory where it was started",
                path.display()
            )
        })?;
        Ok((found.control, found.account))
    }
}

impl Socket {
    /// The server of that control socket.
    pub fn at(control: PathBuf) -> Self {
        Self { control: Some(control), deletes: false }
    }

    /// For a command that deletes data: the only server of this user is not taken, since nothing
    /// that the user typed leads to it.
    pub fn for_deletion(&self) -> Self {
        Self { deletes: true, ..self.clone() }
    }

    /// The server that is meant where no path says so. Its directory may stand for its socket.
    pub fn find(&self) -> Result<PathBuf> {
        if let Some(control) = &self.control {
            if control.is_dir() {
                return beside(control).with_context(|| {
                    let control = control.display();
                    format!("{control} is a directory without a server, not a control socket")
                });
            }
            return Ok(control.clone());
        }
        let here = env::current_dir().context("the working directory")?;
        if let Some(control) = near(&here) {
            return Ok(control);
        }
        let running = running();
        if let Some(server) = only(running.iter().filter(|server| server.is_of(&here))) {
            return Ok(server.control.clone());
        }
        // A user who has data here means the server of that data, and not another one.
        let own = data_directory(&here);
        if own.is_dir() {
            bail!(
                "no server runs on {}: start it with `latchfs serve`, or name another server with \
                 --control",
                own.display()
            );
        }
        if let Some(RunningServer { control, .. }) = only(running.iter()) {
            let data = data_of(control).display();
            if self.deletes {
                bail!(
                    "this command deletes data, and nothing here leads to the server of {data}: \
                     name it with --control {}",
                    control.display()
                );
            }
            // Found by no path of the user's: say whose it is, before anything is done to it.
            eprintln!("latchfs: using the server of {data}");
            return Ok(control.clone());
        }
        if running.is_empty() {
            bail!(
                "no running server found (tried {}). Run this where the server was started, or \
                 use --control",
                control_of(&data_directory(&here)).display()
            );
        }
        let list: Vec<_> = running.iter().map(|server| describe(&server.control)).collect();
        bail!("several servers run: name one with --control:\n{}", list.join("\n"))
    }
}

impl RunningServer {
    /// Whether the server has its data in memory and was started in this directory.
    fn is_of(&self, directory: &Path) -> bool {
        self.started_in.as_deref() == Some(directory)
    }
}

/// The item, if there is exactly one.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    items.next().filter(|_| items.next().is_none())
}

/// The server that the working directory leads to.
fn near(here: &Path) -> Option<PathBuf> {
    let on_mount = mounts::of_path(here).and_then(|mount| mount.origin()?.control);
    let control = on_mount.unwrap_or_else(|| control_of(&data_directory(here)));
    if may_exist(&control) {
        return Some(control);
    }
    let below = here.join(MOUNT_DIR);
    let mut mounted = mounts::all().into_iter().filter(|mount| mount.path.starts_with(&below));
    mounted.find_map(|mount| mount.origin()?.control)
}

/// The server whose data directory this is, or lies in this directory.
fn beside(directory: &Path) -> Option<PathBuf> {
    let data = [directory.to_owned(), directory.join(DATA_DIR)];
    data.iter().map(|data| control_of(data)).find(|control| control.exists())
}

/// The data directory that a server started here has.
fn data_directory(here: &Path) -> PathBuf {
    here.join(env::var_os("LATCHFS_DATA").unwrap_or_else(|| DATA_DIR.into()))
}

/// Whether the socket exists, or is hidden in a directory of another user: connecting tells which.
fn may_exist(socket: &Path) -> bool {
    match socket.try_exists() {
        Ok(exists) => exists,
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    }
}

/// The data directory of a server, as far as its control socket tells.
fn data_of(control: &Path) -> &Path {
    control.parent().and_then(Path::parent).unwrap_or(control)
}

/// The path without links on the way; the last name is taken as it is.
pub fn real_path(path: &Path) -> Result<PathBuf> {
    server::real_path(path).with_context(|| path.display().to_string())
}

/// A server in a line: where it is, and what tells it from others.
fn describe(control: &Path) -> String {
    let socket = control.display();
    let Ok(status) = ApiClient::new(control).ask(&GetStatus {}) else { return socket.to_string() };
    let urls = status.admin.iter().chain(status.endpoints.values());
    let port = urls.into_iter().next().and_then(|url| url.split('/').nth(2)?.rsplit(':').next());
    let port = port.map(|port| format!(", port {port}")).unwrap_or_default();
    let (pid, data, since) = (status.pid, &status.data, time::short(status.uptime_seconds));
    format!("  {socket}: pid {pid}{port}, {data}, for {since}")
}

/// Asks a server. [`refused`] tells of a refusal.
pub fn ask<C: Call>(control: &Path, call: &C) -> Result<C::Answer> {
    Ok(ApiClient::new(control).ask(call)?)
}

/// The end of a command that a rule refused: why, about `what`, and the exit status that goes with
/// it. Any other error stays one.
pub fn refused(what: impl fmt::Display, error: anyhow::Error) -> Result<ExitCode> {
    let Some(ClientError::Refused(refused)) = error.downcast_ref() else { return Err(error) };
    out::complain(&format!("{what}: {}", refused.message), Some(refused));
    Ok(ExitCode::from(if refused.kind.is_busy() { EXIT_BUSY } else { EXIT_FAILED }))
}

/// Shows an answer, or says that `name` was refused.
pub fn answered<T: Serialize>(
    asked: Result<T>,
    name: impl fmt::Display,
    output: Output,
    words: impl FnOnce(&T) -> String,
) -> Result<ExitCode> {
    match asked {
        Ok(answer) => output.show(&answer, || out::printable(&words(&answer)).into_owned()),
        Err(error) => refused(name, error),
    }
}
