//! Tests of the blob store, and what they share: a place, bodies, a check of all that is stored.

mod blocks;
mod bodies;
mod containers;
mod durability;
mod full_disk;
mod kill;
mod list;
mod pages;
mod readers;
mod reclaim;
mod replace;
mod states;
mod tags;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::extents::PackedRow;
use super::types::ContentId;
use super::{
    BlobStore, BlobTx, BodyRole, ContainerId, Content, ContentPlan, ContentReader, StateId,
    StateKey, StateRow, WriteTx,
};
use crate::db::{DbError, SyncMode, Tuning};

pub(super) const CURRENT: StateKey = StateKey::Current;

impl BlobStore {
    /// Runs `f` in a write transaction and waits for the commit. See [`Database::write`].
    pub fn write<T, E, F>(&self, f: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
        F: FnOnce(&WriteTx<'_>) -> Result<T, E> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let written = self.database.write(move |conn| WriteTx::run(conn, &shared, f));
        written.map(|(value, _)| value)
    }
}

/// Checkpoints only when a test asks for one.
pub(super) fn quiet() -> Tuning {
    Tuning {
        checkpoint_interval: Duration::from_hours(1),
        checkpoint_pages: u32::MAX,
        ..Tuning::default()
    }
}

pub(super) struct Home {
    pub(super) dir: TempDir,
}

impl Home {
    pub(super) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(super) fn open(&self) -> BlobStore {
        BlobStore::open_with(self.dir.path(), SyncMode::Normal, quiet()).unwrap()
    }

    /// A store with the container `c`.
    pub(super) fn with_container(&self) -> (BlobStore, ContainerId) {
        let store = self.open();
        let container = store.write(|tx| tx.add_container("c", &"")).unwrap().unwrap();
        (store, container)
    }

    pub(super) fn files(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.dir.path().join("blobs")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    pub(super) fn content_path(&self, id: ContentId) -> PathBuf {
        self.dir.path().join("blobs").join(id.to_string())
    }
}

pub(super) fn content_id(name: &str) -> ContentId {
    ContentId(u64::from_str_radix(name, 16).unwrap())
}

/// Bytes that differ from place to place and from seed to seed.
pub(super) fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

pub(super) fn body(store: &BlobStore, role: BodyRole, bytes: &[u8]) -> Content {
    let plan = ContentPlan { length: Some(bytes.len() as u64), role, md5: false };
    let mut writer = store.content(plan).unwrap();
    for chunk in bytes.chunks(100_000) {
        writer.write(chunk).unwrap();
    }
    writer.finish().unwrap()
}

pub(super) fn whole(store: &BlobStore, bytes: &[u8]) -> Content {
    body(store, BodyRole::Whole, bytes)
}

/// Puts a blob in one go.
pub(super) fn put(store: &BlobStore, container: ContainerId, name: &str, bytes: &[u8]) -> StateId {
    let content = whole(store, bytes);
    let name = name.to_owned();
    store.write(move |tx| tx.put(container, &name, CURRENT, &"", content)).unwrap()
}

pub(super) fn put_block(
    store: &BlobStore,
    container: ContainerId,
    name: &str,
    id: &[u8],
    bytes: &[u8],
) {
    let content = body(store, BodyRole::Part, bytes);
    let (name, id) = (name.to_owned(), id.to_vec());
    let now = crate::rules::Timestamp(1);
    store.write(move |tx| tx.put_block(container, &name, &id, content, now)).unwrap();
}

pub(super) fn read_all(reader: &mut ContentReader) -> Vec<u8> {
    let mut bytes = vec![0xee; usize::try_from(reader.length()).unwrap()];
    let mut done = 0;
    while done < bytes.len() {
        let end = bytes.len().min(done + 70_000);
        let count = reader.read_at(done as u64, &mut bytes[done..end]).unwrap();
        assert!(count > 0, "the reader ends at {done} of {}", bytes.len());
        done += count;
    }
    assert_eq!(reader.read_at(done as u64, &mut [0; 10]).unwrap(), 0);
    bytes
}

pub(super) fn content_of(store: &BlobStore, id: StateId) -> Vec<u8> {
    read_all(&mut store.read(|tx| tx.reader(id)).unwrap())
}

/// The current state of a blob and its bytes, read in one transaction.
pub(super) fn state_and_reader<R: serde::de::DeserializeOwned>(
    store: &BlobStore,
    container: ContainerId,
    name: &str,
) -> Option<(StateRow<R>, ContentReader)> {
    let found: Result<_, DbError> = store.read(|tx| {
        let Some(row) = tx.state::<R>(container, name, CURRENT)? else { return Ok(None) };
        let reader = tx.reader(row.id)?;
        Ok(Some((row, reader)))
    });
    found.unwrap()
}

pub(super) fn row(
    store: &BlobStore,
    container: ContainerId,
    name: &str,
) -> Option<StateRow<String>> {
    store.read(|tx| tx.state(container, name, CURRENT)).unwrap()
}

/// Checks everything that must hold in a store where nothing is under way: references fit the
/// extents and blocks, files are there and long enough, rows have owners. Returns the files.
pub(super) fn check(store: &BlobStore, home: &Home) -> BTreeSet<String> {
    let files = store.read(check_rows).unwrap();
    for (file, end) in &files {
        let length = std::fs::metadata(home.content_path(ContentId(*file))).unwrap().len();
        assert!(length >= *end, "file {file:x} has {length} bytes of {end}");
    }
    let names: BTreeSet<_> = files.keys().map(|file| ContentId(*file).to_string()).collect();
    let lost: Vec<_> = names.difference(&home.files()).cloned().collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    names
}

/// Files in use, and the end of the last byte in use of each.
fn check_rows(tx: &BlobTx<'_>) -> Result<BTreeMap<u64, u64>, DbError> {
    let pairs = |sql: &str| -> Result<BTreeSet<(i64, i64)>, DbError> {
        let mut select = tx.conn.prepare(sql)?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    };
    let mut ends = BTreeMap::new();
    let mut used = BTreeSet::new();
    let mut select = tx.conn.prepare("SELECT state, first, packed FROM extents ORDER BY 1, 2")?;
    let mut rows = select.query([])?;
    let mut last = (0, 0);
    while let Some(row) = rows.next()? {
        let state: i64 = row.get(0)?;
        let row = PackedRow { first: row.get::<_, i64>(1)?.cast_unsigned(), packed: row.get(2)? };
        let extents = row.unpack()?;
        assert!(!extents.is_empty() && extents.len() <= 512, "a row of {}", extents.len());
        assert_eq!(extents[0].start, row.first);
        for extent in extents {
            assert!(last.0 != state || last.1 <= extent.start, "extents overlap");
            last = (state, extent.end());
            if extent.is_cleared() {
                continue;
            }
            let end = ends.entry(extent.file.0).or_insert(0);
            *end = extent.offset.saturating_add(extent.length).max(*end);
            used.insert((state, extent.file.0.cast_signed()));
        }
    }
    for (upload, file) in pairs("SELECT upload, file FROM block")? {
        used.insert((upload, file));
        ends.entry(file.cast_unsigned()).or_insert(0);
    }
    let references = pairs("SELECT owner, file FROM uses")?;
    // Pages that were written over keep their reference until the state ends.
    assert!(used.is_subset(&references), "{used:?} is not in {references:?}");
    let counted = pairs("SELECT file, count(*) FROM uses GROUP BY file")?;
    assert_eq!(pairs("SELECT id, refs FROM file WHERE refs <> 0")?, counted);
    let none = "SELECT count(*), 0 FROM extents WHERE state NOT IN (SELECT id FROM blob)
                    AND state NOT IN (SELECT id FROM doomed)
                UNION SELECT count(*), 0 FROM block WHERE upload NOT IN (SELECT id FROM upload)
                    AND upload NOT IN (SELECT id FROM doomed)
                UNION SELECT count(*), 0 FROM uses WHERE owner NOT IN
                    (SELECT id FROM blob UNION SELECT id FROM upload UNION SELECT id FROM doomed)";
    assert_eq!(pairs(none)?, BTreeSet::from([(0, 0)]), "rows without an owner");
    for (file, _) in counted {
        ends.entry(file.cast_unsigned()).or_insert(0);
    }
    Ok(ends)
}

/// [`check`], and nothing is on the disk but what is in use.
pub(super) fn check_settled(store: &BlobStore, home: &Home) {
    store.settle().unwrap();
    // A file whose last reference went with the settling is removed a moment later.
    wait_until("the removal of files without a reference", || {
        let used = check(store, home);
        home.files().difference(&used).all(|name| {
            // Segments may be there before their first commit.
            store.shared.files.is_open(content_id(name))
        })
    });
    wait_until("the removal of rows", || {
        let left: i64 = store
            .read(|tx| {
                let sql = "SELECT (SELECT count(*) FROM doomed)
                    + (SELECT count(*) FROM file WHERE refs = 0)";
                let left = tx.conn.query_row(sql, [], |row| row.get::<_, i64>(0))?;
                Ok::<_, DbError>(left)
            })
            .unwrap();
        let unused_but_open = store
            .read(|tx| super::reclaim::unused(tx.conn, 10_000))
            .unwrap()
            .into_iter()
            .filter(|file| store.shared.files.is_open(*file))
            .count();
        usize::try_from(left).unwrap() == unused_but_open
    });
}

/// Waits for a condition.
pub(super) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_mins(1), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}
