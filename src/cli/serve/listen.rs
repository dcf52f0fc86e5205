//! The REST listener of `serve`: where it listens, who is let in, what SDKs need to find it.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};

use crate::engine::Engine;
use crate::rest::auth::{Account, Accounts, Authorizer, OauthMode};
use crate::rest::{Authorise, ErrorNames, Loose, RestOptions, Server, Signed};

/// The REST listener
#[derive(Debug, Args)]
pub struct Listen {
    /// Where the REST listener listens; port 0 takes any free one
    #[arg(long = "listen", value_name = "ADDR", default_value = "127.0.0.1:10004")]
    #[arg(env = "LATCHFS_LISTEN")]
    pub address: SocketAddr,

    /// Do not listen: mounts only
    #[arg(long, env = "LATCHFS_NO_REST", value_parser = BoolishValueParser::new())]
    pub no_rest: bool,

    /// An account and its key, in base64 [default: devstoreaccount1 and its well-known key]
    #[arg(
        long = "account",
        value_name = "NAME:KEY",
        env = "LATCHFS_ACCOUNTS",
        value_delimiter = ','
    )]
    #[arg(hide_env_values = true)]
    pub accounts: Vec<Account>,

    /// Let every request in, signed or not: for quick tests
    #[arg(long, env = "LATCHFS_LOOSE", value_parser = BoolishValueParser::new())]
    pub loose: bool,

    /// Listen beyond this machine though the key is public, or none is asked for
    #[arg(long, env = "LATCHFS_EXPOSE", value_parser = BoolishValueParser::new())]
    pub expose: bool,

    /// How a delete-pending file is named in errors
    #[arg(long, value_enum, default_value_t = Names::Article, env = "LATCHFS_ERROR_NAMES")]
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

/// A listener, and what SDKs need to find it.
pub struct Listening {
    _server: Server,
    /// The account that the rest speaks of.
    pub account: Account,
    /// The URL of the File service, with the account.
    pub endpoint: String,
    /// All of it in one.
    pub connection_string: String,
    loose: bool,
}

impl Listen {
    /// Starts to listen, unless the user does not want it.
    pub fn start(&self, engine: &Arc<Engine>) -> Result<Option<Listening>> {
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
        let options = RestOptions {
            listen: self.address,
            error_names: match self.error_names {
                Names::Article => ErrorNames::Article,
                Names::Service => ErrorNames::Service,
            },
            ..RestOptions::new(self.authorise(engine, accounts)?)
        };
        let server = Server::start(Arc::clone(engine), options).with_context(|| {
            let port = self.address.port();
            format!(
                "listening on {} (--listen {}:0 takes any free port; is {port} taken?)",
                self.address,
                self.address.ip()
            )
        })?;
        let origin = format!("http://{}", server.addr());
        let (endpoint, connection_string) =
            (account.file_endpoint(&origin), account.connection_string(&origin));
        Ok(Some(Listening {
            _server: server,
            account,
            endpoint,
            connection_string,
            loose: self.loose,
        }))
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
        let authorizer = Authorizer { accounts, oauth: OauthMode::Off };
        Ok(Arc::new(Signed::new(authorizer, Arc::clone(engine))))
    }

    /// Beyond this machine a key that everybody knows, or none, is asked about once more.
    fn check_exposure(&self, accounts: &[Account]) -> Result<()> {
        let open = self.loose || accounts.iter().any(Account::has_development_key);
        if open && !self.address.ip().is_loopback() && !self.expose {
            bail!(
                "{} is reachable from other machines, and {}: give --account NAME:KEY, or --expose \
                 if that is meant",
                self.address,
                if self.loose { "--loose lets everybody in" } else { "everybody knows the key" }
            );
        }
        Ok(())
    }
}

impl Listening {
    /// What to tell the user.
    pub fn summary(&self) -> String {
        let mut text = format!("REST: {}\n", self.endpoint);
        if self.loose {
            text += "REST: --loose: requests are let in unsigned\n";
        }
        text + &format!("Connection string:\n  {}\n", self.connection_string)
    }
}
