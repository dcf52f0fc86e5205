//! All data at once: saved, restored, reset.

use serde_json::{Value, json};

use super::fixture::{Api, body, get_file, put_blob, refused, serve};
use crate::common::http::ask;

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
