//! Options of `serve` that Azurite has too, under its names and with its meaning.
//!
//! Decides what each of them means here, and which of them are refused. `--location` and
//! `--inMemoryPersistence` are other names of `--data` and `--in-memory` ([`super::data`]);
//! `--oauth` is the same in both programs. The names `azurite`, `azurite-blob` and so on are in
//! `cli::azurite_names`.

use std::collections::BTreeSet;
use std::env;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};

use super::screen::shown_page;
use crate::cli::out::usage;
use crate::http::auth::Credential;
use crate::rules::service::ServiceKind;
use crate::server::{
    Certificate, Data, ListenAddress, OptionalAddress, Server, ServerOptions, address_of, kinds,
};

/// The variable that Azurite reads accounts from.
const ACCOUNTS: &str = "AZURITE_ACCOUNTS";

/// The variable that has Azurite accept every version of the API.
const ANY_VERSION: &str = "AZURITE_SKIP_API_VERSION_CHECK";

/// The variable that has Azurite keep its metadata in an SQL server.
const SQL: &str = "AZURITE_DB";

/// The files of Azurite in its data directory.
const DATA_FILES: [&str; 6] = [
    "__azurite_db_blob__.json",
    "__azurite_db_queue__.json",
    "__azurite_db_table__.json",
    "__azurite_db_blob_extent__.json",
    "__blobstorage__",
    "__queuestorage__",
];

/// The heading of these options in the help.
pub const HEADING: &str = "Options of Azurite";

/// The longest time that a connection may wait for its next request: a day.
const KEEP_ALIVE_MAX: u64 = 86_400;

/// Options of Azurite
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
#[expect(clippy::struct_field_names, reason = "clap names the option after the field")]
pub struct Azurite {
    /// Start as Azurite does: its services, no mount, and its lines on standard output once ready
    #[arg(long, value_enum, value_name = "WHICH", env = "LATCHFS_AZURITE")]
    azurite: Option<AzuriteCommand>,

    /// Host that the Blob service listens on
    #[arg(long = "blobHost", value_name = "HOST", value_parser = host)]
    blob_host: Option<ListenHost>,

    /// Port of the Blob service
    #[arg(long = "blobPort", value_name = "PORT")]
    blob_port: Option<u16>,

    /// Seconds that a connection to the Blob service may be idle
    #[arg(long = "blobKeepAliveTimeout", value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=KEEP_ALIVE_MAX))]
    blob_keep_alive: Option<u64>,

    /// Host that the Queue service listens on
    #[arg(long = "queueHost", value_name = "HOST", value_parser = host)]
    queue_host: Option<ListenHost>,

    /// Port of the Queue service
    #[arg(long = "queuePort", value_name = "PORT")]
    queue_port: Option<u16>,

    /// Seconds that a connection to the Queue service may be idle
    #[arg(long = "queueKeepAliveTimeout", value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=KEEP_ALIVE_MAX))]
    queue_keep_alive: Option<u64>,

    /// Host that the Table service listens on
    #[arg(long = "tableHost", value_name = "HOST", value_parser = host)]
    table_host: Option<ListenHost>,

    /// Port of the Table service
    #[arg(long = "tablePort", value_name = "PORT")]
    table_port: Option<u16>,

    /// Seconds that a connection to the Table service may be idle
    #[arg(long = "tableKeepAliveTimeout", value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=KEEP_ALIVE_MAX))]
    table_keep_alive: Option<u64>,

    /// Certificate for https, in PEM; with --key
    #[arg(long, value_name = "FILE", conflicts_with = "tls")]
    cert: Option<PathBuf>,

    /// Key of --cert, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Refused: a PFX file is not read
    #[arg(long, value_name = "PASSWORD")]
    pwd: Option<String>,

    /// Write the log, with debug messages, to this file
    #[arg(short = 'd', long, value_name = "FILE")]
    pub debug: Option<PathBuf>,

    /// Most megabytes of data in memory; with --in-memory
    #[arg(long = "extentMemoryLimit", value_name = "MB", requires = "in_memory")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    memory_limit: Option<u64>,

    #[command(flatten)]
    switches: Switches,
}

/// Switches of Azurite
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
struct Switches {
    /// Take the account from the path of a URL only, never from its host
    #[arg(long = "disableProductStyleUrl")]
    path_style: bool,

    /// Accept every value of x-ms-version
    #[arg(long = "skipApiVersionCheck")]
    any_version: bool,

    /// Accept headers and parameters that are not known: always the case here
    #[arg(short = 'L', long)]
    loose: bool,

    /// Print no line for each request: always the case here
    #[arg(short = 's', long)]
    silent: bool,

    /// Send no telemetry: always the case here
    #[arg(long = "disableTelemetry")]
    no_telemetry: bool,
}

/// The commands that Azurite has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AzuriteCommand {
    /// `azurite`: Blob, Queue and Table
    All,
    /// `azurite-blob`
    Blob,
    /// `azurite-queue`
    Queue,
    /// `azurite-table`
    Table,
}

/// A host to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListenHost {
    address: IpAddr,
    /// The name that the user gave.
    name: Option<String>,
}

/// A service with Azurite's options for it: host, port, keep-alive timeout.
type OfService<'a> = (ServiceKind, Option<&'a ListenHost>, Option<u16>, Option<u64>);

impl Azurite {
    fn services(&self) -> [OfService<'_>; 3] {
        [
            (ServiceKind::Blob, self.blob_host.as_ref(), self.blob_port, self.blob_keep_alive),
            (ServiceKind::Queue, self.queue_host.as_ref(), self.queue_port, self.queue_keep_alive),
            (ServiceKind::Table, self.table_host.as_ref(), self.table_port, self.table_keep_alive),
        ]
    }

    /// Whether the server starts as Azurite does, which mounts nothing unless asked to.
    pub fn is_on(&self) -> bool {
        self.azurite.is_some()
    }

    /// Changes the options of the server.
    pub fn apply(&self, options: &mut ServerOptions) -> Result<()> {
        self.listen(options)?;
        let listen = &mut options.listen;
        match (&self.cert, &self.key, &self.pwd) {
            (Some(cert), Some(key), None) => {
                listen.tls = Some(Certificate::Files(cert.clone(), key.clone()));
            }
            (None, None, None) => {}
            _ => usage!(
                "--cert needs --key, both in PEM; a PFX file with --pwd is not read: convert it \
                 with `openssl pkcs12 -nodes`"
            ),
        }
        let any = env::var_os(ANY_VERSION).is_some_and(|value| value == "true");
        listen.any_version |= self.switches.any_version || any;
        listen.path_style |= self.switches.path_style;
        options.memory_limit = self.memory_limit.map(|megabytes| megabytes << 20);
        Ok(())
    }

    /// Where services listen: a host or a port changes that part of the address alone.
    fn listen(&self, options: &mut ServerOptions) -> Result<()> {
        let listen = &mut options.listen;
        for (kind, host, port, keep_alive) in self.services() {
            if let Some(seconds) = keep_alive {
                listen.keep_alive.insert(kind, Duration::from_secs(seconds));
            }
            if host.is_none() && port.is_none() {
                continue;
            }
            let Some(before) = address_of(&listen.addresses, kind) else {
                usage!("--{kind}Host and --{kind}Port contradict --{kind} off: leave one out");
            };
            let ip = host.map_or(before.ip(), |host| host.address);
            let address = SocketAddr::new(ip, port.unwrap_or(before.port()));
            listen.addresses.insert(kind, ListenAddress::At(address));
            listen.hosts.extend(host.and_then(|host| host.name.clone()));
        }
        if let Some(command) = self.azurite {
            if let OptionalAddress::Preferred(_) = listen.smb {
                listen.smb = OptionalAddress::Off;
            }
            for kind in kinds().filter(|kind| !command.services().contains(kind)) {
                listen.addresses.entry(kind).or_insert(ListenAddress::Off);
            }
        }
        Ok(())
    }

    /// Notes for the user.
    pub fn notes(&self, data: &Data) -> Vec<String> {
        let mut notes = Vec::new();
        let places = match data {
            Data::Directory(path) if self.is_on() => vec![path.as_path(), Path::new(".")],
            Data::Directory(path) => vec![path.as_path()],
            Data::Memory | Data::Existing { .. } => Vec::new(),
        };
        notes.extend(places.into_iter().find_map(data_of_azurite));
        if env::var_os(SQL).is_some() {
            notes.push(format!("{SQL} is not used: all data is in the data directory"));
        }
        notes
    }

    /// The lines that Azurite prints once it is ready, for the services that listen: scripts and
    /// container libraries wait for them. As Azurite does, they name the address that a service
    /// listens on, 0.0.0.0 too. `None` unless the server was started as Azurite is.
    pub fn lines(&self, server: &Server) -> Option<String> {
        let command = self.azurite?;
        let secured = server.endpoints().iter().any(|(_, url)| url.starts_with("https:"));
        let scheme = if secured { "https" } else { "http" };
        let mut lines = format!("latchfs {} as Azurite\n", env!("CARGO_PKG_VERSION"));
        for (kind, address) in server.addresses() {
            let origin = format!("{scheme}://{address}");
            let says = match (command, kind) {
                (_, ServiceKind::File) => {
                    writeln!(lines, "latchfs File service is listening at {origin}").ok();
                    continue;
                }
                (AzuriteCommand::All, _) => "is successfully listening at",
                (AzuriteCommand::Table, _) => "successfully started on",
                (AzuriteCommand::Blob | AzuriteCommand::Queue, _) => "successfully listens on",
            };
            let place = if command == AzuriteCommand::Table { address.to_string() } else { origin };
            writeln!(lines, "Azurite {} service {says} {place}", title(kind)).ok();
        }
        if let Some(page) = shown_page(server, io::stdout().is_terminal()) {
            writeln!(lines, "latchfs page at {page}").ok();
        }
        Some(lines)
    }
}

impl AzuriteCommand {
    fn services(self) -> &'static [ServiceKind] {
        match self {
            Self::All => &[ServiceKind::Blob, ServiceKind::Queue, ServiceKind::Table],
            Self::Blob => &[ServiceKind::Blob],
            Self::Queue => &[ServiceKind::Queue],
            Self::Table => &[ServiceKind::Table],
        }
    }
}

fn title(kind: ServiceKind) -> &'static str {
    match kind {
        ServiceKind::File => "File",
        ServiceKind::Blob => "Blob",
        ServiceKind::Queue => "Queue",
        ServiceKind::Table => "Table",
    }
}

/// Reads an IP address, `localhost`, or a name that the system resolves.
fn host(text: &str) -> Result<ListenHost> {
    if let Ok(address) = text.parse() {
        return Ok(ListenHost { address, name: None });
    }
    if text == "localhost" {
        return Ok(ListenHost { address: Ipv4Addr::LOCALHOST.into(), name: None });
    }
    let mut found =
        (text, 0).to_socket_addrs().context("expected an IP address or a known name")?;
    let found = found.next().ok_or_else(|| anyhow!("the name has no address"))?;
    Ok(ListenHost { address: found.ip(), name: Some(text.to_owned()) })
}

/// The note about data of Azurite in a directory.
fn data_of_azurite(directory: &Path) -> Option<String> {
    let found = DATA_FILES.iter().find(|name| directory.join(name).exists())?;
    Some(format!(
        "{} has data of Azurite ({found}), which latchfs does not read: the services start without \
         it",
        directory.display()
    ))
}

/// The accounts of `AZURITE_ACCOUNTS`; none if it is not set.
pub fn accounts() -> Result<Vec<Credential>> {
    match env::var(ACCOUNTS) {
        Ok(text) => read_accounts(&text),
        Err(env::VarError::NotPresent) => Ok(Vec::new()),
        Err(error) => Err(anyhow!("{ACCOUNTS}: {error}")),
    }
}

/// Reads `NAME:KEY[:KEY2]`, with semicolons between accounts.
fn read_accounts(text: &str) -> Result<Vec<Credential>> {
    let mut found = BTreeSet::new();
    let mut accounts = Vec::new();
    for one in text.trim().split(';').filter(|one| !one.is_empty()) {
        let account: Credential = one.parse().map_err(|why| anyhow!("{ACCOUNTS}: {why}"))?;
        if !found.insert(account.name().to_owned()) {
            bail!("{ACCOUNTS}: account '{}' is given twice", account.name());
        }
        accounts.push(account);
    }
    Ok(accounts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_separated_by_semicolons_and_have_one_or_two_keys() {
        let read = |text: &str| {
            let accounts = read_accounts(text)?;
            let keys = |account: &Credential| account.keys().len();
            Ok::<_, anyhow::Error>(
                accounts.iter().map(|one| (one.name().to_owned(), keys(one))).collect::<Vec<_>>(),
            )
        };
        let expected = vec![("account1".to_owned(), 2), ("account2".to_owned(), 1)];
        assert_eq!(read("account1:a2V5MQ==:a2V5Mg==;account2:a2V5;").unwrap(), expected);
        // Azurite reads keys as Node.js does: padding is not needed.
        assert_eq!(read("account1:key1").unwrap(), vec![("account1".to_owned(), 1)]);
        assert_eq!(read("").unwrap(), Vec::new());
        for wrong in ["account1", "account1:", "one:k:k:k", "acc:key1;acc:key1", "UPPER:key1"] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.starts_with(ACCOUNTS) && !error.contains("key1"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_host_is_an_address_or_a_name_that_resolves() {
        let any = host("0.0.0.0").unwrap();
        assert_eq!((any.address.to_string(), any.name), ("0.0.0.0".to_owned(), None));
        assert_eq!(host("localhost").unwrap().address.to_string(), "127.0.0.1");
        assert_eq!(host("::").unwrap().address.to_string(), "::");
        assert!(host("").is_err() && host("no such name").is_err());
    }

    #[test]
    fn data_of_azurite_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(data_of_azurite(folder.path()), None);
        std::fs::write(folder.path().join("__azurite_db_blob__.json"), "{}").unwrap();
        let note = data_of_azurite(folder.path()).unwrap();
        assert!(note.contains("does not read") && note.contains("__azurite_db_blob__.json"));
    }
}
