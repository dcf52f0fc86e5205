//! The OpenAPI document tells the truth: every call in it is served, with bodies and answers of the
//! shapes it names, and no other is.

use std::collections::BTreeSet;
use std::thread;

use serde_json::{Value, json};

use super::fixture::{Api, body, put_blob, put_file, serve};
use super::schema::faults;
use crate::common::http::{Got, Kept, ask};
use crate::control::fixture::Folder;

fn document(api: &Api) -> Value {
    body(&api.get("openapi.json").is(200))
}

/// The calls of a document: path, method, and what it says of them.
fn calls(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap();
    let mut calls = Vec::new();
    for (path, methods) in paths {
        for (method, call) in methods.as_object().unwrap() {
            calls.push((path.clone(), method.to_uppercase(), call.clone()));
        }
    }
    calls
}

#[test]
fn the_methods_of_each_path_are_those_of_the_document() {
    let (_folder, _server, api) = serve(&[]);
    let document = document(&api);
    for (path, methods) in document["paths"].as_object().unwrap() {
        let methods: BTreeSet<_> =
            methods.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        let target = path.replace("{name}", "none").replace("{id}", "0").replace("{handle}", "0");
        let got = api.raw("PATCH", &target, &[("x-latchfs-client", "a-test")], b"").is(405);
        let allowed: BTreeSet<_> = got.header("allow").split(", ").map(str::to_owned).collect();
        assert_eq!(allowed, methods, "{path}");
    }
}

/// What a call needs to be answered with success.
struct Prepared<'a> {
    folder: &'a Folder,
    api: &'a Api,
}

impl Prepared<'_> {
    fn hold(&self, wanted: &Value) -> u64 {
        body(&self.api.post("holds", wanted).is(201))["handle"].as_u64().unwrap()
    }

    fn gate(&self) -> u64 {
        let gate = json!({ "operation": "Put Blob", "path": "box/gated" });
        body(&self.api.post("gates", &gate).is(201))["gate"].as_u64().unwrap()
    }

    fn fault(&self) -> u64 {
        let fault = json!({ "path": "none", "action": "drop_after" });
        body(&self.api.post("faults", &fault).is(201))["fault"].as_u64().unwrap()
    }

    fn end_exploration(&self) {
        let shown = body(&self.api.get("explorations").is(200));
        if let Some(last) = shown["explorations"][0]["exploration"].as_u64() {
            self.api.delete(&format!("explorations/{last}")).is(200);
        }
    }

    fn exploration(&self) -> u64 {
        self.end_exploration();
        let begun = self.api.post("explorations", &json!({ "clients": ["one"] })).is(201);
        body(&begun)["exploration"].as_u64().unwrap()
    }

    /// Does the call, after what it needs, with this body. The answer has the status of the
    /// document.
    fn call(&self, id: &str, method: &str, path: &str, body: &Value) -> Got {
        let path = path.strip_prefix("/api/v1/").unwrap();
        let at = |value: u64| path.replace("{id}", &value.to_string());
        let shared = json!({ "path": "a.txt", "share_mode": "rwd" });
        let path = match id {
            "closeHandle" | "release" => path.replace("{handle}", &self.hold(&shared).to_string()),
            "holds" | "handles" | "locks" => {
                let locks = json!([{ "start": 0 }]);
                let wanted =
                    json!({ "path": "c.txt", "access": "rw", "share_mode": "rw", "locks": locks });
                self.hold(&wanted);
                path.to_owned()
            }
            "why" => format!("{path}?object=file:docs/a.txt"),
            "gate" | "removeGate" => at(self.gate()),
            "removeFault" => at(self.fault()),
            "waitAtGate" | "releaseGate" | "releaseRequest" | "dropRequest" => {
                return self.call_at_gate(id, method, path, body);
            }
            "gates" => {
                self.gate();
                path.to_owned()
            }
            "faults" => {
                self.fault();
                path.to_owned()
            }
            "leases" => {
                let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
                ask(self.folder.service("blob"), "PUT", "/box/b?comp=lease", &lease, b"").is(201);
                path.to_owned()
            }
            "messages" => {
                let queue = self.folder.service("queue");
                ask(queue, "PUT", "/jobs", &[], b"");
                let message = b"<QueueMessage><MessageText>eA==</MessageText></QueueMessage>";
                ask(queue, "POST", "/jobs/messages?visibilitytimeout=9", &[], message).is(201);
                path.to_owned()
            }
            "saveState" => path.replace("{name}", "one"),
            "states" | "deleteState" | "restoreState" => {
                self.api.send("PUT", "states/one", &json!({})).is(200);
                path.replace("{name}", "one")
            }
            "removeIgnore" => {
                let ignore = json!({ "rule": "file", "object": "**", "why": "a test" });
                let id =
                    super::fixture::body(&self.api.post("report/ignore", &ignore).is(201))["id"]
                        .as_u64();
                at(id.unwrap())
            }
            "explore" => {
                self.end_exploration();
                path.to_owned()
            }
            "exploration" | "endExploration" | "beginRun" | "run" | "endRun" | "tellClient"
            | "takeStep" => {
                let number = self.exploration();
                let path = at(number).replace("{run}", "1").replace("{name}", "one");
                if id != "beginRun" {
                    self.api.post(&format!("explorations/{number}/runs"), &json!({})).is(201);
                }
                if id == "takeStep" {
                    let client = format!("explorations/{number}/runs/1/clients/one");
                    self.api.post(&client, &json!({ "state": "started" })).is(200);
                }
                path
            }
            "removeClient" => {
                // Another call has added it, or not.
                self.api.post("clients", &json!({ "name": "A" }));
                path.replace("{name}", "A")
            }
            "pending" => {
                self.hold(&shared);
                let mut marking = shared.clone();
                marking["delete_on_close"] = true.into();
                marking["access"] = "d".into();
                let handle = self.hold(&marking);
                self.api.delete(&format!("holds/{handle}")).is(200);
                path.to_owned()
            }
            _ => path.to_owned(),
        };
        self.api.send(method, &path, body)
    }

    /// A call about a request that waits at a gate.
    fn call_at_gate(&self, id: &str, method: &str, path: &str, content: &Value) -> Got {
        let gate = self.gate();
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut connection = Kept::connect(self.folder.service("blob")).unwrap();
                let headers = [("x-ms-blob-type", "BlockBlob")];
                // It has no answer if it is dropped.
                drop(connection.ask("PUT", "/box/gated", &headers, b"1"));
            });
            self.api.get(&format!("gates/{gate}/wait")).is(200);
            let row = body(&self.api.get(&format!("gates/{gate}")).is(200));
            let number = match id {
                "releaseRequest" | "dropRequest" => row["waiting"][0]["request"].as_u64().unwrap(),
                _ => gate,
            };
            let got = self.api.send(method, &path.replace("{id}", &number.to_string()), content);
            self.api.delete(&format!("gates/{gate}")).is(200);
            got
        })
    }
}

#[test]
fn bodies_and_answers_have_the_shapes_of_the_document() {
    let (folder, _server, api) = serve(&[]);
    let document = document(&api);
    let schema = |name: &Value| {
        let name = name["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        document["components"]["schemas"][name].clone()
    };
    for (path, method, call) in calls(&document) {
        let id = call["operationId"].as_str().unwrap();
        // What is there before each call.
        for name in ["holds", "gates", "faults"] {
            if name == "holds" {
                for held in body(&api.get("holds"))["holds"].as_array().unwrap() {
                    api.delete(&format!("holds/{}", held["handle"])).is(200);
                }
            } else {
                api.delete(name).is(200);
            }
        }
        // A reset is among the calls.
        ask(folder.service("blob"), "PUT", "/box?restype=container", &[], b"");
        put_file(&folder, "a.txt");
        put_file(&folder, "c.txt");
        put_blob(&folder, "b", &[], b"1");
        let prepared = Prepared { folder: &folder, api: &api };
        let wanted = &call["requestBody"]["content"]["application/json"]["schema"];
        let bodies = if wanted.is_null() {
            vec![Value::Null]
        } else {
            let wanted = schema(wanted);
            let examples = wanted["examples"].as_array().unwrap().clone();
            for example in &examples {
                assert_eq!(faults(&document, &wanted, example, id), [""; 0]);
            }
            examples
        };
        for example in bodies {
            let got = prepared.call(id, &method, &path, &example);
            let said = &call["responses"][got.status.to_string()];
            assert!(got.status < 300 && !said.is_null(), "{id} {example}: {got:?}");
            let shape = schema(&said["content"]["application/json"]["schema"]);
            assert_eq!(faults(&document, &shape, &body(&got), id), [""; 0], "{id}");
        }
    }
    // Errors have one shape, with the holder where there is one.
    let shape = &document["components"]["schemas"]["Error"];
    api.post("holds", &json!({ "path": "a.txt" })).is(201);
    for got in [
        api.post("holds", &json!({ "path": "a.txt" })).is(409),
        api.get("gates/1/wait?timeout_ms=x").is(400),
        api.get("nothing").is(404),
    ] {
        assert_eq!(faults(&document, shape, &body(&got), "error"), [""; 0]);
    }
}
