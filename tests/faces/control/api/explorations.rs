//! Explorations, by clients over HTTP: each has a key of its own and runs on a thread.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use latchfs::http::auth::Credential;
use serde_json::{Value, json};

use super::clients::{BLOCK, ask, serve};
use super::fixture::{Api, body, refused};
use crate::common::http::{ACCOUNT, Got, Kept};
use crate::control::fixture::Folder;

/// A client of an exploration: its key, and its connection.
pub struct Client {
    key: Credential,
    blob: Mutex<Kept>,
    folder: std::net::SocketAddr,
}

impl Client {
    pub fn new(folder: &Folder, connection_string: &str) -> Self {
        let key = connection_string.split(';').find_map(|part| part.strip_prefix("AccountKey="));
        let key = format!("{ACCOUNT}:{}", key.unwrap()).parse().unwrap();
        let folder = folder.service("blob");
        Self { key, blob: Mutex::new(Kept::connect(folder).unwrap()), folder }
    }

    /// The test itself, which is no client of the exploration.
    pub fn owner(folder: &Folder) -> Self {
        Self { key: Credential::development(), ..Self::new(folder, OWN) }
    }

    pub fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], content: &[u8]) -> Got {
        ask(&mut self.blob.lock().unwrap(), &self.key, method, target, headers, content)
    }

    /// The same, on a connection of its own.
    pub fn ask_alone(&self, target: &str, content: &[u8]) -> Got {
        let mut connection = Kept::connect(self.folder).unwrap();
        ask(&mut connection, &self.key, "PUT", target, &[BLOCK], content)
    }

    pub fn key(&self) -> &Credential {
        &self.key
    }

    /// The same, of a request whose connection may end without an answer.
    pub fn ask_dropped(&self, method: &str, target: &str) -> bool {
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut connection = Kept::connect(self.folder).unwrap();
            ask(&mut connection, &self.key, method, target, &[BLOCK], b"late")
        }));
        asked.is_err()
    }
}

pub type Body<'a> = &'a (dyn Fn(&Client) + Sync);

/// Runs an exploration to its end. `check` says what is wrong after a run.
pub fn explore(
    (folder, api): (&Folder, &Api),
    mut options: Value,
    clients: &[(&str, Body<'_>)],
    check: impl Fn(&Client) -> Option<&'static str>,
) -> Value {
    let owner = Client::owner(folder);
    options["clients"] = clients.iter().map(|(name, _)| *name).collect();
    let begun = body(&api.post("explorations", &options).is(201));
    let id = begun["exploration"].as_u64().unwrap();
    loop {
        let run = body(&api.post(&format!("explorations/{id}/runs"), &json!({})).is(201));
        let Some(number) = run["run"].as_u64() else { break };
        api.post("reset", &json!({})).is(200);
        owner.ask("PUT", "/box?restype=container", &[], b"").is(201);
        owner.ask("PUT", "/box/n", &[BLOCK], b"0").is(201);
        let at = format!("explorations/{id}/runs/{number}");
        thread::scope(|scope| {
            for (name, body) in clients {
                let key = begun["clients"][*name].as_str().unwrap();
                let told = format!("{at}/clients/{name}");
                scope.spawn(move || {
                    let client = Client::new(folder, key);
                    api.post(&told, &json!({ "state": "started" })).is(200);
                    body(&client);
                    api.post(&told, &json!({ "state": "finished" })).is(200);
                });
            }
        });
        let state = body(&api.get(&format!("{at}?wait_ms=60000")).is(200));
        let failed = match state["state"].as_str().unwrap() {
            "over" => check(&owner).map(str::to_owned),
            other => Some(other.to_owned()),
        };
        let verdict = json!({ "failed": failed.is_some(), "signature": failed });
        api.post(&format!("{at}/end"), &verdict).is(200);
    }
    let found = body(&api.delete(&format!("explorations/{id}")).is(200));
    assert!(found["ended"] == true && found["done"] == true, "{found}");
    // Nothing is left behind.
    assert_eq!(body(&api.get("clients").is(200))["clients"], json!([]));
    assert_eq!(body(&api.get("clock").is(200))["frozen"], false);
    assert_eq!(body(&api.get("gates").is(200))["gates"], json!([]));
    found
}

/// A connection string of nobody.
const OWN: &str = "AccountKey=AAAA";

/// Adds one to the number in a blob.
fn count(client: &Client, conditional: bool) {
    loop {
        let got = client.ask("GET", "/box/n", &[], b"").is(200);
        let number = got.text().parse::<u32>().unwrap() + 1;
        let etag = got.header("etag").to_owned();
        let headers = if conditional { vec![BLOCK, ("if-match", &*etag)] } else { vec![BLOCK] };
        let put = client.ask("PUT", "/box/n", &headers, number.to_string().as_bytes());
        if put.status != 412 {
            put.is(201);
            return;
        }
    }
}

fn counted(owner: &Client) -> Option<&'static str> {
    (owner.ask("GET", "/box/n", &[], b"").is(200).text() != "2").then_some("AssertionError")
}

#[test]
fn a_counter_without_if_match_is_found_and_its_token_runs_that_order_again() {
    let (folder, _server, api) = serve();
    let at = (&folder, &api);
    let client: Body<'_> = &|client| count(client, false);
    let clients = [("A", client), ("B", client)];
    let found = explore(at, json!({}), &clients, counted);
    let failure = &found["failure"];
    let token = failure["token"].as_str().unwrap();
    assert!(token.starts_with("A.B2.A~"), "{found}");
    assert_eq!((&failure["confirmed"], &found["complete"]), (&json!(true), &json!(false)));
    assert_eq!(failure["order"][1]["operation"], "Get Blob");
    let rules = failure["report"].as_array().unwrap();
    assert!(rules.iter().any(|one| one["rule"] == "lost-update"), "{failure}");
    let again = explore(at, json!({ "replay": token }), &clients, counted);
    assert_eq!((&again["failure"]["token"], &again["runs"]), (&json!(token), &json!(1)));
    // The token of another test is not run on.
    let other: Body<'_> = &|client| {
        client.ask_dropped("PUT", "/box/n");
    };
    let refused = explore(at, json!({ "replay": token }), &[("A", other), ("B", other)], counted);
    assert_eq!(refused["failure"], Value::Null, "{refused}");
}

#[test]
fn a_counter_with_if_match_is_explored_to_the_end() {
    let (folder, _server, api) = serve();
    let client: Body<'_> = &|client| count(client, true);
    let found = explore((&folder, &api), json!({}), &[("A", client), ("B", client)], counted);
    assert_eq!((&found["complete"], &found["failure"]), (&json!(true), &Value::Null), "{found}");
    assert!(found["runs"].as_u64().unwrap() <= 6, "{found}");
}

#[test]
fn an_answer_that_is_lost_and_a_lease_that_runs_out_are_choices() {
    let (folder, _server, api) = serve();
    let at = (&folder, &api);
    let create: Body<'_> = &|client| {
        if client.ask_dropped("PUT", "/box/new") {
            client.ask("PUT", "/box/again", &[BLOCK], b"1").is(201);
        }
    };
    let again = |owner: &Client| {
        (owner.ask("GET", "/box/again", &[], b"").status == 200).then_some("AssertionError")
    };
    let found = explore(at, json!({ "drops": 1 }), &[("A", create)], again);
    let token = |found: &Value| found["failure"]["token"].as_str().unwrap_or_default().to_owned();
    assert!(token(&found).starts_with("A!.A~"), "{found}");
    let lease: Body<'_> = &|client| {
        let acquire = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "15")];
        let id = client.ask("PUT", "/box/n?comp=lease", &acquire, b"").is(201);
        let id = id.header("x-ms-lease-id").to_owned();
        let headers = [BLOCK, ("x-ms-lease-id", &*id)];
        if client.ask("PUT", "/box/n", &headers, b"1").status == 412 {
            client.ask("PUT", "/box/again", &[BLOCK], b"1").is(201);
        }
    };
    let found = explore(at, json!({ "advance_ms": [16_000] }), &[("A", lease)], again);
    assert!(token(&found).starts_with("A.+16.A2~"), "{found}");
}

#[test]
fn a_request_that_comes_after_its_client_has_ended_is_not_done() {
    let (folder, _server, api) = serve();
    let begun = body(&api.post("explorations", &json!({ "clients": ["A"] })).is(201));
    let client = Client::new(&folder, begun["clients"]["A"].as_str().unwrap());
    let id = &begun["exploration"];
    let runs = format!("explorations/{id}/runs");
    api.post(&runs, &json!({})).is(201);
    for state in ["started", "finished"] {
        api.post(&format!("{runs}/1/clients/A"), &json!({ "state": state })).is(200);
    }
    assert!(client.ask_dropped("PUT", "/box/n"));
    assert_eq!(body(&api.get(&format!("{runs}/1?wait_ms=60000")))["state"], "over");
    let found = body(&api.delete(&format!("explorations/{id}")).is(200));
    assert_eq!(found["stragglers"], 1, "{found}");
    // Its key is gone too.
    assert!(!client.ask_dropped("PUT", "/box/n"));
}

#[test]
fn bad_calls_get_a_sentence_each_and_nothing_is_left_of_an_owner_who_is_gone() {
    let (_folder, _server, api) = serve();
    for (wanted, says) in [
        (json!({ "clients": [] }), "1 to 8 clients"),
        (json!({ "clients": ["A", "A2"] }), "cannot be told apart"),
        (json!({ "clients": ["a.b"] }), "is no client of an exploration"),
        (json!({ "clients": ["A"], "budget": 0 }), "'budget' is a number"),
        (json!({ "clients": ["A"], "replay": "C2~0000" }), "copy the whole token"),
        (json!({ "clients": ["A"], "advance_ms": [5, 5] }), "different times"),
    ] {
        let error = refused(api.post("explorations", &wanted), 400, "bad_request");
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    }
    let wanted = json!({ "clients": ["A"], "idle_ms": 300 });
    let begun = body(&api.post("explorations", &wanted).is(201));
    let second = api.post("explorations", &json!({ "clients": ["B"] })).is(409);
    assert!(second.text().contains("one at a time"), "{}", second.text());
    let path = format!("explorations/{}/runs", begun["exploration"]);
    api.post(&path, &json!({})).is(201);
    let unknown = api.post(&format!("{path}/1/clients/Z"), &json!({ "state": "started" }));
    assert!(unknown.is(404).text().contains("there is no client Z"));
    api.post(&format!("{path}/1/clients/A"), &json!({ "state": "started" })).is(200);
    // Nobody asks about it any more.
    crate::common::bench::until("the exploration ends by itself", || {
        body(&api.get("clients").is(200))["clients"] == json!([])
    });
    let shown = body(&api.get("explorations").is(200));
    assert_eq!(shown["explorations"][0]["ended"], true, "{shown}");
    assert_eq!(body(&api.get("clock").is(200))["frozen"], false);
}

#[test]
fn clients_that_wait_for_each_other_outside_storage_are_stuck_and_named() {
    let (folder, _server, api) = serve();
    let wanted = json!({ "clients": ["A", "B"] });
    let begun = body(&api.post("explorations", &wanted).is(201));
    let path = format!("explorations/{}/runs", begun["exploration"]);
    api.post(&path, &json!({})).is(201);
    // Processes that wait for input that never comes.
    let mut children: BTreeMap<_, _> = ["A", "B"]
        .map(|name| {
            let mut cat = std::process::Command::new("cat");
            (name, cat.stdin(std::process::Stdio::piped()).spawn().unwrap())
        })
        .into();
    for (name, child) in &children {
        let told = json!({ "state": "started", "pid": child.id() });
        api.post(&format!("{path}/1/clients/{name}"), &told).is(200);
    }
    let state = body(&api.get(&format!("{path}/1?wait_ms=60000")).is(200));
    for child in children.values_mut() {
        drop(child.kill());
        drop(child.wait());
    }
    assert_eq!(state["state"], "stuck", "{state}");
    let why = state["notes"][0].as_str().unwrap();
    assert!(why.contains("A before its first request, B before"), "{why}");
    let verdict = json!({ "failed": true, "signature": "stuck" });
    api.post(&format!("{path}/1/end"), &verdict).is(200);
    api.delete(&format!("explorations/{}", begun["exploration"])).is(200);
    drop(folder);
}
