//! Calls that show something.

use serde_json::{Value, json};

use super::fixture::{Api, NAME, body, get_file, put_blob, refused, serve};
use crate::common::http::ask;
use crate::control::fixture::json as told;

#[test]
fn the_status_is_that_of_the_command() {
    let (folder, _server, api) = serve(&[]);
    let (by_api, by_command) =
        (body(&api.get("status").is(200)), told(&folder.ask(&["status", "--json"])));
    for field in ["version", "pid", "accounts", "shares", "mounts", "endpoints", "admin", "data"] {
        assert_eq!(by_api[field], by_command[field], "{field}");
    }
    assert_eq!(by_api["admin"], format!("http://{}", api.addr));
    assert_eq!(by_api["clock"]["frozen"], false);
    assert!(by_api["uptime_seconds"].is_u64() && by_api["answer"].is_null(), "{by_api}");
    let connection = body(&api.get("connection").is(200));
    assert_eq!(connection, told(&folder.ask(&["connection-string", "--json"])));
}

#[test]
fn handles_are_shown_and_closed() {
    let (folder, _server, api) = serve(&[]);
    let hold = json!({ "path": "a.txt", "access": "rw" });
    let held = body(&api.post("holds", &hold).is(201));
    let shown = body(&api.get("handles?share=docs&path=%2Fa.txt").is(200));
    assert_eq!(shown["left_out"], 0);
    let row = &shown["handles"][0];
    assert_eq!((&row["handle"], &row["program"]), (&held["handle"], &json!(NAME)));
    assert_eq!(body(&api.get("handles").is(200))["handles"].as_array().unwrap().len(), 1);
    let path = format!("handles/{}", held["handle"]);
    assert_eq!(body(&api.delete(&path).is(200)), json!({ "closed": 1 }));
    refused(api.delete(&path), 404, "not_found");
    refused(api.delete("handles/x"), 400, "bad_request");
    refused(api.get("handles?path=none"), 404, "not_found");
    get_file(&folder, "a.txt").is(200);
}

#[test]
fn why_tells_of_files_and_of_objects() {
    let (folder, _server, api) = serve(&[]);
    api.post("holds", &json!({ "path": "a.txt" })).is(201);
    let why = body(&api.get("why?object=file:docs/a.txt").is(200));
    assert_eq!(why["opens"][0]["program"], NAME);
    put_blob(&folder, "b", &[("x-ms-client-request-id", "mine")], b"1").is(201);
    let why = body(&api.get("why?object=blob%3Abox%2Fb").is(200));
    assert_eq!(why["changes"][0]["client_request"], "mine");
    refused(api.get("why?object=blob:box/none"), 404, "not_found");
    refused(api.get("why?object=nonsense"), 400, "bad_request");
    refused(api.get("why"), 400, "bad_request");
    let history = body(&api.get("history?object=blob:box/b").is(200));
    assert_eq!(history["changes"][0]["operation"], "Put Blob");
    assert_eq!(body(&api.get("history").is(200))["changes"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_stored_is_shown_one_level_at_a_time() {
    let (folder, _server, api) = serve(&[]);
    let level = |object: &str| {
        let list = body(&api.get(&format!("objects{object}")).is(200));
        assert_eq!(list["more"], false);
        let rows = list["objects"].as_array().unwrap().clone();
        let text = |row: &Value| format!("{} {}", row["kind"].as_str().unwrap(), row["object"]);
        (rows.iter().map(text).collect::<Vec<_>>(), rows)
    };
    put_blob(&folder, "b", &[], b"123").is(201);
    put_blob(&folder, "dir/c", &[], b"1").is(201);
    let (queue, table) = (folder.service("queue"), folder.service("table"));
    ask(queue, "PUT", "/jobs", &[], b"").is(201);
    let message = b"<QueueMessage><MessageText>mail</MessageText></QueueMessage>";
    ask(queue, "POST", "/jobs/messages", &[], message).is(201);
    let kind = [("content-type", "application/json")];
    ask(table, "POST", "/Tables", &kind, br#"{"TableName":"Rows"}"#).is(201);
    ask(table, "POST", "/Rows", &kind, br#"{"PartitionKey":"p","RowKey":"r"}"#).is(201);
    let all = [
        "container \"blob:box\"",
        "queue \"queue:jobs\"",
        "table \"table:Rows\"",
        "share \"file:docs\"",
    ];
    assert_eq!(level("").0, all);
    let (blobs, rows) = level("?object=blob:box");
    assert_eq!(blobs, ["blob \"blob:box/b\"", "prefix \"blob:box/dir/\""]);
    assert_eq!((&rows[0]["length"], &rows[1]["length"]), (&json!(3), &Value::Null));
    assert_eq!(level("?object=blob:box/dir/").0, ["blob \"blob:box/dir/c\""]);
    let (_, messages) = level("?object=queue:jobs");
    assert_eq!((&messages[0]["text"], messages.len()), (&json!("mail"), 1));
    assert_eq!(level("?object=table:Rows").0, ["entity \"table:Rows/p/r\""]);
    assert_eq!(level("?object=file:docs").0, ["file \"file:docs/a.txt\""]);
    for none in ["blob:none", "queue:none", "table:None", "file:none", "file:docs/none"] {
        refused(api.get(&format!("objects?object={none}")), 404, "not_found");
    }
    refused(api.get("objects?object=blob:"), 400, "bad_request");
}

#[test]
fn a_file_is_named_as_commands_print_it() {
    let (folder, _server, api) = serve(&[]);
    assert!(folder.ask(&["shares", "create", "other"]).status.success());
    let message = |got| refused(got, 400, "bad_request")["message"].as_str().unwrap().to_owned();
    let unnamed = message(api.post("holds", &json!({ "path": "a.txt" })));
    assert!(unnamed.contains("as in NAME:/PATH"), "{unnamed}");
    for path in ["docs:/a.txt", "file:docs/a.txt", "devstoreaccount1/docs:/a.txt"] {
        let held = body(&api.post("holds", &json!({ "path": path, "share_mode": "rwd" })).is(201));
        assert_eq!(held["share"], "docs", "{path}");
    }
    let shown = body(&api.get("handles?path=docs:/a.txt").is(200));
    assert_eq!(shown["handles"].as_array().unwrap().len(), 3);
    assert_eq!(body(&api.get("why?object=docs:/a.txt").is(200))["opens_below"], 0);
    let broken = json!({ "object": "docs:/a.txt" });
    assert_eq!(body(&api.post("leases/break", &broken).is(200))["was_leased"], false);
    let wrong = message(api.get("why?object=nonsense"));
    assert!(wrong.contains("file:SHARE/PATH"), "{wrong}");
    let other = message(api.get("handles?path=second/docs:/a.txt"));
    assert!(other.contains("account=second"), "{other}");
}

#[test]
fn a_call_means_the_first_account_unless_it_names_another() {
    let folder = crate::control::fixture::Folder::new();
    let keys = "devstoreaccount1:Zmlyc3Q=,second:c2Vjb25k";
    let _server = folder.start(&["serve", "--no-mount", "--share", "docs", "--account", keys]);
    let api = Api::of(&folder);
    assert_eq!(body(&api.get("connection"))["account"], "devstoreaccount1");
    assert_eq!(body(&api.get("connection?account=second"))["account"], "second");
    let error = refused(api.get("connection?account=third"), 404, "not_found");
    assert!(error["message"].as_str().unwrap().contains("second"), "{error}");
}

#[test]
fn what_is_not_known_is_refused() {
    let (_folder, _server, api) = serve(&[]);
    refused(api.get("nothing"), 404, "not_found");
    refused(api.get("status?acount=x"), 400, "bad_request");
    refused(api.get("status?account=a&account=a"), 400, "bad_request");
    refused(api.post("clock", &json!({ "advance": 1 })), 400, "bad_request");
    refused(api.post("clock", &json!([])), 400, "bad_request");
    let wrong = api.send("PATCH", "gates", &json!({}));
    assert_eq!(wrong.header("allow"), "GET, POST, DELETE");
    refused(wrong, 405, "method_not_allowed");
    refused(api.raw("GET", "/nothing", &[], b""), 404, "not_found");
}
