//! Explorations of clients that do not behave: that block, sleep, poll for ever, send several
//! requests at once or come too late.

use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Barrier, Mutex};
use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::clients::{BLOCK, serve};
use super::explorations::{Body, Client, explore};
use super::fixture::{Api, body};
use crate::common::bench::until;
use crate::common::http::Kept;
use crate::control::fixture::Folder;
use crate::service::account_sas;

/// An exploration by hand.
struct Exploration<'a> {
    api: &'a Api,
    id: u64,
    strings: Value,
}

impl<'a> Exploration<'a> {
    fn begin(api: &'a Api, options: &Value) -> Self {
        let begun = body(&api.post("explorations", options).is(201));
        let id = begun["exploration"].as_u64().unwrap();
        Self { api, id, strings: begun["clients"].clone() }
    }

    fn client(&self, folder: &Folder, name: &str) -> Client {
        Client::new(folder, self.strings[name].as_str().unwrap())
    }

    /// Begins a run: where its calls are.
    fn run(&self) -> String {
        let runs = format!("explorations/{}/runs", self.id);
        let run = body(&self.api.post(&runs, &json!({})).is(201));
        format!("{runs}/{}", run["run"])
    }

    fn tell(&self, run: &str, name: &str, told: &Value) {
        self.api.post(&format!("{run}/clients/{name}"), told).is(200);
    }

    /// The run, when it goes on no further.
    fn over(&self, run: &str) -> Value {
        body(&self.api.get(&format!("{run}?wait_ms=50000")).is(200))
    }

    fn fails(&self, run: &str) {
        let verdict = json!({ "failed": true, "signature": "stuck" });
        self.api.post(&format!("{run}/end"), &verdict).is(200);
    }

    /// Ends it. Nothing is left behind.
    fn end(self) -> Value {
        let found = body(&self.api.delete(&format!("explorations/{}", self.id)).is(200));
        assert_clean(self.api);
        found
    }
}

fn assert_clean(api: &Api) {
    assert_eq!(body(&api.get("clients").is(200))["clients"], json!([]));
    assert_eq!(body(&api.get("clock").is(200))["frozen"], false);
    assert_eq!(body(&api.get("gates").is(200))["gates"], json!([]));
}

/// A process that does as the shell is told.
struct Process(Child);

impl Process {
    fn new(script: &str) -> Self {
        Self(Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn notes(of: &Value) -> String {
    of["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect()
}

#[test]
fn the_last_client_that_is_left_is_stuck_if_it_waits_for_nobody() {
    let (_folder, _server, api) = serve();
    let exploration = Exploration::begin(&api, &json!({ "clients": ["A", "B"] }));
    let run = exploration.run();
    // It waits for input that never comes.
    let waits = Process::new("exec cat");
    exploration.tell(&run, "A", &json!({ "state": "started", "pid": waits.pid() }));
    for state in ["started", "finished"] {
        exploration.tell(&run, "B", &json!({ "state": state }));
    }
    let seen = exploration.over(&run);
    assert_eq!(seen["state"], "stuck", "{seen}");
    assert!(notes(&seen).contains("A before its first request"), "{seen}");
    exploration.fails(&run);
    exploration.end();
}

#[test]
fn a_client_that_sleeps_is_waited_for_and_told() {
    let (folder, _server, api) = serve();
    let exploration = Exploration::begin(&api, &json!({ "clients": ["A"] }));
    let client = exploration.client(&folder, "A");
    let run = exploration.run();
    // For longer than clients that are blocked are given.
    let mut sleeps = Process::new("sleep 6");
    exploration.tell(&run, "A", &json!({ "state": "started", "pid": sleeps.pid() }));
    sleeps.0.wait().unwrap();
    client.ask("GET", "/box/n", &[], b"").is(404);
    exploration.tell(&run, "A", &json!({ "state": "finished" }));
    let seen = exploration.over(&run);
    assert_eq!(seen["state"], "over", "{seen}");
    let found = exploration.end();
    assert!(notes(&found).contains("A slept "), "{found}");
    assert!(notes(&found).contains("before Get Blob"), "{found}");
}

#[test]
fn requests_that_a_client_sends_at_once_are_tried_in_each_order() {
    let (folder, _server, api) = serve();
    let owner = Client::owner(&folder);
    let mut tokens = Vec::new();
    for wrong in ["1", "2"] {
        let exploration = Exploration::begin(&api, &json!({ "clients": ["A"], "state": null }));
        let client = exploration.client(&folder, "A");
        loop {
            let run = exploration.run();
            if run.ends_with("null") {
                break;
            }
            api.post("reset", &json!({})).is(200);
            owner.ask("PUT", "/box?restype=container", &[], b"").is(201);
            let (start, (said, heard)) = (Barrier::new(3), channel());
            thread::scope(|scope| {
                for target in ["/box/n", "/box/n?timeout=9"] {
                    let (said, start, client) = (said.clone(), &start, &client);
                    scope.spawn(move || {
                        said.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
                        start.wait();
                        let content = if target == "/box/n" { b"1" } else { b"2" };
                        client.ask_alone(target, content).is(201);
                    });
                }
                let threads: Vec<_> = heard.iter().take(2).collect();
                exploration.tell(&run, "A", &json!({ "state": "started", "threads": threads }));
                start.wait();
            });
            exploration.tell(&run, "A", &json!({ "state": "finished" }));
            assert_eq!(exploration.over(&run)["state"], "over");
            let failed = owner.ask("GET", "/box/n", &[], b"").is(200).text() == wrong;
            let verdict = json!({ "failed": failed, "signature": failed.then_some("error") });
            api.post(&format!("{run}/end"), &verdict).is(200);
        }
        let found = exploration.end();
        let token = found["failure"]["token"].as_str().unwrap_or_else(|| panic!("{found}"));
        tokens.push(token.split('~').next().unwrap().to_owned());
    }
    // The other one of the two went first.
    tokens.sort();
    assert_eq!(tokens, ["A/2.A", "A2"]);
}

#[test]
fn a_client_that_nobody_can_look_at_is_blocked_after_a_silence_and_that_is_said() {
    let (folder, _server, api) = serve();
    let lock = Mutex::new(());
    let locked: Body<'_> = &|client| {
        let _held = lock.lock().unwrap();
        client.ask("GET", "/box/n", &[], b"").is(200);
        client.ask("PUT", "/box/n", &[BLOCK], b"1").is(201);
    };
    let clients = [("A", locked), ("B", locked)];
    let found = explore((&folder, &api), json!({ "settle_ms": 50 }), &clients, |_| None);
    assert_eq!((&found["complete"], &found["failure"]), (&json!(false), &Value::Null), "{found}");
    let why = found["incomplete"].to_string();
    assert!(why.contains("cannot look at") && why.contains("blocked outside storage"), "{why}");
    // Both orders of entry.
    assert!(found["runs"].as_u64().unwrap() >= 2, "{found}");
}

#[test]
fn a_client_that_asks_for_ever_ends_the_run_and_its_requests() {
    let (folder, _server, api) = serve();
    let options = json!({ "clients": ["A"], "max_steps": 20 });
    let exploration = Exploration::begin(&api, &options);
    let client = exploration.client(&folder, "A");
    let run = exploration.run();
    exploration.tell(&run, "A", &json!({ "state": "started" }));
    let asked = (0..100).take_while(|_| !client.ask_dropped("GET", "/box/n")).count();
    assert_eq!(asked, 20);
    let seen = exploration.over(&run);
    assert_eq!(seen["state"], "livelock", "{seen}");
    assert!(notes(&seen).contains("max_steps"), "{seen}");
    exploration.fails(&run);
    exploration.end();
}

#[test]
fn a_lock_that_clients_poll_for_is_explored_to_the_end() {
    let (folder, _server, api) = serve();
    let last = Mutex::new(0);
    let locked: Body<'_> = &|client| {
        loop {
            // As SDKs do, with a new ID for each attempt.
            let id = {
                let mut last = last.lock().unwrap();
                *last += 1;
                format!("11111111-2222-3333-4444-{last:012}")
            };
            let acquire = [
                ("x-ms-lease-action", "acquire"),
                ("x-ms-lease-duration", "-1"),
                ("x-ms-proposed-lease-id", &*id),
            ];
            let got = client.ask("PUT", "/box/n?comp=lease", &acquire, b"");
            if got.status == 409 {
                continue;
            }
            client.ask("GET", "/box/n", &[], b"").is(200);
            let release = [("x-ms-lease-action", "release"), ("x-ms-lease-id", &*id)];
            client.ask("PUT", "/box/n?comp=lease", &release, b"").is(200);
            return;
        }
    };
    let clients = [("A", locked), ("B", locked)];
    let found = explore((&folder, &api), json!({}), &clients, |_| None);
    assert_eq!((&found["complete"], &found["failure"]), (&json!(true), &Value::Null), "{found}");
    assert!(found["runs"].as_u64().unwrap() <= 20, "{found}");
}

#[test]
fn a_sas_that_a_client_has_signed_is_the_client() {
    let (folder, _server, api) = serve();
    let count: Body<'_> = &|client| {
        let sas = account_sas("b", "o", "rwc").token(client.key());
        let mut connection = Kept::connect(folder.service("blob")).unwrap();
        let target = format!("/box/n?{sas}");
        let got = connection.ask("GET", &target, &[], b"").unwrap().is(200);
        let more = (got.text().parse::<u32>().unwrap() + 1).to_string();
        connection.ask("PUT", &target, &[BLOCK], more.as_bytes()).unwrap().is(201);
    };
    let counted = |owner: &Client| {
        let got = owner.ask("GET", "/box/n", &[], b"").is(200);
        (got.text() != "2").then_some("AssertionError")
    };
    let found = explore((&folder, &api), json!({}), &[("A", count), ("B", count)], counted);
    let token = found["failure"]["token"].as_str().unwrap();
    assert!(token.starts_with("A.B2.A~"), "{found}");
}

#[test]
fn a_request_of_an_earlier_run_does_not_change_the_next_one_and_is_told() {
    let (folder, _server, api) = serve();
    let exploration = Exploration::begin(&api, &json!({ "clients": ["A"] }));
    let client = exploration.client(&folder, "A");
    let first = exploration.run();
    exploration.tell(&first, "A", &json!({ "state": "started" }));
    client.ask("PUT", "/box?restype=container", &[], b"").is(201);
    exploration.fails(&first);
    // A thread of its goes on.
    let second = exploration.run();
    assert!(client.ask_dropped("PUT", "/box/late"));
    exploration.tell(&second, "A", &json!({ "state": "started" }));
    client.ask("GET", "/box/late", &[], b"").is(404);
    exploration.tell(&second, "A", &json!({ "state": "finished" }));
    let found = exploration.end();
    assert!(notes(&found).contains("1 requests came after"), "{found}");
}

#[test]
fn an_exploration_ends_with_the_process_of_its_test() {
    let (folder, _server, api) = serve();
    let test = Process::new("exec cat");
    let options = json!({ "clients": ["A"], "owner": test.pid(), "idle_ms": 600_000 });
    let exploration = Exploration::begin(&api, &options);
    let client = exploration.client(&folder, "A");
    let run = exploration.run();
    exploration.tell(&run, "A", &json!({ "state": "started" }));
    client.ask("GET", "/box/n", &[], b"").is(404);
    drop(test);
    until("the exploration ends", || {
        body(&api.get("explorations"))["explorations"][0]["ended"] == true
    });
    assert_clean(&api);
    let found = &body(&api.get("explorations"))["explorations"][0];
    assert!(notes(found).contains("the process of its test has ended"), "{found}");
}

#[test]
fn a_reset_and_the_end_of_the_server_during_a_run_leave_no_request_waiting() {
    let (folder, server, api) = serve();
    let exploration = Exploration::begin(&api, &json!({ "clients": ["A", "B"] }));
    let client = exploration.client(&folder, "A");
    let run = exploration.run();
    let waits = Process::new("exec cat");
    // B does something else for ever: A waits for its turn.
    let busy = Process::new("while :; do :; done");
    exploration.tell(&run, "A", &json!({ "state": "started", "pid": waits.pid() }));
    exploration.tell(&run, "B", &json!({ "state": "started", "pid": busy.pid() }));
    let waiting = || {
        let seen = body(&api.get(&run).is(200));
        seen["clients"][0]["state"] == "waiting"
    };
    thread::scope(|scope| {
        let asked = scope.spawn(|| client.ask_dropped("PUT", "/box?restype=container"));
        until("A waits", waiting);
        api.post("reset", &json!({})).is(200);
        assert!(asked.join().unwrap(), "the request of A went on over the new data");
        let asked = scope.spawn(|| client.ask_dropped("PUT", "/box?restype=container"));
        until("A waits", waiting);
        server.signal(Signal::TERM);
        // It is answered or its connection ends; it does not stay.
        asked.join().unwrap();
    });
}
