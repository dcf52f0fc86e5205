//! All data at once: saved, restored, reset.

use serde_json::{Value, json};

use super::fixture::{Api, body, get_file, put_blob, refused, serve};
use crate::common::http::ask;
use crate::common::need;
use crate::control::fixture::Folder;

fn put_state(api: &Api, name: &str) -> Value {
    body(&api.send("PUT", &format!("states/{name}"), &json!({})).is(200))
}

#[test]
fn a_state_is_saved_restored_and_deleted() {
    let (folder, _server, api) = serve(&[]);
    put_blob(&folder, "a", &[], b"first").is(201);
    let saved = put_state(&api, "one");
    assert_eq!(saved["name"], "one");
    assert_eq!(body(&api.get("states").is(200)), json!({ "states": [saved] }));
    put_blob(&folder, "a", &[], b"second").is(201);
    let held = body(&api.post("holds", &json!({ "path": "a.txt" })).is(201));
    let restored = body(&api.post("states/one/restore", &json!({})).is(200));
    assert_eq!(restored, json!({ "restored": "one" }));
    let blob = ask(folder.service("blob"), "GET", "/box/a", &[], b"").is(200);
    assert_eq!(blob.text(), "first");
    refused(api.delete(&format!("holds/{}", held["handle"])), 404, "not_found");
    get_file(&folder, "a.txt").is(200);
    let deleted = body(&api.delete("states/one").is(200));
    assert_eq!(deleted, json!({ "deleted": "one" }));
    for gone in [api.delete("states/one"), api.post("states/one/restore", &json!({}))] {
        refused(gone, 404, "not_found");
    }
    refused(api.send("PUT", "states/.hidden", &json!({})), 400, "invalid");
    refused(api.send("PUT", "states/a%2Fb", &json!({})), 400, "invalid");
    let rows = body(&api.get("events?kind=state"));
    let details: Vec<_> =
        rows["events"].as_array().unwrap().iter().map(|row| &row["detail"]).collect();
    assert_eq!(details, ["saved as one", "restored one", "deleted one"]);
}

#[test]
fn a_reset_leaves_nothing_but_the_share_of_the_start() {
    let (folder, _server, api) = serve(&[]);
    api.post("holds", &json!({ "path": "a.txt" })).is(201);
    api.post("gates", &json!({ "operation": "Put Blob" })).is(201);
    api.post("faults", &json!({ "action": "drop_after", "operation": "Put Blob" })).is(201);
    api.post("clock", &json!({ "advance_ms": 3_600_000 })).is(200);
    assert_eq!(body(&api.post("reset", &json!({})).is(200)), json!({ "reset": true }));
    assert_eq!(body(&api.get("holds")), json!({ "holds": [] }));
    assert_eq!(body(&api.get("gates")), json!({ "gates": [] }));
    assert_eq!(body(&api.get("faults")), json!({ "faults": [] }));
    let clock = body(&api.get("clock"));
    assert_eq!(clock["now"].as_str().unwrap()[..13], clock["system"].as_str().unwrap()[..13]);
    get_file(&folder, "a.txt").is(404);
    ask(folder.service("blob"), "GET", "/box?restype=container", &[], b"").is(404);
    assert_eq!(body(&api.get("status"))["shares"][0]["name"], "docs");
    refused(api.post("reset", &json!({ "all": true })), 400, "bad_request");
}

#[test]
fn one_directory_that_is_served_as_it_is_has_no_states() {
    if !need::fuse() {
        return;
    }
    let folder = Folder::new();
    std::fs::create_dir(folder.join("docs")).unwrap();
    let _server = folder.start(&["mount", "docs", "mnt"]);
    let api = Api::of(&folder);
    let error = refused(api.post("reset", &json!({})), 409, "denied");
    assert!(error["message"].as_str().unwrap().contains("existing directory"), "{error}");
    refused(api.get("states"), 409, "denied");
}
