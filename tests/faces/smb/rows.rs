//! The rows of SMB requests in the journal, and what the report makes of them.

use std::net::SocketAddr;

use latchfs::file::smb::status::Status;
use latchfs::file::smb::wire::FileId;
use latchfs::file::smb::wire::lock::{EXCLUSIVE, FAIL_IMMEDIATELY, UNLOCK};
use serde_json::{Value, json};

use super::address;
use super::client::{COMBINATIONS, CREATE, Create, DELETE, READ, SHARE_ALL, SmbClient, WRITE};
use crate::common::http::{Got, ask_as_it_is};
use crate::common::rest::Rest;
use crate::common::served::{PATIENCE, Served, wait_for};

/// `SHARE_ALL` without W.
const KEEP_OTHERS_FROM_WRITING: u32 = 5;

fn serve() -> Served {
    let args = ["--no-mount", "--no-auth", "--smb", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    Served::start(&args)
}

fn api(served: &Served, method: &str, path: &str, body: &Value) -> Got {
    let admin: SocketAddr = served.told("admin").split('/').nth(2).unwrap().parse().unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let headers = [("x-latchfs-client", "a test")];
    let path = format!("/api/v1/{path}");
    ask_as_it_is(admin, &admin.to_string(), method, &path, &headers, body.as_bytes())
}

/// An SMB client that logs on with a key of its own.
fn named(served: &Served, name: &str) -> SmbClient {
    let added = api(served, "POST", "clients", &json!({ "name": name })).is(201).json();
    let key = added["key"].as_str().unwrap();
    let mut client = SmbClient::log_on(address(served), COMBINATIONS[0], key).unwrap();
    client.tree("share").unwrap();
    client
}

/// The rows of the requests of SMB clients.
fn rows(served: &Served) -> Vec<Value> {
    let page = api(served, "GET", "events?kind=request", &Value::Null).is(200).json();
    let rows = page["events"].as_array().unwrap().iter();
    let of_smb = |row: &&Value| row["operation"].as_str().unwrap().starts_with("SMB ");
    rows.filter(of_smb).cloned().collect()
}

fn findings(served: &Served) -> Vec<(String, String)> {
    let report = api(served, "GET", "report", &Value::Null).is(200).json();
    let findings = report["findings"].as_array().unwrap().iter();
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    findings.map(|finding| (text(finding, "rule"), text(finding, "level"))).collect()
}

fn new(name: &str) -> Create<'_> {
    Create { disposition: CREATE, ..Create::open(name, READ | WRITE | DELETE, SHARE_ALL) }
}

#[test]
fn each_request_on_a_share_has_a_row_with_its_client_its_object_and_the_etags_it_met() {
    let served = serve();
    let mut client = named(&served, "A");
    let open = client.create(&new("f")).unwrap().id;
    client.write(open, 0, b"some bytes").unwrap();
    client.read(open, 5, 5).unwrap();
    client.lock(open, &[(0, 1, EXCLUSIVE | FAIL_IMMEDIATELY)]).unwrap();
    client.lock(open, &[(0, 1, UNLOCK)]).unwrap();
    client.rename(open, 10, "g", false).unwrap();
    let etag = Rest::new(served.addr(), "share").head("/share/g").is(200).header("etag").to_owned();
    client.set_disposition(open, true).unwrap();
    client.close(open).unwrap();
    let rows = rows(&served);
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row["operation"].as_str().unwrap(), row["object"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("SMB Create", "file:share/f"),
            ("SMB Write", "file:share/f"),
            ("SMB Read", "file:share/f"),
            ("SMB Lock", "file:share/f"),
            ("SMB Lock", "file:share/f"),
            ("SMB SetInfo", "file:share/f"),
            ("SMB SetInfo", "file:share/g"),
            ("SMB Close", "file:share/g"),
        ]
    );
    for row in &rows {
        let of = [&row["client"], &row["client_by"], &row["status"], &row["answer"]];
        assert_eq!(of, [&json!("A"), &json!("key"), &json!(200), &json!("sent")], "{row}");
        assert!(row["connection"].as_str().unwrap().starts_with("SMB 127.0.0.1:"), "{row}");
        assert!(row["duration_us"].is_u64() && row.get("refusal").is_none(), "{row}");
    }
    let [create, write, read, _, _, rename, delete, _] = &rows[..] else { unreachable!() };
    let changed = |row: &Value| row["changed"][0].clone();
    assert!(changed(create).get("etag_before").is_none());
    assert_eq!(changed(write)["etag_before"], changed(create)["etag_after"]);
    assert_eq!((&write["parts"], &write["length"]), (&json!({"range": [0, 10]}), &json!(10)));
    assert_eq!(read["etag_read"], changed(write)["etag_after"]);
    assert_eq!(read["parts"], json!({"range": [5, 10]}));
    let names = [&rename["changed"][0]["object"], &rename["changed"][1]["object"]];
    assert_eq!(names, ["file:share/f", "file:share/g"]);
    assert_eq!(changed(delete)["etag_before"], etag);
    assert!(changed(delete).get("etag_after").is_none());
}

#[test]
fn the_row_of_a_refused_request_names_the_rule_and_the_holder() {
    let served = serve();
    Rest::new(served.addr(), "share").upload("f", b"bytes");
    let (mut one, mut other) = (named(&served, "A"), named(&served, "B"));
    one.open("f", READ | WRITE, 0).unwrap();
    assert_eq!(other.open("f", READ, SHARE_ALL), Err(Status::SHARING_VIOLATION));
    assert_eq!(other.open("none", READ, SHARE_ALL), Err(Status::OBJECT_NAME_NOT_FOUND));
    let rows = rows(&served);
    let [_, held, missing] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&held["status"], &held["code"]), (&json!(409), &json!("STATUS_SHARING_VIOLATION")));
    assert_eq!(
        (&held["client"], &held["refusal"]["rule"]),
        (&json!("B"), &json!("sharing_violation"))
    );
    assert!(held["refusal"]["holder"]["handle"].is_u64(), "{held}");
    assert_eq!(missing["status"], 404);
    assert!(held.get("changed").is_none() && missing.get("changed").is_none());
}

#[test]
fn a_waiting_lock_has_one_row_when_it_is_answered_and_one_that_is_cut_off_too() {
    let served = serve();
    Rest::new(served.addr(), "share").upload("f", b"bytes");
    let (mut one, mut other) = (named(&served, "A"), named(&served, "B"));
    let holder = one.open("f", READ | WRITE, SHARE_ALL).unwrap();
    one.lock(holder, &[(0, 1, EXCLUSIVE | FAIL_IMMEDIATELY)]).unwrap();
    let waiter = other.open("f", READ | WRITE, SHARE_ALL).unwrap();
    let of_b = |served: &Served| -> Vec<Value> {
        let is_lock = |row: &Value| row["operation"] == "SMB Lock" && row["client"] == "B";
        rows(served).into_iter().filter(is_lock).collect()
    };
    let waiting = other.send_lock(waiter, &[(0, 1, EXCLUSIVE)]);
    let interim = other.answer_within(waiting, PATIENCE).unwrap();
    assert_eq!(interim.status(), Status::PENDING);
    assert!(of_b(&served).is_empty());
    one.lock(holder, &[(0, 1, UNLOCK)]).unwrap();
    assert_eq!(other.answer(waiting).status(), Status::SUCCESS);
    assert_eq!(of_b(&served).len(), 1);
    let waiting = one.send_lock(holder, &[(0, 1, EXCLUSIVE)]);
    let interim = one.answer_within(waiting, PATIENCE).unwrap();
    assert_eq!(interim.status(), Status::PENDING);
    one.cut();
    wait_for("the row of the lock that was cut off", || {
        let gone = |row: &Value| row["client"] == "A" && row["answer"] == "client-gone";
        rows(&served).iter().any(gone).then_some(())
    });
}

/// A reads, REST writes, A writes what it made of the old bytes: through opens of its own, or
/// through one that keeps others from writing.
#[test]
fn the_report_finds_an_update_lost_between_smb_and_rest_and_nothing_under_a_share_mode() {
    let served = serve();
    let rest = Rest::new(served.addr(), "share");
    rest.upload("f", b"1");
    let mut client = named(&served, "A");
    let mut once = |change: &dyn Fn(&mut SmbClient, FileId), access| {
        let open = client.open("f", access, SHARE_ALL).unwrap();
        change(&mut client, open);
        client.close(open).unwrap();
    };
    once(&|client, open| drop(client.read(open, 0, 9).unwrap()), READ);
    rest.put_range("/share/f", 0, b"2", &[("x-latchfs-client", "B")]).is(201);
    once(&|client, open| client.write(open, 0, b"3").unwrap(), WRITE);
    let found = findings(&served);
    assert!(found.iter().any(|(_, level)| level == "error"), "{found:?}");

    api(&served, "POST", "marks", &json!({ "test": "guarded" })).is(201);
    let open = client.open("f", READ | WRITE, KEEP_OTHERS_FROM_WRITING).unwrap();
    client.read(open, 0, 9).unwrap();
    rest.put_range("/share/f", 0, b"4", &[]).refused(409, "SharingViolation");
    client.write(open, 0, b"5").unwrap();
    client.close(open).unwrap();
    let page = api(&served, "GET", "report?since=guarded&level=hint", &Value::Null).is(200).json();
    assert_eq!(page["findings"], json!([]), "{page}");
}
