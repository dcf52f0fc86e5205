//! What the article says of tables (S77-S95), through real HTTP.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use latchfs::clock::{ManualClock, SystemClock, TimeSource};
use latchfs::disk::DataRoot;
use latchfs::http::server::RestServer;
use latchfs::server::{AccountOptions, Accounts};
use serde_json::json;

use crate::common::http::{self, ACCOUNT};
use crate::service::listen;
use crate::table::fixture::{Got, Tables, entity, is_etag};

const OLD: &str = "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"";

fn put(tables: &Tables, tag: Option<&str>, n: i32) -> Got {
    tables.update("PUT", "tab", "p", "r", tag, &json!({"n": n}))
}

fn number(tables: &Tables) -> i64 {
    tables.get(&entity("tab", "p", "r")).is(200).json()["n"].as_i64().unwrap()
}

#[test]
fn s077_entities_are_checked_without_being_asked_to() {
    let tables = Tables::with("tab");
    tables.put_row("tab", "p", "r", 1);
    // Nothing was switched on: each entity has an ETag, and a stale one is refused.
    let seen = tables.get(&entity("tab", "p", "r")).is(200).header("etag").to_owned();
    put(&tables, Some(&seen), 2).is(204);
    put(&tables, Some(&seen), 3).refused(412, "UpdateConditionNotSatisfied");
}

#[test]
fn s078_tables_as_a_whole_have_no_etag_and_no_condition() {
    let tables = Tables::new();
    let never = [("if-match", OLD)];
    let made = tables.ask("POST", "/Tables", &never, br#"{"TableName":"tab"}"#).is(201);
    assert_eq!(made.header("etag"), "");
    assert_eq!(tables.get("/Tables('tab')").is(200).header("etag"), "");
    let list = tables.get("/Tables").is(200);
    assert!(!list.text().contains("etag"), "{}", list.text());
    tables.ask("DELETE", "/Tables('tab')", &never, b"").is(204);
}

#[test]
fn s079_a_returned_entity_carries_an_etag() {
    let tables = Tables::with("tab");
    tables.put_row("tab", "p", "r", 1);
    let got = tables.get(&entity("tab", "p", "r")).is(200);
    assert!(is_etag(got.header("etag")));
    assert_eq!(got.json()["odata.etag"], got.header("etag"));
}

#[test]
fn s080_an_update_carries_if_match_or_is_none() {
    let tables = Tables::with("tab");
    tables.put_row("tab", "p", "r", 1);
    tables.delete_entity("tab", "p", "r", None).refused(400, "MissingRequiredHeader");
    // Without the header PUT is an upsert since version 2011-08-18, and an error before.
    let old = [("x-ms-version", "2009-09-19")];
    let url = entity("tab", "p", "r");
    tables.ask("PUT", &url, &old, b"{}").refused(400, "MissingRequiredHeader");
    assert_eq!(number(&tables), 1);
}

#[test]
fn s081_another_etag_is_refused() {
    let tables = Tables::with("tab");
    tables.put_row("tab", "p", "r", 1);
    for method in ["PUT", "PATCH", "MERGE"] {
        let refused = tables.update(method, "tab", "p", "r", Some(OLD), &json!({"n": 2}));
        refused.refused(412, "UpdateConditionNotSatisfied");
    }
    let refused = tables.delete_entity("tab", "p", "r", Some(OLD));
    refused.refused(412, "UpdateConditionNotSatisfied");
    assert_eq!(number(&tables), 1);
}

#[test]
fn s082_the_same_etag_is_taken_and_changes() {
    let tables = Tables::with("tab");
    let mut etag = tables.put_row("tab", "p", "r", 0);
    for n in 1..4 {
        let done = put(&tables, Some(&etag), n).is(204);
        assert_ne!(done.header("etag"), etag);
        done.header("etag").clone_into(&mut etag);
    }
    assert_eq!(number(&tables), 3);
}

#[test]
fn s083_an_asterisk_updates_without_a_check() {
    let tables = Tables::with("tab");
    let before = tables.put_row("tab", "p", "r", 1);
    let done = put(&tables, Some("*"), 2).is(204);
    assert_ne!(done.header("etag"), before);
    assert_eq!(number(&tables), 2);
}

#[test]
fn s084_a_client_that_kept_the_etag_learns_of_a_change() {
    let tables = Tables::with("tab");
    let row = json!({"PartitionKey": "p", "RowKey": "r", "n": 1});
    let kept = tables.insert("tab", &row).is(201).header("etag").to_owned();
    put(&tables, Some("*"), 2).is(204);
    let refused = put(&tables, Some(&kept), 3).refused(412, "UpdateConditionNotSatisfied");
    assert!(refused.message().contains("ago by Update Entity"), "{}", refused.message());
    assert_eq!(number(&tables), 2);
}

#[test]
fn s085_a_kept_etag_set_to_an_asterisk_turns_the_check_off() {
    let tables = Tables::with("tab");
    let mut kept = tables.put_row("tab", "p", "r", 1);
    put(&tables, Some("*"), 2).is(204);
    put(&tables, Some(&kept), 3).refused(412, "UpdateConditionNotSatisfied");
    "*".clone_into(&mut kept);
    put(&tables, Some(&kept), 3).is(204);
    assert_eq!(number(&tables), 3);
}

#[test]
fn s086_query_entities_returns_etags() {
    let tables = Tables::with("tab");
    tables.put_row("tab", "p", "r", 1);
    let body = tables.get("/tab()").is(200).json();
    assert!(is_etag(body["value"][0]["odata.etag"].as_str().unwrap()));
}

#[test]
fn s087_insert_entity_returns_an_etag() {
    let tables = Tables::with("tab");
    let made = tables.insert("tab", &json!({"PartitionKey": "p", "RowKey": "r"})).is(201);
    assert!(is_etag(made.header("etag")));
}

/// An update by `method` returns an ETag and takes each one once.
fn takes_an_etag_once(method: &str) {
    let tables = Tables::with("tab");
    let etag = tables.put_row("tab", "p", "r", 1);
    let done = tables.update(method, "tab", "p", "r", Some(&etag), &json!({})).is(204);
    assert!(is_etag(done.header("etag")));
    let again = tables.update(method, "tab", "p", "r", Some(&etag), &json!({}));
    again.refused(412, "UpdateConditionNotSatisfied");
}

#[test]
fn s088_update_entity_returns_an_etag_and_takes_one() {
    takes_an_etag_once("PUT");
}

#[test]
fn s089_merge_entity_returns_an_etag_and_takes_one() {
    takes_an_etag_once("MERGE");
}

#[test]
fn s090_delete_entity_returns_no_etag_and_takes_one() {
    let tables = Tables::with("tab");
    let etag = tables.put_row("tab", "p", "r", 1);
    tables.delete_entity("tab", "p", "r", None).refused(400, "MissingRequiredHeader");
    let done = tables.delete_entity("tab", "p", "r", Some(&etag)).is(204);
    assert_eq!(done.header("etag"), "");
}

/// An upsert by `method` returns an ETag, whether the entity is there or not.
fn returns_an_etag(method: &str) {
    let tables = Tables::with("tab");
    for n in 0..2 {
        let done = tables.update(method, "tab", "p", "r", None, &json!({"n": n})).is(204);
        assert!(is_etag(done.header("etag")));
        assert_eq!(number(&tables), n);
    }
}

#[test]
fn s091_insert_or_replace_entity_returns_an_etag_and_needs_none() {
    returns_an_etag("PUT");
}

#[test]
fn s092_insert_or_merge_entity_returns_an_etag_and_needs_none() {
    returns_an_etag("MERGE");
}

#[test]
fn s093_upserts_make_no_check() {
    let tables = Tables::with("tab");
    for method in ["PUT", "MERGE"] {
        let seen = tables.put_row("tab", "p", "r", 1);
        put(&tables, Some(&seen), 2).is(204);
        // The change in between is lost: nobody is told.
        tables.update(method, "tab", "p", "r", None, &json!({"n": 3})).is(204);
        assert_eq!(number(&tables), 3);
    }
}

/// The Blob and the Table service of one account, with the entity `(p, r)` whose `n` is 0, and the
/// blob whose lease is the lock of its table.
struct Both {
    blob: RestServer,
    table: RestServer,
    clock: Arc<ManualClock>,
    _folder: tempfile::TempDir,
}

const ROW: &str = "/tab(PartitionKey='p',RowKey='r')";
const ID: &str = "x-ms-lease-id";

impl Both {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = DataRoot::open(folder.path()).unwrap();
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let options = AccountOptions { clock: clock.clone(), ..AccountOptions::default() };
        let accounts = Accounts::open(&root, ACCOUNT, [""; 0], &options).unwrap();
        let accounts = Arc::new(accounts);
        let start = |service| listen(&accounts, service, |_| {});
        let (blob, table) = (
            start(&latchfs::blob::rest::operations::SERVICE_TABLE),
            start(&latchfs::table::rest::operations::SERVICE_TABLE),
        );
        let both = Self { blob, table, clock, _folder: folder };
        let put = |target: &str, headers: &[(&str, &str)]| {
            http::ask(both.blob.addr(), "PUT", target, headers, b"").is(201);
        };
        put("/locks?restype=container", &[]);
        put("/locks/tab", &[("x-ms-blob-type", "BlockBlob")]);
        both.row("POST", "/Tables", &json!({"TableName": "tab"})).is(201);
        both.row("POST", "/tab", &json!({"PartitionKey": "p", "RowKey": "r", "n": 0})).is(201);
        both
    }

    fn row(&self, method: &str, target: &str, body: &serde_json::Value) -> http::Got {
        let headers = [("content-type", "application/json"), ("accept", "application/json")];
        http::ask(self.table.addr(), method, target, &headers, body.to_string().as_bytes())
    }

    fn number(&self) -> i64 {
        let headers = [("accept", "application/json")];
        let got = http::ask(self.table.addr(), "GET", ROW, &headers, b"").is(200);
        let row: serde_json::Value = serde_json::from_slice(&got.body).unwrap();
        row["n"].as_i64().unwrap()
    }

    fn lease(&self, action: &str, headers: &[(&str, &str)]) -> http::Got {
        let all = [&[("x-ms-lease-action", action)], headers].concat();
        http::ask(self.blob.addr(), "PUT", "/locks/tab?comp=lease", &all, b"")
    }

    /// The lock, for `seconds`; the ID, or none if somebody has it.
    fn lock(&self, seconds: &str) -> Option<String> {
        let got = self.lease("acquire", &[("x-ms-lease-duration", seconds)]);
        if got.status == 409 {
            got.refused(409, "LeaseAlreadyPresent");
            return None;
        }
        Some(got.is(201).header(ID).to_owned())
    }

    /// Reads, changes and writes without any check, as long as it has the lock.
    fn count_up_alone(&self) {
        let id = loop {
            match self.lock("15") {
                Some(id) => break id,
                None => thread::yield_now(),
            }
        };
        let n = self.number() + 1;
        self.row("PUT", ROW, &json!({"n": n})).is(204);
        self.lease("release", &[(ID, &id)]).is(200);
    }
}

#[test]
fn s094_a_table_is_locked_by_the_lease_of_a_blob_that_all_agree_on() {
    let both = Both::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..5).for_each(|_| both.count_up_alone()));
        }
    });
    assert_eq!(both.number(), 20);
    // The table knows nothing of the lock: who does not take it is not stopped.
    both.lock("15").unwrap();
    both.row("PUT", ROW, &json!({"n": 0})).is(204);
}

#[test]
fn s095_the_lease_that_locks_a_table_lasts_at_least_15_seconds() {
    let both = Both::new();
    let short = both.lease("acquire", &[("x-ms-lease-duration", "14")]);
    short.refused(400, "InvalidHeaderValue");
    both.lock("15").unwrap();
    both.clock.advance(Duration::from_secs(14));
    assert_eq!(both.lock("15"), None);
    both.clock.advance(Duration::from_secs(1));
    assert!(both.lock("15").is_some());
}
