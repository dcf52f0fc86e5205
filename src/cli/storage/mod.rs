//! `latchfs ls`, `mk`, `put`, `get` and `rm`: objects of the services, at the shell.
//!
//! Decides how commands ask: over the services' own endpoints, found and signed through the control
//! socket, so that rules, conditions and events are those of any client.
//!
//! ```text
//!   list      ls
//!   transfer  put and get
//!   change    mk and rm
//! ```

mod change;
mod list;
mod transfer;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::client::of_server;
use super::locate::{AccountAndOutput, AccountOf, LocatedFile, Socket, Where};
use super::out::usage;
use super::{AGENT, EXIT_BUSY, EXIT_DIFFERENT, EXIT_FAILED, out};
use crate::api::{ConnectionInfo, ObjectAddress};
use crate::clock::{SystemClock, TimeSource};
use crate::http::auth::{AccountSas, Credential};
use crate::http::client::{Got, HttpClient};
use crate::http::xml::Element;
use crate::rules::service::ServiceKind;
use crate::sync::random::new_guid;

pub use change::{Mk, Rm};
pub use list::Ls;
pub use transfer::{Get, Put};

/// The characters that a URL's path has unencoded.
pub const UNRESERVED: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// How long a signature holds: longer than a test turns the server's clock forward.
const SIGNED_FOR: Duration = Duration::from_hours(3_650 * 24);

/// The forms of an address that can be read and written.
const OBJECT_FORM: &str = "blob:CONTAINER/NAME, queue:NAME, table:TABLE/PARTITION/ROW, \
                           file:SHARE/PATH, SHARE:/PATH, or a path on a mount";

/// The forms of an address.
const ADDRESS_FORM: &str = "blob:CONTAINER[/NAME], queue:NAME[/ID], table:TABLE[/PARTITION[/ROW]], \
                            file:SHARE[/PATH], SHARE:/PATH, or a path on a mount";

/// Conditions of a change.
#[derive(Debug, Clone, Default, Args)]
struct ConditionArgs {
    /// Only if the blob or entity has this ETag
    #[arg(long, value_name = "ETAG", env = "LATCHFS_IF_MATCH")]
    if_match: Option<String>,

    /// ID of the lease that the blob, container, file or share has
    #[arg(long, value_name = "ID", env = "LATCHFS_LEASE")]
    lease: Option<String>,
}

impl ConditionArgs {
    fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        headers.extend(self.if_match.as_deref().map(|etag| ("if-match", quoted(etag))));
        headers.extend(self.lease.clone().map(|id| ("x-ms-lease-id", id)));
        headers
    }
}

/// An ETag as a header has it: listings of the services show those of blobs without their quotes.
fn quoted(etag: &str) -> String {
    let bare = etag.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if bare && !etag.is_empty() { format!("\"{etag}\"") } else { etag.to_owned() }
}

/// A refusal by a service.
#[derive(Debug, thiserror::Error)]
#[error("{message} ({status} {code})")]
struct ServiceRefusal {
    status: u16,
    code: String,
    message: String,
}

/// A request to a service.
struct StorageRequest<'a> {
    service: ServiceKind,
    method: &'a str,
    /// Behind the account, encoded.
    path: String,
    query: &'a [(&'a str, &'a str)],
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl<'a> StorageRequest<'a> {
    fn new(service: ServiceKind, method: &'a str, path: impl Into<String>) -> Self {
        let (query, headers, body) = (&[][..], Vec::new(), Vec::new());
        Self { service, method, path: path.into(), query, headers, body }
    }
}

/// Does `work` with an object of a server's account, and says how it ended.
fn on_object(
    text: &Path,
    server: &AccountOf,
    work: impl FnOnce(&Session, &ObjectAddress) -> Result<ExitCode>,
) -> Result<ExitCode> {
    let (object, server) = locate(text, server)?;
    let session = Session::open(&server)?;
    let done = work(&session, &object);
    ended(&object, done)
}

/// A client of one account's services.
struct Session {
    client: HttpClient,
    told: ConnectionInfo,
    token: String,
}

impl Session {
    fn open(server: &AccountOf) -> Result<Self> {
        let told = of_server(&server.server.find()?, server.account.as_deref())?;
        let account: Credential = format!("{}:{}", told.account, told.key).parse()?;
        let sas = AccountSas {
            permissions: "racwdlupxytfi".into(),
            services: ServiceKind::ALL.map(ServiceKind::letter).iter().collect(),
            levels: "sco".into(),
            expiry: SystemClock.now().after(SIGNED_FOR),
            ..AccountSas::default()
        };
        let client = HttpClient::new(AGENT, told.ca_file.as_deref())?;
        Ok(Self { client, token: sas.token(&account), told })
    }

    /// The services that can be asked.
    fn services(&self) -> impl Iterator<Item = ServiceKind> {
        ServiceKind::ALL.into_iter().filter(|kind| self.told.endpoints.contains_key(kind.label()))
    }

    /// Asks. A refusal is an error of its own kind.
    fn ask(&self, ask: StorageRequest<'_>) -> Result<Got> {
        let service = ask.service;
        let Some(endpoint) = self.told.endpoints.get(service.label()) else {
            bail!("the server does not offer the {} service", service.title());
        };
        let mut url = format!("{}/{}?", endpoint.trim_end_matches('/'), ask.path);
        for (name, value) in ask.query {
            url = format!("{url}{name}={}&", utf8_percent_encode(value, NON_ALPHANUMERIC));
        }
        url.push_str(&self.token);
        let mut headers = ask.headers;
        headers.push(("x-ms-client-request-id", new_guid()));
        if service == ServiceKind::Table {
            headers.push(("accept", "application/json;odata=minimalmetadata".into()));
            headers.push(("content-type", "application/json".into()));
        }
        let sent = self.client.send(ask.method, &url, &headers, ask.body);
        let mut got = sent.with_context(|| format!("asking {endpoint}"))?;
        if got.status() < 400 {
            return Ok(got);
        }
        let code = got.header("x-ms-error-code").unwrap_or_default().to_owned();
        let (status, body) = (got.status(), got.body()?);
        let message = message(&body).unwrap_or_else(|| "the service refused".into());
        Err(ServiceRefusal { status, code, message }.into())
    }
}

/// The message of an error, in XML or JSON, without the lines that name request and time.
fn message(body: &[u8]) -> Option<String> {
    let text = if let Ok(error) = serde_json::from_slice::<Value>(body) {
        error["odata.error"]["message"]["value"].as_str()?.to_owned()
    } else {
        Element::read(body, "Error").ok()?.child("Message")?.text.clone()
    };
    Some(text.lines().next()?.to_owned())
}

/// The object that the text names, and its server. A file may also be named as commands for files
/// name it: `SHARE:/PATH`, or a path on a mount.
fn locate(text: &Path, server: &AccountOf) -> Result<(ObjectAddress, AccountOf)> {
    if let Some(address) = text.to_str().and_then(ObjectAddress::read) {
        return Ok((address, server.clone()));
    }
    let files = Where { of: server.clone(), share_name: None };
    let Some(LocatedFile { control, account, share_name, path }) = files.find(text)? else {
        usage!("{}: expected {ADDRESS_FORM}", text.display());
    };
    let share = share_name.context("the share has no name")?;
    let object = ObjectAddress::File { share, path: path.trim_matches('/').to_owned() };
    Ok((object, AccountOf { server: Socket::at(control), account }))
}

/// The end of a command: a refusal is told with the service's code.
fn ended(what: &ObjectAddress, done: Result<ExitCode>) -> Result<ExitCode> {
    let error = match done {
        Ok(code) => return Ok(code),
        Err(error) => error,
    };
    let Some(refusal) = error.downcast_ref::<ServiceRefusal>() else { return Err(error) };
    let what = match what {
        ObjectAddress::Service(service) => format!("the {} service", service.title()),
        object => object.to_string(),
    };
    // The refusal, behind the name of the one that it is about where that is another.
    out::complain_of(&format!("{what}: {}", out::chain(&error)), &refusal.code);
    Ok(ExitCode::from(match refusal {
        ServiceRefusal { status: 409 | 412, code, .. } if is_held(code) => EXIT_BUSY,
        ServiceRefusal { status: 412, .. } => EXIT_DIFFERENT,
        _ => EXIT_FAILED,
    }))
}

/// Whether a code says that another client has the object. A lease that is not there, or over, is
/// nobody's.
fn is_held(code: &str) -> bool {
    let held = ["Lease", "SharingViolation", "DeletePending", "FileLockConflict"];
    let free = ["LeaseNotPresent", "LeaseLost", "LeaseAlreadyBroken"];
    let any = |parts: &[&str]| parts.iter().any(|part| code.contains(part));
    any(&held) && !any(&free)
}

/// The path of an object behind the account, encoded.
fn path_of(address: &ObjectAddress) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, &UNRESERVED).to_string();
    let key = |key: &str| encoded(&key.replace('\'', "''"));
    match address {
        ObjectAddress::Service(_) => String::new(),
        ObjectAddress::File { share, path } if path.is_empty() => encoded(share),
        ObjectAddress::File { share: first, path: rest }
        | ObjectAddress::Blob { container: first, name: rest } => {
            format!("{}/{}", encoded(first), encoded(rest))
        }
        ObjectAddress::Container(name)
        | ObjectAddress::Queue(name)
        | ObjectAddress::Table(name)
        | ObjectAddress::Partition { table: name, .. } => encoded(name),
        ObjectAddress::Message { queue, id } => {
            format!("{}/messages/{}", encoded(queue), encoded(id))
        }
        ObjectAddress::Entity { table, partition, row } => {
            let (table, partition, row) = (encoded(table), key(partition), key(row));
            format!("{table}(PartitionKey='{partition}',RowKey='{row}')")
        }
    }
}
