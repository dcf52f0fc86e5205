//! A Table service in this process, and what tests ask of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use latchfs::clock::ManualClock;
use latchfs::disk::DataRoot;
use latchfs::http::auth::{Admission, Credential, DEVELOPMENT_KEY};
use latchfs::http::server::RestServer;
use latchfs::rules::Timestamp;
use latchfs::rules::time::rfc1123;
use latchfs::server::{AccountOptions, Accounts};
use serde_json::{Value, json};

pub use crate::common::http::Got;
use crate::common::http::{self, ACCOUNT};
use crate::service;

/// A server with the Table service of one account.
pub struct Tables {
    server: RestServer,
    clock: Arc<ManualClock>,
    _folder: tempfile::TempDir,
}

impl Tables {
    pub const KEY: &str = DEVELOPMENT_KEY;

    /// Where everyone is let in.
    pub fn new() -> Self {
        Self::admitting(Admission::Everyone)
    }

    pub fn with(table: &str) -> Self {
        let tables = Self::new();
        tables.create(table);
        tables
    }

    /// Where only signed requests are let in.
    pub fn signed() -> Self {
        Self::admitting(service::signed())
    }

    pub fn signed_with_table(table: &str) -> Self {
        let tables = Self::signed();
        let body = json!({"TableName": table}).to_string();
        tables.signed_ask("SharedKey", "POST", "/Tables", "", body.as_bytes()).is(201);
        tables
    }

    fn admitting(admission: Admission) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path()).unwrap();
        let clock = Arc::new(ManualClock::new(now()));
        let options = AccountOptions { clock: clock.clone(), ..AccountOptions::default() };
        let accounts = Accounts::open(&root, ACCOUNT, ["second"], &options).unwrap();
        let table = &latchfs::table::rest::operations::SERVICE_TABLE;
        let accounts = Arc::new(accounts);
        let server = service::listen(&accounts, table, |options| options.admission = admission);
        Self { server, clock, _folder: folder }
    }

    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// The URL of the service.
    pub fn base(&self) -> String {
        format!("http://{}/{ACCOUNT}", self.addr())
    }

    /// Turns the clock by that many seconds.
    pub fn turn_clock(&self, seconds: i64) {
        let now = latchfs::clock::TimeSource::now(&*self.clock);
        self.clock.set(Timestamp(now.0 + seconds * 1_000_000_000));
    }

    pub fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Got {
        http::ask(self.addr(), method, &encoded(target), headers, body)
    }

    pub fn get(&self, target: &str) -> Got {
        self.ask("GET", target, &[], b"")
    }

    pub fn create(&self, table: &str) {
        let body = json!({"TableName": table}).to_string();
        self.ask("POST", "/Tables", &[], body.as_bytes()).is(201);
    }

    pub fn insert(&self, table: &str, entity: &Value) -> Got {
        self.ask("POST", &format!("/{table}"), &[], entity.to_string().as_bytes())
    }

    /// Writes an entity with the property `n`; its ETag.
    pub fn put_row(&self, table: &str, partition: &str, row: &str, n: i32) -> String {
        let done = self.update("PUT", table, partition, row, None, &json!({"n": n})).is(204);
        done.header("etag").to_owned()
    }

    pub fn update(
        &self,
        method: &str,
        table: &str,
        partition: &str,
        row: &str,
        tag: Option<&str>,
        body: &Value,
    ) -> Got {
        let headers: Vec<_> = tag.map(|tag| ("if-match", tag)).into_iter().collect();
        let target = entity(table, partition, row);
        self.ask(method, &target, &headers, body.to_string().as_bytes())
    }

    pub fn delete_entity(&self, table: &str, partition: &str, row: &str, tag: Option<&str>) -> Got {
        let headers: Vec<_> = tag.map(|tag| ("if-match", tag)).into_iter().collect();
        self.ask("DELETE", &entity(table, partition, row), &headers, b"")
    }

    /// `PARTITION/ROW` of all entities that match.
    #[track_caller]
    pub fn rows(&self, table: &str, filter: &str) -> Vec<String> {
        let got = self.get(&format!("/{table}()?$filter={}", escaped(filter))).is(200);
        assert_eq!(got.continuation().0, "", "one page");
        let text = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
        let body = got.json();
        let rows = body["value"].as_array().unwrap().iter();
        rows.map(|one| format!("{}/{}", text(one, "PartitionKey"), text(one, "RowKey"))).collect()
    }

    /// How many entities the pages of a query have.
    pub fn page_sizes(&self, target: &str) -> Vec<usize> {
        let mut sizes = Vec::new();
        let mut next = target.to_owned();
        loop {
            let got = self.get(&next).is(200);
            sizes.push(got.json()["value"].as_array().unwrap().len());
            let (partition, row) = got.continuation();
            if partition.is_empty() {
                return sizes;
            }
            let mark = if target.contains('?') { '&' } else { '?' };
            next = format!("{target}{mark}NextPartitionKey={partition}&NextRowKey={row}");
        }
    }

    /// Partitions `p00`, `p01` .. with rows `000`, `001` .., whose `n` is the number of the row.
    pub fn fill(&self, table: &str, partitions: usize, rows: usize) {
        for partition in 0..partitions {
            let parts: Vec<_> = (0..rows)
                .map(|row| {
                    let url = entity(table, &format!("p{partition:02}"), &format!("{row:03}"));
                    change("PUT", &url, &[], &json!({"n": row, "s": "text"}).to_string())
                })
                .collect();
            let got = self.batch(&parts).is(202);
            assert_eq!(got.text().matches("HTTP/1.1 204").count(), rows);
        }
    }

    /// Sends a change set.
    pub fn batch(&self, parts: &[String]) -> Got {
        self.batch_at("/$batch", parts)
    }

    pub fn batch_at(&self, target: &str, parts: &[String]) -> Got {
        let mut body =
            "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n".to_owned();
        for part in parts {
            body.push_str("--changeset_1\r\nContent-Type: application/http\r\n");
            body.push_str("Content-Transfer-Encoding: binary\r\n\r\n");
            body.push_str(part);
            body.push_str("\r\n");
        }
        body.push_str("--changeset_1--\r\n--batch_1--\r\n");
        let headers = [("content-type", "multipart/mixed; boundary=batch_1")];
        self.ask("POST", target, &headers, body.as_bytes())
    }

    /// Sends a request signed with the account's key.
    pub fn signed_ask(
        &self,
        scheme: &str,
        method: &str,
        path: &str,
        query: &str,
        body: &[u8],
    ) -> Got {
        self.signed_with(Self::KEY, 0, scheme, method, path, query, body)
    }

    /// The same with another key, and a date that is off by some seconds.
    #[allow(clippy::too_many_arguments, reason = "each is a part of the request")]
    pub fn signed_with(
        &self,
        key: &str,
        late: i64,
        scheme: &str,
        method: &str,
        path: &str,
        query: &str,
        body: &[u8],
    ) -> Got {
        let path = format!("/{ACCOUNT}{}", encoded(path));
        self.send_signed((key, late, scheme), method, &path, &path, query, body)
    }

    /// GETs `/ACCOUNT` followed by `path`, signed as if it were followed by `signed`.
    pub fn secondary(&self, path: &str, signed: &str, query: &str) -> Got {
        let (path, signed) = (format!("/{ACCOUNT}{path}"), format!("/{ACCOUNT}{signed}"));
        self.send_signed((Self::KEY, 0, "SharedKey"), "GET", &path, &signed, query, b"")
    }

    fn send_signed(
        &self,
        (key, late, scheme): (&str, i64, &str),
        method: &str,
        path: &str,
        signed: &str,
        query: &str,
        body: &[u8],
    ) -> Got {
        let date = rfc1123(Timestamp(now().0 + late * 1_000_000_000));
        let comp = query.split('&').find(|pair| pair.starts_with("comp="));
        let comp = comp.map(|pair| format!("?{pair}")).unwrap_or_default();
        let resource = format!("/{ACCOUNT}{signed}{comp}");
        let content_type = "application/json";
        let text = match scheme {
            "SharedKey" => format!("{method}\n\n{content_type}\n{date}\n{resource}"),
            _ => format!("{date}\n{resource}"),
        };
        let signature = sign(key, &text);
        let authorization = format!("{scheme} {ACCOUNT}:{signature}");
        let headers = [
            ("x-ms-date", date.as_str()),
            ("authorization", &authorization),
            ("content-type", content_type),
        ];
        let mark = if query.is_empty() { "" } else { "?" };
        let target = format!("{path}{mark}{query}");
        let addr = self.addr();
        http::ask_as_it_is(addr, &addr.to_string(), method, &target, &headers, body)
    }
}

#[derive(Clone, Copy)]
pub struct Sas<'a> {
    pub table: &'a str,
    pub letters: &'a str,
    pub expiry: &'a str,
    pub policy: &'a str,
    pub protocol: &'a str,
    /// `spk`, `srk`, `epk`, `erk`.
    pub keys: [&'a str; 4],
}

impl<'a> Sas<'a> {
    pub fn of(table: &'a str, letters: &'a str) -> Self {
        let expiry = "2099-01-01T00:00:00Z";
        Self { table, letters, expiry, policy: "", protocol: "", keys: [""; 4] }
    }

    pub fn token(&self) -> String {
        let version = "2019-02-02";
        let resource = format!("/table/{ACCOUNT}/{}", self.table.to_lowercase());
        let [spk, srk, epk, erk] = self.keys;
        let text = [
            self.letters,
            "",
            self.expiry,
            &resource,
            self.policy,
            "",
            self.protocol,
            version,
            spk,
            srk,
            epk,
            erk,
        ]
        .join("\n");
        let signature = sign(DEVELOPMENT_KEY, &text);
        let pairs = [
            ("sv", version),
            ("tn", self.table),
            ("sp", self.letters),
            ("se", self.expiry),
            ("si", self.policy),
            ("spr", self.protocol),
            ("spk", spk),
            ("srk", srk),
            ("epk", epk),
            ("erk", erk),
            ("sig", &signature),
        ];
        let given = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        let pairs: Vec<_> =
            given.map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        pairs.join("&")
    }
}

fn sign(key: &str, text: &str) -> String {
    let credential: Credential = format!("{ACCOUNT}:{key}").parse().unwrap();
    credential.key().sign(text)
}

/// The path of an entity.
pub fn entity(table: &str, partition: &str, row: &str) -> String {
    let quoted = |key: &str| escaped(&key.replace('\'', "''"));
    format!("/{table}(PartitionKey='{}',RowKey='{}')", quoted(partition), quoted(row))
}

/// A change within a change set.
pub fn change(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} http://127.0.0.1/{ACCOUNT}{path} HTTP/1.1\r\n");
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    format!("{text}\r\n{body}")
}

/// Percent-encoded, but for letters and digits.
pub fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// A target as a client may send it: without blanks and characters beyond ASCII.
fn encoded(target: &str) -> String {
    percent_encoding::utf8_percent_encode(target, percent_encoding::CONTROLS)
        .to_string()
        .replace(' ', "%20")
}

pub fn is_etag(text: &str) -> bool {
    let inner = text.strip_prefix("W/\"datetime'").and_then(|rest| rest.strip_suffix("Z'\""));
    inner.is_some_and(|inner| inner.matches("%3A").count() == 2)
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp(i64::try_from(since.as_nanos()).unwrap())
}
