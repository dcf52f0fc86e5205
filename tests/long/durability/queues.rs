//! Queues over the death of the server: every message whose Put was acknowledged is there until
//! its Delete was sent, once; a Get that was acknowledged still hides its message, and its receipt
//! is good.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::killed::{Killed, serve_if_told};
use crate::alone;
use crate::common::http::{Got, Kept, ask};
use crate::common::random::Random;
use crate::common::served::wait_for;

/// This test, which is also the server.
const TEST: &str = "durability::queues::q35_a_killed_server_loses_nothing_it_acknowledged";
const CLIENTS: usize = 3;
/// Messages that are handled in a round before the server is killed, at most.
const LIFE_MAX: usize = 60;

fn element(text: &str, name: &str) -> Option<String> {
    let rest = text.split(&format!("<{name}>")).nth(1)?;
    Some(rest.split(&format!("</{name}>")).next()?.to_owned())
}

fn count(addr: SocketAddr, queue: &str) -> usize {
    let got = ask(addr, "GET", &format!("/{queue}?comp=metadata"), &[], b"").is(200);
    got.header("x-ms-approximate-messages-count").parse().unwrap()
}

/// What a client did to its queue, as far as it was answered.
#[derive(Default)]
struct Done {
    queue: String,
    put: usize,
    deleted: usize,
    /// The targets that delete the messages it holds, by text.
    held: BTreeMap<String, String>,
    /// The request that the server died over.
    unsure: &'static str,
}

impl Done {
    /// Puts and gets messages and deletes every second one, until the server is gone.
    fn work(mut self, addr: SocketAddr, all: &AtomicUsize) -> Self {
        let Ok(mut connection) = Kept::connect(addr) else { return self };
        let messages = format!("/{}/messages", self.queue);
        let mut asks = |method: &str, target: &str, body: &str| -> Option<Got> {
            let got = connection.ask(method, target, &[], body.as_bytes()).ok()?;
            assert!(got.status < 300, "{method} {target}: {}", got.text());
            Some(got)
        };
        loop {
            self.unsure = "put";
            let text = format!("<MessageText>{}</MessageText>", self.put);
            let body = format!("<QueueMessage>{text}</QueueMessage>");
            let Some(_) = asks("POST", &messages, &body) else { return self };
            self.put += 1;
            self.unsure = "get";
            let target = format!("{messages}?visibilitytimeout=600000");
            let Some(got) = asks("GET", &target, "") else { return self };
            let told = |name| element(&got.text(), name).expect("one message is visible");
            let receipt = told("PopReceipt").replace('+', "%2B");
            let target = format!("{messages}/{}?popreceipt={receipt}", told("MessageId"));
            self.held.insert(told("MessageText"), target.clone());
            if self.put.is_multiple_of(2) {
                self.unsure = "delete";
                self.held.remove(&told("MessageText"));
                let Some(_) = asks("DELETE", &target, "") else { return self };
                self.deleted += 1;
            }
            all.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Compares with what is there.
    fn check(&self, addr: SocketAddr) {
        let left = self.put - self.deleted;
        let there = count(addr, &self.queue);
        let expected = match self.unsure {
            "put" => left..=left + 1,
            "delete" => left - 1..=left,
            _ => left..=left,
        };
        assert!(expected.contains(&there), "{}: {there}, not {expected:?}", self.queue);
        let target = format!("/{}/messages?peekonly=true&numofmessages=32", self.queue);
        let visible = ask(addr, "GET", &target, &[], b"").is(200).text();
        for (text, target) in &self.held {
            assert!(!visible.contains(&format!("<MessageText>{text}<")), "{text} is visible");
            ask(addr, "DELETE", target, &[], b"").is(204);
        }
    }
}

#[test]
fn q35_a_killed_server_loses_nothing_it_acknowledged() {
    serve_if_told(&latchfs::queue::rest::operations::SERVICE_TABLE);
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let seed = 35;
    println!("queues: seed {seed}");
    let mut random = Random::new(seed);
    let (mut before, mut handled): (Vec<Done>, _) = (Vec::new(), 0);
    for round in 0..super::rounds().min(100) {
        let mut server = Killed::start(TEST, folder.path());
        let addr = server.addr;
        for done in before.drain(..) {
            done.check(addr);
            handled += done.put;
        }
        let fresh: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let queue = format!("round-{round}-{client}");
                ask(addr, "PUT", &format!("/{queue}"), &[], b"").is(201);
                Done { queue, ..Done::default() }
            })
            .collect();
        let (all, life) = (AtomicUsize::new(0), 1 + random.below(LIFE_MAX));
        before = thread::scope(|scope| {
            let all = &all;
            let work = |done: Done| scope.spawn(move || done.work(addr, all));
            let threads: Vec<_> = fresh.into_iter().map(work).collect();
            wait_for("messages", || (all.load(Ordering::Relaxed) >= life).then_some(()));
            server.kill();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
    }
    assert!(handled > super::rounds(), "hardly anything was put: {handled}");
}
