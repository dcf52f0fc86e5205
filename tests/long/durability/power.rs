//! Power cuts: the data directory is on a [`Disk`] that loses what was not synced. After a cut
//! every blob is one that was written: none is older than the last sync point, none is damaged, and
//! with `--sync always` nothing that was acknowledged is lost.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use latchfs::db::SyncMode;

use super::blobs::no_orphans;
use super::disk::{Cut, Disk};
use super::killed::{Killed, serve_if_told};
use crate::alone;
use crate::common::http::{Kept, ask};
use crate::common::need;
use crate::common::random::{Random, seeds};
use crate::common::served::wait_for;

const CLIENTS: usize = 2;
/// Blobs of each client. The last one is an append blob.
const BLOBS: usize = 6;
/// In the row, in a shared file, and in a file of its own.
const LENGTHS: [usize; 6] = [10, 12_000, 20_000, 60_000, 300_000, 1_100_000];
/// How long a client pauses after a request: it keeps what a cut has to write small.
const PAUSE: Duration = Duration::from_millis(25);
/// The time between two cuts, at most.
const BETWEEN_MS: usize = 400;

/// Servers that have the disk one after the other; each is killed.
const LIVES: usize = 2;

/// Bytes of a blob: the number of their write and how many they are.
type Piece = (u64, usize);
/// A state of a blob; none if it is deleted or not made yet.
type State = Option<Vec<Piece>>;

/// All states that a blob was given, and how many of them were acknowledged.
struct Blob {
    name: String,
    states: Mutex<Vec<State>>,
    acknowledged: AtomicUsize,
}

impl Blob {
    /// Gives the blob a state by `write`. False: the server is gone.
    fn change(&self, state: State, write: impl FnOnce() -> Option<()>) -> bool {
        let mut states = self.states.lock().unwrap();
        states.push(state);
        let count = states.len();
        drop(states);
        let answered = write().is_some();
        if answered {
            self.acknowledged.store(count, Ordering::Release);
        }
        answered
    }

    fn last(&self) -> State {
        self.states.lock().unwrap().last().unwrap().clone()
    }
}

fn fill((write, length): Piece, body: &mut Vec<u8>) {
    let mut random = Random::new(write);
    let end = body.len() + length;
    while body.len() < end {
        body.extend(random.next().to_le_bytes());
    }
    body.truncate(end);
}

fn body(pieces: &[Piece]) -> Vec<u8> {
    let mut body = Vec::new();
    for piece in pieces {
        fill(*piece, &mut body);
    }
    body
}

/// Which states of each blob may be there after a cut: from one number on, up to another.
type Allowed = Vec<(usize, usize)>;

struct Writes {
    blobs: Vec<Blob>,
    /// For each blob, how many states were acknowledged at the last sync point.
    synced: Mutex<Vec<usize>>,
    sync_points: AtomicUsize,
    next: AtomicUsize,
    stop: AtomicBool,
}

impl Writes {
    fn new() -> Self {
        let blob = |n: usize| Blob {
            name: format!("client-{}/blob-{}", n / BLOBS, n % BLOBS),
            states: Mutex::new(vec![None]),
            acknowledged: AtomicUsize::new(1),
        };
        Self {
            blobs: (0..CLIENTS * BLOBS).map(blob).collect(),
            synced: Mutex::new(vec![1; CLIENTS * BLOBS]),
            sync_points: AtomicUsize::new(0),
            next: AtomicUsize::new(1),
            stop: AtomicBool::new(false),
        }
    }

    fn acknowledged(&self) -> Vec<usize> {
        self.blobs.iter().map(|blob| blob.acknowledged.load(Ordering::Acquire)).collect()
    }

    /// What may be there after a cut at this moment.
    fn allowed(&self, sync: SyncMode) -> Allowed {
        let from = match sync {
            SyncMode::Normal => self.synced.lock().unwrap().clone(),
            SyncMode::Always => self.acknowledged(),
        };
        let up_to = self.blobs.iter().map(|blob| blob.states.lock().unwrap().len());
        from.into_iter().zip(up_to).collect()
    }

    /// Writes the blobs of a client until told to stop.
    fn work(&self, client: usize, addr: SocketAddr, mut random: Random) {
        let blobs = &self.blobs[client * BLOBS..][..BLOBS];
        let mut connection = Kept::connect(addr).unwrap();
        while !self.stop.load(Ordering::Relaxed) {
            let at = random.below(BLOBS);
            let number = self.next.fetch_add(1, Ordering::Relaxed) as u64;
            let mut asks = |method: &str, query: &str, kind: &str, body: &[u8]| {
                let target = format!("/{}{query}", blobs[at].name);
                let headers = [("x-ms-blob-type", kind)];
                let headers = if kind.is_empty() { &[][..] } else { &headers };
                let got = connection.ask(method, &target, headers, body).ok()?;
                assert!(got.status < 300, "{method} {target}: {}", got.text());
                Some(())
            };
            let (blob, length) = (&blobs[at], random.pick(&LENGTHS));
            let went_on = match (blob.last(), random.below(6)) {
                (Some(_), 0) => blob.change(None, || asks("DELETE", "", "", b"")),
                (None, _) if at == BLOBS - 1 => {
                    blob.change(Some(Vec::new()), || asks("PUT", "", "AppendBlob", b""))
                }
                (Some(mut pieces), _) if at == BLOBS - 1 => {
                    let piece = (number, length.min(20_000));
                    pieces.push(piece);
                    blob.change(Some(pieces), || {
                        asks("PUT", "?comp=appendblock", "", &body(&[piece]))
                    })
                }
                (_, 1 | 2) => {
                    let pieces = [(number, length), (number + (1 << 32), 70_000)];
                    blob.change(Some(pieces.to_vec()), || {
                        asks("PUT", "?comp=block&blockid=AAAA", "", &body(&pieces[..1]))?;
                        asks("PUT", "?comp=block&blockid=BBBB", "", &body(&pieces[1..]))?;
                        let list = "<Latest>AAAA</Latest><Latest>BBBB</Latest>";
                        let list = format!("<BlockList>{list}</BlockList>");
                        asks("PUT", "?comp=blocklist", "", list.as_bytes())
                    })
                }
                _ => {
                    let pieces = vec![(number, length)];
                    let bytes = body(&pieces);
                    blob.change(Some(pieces), || asks("PUT", "", "BlockBlob", &bytes))
                }
            };
            if !went_on {
                return;
            }
            thread::sleep(PAUSE);
        }
    }

    /// Every blob is in a state that it was given, and none is older than allowed.
    fn check(&self, addr: SocketAddr, allowed: &Allowed, what: &str) {
        let mut connection = Kept::connect(addr).unwrap();
        for (blob, (from, up_to)) in self.blobs.iter().zip(allowed) {
            let got = connection.ask("GET", &format!("/{}", blob.name), &[], b"");
            let got = got.unwrap_or_else(|error| panic!("{what}: {}: {error}", blob.name));
            let found = match got.status {
                200 => Some(got.body),
                404 => None,
                _ => panic!("{what}: {}: {}", blob.name, got.text()),
            };
            let states = blob.states.lock().unwrap()[..*up_to].to_vec();
            let is = |state: &State| state.as_deref().map(body) == found;
            let at = states.iter().rposition(is);
            let length = found.as_ref().map(Vec::len);
            let Some(at) = at else {
                panic!("{what}: {} has {length:?} bytes that nobody wrote", blob.name)
            };
            // The same state can come again: only deleted ones do.
            assert!(
                at + 1 >= *from,
                "{what}: {} is back at state {at}, {length:?} bytes, of {}",
                blob.name,
                from - 1
            );
        }
    }
}

/// Cuts the power `cuts` times while blobs are written, in both ways each time.
fn cut_power(test: &str, sync: SyncMode, cuts: usize) {
    serve_if_told(&latchfs::blob::rest::operations::SERVICE_TABLE);
    if !need::fuse() {
        return;
    }
    let _alone = alone();
    let seed = seeds(1)[0];
    let mut random = Random::new(seed);
    let writes = Arc::new(Writes::new());
    let at = tempfile::tempdir().unwrap();
    let told = Arc::clone(&writes);
    let disk = Disk::mount(at.path(), move |name| {
        if name == "blob.db-wal" {
            *told.synced.lock().unwrap() = told.acknowledged();
            told.sync_points.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut trees = 0;
    for life in 0..LIVES {
        // What the server before has not synced, this one has to.
        let mut server = Killed::start_with(test, at.path(), sync);
        for client in 0..CLIENTS {
            let container = format!("/client-{client}?restype=container");
            ask(server.addr, "PUT", &container, &[], b"").is(if life == 0 { 201 } else { 409 });
        }
        thread::scope(|scope| {
            writes.stop.store(false, Ordering::Relaxed);
            for client in 0..CLIENTS {
                let (writes, addr) = (&writes, server.addr);
                let random = Random::new(random.next());
                scope.spawn(move || writes.work(client, addr, random));
            }
            // Ends the clients also if a check fails.
            let _stop = Stop(&writes.stop);
            let before = writes.sync_points.load(Ordering::Relaxed);
            let synced = || (writes.sync_points.load(Ordering::Relaxed) > before).then_some(());
            for number in 0..cuts / LIVES {
                // The first cuts come before anything is synced, or before this server synced.
                if number == cuts / LIVES / 2 {
                    wait_for("a sync point", synced);
                }
                // The moment is the test's own choice, and not a wait for something.
                let between = u64::try_from(random.below(BETWEEN_MS)).unwrap();
                thread::sleep(Duration::from_millis(between));
                let what = format!("seed {seed}, {sync:?}, life {life}, cut {number}");
                trees += cut_once(&disk, &writes, &mut random, (test, sync), &what);
            }
        });
        server.kill();
    }
    let written: usize = writes.acknowledged().iter().sum();
    let points = writes.sync_points.load(Ordering::Relaxed);
    println!("seed {seed}, {sync:?}: {trees} trees, {written} writes, {points} sync points");
}

/// Cuts the power now, in both ways, and returns how many trees were checked.
fn cut_once(
    disk: &Disk,
    writes: &Writes,
    random: &mut Random,
    (test, sync): (&str, SyncMode),
    what: &str,
) -> usize {
    let trees = [Cut::Synced, Cut::Any].map(|cut| (cut, tempfile::tempdir().unwrap()));
    let mut places: Vec<_> =
        trees.iter().map(|(cut, tree)| (*cut, tree.path(), Random::new(random.next()))).collect();
    let allowed = disk.cut(|| writes.allowed(sync), &mut places);
    for (cut, tree) in &trees {
        let server = Killed::start_with(test, tree.path(), sync);
        writes.check(server.addr, &allowed, &format!("{what}, {cut:?}"));
        drop(server);
        no_orphans(tree.path());
    }
    trees.len()
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_power_cut_takes_blobs_back_to_a_sync_point_at_most() {
    let test = "durability::power::a_power_cut_takes_blobs_back_to_a_sync_point_at_most";
    cut_power(test, SyncMode::Normal, 8);
}

#[test]
fn a_power_cut_takes_nothing_that_was_acknowledged_with_sync_always() {
    let test =
        "durability::power::a_power_cut_takes_nothing_that_was_acknowledged_with_sync_always";
    cut_power(test, SyncMode::Always, 4);
}

#[test]
#[ignore = "takes minutes"]
fn fifty_power_cuts_take_blobs_back_to_a_sync_point_at_most() {
    let test = "durability::power::fifty_power_cuts_take_blobs_back_to_a_sync_point_at_most";
    cut_power(test, SyncMode::Normal, 50);
}

#[test]
#[ignore = "takes minutes"]
fn fifty_power_cuts_take_nothing_that_was_acknowledged_with_sync_always() {
    let test =
        "durability::power::fifty_power_cuts_take_nothing_that_was_acknowledged_with_sync_always";
    cut_power(test, SyncMode::Always, 50);
}
