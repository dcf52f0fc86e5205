//! The clock, gates and faults through the API.

use std::thread;

use serde_json::json;

use super::fixture::{NAME, body, put_blob, refused, serve};
use crate::common::http::ask;
use crate::common::served::wait_for;

#[test]
fn the_clock_is_turned_stopped_and_run() {
    let (_folder, _server, api) = serve(&[]);
    let before = body(&api.get("clock").is(200));
    assert_eq!(before["frozen"], false);
    let after = body(&api.post("clock", &json!({ "advance_ms": 3_600_000 })).is(200));
    assert!(after["now"].as_str() > before["now"].as_str(), "{before} {after}");
    assert_eq!(body(&api.post("clock", &json!({ "freeze": true })).is(200))["frozen"], true);
    let set = body(&api.post("clock", &json!({ "set": "2190-01-02T03:04:05Z" })).is(200));
    assert_eq!(set["now"], "2190-01-02T03:04:05.0000000Z");
    refused(api.post("clock", &json!({ "set": "2026-01-02T03:04:05Z" })), 400, "bad_request");
    refused(api.post("clock", &json!({ "set": "soon" })), 400, "bad_request");
    let back = refused(api.post("clock", &json!({ "advance_ms": -5000 })), 400, "bad_request");
    assert_eq!(back["message"], "'advance_ms' is -5000: expected 0 or more");
    for unclear in [json!({}), json!({ "freeze": false }), json!({ "run": true, "advance_ms": 1 })]
    {
        refused(api.post("clock", &unclear), 400, "bad_request");
    }
    assert_eq!(body(&api.get("clock"))["now"], "2190-01-02T03:04:05.0000000Z");
    assert_eq!(body(&api.post("clock", &json!({ "run": true })).is(200))["frozen"], false);
}

#[test]
fn a_body_is_one_object_that_names_each_field_once() {
    let (_folder, _server, api) = serve(&[]);
    let headers = [("x-latchfs-client", NAME)];
    for (text, why) in [
        ("[]", "not a JSON object"),
        ("1", "not a JSON object"),
        (r#"{"advance_ms":1,"advance_ms":2}"#, "'advance_ms' is given twice"),
    ] {
        let got = api.raw("POST", "/api/v1/clock", &headers, text.as_bytes());
        let error = refused(got, 400, "bad_request");
        assert!(error["message"].as_str().unwrap().contains(why), "{error}");
    }
    for name in ["a\r\nb", "", "a b"] {
        let error =
            refused(api.post("gates", &json!({ "headers": { name: "*" } })), 400, "bad_request");
        assert!(error["message"].as_str().unwrap().contains("no request has a header"), "{error}");
    }
}

#[test]
fn requests_stop_at_a_gate_until_the_api_lets_them_go() {
    let (folder, _server, api) = serve(&[]);
    let gate =
        json!({ "operation": "Put Blob", "path": "box/*", "headers": { "x-ms-blob-type": "*" } });
    let id = body(&api.post("gates", &gate).is(201))["gate"].as_u64().unwrap();
    let error = refused(api.get(&format!("gates/{id}/wait?timeout_ms=1")), 408, "timeout");
    assert!(error["message"].as_str().unwrap().contains("0 of 1"), "{error}");
    thread::scope(|scope| {
        let puts = ["one", "two", "three"].map(|name| {
            let put = scope.spawn(|| put_blob(&folder, name, &[], b"1").is(201));
            let row = wait_for("the request", || {
                let row = body(&api.get(&format!("gates/{id}")).is(200));
                let waiting = row["waiting"].as_array().unwrap().clone();
                waiting.into_iter().find(|one| one["path"] == format!("box/{name}"))
            });
            (put, row["request"].as_u64().unwrap())
        });
        let waited = body(&api.get(&format!("gates/{id}/wait?count=3")).is(200));
        assert_eq!(waited, json!({ "waiting": 3 }));
        let [one, two, three] = puts;
        let path = format!("requests/{}/release", two.1);
        assert_eq!(body(&api.post(&path, &json!({})).is(200)), json!({ "released": 1 }));
        two.0.join().unwrap();
        refused(api.post(&path, &json!({})), 404, "not_found");
        let path = format!("gates/{id}/release");
        let released = body(&api.post(&path, &json!({ "count": 1 })).is(200));
        assert_eq!(released, json!({ "released": 1 }));
        one.0.join().unwrap();
        assert_eq!(body(&api.get("gates").is(200))["gates"][0]["stopped"], 3);
        assert_eq!(body(&api.delete(&format!("gates/{id}")).is(200)), json!({ "removed": 1 }));
        three.0.join().unwrap();
    });
    for path in [format!("gates/{id}"), format!("gates/{id}/wait")] {
        refused(api.get(&path), 404, "not_found");
    }
    refused(api.post(&format!("gates/{id}/release"), &json!({})), 404, "not_found");
    refused(api.delete(&format!("gates/{id}")), 404, "not_found");
    assert_eq!(body(&api.delete("gates").is(200)), json!({ "removed": 0 }));
    refused(api.post("gates", &json!({ "operation": "Put Blub" })), 400, "bad_request");
    refused(api.post("gates", &json!({ "at": "nowhere" })), 400, "bad_request");
    refused(api.post("gates", &json!({ "account": "other" })), 404, "not_found");
}

#[test]
fn requests_meet_faults_that_the_api_adds() {
    let (folder, _server, api) = serve(&[]);
    let fault = json!({
        "service": "blob", "operation": "Put Blob",
        "action": { "answer": { "status": 503, "code": "ServerBusy" } }, "times": 1,
    });
    let id = body(&api.post("faults", &fault).is(201))["fault"].as_u64().unwrap();
    put_blob(&folder, "a", &[], b"1").refused(503, "ServerBusy");
    put_blob(&folder, "a", &[], b"1").is(201);
    let rows = body(&api.get("faults").is(200));
    assert_eq!((&rows["faults"][0]["met"], &rows["faults"][0]["times"]), (&json!(1), &json!(0)));
    assert_eq!(body(&api.delete(&format!("faults/{id}")).is(200)), json!({ "removed": 1 }));
    refused(api.delete(&format!("faults/{id}")), 404, "not_found");
    let lost = json!({ "operation": "Delete Blob", "action": "drop_after" });
    api.post("faults", &lost).is(201);
    assert_eq!(body(&api.delete("faults").is(200)), json!({ "removed": 1 }));
    ask(folder.service("blob"), "DELETE", "/box/a", &[], b"").is(202);
    for wrong in [json!({ "action": "vanish" }), json!({}), json!({ "action": { "delay_ms": -1 } })]
    {
        refused(api.post("faults", &wrong), 400, "bad_request");
    }
    let short = json!({ "operation": "Put Blob", "action": { "answer": 503 } });
    let error = refused(api.post("faults", &short), 400, "bad_request");
    assert!(error["message"].as_str().unwrap().contains(r#"{"status": 503"#), "{error}");
    let never = json!({ "operation": "Put Blob", "action": "drop_after", "times": 0 });
    refused(api.post("faults", &never), 400, "bad_request");
}
