//! Tables over the death of the server: what was acknowledged is there, and no half transaction.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

use super::killed::{Killed, serve_if_told};
use crate::alone;
use crate::common::http::{Kept, ask};
use crate::common::random::Random;
use crate::common::served::wait_for;

/// This test, which is also the server.
const TEST: &str = "durability::tables::t71_a_killed_server_loses_nothing_it_acknowledged";
const CLIENTS: usize = 3;
const ROWS: usize = 10;
/// Transactions that are acknowledged in a round before the server is killed, at most.
const LIFE_MAX: usize = 60;

/// A transaction that sets `n` of all rows of a partition.
fn transaction(partition: &str, n: u64) -> String {
    let mut body = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".to_owned();
    for row in 0..ROWS {
        // Writing to a String does not fail.
        let _ = write!(
            body,
            "--c\r\nContent-Type: application/http\r\n\r\n\
             PUT /tab(PartitionKey='{partition}',RowKey='{row}') HTTP/1.1\r\n\r\n\
             {{\"n\":{n}}}\r\n"
        );
    }
    body.push_str("--c--\r\n--b--\r\n");
    body
}

/// Writes until the server is gone; the last numbers that were acknowledged, of a transaction and
/// of an entity alone.
fn work(addr: SocketAddr, client: usize, from: [u64; 2], all: &AtomicUsize) -> [u64; 2] {
    let partition = format!("p{client}");
    let headers = [("content-type", "multipart/mixed; boundary=b")];
    let Ok(mut connection) = Kept::connect(addr) else { return from };
    let [mut acknowledged, mut alone] = from;
    loop {
        let body = transaction(&partition, acknowledged + 1);
        match connection.ask("POST", "/$batch", &headers, body.as_bytes()) {
            Ok(got) if got.text().contains("HTTP/1.1 204") => acknowledged += 1,
            Ok(got) => panic!("{}", got.text()),
            Err(_) => return [acknowledged, alone],
        }
        all.fetch_add(1, Ordering::Relaxed);
        let single = format!("/tab(PartitionKey='s{client}',RowKey='r')");
        let text = format!("{{\"n\":{acknowledged}}}");
        if connection.ask("PUT", &single, &[], text.as_bytes()).is_err() {
            return [acknowledged, alone];
        }
        alone = acknowledged;
    }
}

fn numbers(addr: SocketAddr, partition: &str) -> Vec<u64> {
    let target = format!("/tab?$filter=PartitionKey%20eq%20'{partition}'");
    let got = ask(addr, "GET", &target, &[], b"").is(200);
    let body: Value = serde_json::from_slice(&got.body).unwrap();
    body["value"].as_array().unwrap().iter().map(|one| one["n"].as_u64().unwrap()).collect()
}

#[test]
fn t71_a_killed_server_loses_nothing_it_acknowledged() {
    serve_if_told(&latchfs::table::rest::operations::SERVICE_TABLE);
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let seed = 71;
    println!("tables: seed {seed}");
    let mut random = Random::new(seed);
    let mut written = [[0; 2]; CLIENTS];
    for round in 0..super::rounds().min(100) {
        let mut server = Killed::start(TEST, folder.path());
        let addr = server.addr;
        if round == 0 {
            ask(addr, "POST", "/Tables", &[], br#"{"TableName":"tab"}"#).is(201);
        }
        for (client, [last, alone]) in (0..CLIENTS).zip(&mut written) {
            let found = numbers(addr, &format!("p{client}"));
            assert!(found.len() == ROWS || *last == 0, "round {round}: {found:?}");
            assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "half of it: {found:?}");
            let found = found.first().copied().unwrap_or_default();
            // The last one may have been committed without its answer.
            assert!((*last..=*last + 1).contains(&found), "round {round}: {found}, not {last}");
            *last = found;
            let single = numbers(addr, &format!("s{client}"));
            let single = single.first().copied().unwrap_or_default();
            assert!(single >= *alone, "round {round}: {single}, not {alone}");
        }
        let (all, life) = (AtomicUsize::new(0), 1 + random.below(LIFE_MAX));
        let acknowledged: Vec<_> = thread::scope(|scope| {
            let clients = (0..CLIENTS).zip(written);
            let all = &all;
            let threads: Vec<_> = clients
                .map(|(client, from)| scope.spawn(move || work(addr, client, from, all)))
                .collect();
            wait_for("transactions", || (all.load(Ordering::Relaxed) >= life).then_some(()));
            server.kill();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        written.copy_from_slice(&acknowledged);
    }
    let all = usize::try_from(written.iter().map(|[last, _]| last).sum::<u64>()).unwrap();
    assert!(all > super::rounds(), "hardly anything was written: {written:?}");
}
