//! Blobs over the death of the server: every acknowledged write is there, leases and uncommitted
//! blocks too, no bytes are those of another write, and no content is left that nothing refers to.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use latchfs::blob::store::BlobStore;
use latchfs::db::SyncMode;

use super::killed::{Killed, serve_if_told};
use crate::alone;
use crate::common::http::{ACCOUNT, Got, Kept, ask};
use crate::common::random::Random;
use crate::common::served::wait_for;

/// This test, which is also the server.
const TEST: &str = "durability::blobs::a_killed_server_loses_no_blob_it_acknowledged";
const CLIENTS: usize = 3;
/// Rounds of work that are done before the server is killed, at most.
const LIFE_MAX: usize = 25;
const LEASE: &str = "00000000-0000-4000-8000-00000000000a";
const PAGE: usize = 512;

/// The length of the nth whole blob: in the row, in a shared file, in a file of its own.
fn length(n: usize) -> usize {
    [10, 12_000, 60_000, 300_000, 1_500_000][n % 5]
}

fn value(n: usize) -> u8 {
    u8::try_from(n % 250 + 1).unwrap()
}

/// What a client did in its container, as far as it was answered: the numbers of the last writes.
#[derive(Default)]
struct Done {
    container: String,
    whole: usize,
    /// The number of the write that the server may or may not have done.
    unsure: usize,
    appended: usize,
    pages: usize,
    blocks: usize,
    committed: usize,
    snapshots: Vec<(String, usize)>,
    leased: usize,
    deleted: usize,
}

impl Done {
    /// Writes in every way there is, until the server is gone.
    fn work(mut self, addr: SocketAddr, all: &AtomicUsize) -> Self {
        let Ok(mut connection) = Kept::connect(addr) else { return self };
        let container = self.container.clone();
        let mut asks = |method: &str, name: &str, headers: &[(&str, &str)], body: &[u8]| {
            let target = format!("/{container}/{name}");
            let got = connection.ask(method, &target, headers, body).ok()?;
            assert!(got.status < 300, "{method} {target}: {}", got.text());
            Some(got)
        };
        let mut round = || -> Option<()> {
            let n = self.unsure + 1;
            self.unsure = n;
            let block = [("x-ms-blob-type", "BlockBlob")];
            asks("PUT", "whole", &block, &vec![value(n); length(n)])?;
            self.whole = n;
            asks("PUT", "log?comp=appendblock", &[], &[value(n); 700])?;
            self.appended = n;
            let first = n % 8 * PAGE;
            let range = format!("bytes={first}-{}", first + PAGE - 1);
            let page = [("x-ms-page-write", "update"), ("x-ms-range", &*range)];
            asks("PUT", "page?comp=page", &page, &[value(n); PAGE])?;
            self.pages = n;
            let block = format!("parts?comp=block&blockid={}", base64(n));
            asks("PUT", &block, &[], &vec![value(n); 100_000])?;
            self.blocks = n;
            if n.is_multiple_of(3) {
                let list = format!("<BlockList><Latest>{}</Latest></BlockList>", base64(n));
                asks("PUT", "parts?comp=blocklist", &[], list.as_bytes())?;
                self.committed = n;
            }
            if n.is_multiple_of(4) {
                let taken = asks("PUT", "whole?comp=snapshot", &[], b"")?;
                self.snapshots.push((taken.header("x-ms-snapshot").to_owned(), n));
            }
            let leased = format!("leased-{n}");
            asks("PUT", &leased, &[("x-ms-blob-type", "BlockBlob")], b"leased")?;
            let lease = [
                ("x-ms-lease-action", "acquire"),
                ("x-ms-lease-duration", "-1"),
                ("x-ms-proposed-lease-id", LEASE),
            ];
            asks("PUT", &format!("{leased}?comp=lease"), &lease, b"")?;
            self.leased = n;
            let gone = format!("gone-{n}");
            let append = [("x-ms-blob-type", "AppendBlob")];
            asks("PUT", &gone, &append, b"")?;
            asks("DELETE", &gone, &[], b"")?;
            self.deleted = n;
            all.fetch_add(1, Ordering::Relaxed);
            Some(())
        };
        while round().is_some() {}
        self
    }

    fn get(&self, addr: SocketAddr, name: &str) -> Got {
        ask(addr, "GET", &format!("/{}/{name}", self.container), &[], b"")
    }

    /// Compares with what is there.
    fn check(&self, addr: SocketAddr) {
        let Self { whole, unsure, .. } = *self;
        let name = &self.container;
        if whole > 0 {
            let got = self.get(addr, "whole").is(200);
            let is =
                |n: usize| got.body.len() == length(n) && got.body.iter().all(|b| *b == value(n));
            assert!(is(whole) || is(unsure), "{name}: whole is neither {whole} nor {unsure}");
        }
        let log = self.get(addr, "log").is(200).body;
        let lines: Vec<u8> = log.chunks(700).map(|line| line[0]).collect();
        assert_eq!(log.len() % 700, 0, "{name}: half a line");
        let expected = |last: usize| (1..=last).map(value).collect::<Vec<_>>();
        assert!([self.appended, unsure].map(expected).contains(&lines), "{name}: {lines:?}");
        let pages = self.get(addr, "page").is(200).body;
        for (at, page) in pages.chunks(PAGE).enumerate() {
            let last = |up_to: usize| (1..=up_to).rev().find(|n| n % 8 == at).map_or(0, value);
            let found = page[0];
            assert!(page.iter().all(|byte| *byte == found), "{name}: half a page");
            assert!(found == last(self.pages) || found == last(unsure), "{name}: page {at}");
        }
        self.check_parts(addr);
        for (moment, n) in &self.snapshots {
            let got = self.get(addr, &format!("whole?snapshot={moment}")).is(200);
            assert_eq!((got.body.len(), got.body[0]), (length(*n), value(*n)), "{name}: snapshot");
        }
        for n in 1..=self.leased {
            let target = format!("/{name}/leased-{n}");
            ask(addr, "DELETE", &target, &[], b"").refused(412, "LeaseIdMissing");
            ask(addr, "DELETE", &target, &[("x-ms-lease-id", LEASE)], b"").is(202);
        }
        for n in 1..=self.deleted {
            self.get(addr, &format!("gone-{n}")).is(404);
        }
    }

    /// Blocks put after the last commit are there; a commit has the bytes of its block.
    fn check_parts(&self, addr: SocketAddr) {
        let name = &self.container;
        if self.blocks == 0 {
            return;
        }
        let shown = self.get(addr, "parts?comp=blocklist&blocklisttype=all").is(200).text();
        let committed = |n: usize| {
            let Got { body, .. } = self.get(addr, "parts");
            body.len() == 100_000 && body.iter().all(|byte| *byte == value(n))
        };
        let (last, unsure) = (self.committed, self.unsure);
        let done_unsure = unsure.is_multiple_of(3) && unsure > last && committed(unsure);
        if last > 0 && !done_unsure {
            assert!(committed(last), "{name}: not the bytes of commit {last}");
        }
        let from = if done_unsure { unsure } else { last };
        for n in from + 1..=self.blocks {
            assert!(shown.contains(&base64(n)), "{name}: block {n} after {from} is not in {shown}");
        }
    }
}

/// A block ID for a number.
fn base64(n: usize) -> String {
    // Digits are letters of base64, four make three bytes.
    format!("{n:08}")
}

/// Content that nothing refers to is gone once an opened store has settled.
pub fn no_orphans(folder: &Path) {
    let account = folder.join(ACCOUNT);
    let store = BlobStore::open(&account, SyncMode::Normal).unwrap();
    store.settle().unwrap();
    drop(store);
    let database = rusqlite::Connection::open(account.join("blob.db")).unwrap();
    let count = |sql: &str| -> i64 { database.query_row(sql, [], |row| row.get(0)).unwrap() };
    let known = count("SELECT count(*) FROM file WHERE refs > 0");
    let files = fs::read_dir(account.join("blobs")).unwrap().count();
    assert_eq!(files, usize::try_from(known).unwrap(), "content files and references");
    let wrong = "SELECT count(*) FROM file WHERE refs <>
                 (SELECT count(*) FROM uses WHERE uses.file = file.id)";
    assert_eq!(count(wrong), 0, "wrong counts of references");
    assert_eq!(count("SELECT count(*) FROM doomed"), 0, "rows that were to go");
}

#[test]
fn a_killed_server_loses_no_blob_it_acknowledged() {
    serve_if_told(&latchfs::blob::rest::operations::SERVICE_TABLE);
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let seed = 12;
    println!("blobs: seed {seed}");
    let mut random = Random::new(seed);
    let (mut before, mut handled): (Vec<Done>, _) = (Vec::new(), 0);
    let rounds = super::rounds().min(100);
    for round in 0..=rounds {
        if round % 10 == 0 && round > 0 {
            no_orphans(folder.path());
        }
        let mut server = Killed::start(TEST, folder.path());
        let addr = server.addr;
        for done in before.drain(..) {
            done.check(addr);
            handled += done.whole;
            let container = format!("/{}?restype=container", done.container);
            ask(addr, "DELETE", &container, &[], b"").is(202);
        }
        let fresh: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let container = format!("round-{round}-{client}");
                ask(addr, "PUT", &format!("/{container}?restype=container"), &[], b"").is(201);
                let log = [("x-ms-blob-type", "AppendBlob")];
                ask(addr, "PUT", &format!("/{container}/log"), &log, b"").is(201);
                let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "4096")];
                ask(addr, "PUT", &format!("/{container}/page"), &page, b"").is(201);
                Done { container, ..Done::default() }
            })
            .collect();
        let (all, life) = (AtomicUsize::new(0), 1 + random.below(LIFE_MAX));
        before = thread::scope(|scope| {
            let all = &all;
            let work = |done: Done| scope.spawn(move || done.work(addr, all));
            let threads: Vec<_> = fresh.into_iter().map(work).collect();
            wait_for("writes", || (all.load(Ordering::Relaxed) >= life).then_some(()));
            server.kill();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
    }
    no_orphans(folder.path());
    assert!(handled > rounds, "hardly anything was written: {handled}");
}
