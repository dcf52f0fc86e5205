//! `latchfs sas`: a URL that grants access for a limited time to everybody who has it. The meaning
//! of letters and the signature are decided in `http::auth`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use percent_encoding::utf8_percent_encode;
use serde_json::json;

use super::client::of_server;
use super::locate::{LocatedFile, WhereAndOutput, ask, object};
use super::out::usage;
use super::storage::UNRESERVED;
use super::time::duration;
use crate::api::{GetClock, GetStatus, ObjectAddress};
use crate::clock::{SystemClock, TimeSource};
use crate::http::auth::{
    self, AccountSas, Credential, Permissions, ResourceLevel, ServiceSas, service_token,
};
use crate::rules::service::ServiceKind;
use crate::rules::{Timestamp, time};

/// All services of an account, as PATH.
const ACCOUNT: &str = "account:";

/// All letters of permissions.
const LETTERS: &str = "racwdlupxytfi";

/// Where a service listens unless it was told otherwise.
fn default_origin(service: ServiceKind) -> String {
    format!("http://127.0.0.1:{}", service.port())
}

/// Make a SAS: a URL for a file, share, blob, container, queue, table, entity or account
///
/// A directory, or no PATH, gives a URL for all of the share. `account:` gives a connection string
/// with a SAS for all services, `blob:` and its like the URL of one service. The time of --expires
/// starts now, by the clock of the server. With --account NAME:KEY that key signs, no server is
/// asked, and the time is that of the system.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  curl \"$(latchfs sas latchfs-mnt/a.txt --expires 10m)\"")]
pub struct Sas {
    #[arg(help = "A path on a mount, SHARE:/PATH, file:SHARE/PATH, blob:CONTAINER[/NAME], \
                  queue:NAME or table:TABLE[/PARTITION[/ROW]]; blob:, file:, queue: and table: \
                  are services, account: is all of them")]
    path: Option<PathBuf>,

    /// Permissions, in letters [default: r; rl for a share or container]
    #[arg(long, value_name = "LETTERS", env = "LATCHFS_PERMISSIONS", value_parser = letters)]
    permissions: Option<Permissions>,

    /// For how long: 10m, 1h, 7d
    #[arg(long, value_name = "TIME", default_value = "1h", env = "LATCHFS_EXPIRES")]
    #[arg(value_parser = duration)]
    expires: Duration,

    /// With --account NAME:KEY: the endpoint [default: on 127.0.0.1, at the service's port]
    #[arg(long, value_name = "URL", env = "LATCHFS_ENDPOINT", requires = "account")]
    endpoint: Option<String>,

    #[command(flatten)]
    common: WhereAndOutput,
}

/// The key that signs for a service.
struct Signer {
    account: Credential,
    endpoint: String,
    /// When the SAS ends.
    expiry: Timestamp,
}

/// A SAS for a file or a share.
struct Signing {
    signer: Signer,
    share: String,
    /// Within the share, no slash before it.
    path: String,
}

impl Sas {
    pub fn run(&self) -> Result<ExitCode> {
        if self.path.as_deref().is_some_and(|path| path == Path::new(ACCOUNT)) {
            return self.of_account();
        }
        if let Some(ObjectAddress::Service(service)) =
            self.path.as_deref().and_then(Path::to_str).and_then(ObjectAddress::read)
        {
            let signer = self.signer(service)?;
            let (permissions, token) = self.account_token(&signer, &[service])?;
            return self.show(&signer, "", &token, permissions);
        }
        if let Some(object) = self.path.as_deref().and_then(object) {
            return self.of_object(&object);
        }
        let Signing { signer, share, path } = self.signing()?;
        let whole_share = path.is_empty() || self.is_directory();
        let default = if whole_share { "rl" } else { "r" };
        let permissions = self.permitted(default, "rcwdl")?;
        let sas = ServiceSas {
            share: share.clone(),
            file: (!whole_share).then(|| path.clone()),
            permissions: Some(permissions.letters()),
            expiry: Some(signer.expiry),
            ..ServiceSas::default()
        };
        let resource = if path.is_empty() { share } else { format!("{share}/{path}") };
        self.show(&signer, &resource, &sas.token(&signer.account), permissions)
    }

    /// A connection string of all services of an account, with a SAS in the place of its key.
    fn of_account(&self) -> Result<ExitCode> {
        let of = &self.common.server.of;
        let told = of_server(&of.server.find()?, of.account.as_deref())?;
        let services: Vec<_> = ServiceKind::ALL
            .into_iter()
            .filter(|service| told.endpoints.contains_key(service.label()))
            .collect();
        let first = *services.first().context("the server offers no service")?;
        let signer = self.signer(first)?;
        let (permissions, token) = self.account_token(&signer, &services)?;
        let endpoint = |service: &ServiceKind| {
            format!("{}Endpoint={};", service.title(), told.endpoints[service.label()])
        };
        let endpoints: String = services.iter().map(endpoint).collect();
        let string = format!("{endpoints}SharedAccessSignature={token}");
        self.show_as(&signer, ("connection_string", string), &token, permissions)
    }

    /// An account SAS for all that these services have, with its permissions.
    fn account_token(
        &self,
        signer: &Signer,
        services: &[ServiceKind],
    ) -> Result<(Permissions, String)> {
        let permissions = self.permitted("rl", LETTERS)?;
        let sas = AccountSas {
            permissions: permissions.letters(),
            services: services.iter().map(|service| service.letter()).collect(),
            levels: "sco".into(),
            expiry: signer.expiry,
            ..AccountSas::default()
        };
        Ok((permissions, sas.token(&signer.account)))
    }

    /// The permissions, if the service has their letters.
    fn permitted(&self, default: &str, known: &str) -> Result<Permissions> {
        let permissions = self.permissions.unwrap_or_else(|| Permissions::of_letters(default));
        match permissions.letters().chars().find(|letter| !known.contains(*letter)) {
            Some(letter) => usage!("'{letter}' is not permitted there: letters of {known} are"),
            None => Ok(permissions),
        }
    }

    fn of_object(&self, object: &ObjectAddress) -> Result<ExitCode> {
        let signer = self.signer(object.service())?;
        let mut pairs = Vec::new();
        let (signatures, resource, path, letters) = match object {
            ObjectAddress::Container(name) => {
                pairs.push(("sr", "c".to_owned()));
                (&auth::BLOB_SIGNATURES, name, "", ("rl", "racwdlxytfi"))
            }
            ObjectAddress::Blob { container, name } => {
                pairs.push(("sr", "b".to_owned()));
                (&auth::BLOB_SIGNATURES, container, name.as_str(), ("r", "racwdxyti"))
            }
            ObjectAddress::Queue(name) => (&auth::QUEUE_SIGNATURES, name, "", ("r", "raup")),
            ObjectAddress::Table(name)
            | ObjectAddress::Partition { table: name, .. }
            | ObjectAddress::Entity { table: name, .. } => {
                pairs.push(("tn", name.clone()));
                (&auth::TABLE_SIGNATURES, name, "", ("r", "raud"))
            }
            other => usage!("{other}: a SAS is for a container, a blob, a queue or a table"),
        };
        if let ObjectAddress::Partition { partition, .. }
        | ObjectAddress::Entity { partition, .. } = object
        {
            pairs.extend([("spk", partition.clone()), ("epk", partition.clone())]);
        }
        if let ObjectAddress::Entity { row, .. } = object {
            pairs.extend([("srk", row.clone()), ("erk", row.clone())]);
        }
        let permissions = self.permitted(letters.0, letters.1)?;
        pairs.push(("sp", permissions.letters()));
        pairs.push(("se", time::iso_seconds(signer.expiry)));
        let level = if path.is_empty() { ResourceLevel::Container } else { ResourceLevel::Object };
        let container = Some(resource.as_str());
        let target =
            auth::AuthTarget { signatures, account: signer.account.name(), container, path, level };
        let token = service_token(&signer.account, &target, pairs)?;
        let place = match path {
            "" => resource.clone(),
            path => format!("{resource}/{path}"),
        };
        self.show(&signer, &place, &token, permissions)
    }

    /// Whose key signs for a service, and where the service is.
    fn signer(&self, service: ServiceKind) -> Result<Signer> {
        let of = &self.common.server.of;
        if let Some(account) = self.given_account()? {
            return Ok(self.signer_without_server(account, service));
        }
        self.signer_of(&of.server.find()?, of.account.as_deref(), service)
    }

    /// The account whose key is on the command line.
    fn given_account(&self) -> Result<Option<Credential>> {
        let given = self.common.server.of.account.as_deref().filter(|name| name.contains(':'));
        given.map(|account| account.parse().context("--account")).transpose()
    }

    fn signer_without_server(&self, account: Credential, service: ServiceKind) -> Signer {
        let default = || account.endpoint(&default_origin(service));
        let endpoint = self.endpoint.clone().unwrap_or_else(default);
        Signer { account, endpoint, expiry: SystemClock.now().after(self.expires) }
    }

    /// Asks a server for the key. The SAS ends by the server's clock, which may have been turned.
    fn signer_of(
        &self,
        control: &Path,
        account: Option<&str>,
        service: ServiceKind,
    ) -> Result<Signer> {
        let mut told = of_server(control, account)?;
        let account = format!("{}:{}", told.account, told.key).parse();
        let endpoint = told.endpoints.remove(service.label());
        let endpoint = endpoint.with_context(|| {
            format!("the server does not offer the {} service", service.title())
        })?;
        let account = account.context("the server's account")?;
        Ok(Signer { account, endpoint, expiry: now_of(control)?.after(self.expires) })
    }

    fn show(
        &self,
        signer: &Signer,
        resource: &str,
        token: &str,
        permissions: Permissions,
    ) -> Result<ExitCode> {
        let place = utf8_percent_encode(resource, &UNRESERVED);
        let url = format!("{}/{place}?{token}", signer.endpoint.trim_end_matches('/'));
        self.show_as(signer, ("url", url), token, permissions)
    }

    /// Shows a SAS in the form that this is the name of.
    fn show_as(
        &self,
        signer: &Signer,
        (name, form): (&str, String),
        token: &str,
        permissions: Permissions,
    ) -> Result<ExitCode> {
        let answer = json!({
            name: form,
            "token": token,
            "permissions": permissions.letters(),
            "expires": time::iso(signer.expiry),
        });
        self.common.output.show(&answer, || form.clone() + "\n")
    }

    fn signing(&self) -> Result<Signing> {
        if let Some(account) = self.given_account()? {
            return self.without_server(account);
        }
        let target = self.common.server.target_or_share(self.path.as_deref())?;
        let LocatedFile { control, account, share_name, path } = target;
        let signer = self.signer_of(&control, account.as_deref(), ServiceKind::File)?;
        let share = match share_name {
            Some(share) => share,
            None => only_share(&control, signer.account.name())?,
        };
        Ok(Signing { signer, share, path: trimmed(&path) })
    }

    /// All that is needed is on the command line, and in the table of mounts.
    fn without_server(&self, account: Credential) -> Result<Signing> {
        let (share, path) = match (&self.common.server.share_name, &self.path) {
            (Some(share), path) => {
                let path = path.as_deref().unwrap_or(Path::new(""));
                (share.clone(), path.to_str().context("names on a share are UTF-8")?.to_owned())
            }
            (None, Some(path)) => {
                let target = self.common.server.target(path)?;
                (target.share_name.unwrap_or_default(), target.path)
            }
            (None, None) => usage!("name the share with --share-name"),
        };
        let signer = self.signer_without_server(account, ServiceKind::File);
        Ok(Signing { signer, share, path: trimmed(&path) })
    }

    /// True if the path is one of a mount and leads to a directory, or is spelled like one.
    fn is_directory(&self) -> bool {
        let Some(path) = &self.path else { return true };
        path.as_os_str().as_encoded_bytes().ends_with(b"/")
            || (self.common.server.share_name.is_none() && path.is_dir())
    }
}

fn trimmed(path: &str) -> String {
    path.trim_matches('/').to_owned()
}

/// The time of a server's clock.
fn now_of(control: &Path) -> Result<Timestamp> {
    time::parse_iso(&ask(control, &GetClock {})?.now).context("the server's clock")
}

/// The share that is meant where only one can be.
fn only_share(control: &Path, account: &str) -> Result<String> {
    let status = ask(control, &GetStatus {})?;
    let mut shares = status.shares.into_iter().filter(|share| share.account == account);
    let only = shares.next().filter(|_| shares.next().is_none());
    Ok(only.context("several shares are served: name one, as in NAME:/PATH")?.name)
}

fn letters(text: &str) -> Result<Permissions, String> {
    match text.chars().find(|letter| !LETTERS.contains(*letter)) {
        Some(letter) => Err(format!("'{letter}' is none of {LETTERS}")),
        None if text.is_empty() => Err(format!("letters of {LETTERS}")),
        None => Ok(Permissions::of_letters(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_put_in_the_order_that_a_signature_wants() {
        assert_eq!(letters("ldwcr").unwrap().letters(), "rcwdl");
        assert!(letters("rz").is_err() && letters("").is_err());
    }
}
