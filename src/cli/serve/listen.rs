//! The REST listener of `serve`: where it listens, who is let in, what SDKs need to find it.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};

use super::tls::Certificate;
use crate::cli::account::NameAndKey;
use crate::engine::Engine;
use crate::rest::auth::{Account, Accounts, Authorizer, OauthMode};
use crate::rest::tls::Tls;
use crate::rest::{
    Authorise, CopySources, ErrorNames, Loose, Observer, RestOptions, Server, Signed,
};

/// The REST listener
#[derive(Debug, Args)]
#[command(next_help_heading = "REST")]
pub struct Listen {
    /// Where the REST listener listens; port 0 takes any free one
    #[arg(long = "listen", value_name = "ADDR", default_value = "127.0.0.1:10004")]
    #[arg(env = "LATCHFS_LISTEN")]
    pub address: SocketAddr,

    /// Do not listen: mounts only
    #[arg(long, env = "LATCHFS_NO_REST", value_parser = BoolishValueParser::new())]
    pub no_rest: bool,

    /// An account and its key [default: the well-known one]
    #[arg(
        long = "account",
        value_name = "NAME:KEY",
        env = "LATCHFS_ACCOUNTS",
        value_delimiter = ','
    )]
    #[arg(value_parser = NameAndKey, hide_env_values = true)]
    pub accounts: Vec<Account>,

    /// Let every request in, signed or not: for quick tests
    #[arg(long, env = "LATCHFS_LOOSE", value_parser = BoolishValueParser::new())]
    #[arg(hide_short_help = true)]
    pub loose: bool,

    /// Listen beyond this machine though the key is public, or none is asked for
    #[arg(long, env = "LATCHFS_EXPOSE", value_parser = BoolishValueParser::new())]
    #[arg(hide_short_help = true)]
    pub expose: bool,

    /// A further name that clients call the server by, such as that of a container
    #[arg(long = "host", value_name = "NAME", env = "LATCHFS_HOSTS", value_delimiter = ',')]
    #[arg(hide_short_help = true)]
    pub hosts: Vec<String>,

    /// Speak https: with a certificate made on the spot, or with yours
    #[arg(long, value_name = "self|CERT.pem,KEY.pem", env = "LATCHFS_TLS")]
    #[arg(hide_short_help = true)]
    pub tls: Option<Certificate>,

    /// Whether bearer tokens are taken
    #[arg(long, value_enum, default_value_t = Oauth::Off, env = "LATCHFS_OAUTH")]
    #[arg(hide_short_help = true)]
    pub oauth: Oauth,

    /// Where the sources of Copy File and Put Range From URL may be
    #[arg(long, value_enum, default_value_t = Sources::Local, env = "LATCHFS_COPY_SOURCES")]
    #[arg(hide_short_help = true)]
    pub copy_sources: Sources,

    /// How a delete-pending file is named in errors
    #[arg(long, value_enum, default_value_t = Names::Article, env = "LATCHFS_ERROR_NAMES")]
    #[arg(hide_short_help = true)]
    pub error_names: Names,
}

/// Which names error codes have where sources differ.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Names {
    /// `SMBDeletePending`
    Article,
    /// `DeletePending`, as today's service
    Service,
}

impl From<Names> for ErrorNames {
    fn from(names: Names) -> Self {
        match names {
            Names::Article => Self::Article,
            Names::Service => Self::Service,
        }
    }
}

/// Which bearer tokens are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Oauth {
    /// None
    Off,
    /// Those whose issuer, audience and time are right; signatures are not checked
    Basic,
}

/// Where sources of copies may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sources {
    /// On this server
    Local,
    /// Anywhere that http or https reach
    Any,
}

/// What it takes to speak https.
pub struct Secured {
    /// What the listener shows.
    pub tls: Tls,
    /// What clients must trust, if it was made here.
    pub ca_file: Option<PathBuf>,
}

/// A listener, and what SDKs need to find it.
pub struct Listening {
    server: Server,
    /// The account that the rest speaks of.
    pub account: Account,
    /// The URL of the File service, with the account.
    pub endpoint: String,
    /// All of it in one.
    pub connection_string: String,
    /// What clients must trust, if it was made here.
    pub ca_file: Option<PathBuf>,
    notes: Vec<&'static str>,
}

impl Listen {
    /// Starts to listen, unless the user does not want it. `state` is where keys are kept.
    pub fn start(
        &self,
        engine: &Arc<Engine>,
        state: &Path,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Option<Listening>> {
        if self.no_rest {
            return Ok(None);
        }
        let accounts = if self.accounts.is_empty() {
            vec![Account::development()]
        } else {
            self.accounts.clone()
        };
        self.check_exposure(&accounts)?;
        let account = accounts.first().context("there is an account")?.clone();
        let secured = self.tls.as_ref().map(|from| from.load(state, &accounts, self));
        let secured = secured.transpose()?;
        let options = RestOptions {
            tls: secured.as_ref().map(|secured| secured.tls.clone()),
            copy_sources: match self.copy_sources {
                Sources::Local => CopySources::Local,
                Sources::Any => CopySources::Any,
            },
            listen: self.address,
            hosts: self.hosts.clone(),
            error_names: self.error_names.into(),
            observer,
            ..RestOptions::new(self.authorise(engine, accounts)?)
        };
        let server = Server::start(Arc::clone(engine), options)
            .map_err(|error| self.not_listening(&error))?;
        let scheme = if secured.is_some() { "https" } else { "http" };
        let origin = format!("{scheme}://{}", server.addr());
        let (endpoint, connection_string) =
            (account.file_endpoint(&origin), account.connection_string(&origin));
        Ok(Some(Listening {
            server,
            account,
            endpoint,
            connection_string,
            ca_file: secured.and_then(|secured| secured.ca_file),
            notes: self.notes(),
        }))
    }

    /// What the user should know of his choices.
    fn notes(&self) -> Vec<&'static str> {
        let mut notes = Vec::new();
        if self.loose {
            notes.push("--loose: requests are let in unsigned");
        }
        if self.oauth == Oauth::Basic {
            notes.push("--oauth basic: whoever writes himself a token is let in");
        }
        if self.oauth == Oauth::Basic && self.tls.is_none() {
            notes.push("--oauth basic: SDKs send tokens over https only; add --tls self");
        }
        notes
    }

    fn not_listening(&self, error: &std::io::Error) -> anyhow::Error {
        let address = self.address;
        let any = SocketAddr::new(address.ip(), 0);
        let cure = match error.kind() {
            ErrorKind::AddrInUse => format!("stop what listens there, or give --listen {any}"),
            ErrorKind::PermissionDenied => format!("ports below 1024 are root's; --listen {any}"),
            ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
            _ => format!("give another address, as in --listen {any}"),
        };
        anyhow!("cannot listen on {address} ({error}): {cure}")
    }

    fn authorise(
        &self,
        engine: &Arc<Engine>,
        accounts: Vec<Account>,
    ) -> Result<Arc<dyn Authorise>> {
        if self.loose {
            return Ok(Arc::new(Loose::new(accounts.iter().map(Account::name))));
        }
        let accounts = Accounts::new(accounts)?;
        let oauth = match self.oauth {
            Oauth::Off => OauthMode::Off,
            Oauth::Basic => OauthMode::Basic,
        };
        let authorizer = Authorizer { accounts, oauth };
        Ok(Arc::new(Signed::new(authorizer, Arc::clone(engine))))
    }

    /// Beyond this machine a key that everybody knows, or none, is asked about once more.
    fn check_exposure(&self, accounts: &[Account]) -> Result<()> {
        let (why, cure) = if self.loose {
            ("--loose lets everybody in", "leave it out")
        } else if self.oauth == Oauth::Basic {
            ("--oauth basic lets everybody in who writes himself a token", "leave it out")
        } else if accounts.iter().any(Account::has_development_key) {
            ("everybody knows the key", "give --account NAME:KEY")
        } else {
            return Ok(());
        };
        if !self.address.ip().is_loopback() && !self.expose {
            bail!(
                "{} is reachable from other machines, and {why}: {cure}, or give --expose if that \
                 is meant",
                self.address
            );
        }
        Ok(())
    }
}

impl Listening {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// What the user should know.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.notes.iter().map(|note| (*note).to_owned()).collect();
        let trust = |file: &PathBuf| format!("clients must trust {}", file.display());
        notes.extend(self.ca_file.as_ref().map(trust));
        notes
    }
}
