//! The options of `serve` and `mount` for listeners and access.
//!
//! Decides that a key is never shown: neither in help, which shows the values of variables, nor in
//! the error about a wrong key, although errors repeat other values. Listening itself is in
//! `server/listeners`, accounts are in `http::auth`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::builder::TypedValueParser;
use clap::error::{Error, ErrorKind};
use clap::{Arg, Args, Command};

use super::azurite;
use crate::cli::out::usage;
use crate::file::rules::name::split_account;
use crate::http::auth::{Credential, CredentialError, OauthMode};
use crate::http::fetch::CopySources;
use crate::http::frame::ErrorNames;
use crate::rules::address::ObjectAddress;
use crate::rules::service::ServiceKind;
use crate::server::{
    Certificate, ListenAddress, ListenOptions, OptionalAddress, ServiceAddresses, kinds,
};

/// The variable of 0.1 that `--file` reads too.
const OLD_LISTEN: &str = "LATCHFS_LISTEN";

/// Services over HTTP
#[derive(Debug, Args)]
#[command(next_help_heading = "Services")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub struct Listen {
    /// Address of the File service: PORT or IP:PORT, port 0 for any free one, or off [default:
    /// 127.0.0.1:10004]
    ///
    /// The other services and the page move with it, unless they have an address of their own: the
    /// services to the same IP, and each port by as much. With 11004 Blob is on 11000, Queue on
    /// 11001, Table on 11002 and the page on 11009; with port 0 each takes a free port.
    #[arg(long, visible_alias = "listen", value_name = "ADDR", env = "LATCHFS_FILE")]
    pub file: Option<ListenAddress>,

    /// Address of the Blob service, or off [default: 127.0.0.1:10000, moved with --file]
    #[arg(long, value_name = "ADDR", env = "LATCHFS_BLOB")]
    pub blob: Option<ListenAddress>,

    /// A queue to make; or the address of the Queue service, or off [default: 127.0.0.1:10001,
    /// moved with --file]
    #[arg(long = "queue", value_name = "[ACCOUNT/]NAME|ADDR", env = "LATCHFS_QUEUE")]
    #[arg(value_delimiter = ',', value_parser = name_or_address)]
    pub queues: Vec<NameOrAddress>,

    /// A table to make; or the address of the Table service, or off [default: 127.0.0.1:10002,
    /// moved with --file]
    #[arg(long = "table", value_name = "[ACCOUNT/]NAME|ADDR", env = "LATCHFS_TABLE")]
    #[arg(value_delimiter = ',', value_parser = name_or_address)]
    pub tables: Vec<NameOrAddress>,

    /// Address for SMB clients, or off [default: 127.0.0.1:10445]
    ///
    /// The user is the account, the password its key. It moves with --file, and to a free port if
    /// the usual one is taken.
    #[arg(long, value_name = "ADDR", env = "LATCHFS_SMB")]
    pub smb: Option<ListenAddress>,

    /// Let SMB clients leave their requests unsigned
    #[arg(long, env = "LATCHFS_SMB_UNSIGNED", hide_short_help = true)]
    pub smb_unsigned: bool,

    /// Seconds until an SMB client that vanished loses its opens
    #[arg(long, value_name = "SECONDS", env = "LATCHFS_SMB_KEEP_ALIVE", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400), hide_short_help = true)]
    pub smb_keep_alive: u64,

    /// Offer no service over HTTP, and no SMB unless --smb says where: mounts only
    #[arg(long, env = "LATCHFS_NO_REST", hide_short_help = true)]
    pub no_rest: bool,

    /// An account and its key [default: the well-known one]
    #[arg(
        long = "account",
        value_name = "NAME:KEY",
        env = "LATCHFS_ACCOUNTS",
        value_delimiter = ','
    )]
    #[arg(value_parser = NameAndKey, hide_env_values = true)]
    pub accounts: Vec<Credential>,

    /// A file of accounts, one NAME:KEY a line
    #[arg(long, value_name = "FILE", env = "LATCHFS_ACCOUNT_FILE", hide_short_help = true)]
    pub account_file: Option<PathBuf>,

    /// Accept requests without a signature
    #[arg(long, env = "LATCHFS_NO_AUTH", hide_short_help = true)]
    pub no_auth: bool,

    /// Allow an address that other machines reach, although the key is public or none is needed
    #[arg(long, env = "LATCHFS_EXPOSE", hide_short_help = true)]
    pub expose: bool,

    /// A further host name of this server, such as that of a container
    #[arg(long = "host", value_name = "NAME", env = "LATCHFS_HOSTS", value_delimiter = ',')]
    #[arg(hide_short_help = true)]
    pub hosts: Vec<String>,

    /// Serve https, with a certificate that latchfs makes (self) or with yours
    #[arg(long, value_name = "self|CERT.pem,KEY.pem", env = "LATCHFS_TLS", hide_short_help = true)]
    pub tls: Option<Certificate>,

    /// Which bearer tokens are accepted
    #[arg(long, value_enum, default_value_t = OauthMode::Off, env = "LATCHFS_OAUTH")]
    #[arg(hide_short_help = true)]
    pub oauth: OauthMode,

    /// Where the sources of copies by URL may be
    #[arg(long, value_enum, default_value_t = CopySources::Local, env = "LATCHFS_COPY_SOURCES")]
    #[arg(hide_short_help = true)]
    pub copy_sources: CopySources,

    /// Error code of a delete-pending file
    #[arg(long, value_enum, default_value_t = ErrorNames::Article)]
    #[arg(env = "LATCHFS_ERROR_NAMES", hide_short_help = true)]
    pub error_names: ErrorNames,
}

/// The value of `--queue` and `--table`. No queue or table is called `off` or by a port here: such
/// names are made by `latchfs mk` and by load files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameOrAddress {
    /// `[ACCOUNT/]NAME`
    Name(String),
    Address(ListenAddress),
}

fn name_or_address(text: &str) -> Result<NameOrAddress, String> {
    match text.parse() {
        Ok(address) => Ok(NameOrAddress::Address(address)),
        Err(why) if text.contains([':', '.']) || text.bytes().all(|one| one.is_ascii_digit()) => {
            Err(why)
        }
        Err(_) => Ok(NameOrAddress::Name(text.to_owned())),
    }
}

/// The address among the values of an option.
fn address_in(values: &[NameOrAddress], option: &str) -> Result<Option<ListenAddress>> {
    let mut addresses = values.iter().filter_map(|value| match value {
        NameOrAddress::Address(address) => Some(*address),
        NameOrAddress::Name(_) => None,
    });
    match (addresses.next(), addresses.next()) {
        (_, Some(_)) => usage!("{option} has two addresses: a service listens on one"),
        (first, None) => Ok(first),
    }
}

impl Listen {
    /// The addresses that the user named, by service.
    fn addresses(&self) -> Result<ServiceAddresses> {
        if self.no_rest {
            return Ok(kinds().map(|kind| (kind, ListenAddress::Off)).collect());
        }
        let file = match self.file {
            Some(file) => Some(file),
            None => old_variable(OLD_LISTEN)?
                .map(|text| text.parse().map_err(|why| anyhow!("{OLD_LISTEN}={text}: {why}")))
                .transpose()?,
        };
        // A line for each service.
        let named = [
            (ServiceKind::File, file),
            (ServiceKind::Blob, self.blob),
            (ServiceKind::Queue, address_in(&self.queues, "--queue")?),
            (ServiceKind::Table, address_in(&self.tables, "--table")?),
        ];
        Ok(named.into_iter().filter_map(|(kind, address)| Some((kind, address?))).collect())
    }

    /// The queues and tables to make, each with its account.
    pub fn objects(&self) -> Vec<(Option<String>, ObjectAddress)> {
        let names = |values: &[NameOrAddress], object: fn(String) -> ObjectAddress| {
            let named = values.iter().filter_map(|value| match value {
                NameOrAddress::Name(name) => Some(of_account(name, object)),
                NameOrAddress::Address(_) => None,
            });
            named.collect::<Vec<_>>()
        };
        let mut objects = names(&self.queues, ObjectAddress::Queue);
        objects.extend(names(&self.tables, ObjectAddress::Table));
        objects
    }

    /// As a server wants it.
    pub fn options(&self) -> Result<ListenOptions> {
        let addresses = self.addresses()?;
        Ok(ListenOptions {
            smb: OptionalAddress::of_smb(self.smb, &addresses, !self.no_rest),
            smb_unsigned: self.smb_unsigned,
            smb_keep_alive: Duration::from_secs(self.smb_keep_alive),
            addresses,
            credentials: self.credentials()?,
            no_auth: self.no_auth,
            oauth: self.oauth,
            expose: self.expose,
            hosts: self.hosts.clone(),
            tls: self.tls.clone(),
            copy_sources: self.copy_sources,
            error_names: self.error_names,
            ..ListenOptions::default()
        })
    }

    /// The accounts, the default one first.
    fn credentials(&self) -> Result<Vec<Credential>> {
        let mut accounts = self.accounts.clone();
        if let Some(file) = &self.account_file {
            accounts.extend(read_accounts(file)?);
        }
        if accounts.is_empty() {
            accounts = azurite::accounts()?;
        }
        if accounts.is_empty() {
            accounts.push(Credential::development());
        }
        Ok(accounts)
    }

    /// Notes on keys that other users can see.
    pub fn notes(&self) -> Vec<String> {
        let open = self.account_file.as_deref().filter(|file| is_open_to_others(file));
        let open = open.map(|file| {
            let file = file.display();
            format!("--account-file: other users can read the keys in {file}: chmod 600 {file}")
        });
        open.into_iter().chain(self.visible_key()).collect()
    }

    /// The note on keys that are visible on the command line.
    fn visible_key(&self) -> Option<String> {
        let private = |account: &Credential| !account.has_development_key();
        let given = std::env::args().any(|argument| argument.starts_with("--account"))
            && std::env::var_os("LATCHFS_ACCOUNTS").is_none();
        (given && self.accounts.iter().any(private)).then(|| {
            "--account shows its key in the list of processes: use --account-file or \
             LATCHFS_ACCOUNTS"
                .to_owned()
        })
    }
}

/// The object `[ACCOUNT/]NAME`, with its account.
pub fn of_account(
    text: &str,
    object: impl Fn(String) -> ObjectAddress,
) -> (Option<String>, ObjectAddress) {
    let (account, name) = split_account(text);
    (account.map(str::to_owned), object(name.to_owned()))
}

/// Whether the file can be read by users who are neither its owner nor of its group.
fn is_open_to_others(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}

/// Reads a file with one `NAME:KEY` a line; empty lines and lines that begin with `#` are skipped.
fn read_accounts(file: &Path) -> Result<Vec<Credential>> {
    let text = fs::read_to_string(file);
    let text = text.with_context(|| format!("--account-file {}", file.display()))?;
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let accounts = lines.map(|(number, line)| {
        let account = line.parse::<Credential>();
        account.map_err(|why| anyhow!("--account-file {}:{number}: {why}", file.display()))
    });
    accounts.collect()
}

/// A variable that 0.1 read under this name.
fn old_variable(name: &str) -> Result<Option<String>> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(anyhow!("{name}: {error}")),
    }
}

/// Reads `NAME:KEY`.
#[derive(Debug, Clone, Copy)]
pub struct NameAndKey;

impl TypedValueParser for NameAndKey {
    type Value = Credential;

    fn parse_ref(
        &self,
        cmd: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Credential, Error> {
        let read = value.to_str().ok_or(CredentialError::NoKey).and_then(str::parse);
        read.map_err(|why| {
            let option = arg.map(ToString::to_string).unwrap_or_default();
            let message = format!("invalid value for '{option}': {why}\n");
            Error::raw(ErrorKind::ValueValidation, message).with_cmd(cmd)
        })
    }
}
