//! `kill -9` at any moment: acknowledged content is there and whole, and no file is left over.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use super::{CURRENT, Home, body, bytes, check_settled, whole};
use crate::blob::rules::blocks::{BlockId, BlockSearch, ListedBlock};
use crate::blob::store::{BlobStore, BodyRole, ContainerId, Content, ContentReader, StateKey};
use crate::db::testing::child;
use crate::db::{DbError, SyncMode, Tuning};
use crate::rules::Timestamp;

/// The first seed of a round is this many above that of the round before.
const SEEDS_OF_ROUND: u64 = 100_000;
/// More with `LATCHFS_TEST_ROUNDS`.
const ROUNDS: u64 = 8;
const THREADS: u64 = 3;
const FOLDER: &str = "LATCHFS_TEST_FOLDER";

/// What a thread does with its blob at a step; both sides compute it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Inline,
    Segment,
    File,
    Blocks,
    Append,
    Pages,
    Snapshot,
    Remove,
}

fn kind(step: u64) -> Kind {
    use Kind::{Append, Blocks, File, Inline, Pages, Remove, Segment, Snapshot};
    let kinds = [Inline, Segment, File, Blocks, Append, Pages, Snapshot, Remove, Segment, Blocks];
    kinds[usize::try_from(step % 10).unwrap()]
}

fn size(kind: Kind, step: u64) -> usize {
    let step = usize::try_from(step).unwrap();
    match kind {
        Kind::Inline => 100 + step % 5000,
        Kind::File => (1 << 20) + 1 + step % 500_000,
        Kind::Pages => 8192,
        _ => 20_000 + step % 60_000,
    }
}

/// The bytes that a blob has after the step, `None` if it is removed.
fn expected(kind: Kind, seed: u64) -> Option<Vec<u8>> {
    let sent = bytes(seed, size(kind, seed));
    match kind {
        Kind::Remove => None,
        Kind::Blocks | Kind::Append => Some([&sent[..], &bytes(seed + 1, 30_000)].concat()),
        Kind::Pages => Some([&sent[..], &[0; 8192], &sent].concat()),
        _ => Some(sent),
    }
}

fn step(
    store: &BlobStore,
    c: ContainerId,
    name: &str,
    kind: Kind,
    seed: u64,
) -> Result<(), DbError> {
    let sent = bytes(seed, size(kind, seed));
    let owned = name.to_owned();
    let part = |bytes: &[u8]| body(store, BodyRole::Part, bytes);
    match kind {
        Kind::Inline | Kind::Segment | Kind::File => {
            let content = whole(store, &sent);
            store.write(move |tx| tx.put(c, &owned, CURRENT, &seed, content)).map(drop)
        }
        Kind::Snapshot => {
            let content = whole(store, &sent);
            store.write(move |tx| {
                let id = tx.put(c, &owned, CURRENT, &seed, content)?;
                let key = StateKey::Snapshot(Timestamp(0));
                tx.put_shared(c, &owned, key, &seed, id, None).map(drop)
            })
        }
        Kind::Append => {
            let parts = [part(&sent), part(&bytes(seed + 1, 30_000))];
            store.write(move |tx| {
                let id = tx.put(c, &owned, CURRENT, &seed, Content::default())?;
                parts.into_iter().try_for_each(|part| tx.append(id, part).map(drop))
            })
        }
        Kind::Pages => {
            let parts = [part(&sent), part(&sent)];
            store.write(move |tx| {
                let id = tx.put(c, &owned, CURRENT, &seed, Content::default())?;
                tx.resize(id, 3 * 8192)?;
                let [first, last] = parts;
                tx.write_pages(id, 0, first, 1)?;
                tx.write_pages(id, 2 * 8192, last, 2)
            })
        }
        Kind::Blocks => {
            for (id, sent) in [(b"a", sent), (b"b", bytes(seed + 1, 30_000))] {
                let (content, owned) = (part(&sent), owned.clone());
                store.write(move |tx| tx.put_block(c, &owned, id, content, Timestamp(1)))?;
            }
            store.write(move |tx| {
                let list = [b"a", b"b"].map(|id| ListedBlock {
                    search: BlockSearch::Latest,
                    id: BlockId::from_bytes(id.to_vec()),
                });
                let list = tx.resolve_blocks(c, &owned, None, &list)?;
                tx.commit_blocks(c, &owned, &seed, &list.expect("both were put")).map(drop)
            })
        }
        Kind::Remove => store.write(move |tx| match tx.state::<u64>(c, &owned, CURRENT)? {
            Some(row) => tx.remove(row.id),
            None => Ok(()),
        }),
    }
}

#[test]
fn acknowledged_content_survives_kill_9_and_orphans_are_swept() {
    let rounds = std::env::var("LATCHFS_TEST_ROUNDS").ok();
    let rounds = rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    for sync in ["normal", "always"] {
        let home = Home::new();
        let (store, c) = home.with_container();
        drop(store);
        let mut last = BTreeMap::new();
        for round in 0..rounds {
            kill_in_mid_work(&home, c, sync, round, &mut last);
            let store = home.open();
            verify(&store, c, &last, round);
            check_settled(&store, &home);
        }
    }
}

fn kill_in_mid_work(
    home: &Home,
    c: ContainerId,
    sync: &str,
    round: u64,
    last: &mut BTreeMap<u64, u64>,
) {
    let mut process = child(child_that_works_until_killed)
        .env(FOLDER, home.dir.path())
        .env("LATCHFS_TEST_SYNC", sync)
        .env("LATCHFS_TEST_ROUND", round.to_string())
        .env("LATCHFS_TEST_CONTAINER", c.0.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut seen = 0;
    while seen < 20 + round * 23 % 60 {
        let line = lines.next().expect("the child works until it is killed").unwrap();
        seen += u64::from(parse(&line, last));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    for line in lines.map_while(Result::ok) {
        parse(&line, last);
    }
}

/// `ok THREAD SEED.`: the thread's blob is as after the step of that seed.
fn parse(line: &str, last: &mut BTreeMap<u64, u64>) -> bool {
    let Some(rest) = line.strip_prefix("ok ").and_then(|rest| rest.strip_suffix('.')) else {
        return false;
    };
    let (thread, seed) = rest.split_once(' ').unwrap();
    last.insert(thread.parse().unwrap(), seed.parse().unwrap());
    true
}

/// Each blob is as after its last acknowledged step, or the one that was under way.
fn verify(store: &BlobStore, c: ContainerId, last: &BTreeMap<u64, u64>, round: u64) {
    for (thread, seed) in last {
        let name = format!("blob {thread}");
        let found = super::state_and_reader::<u64>(store, c, &name);
        let found = found.map(|(row, mut reader): (_, ContentReader)| {
            (row.record, super::read_all(&mut reader))
        });
        let fits = |seed: u64| match (&found, expected(kind(seed), seed)) {
            (None, None) => true,
            (Some((record, bytes)), Some(expected)) => *record == seed && *bytes == expected,
            _ => false,
        };
        let state = found.as_ref().map(|(record, bytes)| (record, bytes.len()));
        // A busy thread may be killed in the first step of a round, without an answer in it.
        let first_steps = (seed / SEEDS_OF_ROUND + 1..=round).map(|round| round * SEEDS_OF_ROUND);
        let mut under_way = first_steps.chain([seed + 1]);
        assert!(
            fits(*seed) || under_way.any(fits),
            "round {round}: {name} was {:?} by {seed}, is {state:?}",
            kind(*seed)
        );
    }
}

#[test]
#[ignore = "a child process of another test"]
fn child_that_works_until_killed() {
    let variable = |name| std::env::var(name).expect("set by the parent");
    let number = |name| variable(name).parse::<u64>().unwrap();
    let sync =
        if variable("LATCHFS_TEST_SYNC") == "always" { SyncMode::Always } else { SyncMode::Normal };
    let tuning = Tuning { checkpoint_pages: 30, hold_pages: 120, ..Tuning::default() };
    let folder = variable(FOLDER);
    let store = Arc::new(BlobStore::open_with(Path::new(&folder), sync, tuning).unwrap());
    let c = ContainerId(number("LATCHFS_TEST_CONTAINER").cast_signed());
    let round = number("LATCHFS_TEST_ROUND");
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let store = Arc::clone(&store);
            std::thread::spawn(move || {
                let name = format!("blob {thread}");
                for seed in round * SEEDS_OF_ROUND.. {
                    step(&store, c, &name, kind(seed), seed).unwrap();
                    let line = format!("ok {thread} {seed}.\n");
                    std::io::stdout().write_all(line.as_bytes()).unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}
