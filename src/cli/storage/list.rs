//! `latchfs ls`: lists the content of a service, container, queue, table or share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::{
    AccountAndOutput, ServiceRefusal, Session, StorageRequest, ended, locate, path_of, quoted,
};
use crate::api::ObjectAddress;
use crate::http::xml::Element;
use crate::rules::service::ServiceKind;
use crate::rules::time::{iso_seconds, parse_iso, parse_rfc1123};

/// The most entries of one page.
const PAGE: &str = "1000";

const EXAMPLE: &str = "\
Example:
  latchfs ls
  latchfs ls blob:docs/reports/
  latchfs ls table:rows/PARTITION";

/// List containers, queues, tables and shares, or what is in one
///
/// A table on a terminal, otherwise a line for each with tabs between: address, kind, length, time
/// of the last change, ETag. Blobs are listed up to the next slash, unless --recursive. Of a queue
/// the first 32 visible messages are shown; nothing is taken.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Ls {
    #[arg(help = "blob:[CONTAINER[/PREFIX]], queue:[NAME], table:[TABLE[/PARTITION]], \
                  file:[SHARE[/PATH]], SHARE:/PATH, or a path on a mount; without it, all that \
                  the account has")]
    object: Option<PathBuf>,

    /// All blobs below, not only those up to the next slash
    #[arg(short, long, env = "LATCHFS_RECURSIVE")]
    recursive: bool,

    #[command(flatten)]
    common: AccountAndOutput,
}

/// A row of a listing.
#[derive(Debug, Serialize)]
struct ListingRow {
    object: String,
    kind: &'static str,
    length: Option<u64>,
    modified: Option<String>,
    etag: Option<String>,
}

impl ListingRow {
    fn new(object: &ObjectAddress, kind: &'static str) -> Self {
        Self { object: object.to_string(), kind, length: None, modified: None, etag: None }
    }

    /// With what the `Properties` of a listing say.
    fn described(mut self, properties: Option<&Element>) -> Self {
        let text = |name: &str| Some(properties?.child(name)?.text.clone());
        self.length = text("Content-Length").and_then(|length| length.parse().ok());
        // Listings have quotes around the ETags of containers, and not of blobs.
        self.etag = text("Etag").filter(|text| !text.is_empty()).map(|etag| quoted(&etag));
        self.changed(text("Last-Modified"))
    }

    /// With the time of its last change, which services write in two ways and we in one.
    fn changed(mut self, time: Option<String>) -> Self {
        let read = |text: String| {
            parse_rfc1123(&text).or_else(|| parse_iso(&text)).map_or(text, iso_seconds)
        };
        self.modified = time.filter(|text| !text.is_empty()).map(read);
        self
    }
}

impl Ls {
    pub fn run(&self) -> Result<ExitCode> {
        let Some(object) = &self.object else {
            let session = Session::open(&self.common.server)?;
            let mut rows = Vec::new();
            for service in session.services() {
                rows.extend(self.rows(&session, &ObjectAddress::Service(service))?);
            }
            return self.show(&rows);
        };
        let (object, server) = locate(object, &self.common.server)?;
        let session = Session::open(&server)?;
        let listed = self.rows(&session, &object).and_then(|rows| self.show(&rows));
        ended(&object, listed)
    }

    fn show(&self, rows: &[ListingRow]) -> Result<ExitCode> {
        let headings = ["OBJECT", "KIND", "LENGTH", "MODIFIED", "ETAG"];
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        self.common.output.show_rows(rows, headings, |row| {
            let length = row.length.map(|length| length.to_string()).unwrap_or_default();
            let ListingRow { object, kind, modified, etag, .. } = row;
            [object.clone(), (*kind).to_owned(), length, text(modified), text(etag)]
        })
    }

    fn rows(&self, session: &Session, object: &ObjectAddress) -> Result<Vec<ListingRow>> {
        match object {
            ObjectAddress::Service(ServiceKind::Table) => tables(session),
            ObjectAddress::Service(service) => containers(session, *service),
            ObjectAddress::Container(container) => self.blobs(session, container, ""),
            ObjectAddress::Blob { container, name } => self.blobs(session, container, name),
            ObjectAddress::Queue(queue) | ObjectAddress::Message { queue, .. } => {
                messages(session, queue)
            }
            ObjectAddress::Table(table) => entities(session, table, None),
            ObjectAddress::Partition { table, partition }
            | ObjectAddress::Entity { table, partition, .. } => {
                entities(session, table, Some(partition))
            }
            ObjectAddress::File { share, path } => files(session, share, path),
        }
    }

    fn blobs(&self, session: &Session, container: &str, prefix: &str) -> Result<Vec<ListingRow>> {
        let mut rows = Vec::new();
        let path = path_of(&ObjectAddress::Container(container.to_owned()));
        let mut query = vec![("restype", "container"), ("comp", "list"), ("prefix", prefix)];
        if !self.recursive {
            query.push(("delimiter", "/"));
        }
        pages(session, (ServiceKind::Blob, &path), &query, |page| {
            for entry in &page.child("Blobs").context("no blobs in the answer")?.children {
                let name = name_of(entry)?;
                let kind = if entry.name == "Blob" { "blob" } else { "prefix" };
                let object = ObjectAddress::Blob { container: container.to_owned(), name };
                rows.push(ListingRow::new(&object, kind).described(entry.child("Properties")));
            }
            Ok(())
        })?;
        Ok(rows)
    }
}

/// Follows the pages of a listing in XML.
fn pages(
    session: &Session,
    (service, path): (ServiceKind, &str),
    query: &[(&str, &str)],
    mut each: impl FnMut(&Element) -> Result<()>,
) -> Result<()> {
    let mut marker = String::new();
    loop {
        let mut query = query.to_vec();
        query.push(("maxresults", PAGE));
        if !marker.is_empty() {
            query.push(("marker", &marker));
        }
        let body = session
            .ask(StorageRequest { query: &query, ..StorageRequest::new(service, "GET", path) })?
            .body()?;
        let page = Element::read(&body, "EnumerationResults");
        let page = page.map_err(|_| anyhow::anyhow!("the listing cannot be read"))?;
        each(&page)?;
        marker = page.child("NextMarker").map(|next| next.text.clone()).unwrap_or_default();
        if marker.is_empty() {
            return Ok(());
        }
    }
}

/// What a container, queue, table, share or directory holds, in words. One page is counted.
pub fn content_of(session: &Session, object: &ObjectAddress) -> Result<String> {
    let path = path_of(object);
    let ask = |path: &str, query: &[(&str, &str)]| {
        session.ask(StorageRequest { query, ..StorageRequest::new(object.service(), "GET", path) })
    };
    let listed = |query: &[(&str, &str)], list: &str| {
        let page = Element::read(&ask(&path, query)?.body()?, "EnumerationResults");
        let page = page.map_err(|_| anyhow::anyhow!("the listing cannot be read"))?;
        let count = page.child(list).map_or(0, |list| list.children.len());
        let more = page.child("NextMarker").is_some_and(|next| !next.text.is_empty());
        anyhow::Ok((count, more))
    };
    let ((count, more), [one, many]) = match object {
        ObjectAddress::Container(_) => {
            let query = [("restype", "container"), ("comp", "list"), ("maxresults", PAGE)];
            (listed(&query, "Blobs")?, ["blob", "blobs"])
        }
        ObjectAddress::File { .. } => {
            let query = [("restype", "directory"), ("comp", "list"), ("maxresults", PAGE)];
            (listed(&query, "Entries")?, ["entry", "entries"])
        }
        ObjectAddress::Queue(_) => {
            let got = ask(&path, &[("comp", "metadata")])?;
            let count = got.header("x-ms-approximate-messages-count");
            let count = count.and_then(|count| count.parse().ok()).unwrap_or_default();
            ((count, false), ["message", "messages"])
        }
        _ => {
            let mut got = ask(&format!("{path}()"), &[("$select", "PartitionKey")])?;
            let more = got.header("x-ms-continuation-NextPartitionKey").is_some();
            let page: Value = serde_json::from_slice(&got.body()?)?;
            let count = page["value"].as_array().map_or(0, Vec::len);
            ((count, more), ["entity", "entities"])
        }
    };
    let more = if more { " or more" } else { "" };
    Ok(format!("{count}{more} {}", if count == 1 { one } else { many }))
}

fn name_of(entry: &Element) -> Result<String> {
    Ok(entry.child("Name").context("an entry without a name")?.text.clone())
}

fn containers(session: &Session, service: ServiceKind) -> Result<Vec<ListingRow>> {
    let (list, kind) = match service {
        ServiceKind::Blob => ("Containers", "container"),
        ServiceKind::Queue => ("Queues", "queue"),
        _ => ("Shares", "share"),
    };
    let mut rows = Vec::new();
    pages(session, (service, ""), &[("comp", "list")], |page| {
        for entry in &page.child(list).context("no list in the answer")?.children {
            let name = name_of(entry)?;
            let object = match service {
                ServiceKind::Blob => ObjectAddress::Container(name),
                ServiceKind::Queue => ObjectAddress::Queue(name),
                _ => ObjectAddress::File { share: name, path: String::new() },
            };
            rows.push(ListingRow::new(&object, kind).described(entry.child("Properties")));
        }
        Ok(())
    })?;
    Ok(rows)
}

/// What is in a directory; of a file, the file itself.
fn files(session: &Session, share: &str, path: &str) -> Result<Vec<ListingRow>> {
    let mut rows = Vec::new();
    let mut row = |object: ObjectAddress, is_directory: bool, entry: &Element| {
        let kind = if is_directory { "directory" } else { "file" };
        rows.push(ListingRow::new(&object, kind).described(entry.child("Properties")));
    };
    if is_directory(session, share, path)? == Some(false) {
        named(session, (share, path), &mut row)?;
    } else {
        entries(session, (share, path), "", row)?;
    }
    Ok(rows)
}

/// Whether the name is that of a directory; `None` if there is no such name. Looks at a listing: a
/// question about a directory that is none would be a refusal in the log of events.
pub fn is_directory(session: &Session, share: &str, path: &str) -> Result<Option<bool>> {
    let mut found = None;
    if path.is_empty() {
        return Ok(Some(true));
    }
    match named(session, (share, path), |_, is_directory, _| found = Some(is_directory)) {
        // The directory above is missing: the request itself is refused in better words.
        Err(error) if error.is::<ServiceRefusal>() => Ok(None),
        done => done.map(|()| found),
    }
}

/// The entry of that name in the directory above. Case does not count in names of files.
fn named(
    session: &Session,
    (share, path): (&str, &str),
    mut each: impl FnMut(ObjectAddress, bool, &Element),
) -> Result<()> {
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    let wanted = name.to_lowercase();
    entries(session, (share, above), name, |object, is_directory, entry| {
        if name_of(entry).is_ok_and(|name| name.to_lowercase() == wanted) {
            each(object, is_directory, entry);
        }
    })
}

/// The entries of a directory, and whether each is a directory itself.
pub fn names_in(session: &Session, share: &str, path: &str) -> Result<Vec<(ObjectAddress, bool)>> {
    let mut names = Vec::new();
    let each = |object, is_directory, _: &Element| names.push((object, is_directory));
    entries(session, (share, path), "", each)?;
    Ok(names)
}

/// The entries of a directory whose names start with `prefix`.
fn entries(
    session: &Session,
    (share, path): (&str, &str),
    prefix: &str,
    mut each: impl FnMut(ObjectAddress, bool, &Element),
) -> Result<()> {
    let place = path_of(&ObjectAddress::File { share: share.to_owned(), path: path.to_owned() });
    let include = "Timestamps,Etag";
    let mut query = vec![("restype", "directory"), ("comp", "list"), ("include", include)];
    if !prefix.is_empty() {
        query.push(("prefix", prefix));
    }
    pages(session, (ServiceKind::File, &place), &query, |page| {
        for entry in &page.child("Entries").context("no entries in the answer")?.children {
            let name = name_of(entry)?;
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            let object = ObjectAddress::File { share: share.to_owned(), path };
            each(object, entry.name != "File", entry);
        }
        Ok(())
    })
}

fn messages(session: &Session, queue: &str) -> Result<Vec<ListingRow>> {
    let path = format!("{}/messages", path_of(&ObjectAddress::Queue(queue.to_owned())));
    let query = [("peekonly", "true"), ("numofmessages", "32")];
    let ask =
        StorageRequest { query: &query, ..StorageRequest::new(ServiceKind::Queue, "GET", path) };
    let page = Element::read(&session.ask(ask)?.body()?, "QueueMessagesList");
    let page = page.map_err(|_| anyhow::anyhow!("the messages cannot be read"))?;
    let row = |entry: &Element| {
        let text = |name: &str| entry.child(name).map(|child| child.text.clone());
        let id = text("MessageId").context("a message without an ID")?;
        let mut row =
            ListingRow::new(&ObjectAddress::Message { queue: queue.to_owned(), id }, "message");
        row.length = text("MessageText").map(|text| text.len() as u64);
        Ok(row.changed(text("InsertionTime")))
    };
    page.children.iter().map(row).collect()
}

fn tables(session: &Session) -> Result<Vec<ListingRow>> {
    let mut rows = Vec::new();
    values(session, "Tables", &[], |value| {
        let name = value["TableName"].as_str().context("a table without a name")?;
        rows.push(ListingRow::new(&ObjectAddress::Table(name.to_owned()), "table"));
        Ok(())
    })?;
    Ok(rows)
}

fn entities(session: &Session, table: &str, partition: Option<&String>) -> Result<Vec<ListingRow>> {
    let mut rows = Vec::new();
    let filter = partition.map(|key| format!("PartitionKey eq '{}'", key.replace('\'', "''")));
    let query: Vec<_> = filter.iter().map(|filter| ("$filter", filter.as_str())).collect();
    let path = format!("{}()", path_of(&ObjectAddress::Table(table.to_owned())));
    values(session, &path, &query, |value| {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let object = ObjectAddress::Entity {
            table: table.to_owned(),
            partition: text("PartitionKey").context("an entity without a key")?,
            row: text("RowKey").context("an entity without a key")?,
        };
        let mut row = ListingRow::new(&object, "entity").changed(text("Timestamp"));
        row.etag = text("odata.etag");
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

/// Follows the pages of a listing in JSON.
fn values(
    session: &Session,
    path: &str,
    query: &[(&str, &str)],
    mut each: impl FnMut(&Value) -> Result<()>,
) -> Result<()> {
    let mut next: BTreeMap<&str, String> = BTreeMap::new();
    loop {
        let mut query = query.to_vec();
        query.extend(next.iter().map(|(name, value)| (*name, value.as_str())));
        let ask = StorageRequest {
            query: &query,
            ..StorageRequest::new(ServiceKind::Table, "GET", path)
        };
        let mut got = session.ask(ask)?;
        let tokens = ["NextTableName", "NextPartitionKey", "NextRowKey"].map(|name| {
            let header = format!("x-ms-continuation-{name}");
            Some((name, got.header(&header)?.to_owned()))
        });
        let page: Value = serde_json::from_slice(&got.body()?)?;
        page["value"].as_array().into_iter().flatten().try_for_each(&mut each)?;
        next = tokens.into_iter().flatten().collect();
        if next.is_empty() {
            return Ok(());
        }
    }
}
