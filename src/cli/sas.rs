//! `latchfs sas`: a URL that lets whoever has it in, for a while. Which letters mean what, and how
//! it is signed, is decided in `rest::auth`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use super::account::NameAndKey;
use super::connection::of_server;
use super::locate::{Target, Where, ask, unexpected};
use super::out::Output;
use super::time::duration;
use crate::control::{Answer, Request};
use crate::core::stamp;
use crate::engine::{Clock, SystemClock};
use crate::rest::auth::{Account, Permissions, ServiceSas};

/// What a URL's path has as it is.
const UNRESERVED: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Where a server listens unless it was told otherwise.
const DEFAULT_ORIGIN: &str = "http://127.0.0.1:10004";

/// Make a SAS URL for a file or a share
///
/// A directory, or no PATH, gives a URL for all of the share. With --account no server is asked.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  curl \"$(latchfs sas latchfs-mnt/a.txt --expires 10m)\"")]
pub struct Sas {
    /// The file, on a mount or, with --share-name, in that share
    path: Option<PathBuf>,

    /// What it permits: letters r, c, w, d, l [default: r for a file, rl for a share]
    #[arg(long, value_name = "LETTERS", env = "LATCHFS_PERMISSIONS", value_parser = letters)]
    permissions: Option<Permissions>,

    /// For how long: 10m, 1h, 7d
    #[arg(long, value_name = "TIME", default_value = "1h", env = "LATCHFS_EXPIRES")]
    #[arg(value_parser = duration)]
    expires: Duration,

    /// Sign with this account's key, not the server's
    #[arg(long, value_name = "NAME:KEY", env = "LATCHFS_ACCOUNT", hide_env_values = true)]
    #[arg(value_parser = NameAndKey)]
    account: Option<Account>,

    /// With --account: the File endpoint [default: on 127.0.0.1:10004]
    #[arg(long, value_name = "URL", env = "LATCHFS_ENDPOINT", requires = "account")]
    endpoint: Option<String>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    server: Where,
}

/// Whom it is signed by, and for what.
struct Signing {
    account: Account,
    endpoint: String,
    share: String,
    /// Within the share, no slash before it.
    path: String,
}

impl Sas {
    /// Prints it.
    pub fn run(&self) -> Result<ExitCode> {
        let Signing { account, endpoint, share, path } = self.signing()?;
        let whole_share = path.is_empty() || self.is_directory();
        let default = if whole_share { "rl" } else { "r" };
        let permissions = self.permissions.unwrap_or_else(|| Permissions::of_letters(default));
        let expiry = SystemClock.now().after(self.expires);
        let sas = ServiceSas {
            share: share.clone(),
            file: (!whole_share).then(|| path.clone()),
            permissions: Some(permissions.letters()),
            expiry: Some(expiry),
            ..ServiceSas::default()
        };
        let resource = if path.is_empty() { share } else { format!("{share}/{path}") };
        let place = utf8_percent_encode(&resource, &UNRESERVED);
        let token = sas.token(&account);
        let url = format!("{}/{place}?{token}", endpoint.trim_end_matches('/'));
        let answer = json!({
            "url": url,
            "token": token,
            "permissions": permissions.letters(),
            "expires": stamp::iso(expiry),
        });
        self.output.show(&answer, || url.clone() + "\n")?;
        Ok(ExitCode::SUCCESS)
    }

    fn signing(&self) -> Result<Signing> {
        if let Some(account) = &self.account {
            return self.without_server(account);
        }
        let Target { control, share_name, path } =
            self.server.target_or_share(self.path.as_deref())?;
        let told = of_server(&control)?;
        let account = format!("{}:{}", told.account, told.key).parse();
        let share = match share_name {
            Some(share) => share,
            None => only_share(&control)?,
        };
        Ok(Signing {
            account: account.context("the server's account")?,
            endpoint: told.endpoint,
            share,
            path: trimmed(&path),
        })
    }

    /// All that is needed is on the command line, and in the table of mounts.
    fn without_server(&self, account: &Account) -> Result<Signing> {
        let (share, path) = match (&self.server.share_name, &self.path) {
            (Some(share), path) => {
                let path = path.as_deref().unwrap_or(Path::new(""));
                (share.clone(), path.to_str().context("names on a share are UTF-8")?.to_owned())
            }
            (None, Some(path)) => {
                let target = self.server.target(path)?;
                (target.share_name.unwrap_or_default(), target.path)
            }
            (None, None) => bail!("say which share with --share-name"),
        };
        let default = || account.file_endpoint(DEFAULT_ORIGIN);
        Ok(Signing {
            account: account.clone(),
            endpoint: self.endpoint.clone().unwrap_or_else(default),
            share,
            path: trimmed(&path),
        })
    }

    /// True if the path is one of a mount and leads to a directory, or is spelled like one.
    fn is_directory(&self) -> bool {
        let Some(path) = &self.path else { return true };
        path.as_os_str().as_encoded_bytes().ends_with(b"/")
            || (self.server.share_name.is_none() && path.is_dir())
    }
}

fn trimmed(path: &str) -> String {
    path.trim_matches('/').to_owned()
}

/// The share that is meant where only one can be.
fn only_share(control: &Path) -> Result<String> {
    let status = match ask(control, &Request::Status {})? {
        Answer::Status(status) => status,
        other => return Err(unexpected(&other)),
    };
    ensure!(status.shares.len() == 1, "several shares are served: say which with --share-name");
    Ok(status.shares.into_iter().map(|share| share.name).collect())
}

fn letters(text: &str) -> Result<Permissions, String> {
    match text.chars().find(|letter| !"rcwdl".contains(*letter)) {
        Some(letter) => Err(format!("'{letter}' is none of r, c, w, d, l")),
        None if text.is_empty() => Err("letters r, c, w, d, l".into()),
        None => Ok(Permissions::of_letters(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_put_in_the_order_that_a_signature_wants() {
        assert_eq!(letters("ldwcr").unwrap().letters(), "rcwdl");
        assert!(letters("rx").is_err() && letters("").is_err());
    }
}
