//! Many clients on one entity: nothing is lost.

use serde_json::{Value, json};

use super::fixture::{Tables, entity};
use crate::common::http::Kept;

const CLIENTS: i64 = 50;
const STEPS: i64 = 4;

/// Reads, adds one and writes back with the ETag that was read, again until nobody was faster.
fn count_up(connection: &mut Kept) {
    let target = entity("tab", "p", "r");
    loop {
        let got = connection.ask("GET", &target, &[], b"").unwrap().is(200);
        let body: Value = serde_json::from_slice(&got.body).unwrap();
        let changed = json!({"n": body["n"].as_i64().unwrap() + 1}).to_string();
        let condition = [("if-match", got.header("etag"))];
        let done = connection.ask("PUT", &target, &condition, changed.as_bytes()).unwrap();
        match done.status {
            204 => return,
            412 => {}
            _ => panic!("{}", done.text()),
        }
    }
}

#[test]
fn fifty_clients_that_retry_lose_no_update() {
    let tables = Tables::with("tab");
    tables.put_row("tab", "p", "r", 0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut connection = Kept::connect(tables.addr()).unwrap();
                (0..STEPS).for_each(|_| count_up(&mut connection));
            });
        }
    });
    let n = tables.get(&entity("tab", "p", "r")).is(200).json()["n"].as_i64();
    assert_eq!(n, Some(CLIENTS * STEPS));
}
