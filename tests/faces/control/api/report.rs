//! The report over HTTP: what cannot be asked.

use serde_json::json;

use super::clients::serve;
use super::fixture::refused;

#[test]
fn what_a_report_cannot_be_asked_is_said() {
    let (_folder, _server, api) = serve();
    let error = refused(api.get("report?since=none"), 404, "not_found");
    let expected = "there is no mark 'none': a mark is set by POST /api/v1/marks, and a server \
                    remembers the last 10000";
    assert_eq!(error["message"], expected);
    refused(api.get("report?level=bad"), 400, "bad_request");
    refused(api.delete("report/ignore/7"), 404, "not_found");
    for bad in [
        json!({ "rule": "none", "object": "**", "why": "x" }),
        json!({ "rule": "file", "object": " ", "why": "x" }),
        json!({ "rule": "file", "object": "**", "why": "" }),
        json!({ "rule": "file", "object": "**", "why": "x".repeat(2_000) }),
        json!({ "rule": "file", "object": "**" }),
    ] {
        refused(api.post("report/ignore", &bad), 400, "bad_request");
    }
    for number in 0..1_000 {
        let ignore = json!({ "rule": "file", "object": number.to_string(), "why": "x" });
        api.post("report/ignore", &ignore).is(201);
    }
    let more = json!({ "rule": "file", "object": "more", "why": "x" });
    let error = refused(api.post("report/ignore", &more), 503, "busy");
    assert_eq!(error["message"], "a server has at most 1000 of them: remove one");
}
