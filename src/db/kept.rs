//! Values made of rows, in memory, which writes replace one by one.
//!
//! Decides when a value may be used instead of a look into the database: as long as no write of
//! its row has begun. A write takes the value away before its commit, so that nobody who has seen
//! the new row anywhere finds the old value afterwards, and gives the new value after its commit.
//! A reader gives the value that it read only if no write came between. Decides also how much is
//! kept: values that were not asked for make room for others. What a value is, and which requests
//! ask for it, is decided by the services. Values of which a service cannot say which writes change
//! them are in `db/cache`, where any write ends all.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Parts with a lock each, so that event loops seldom wait for each other.
const SHARDS: usize = 16;

/// Values by their keys. The caller keeps the key within the value, and compares it: a key that has
/// the hash of another shares its place.
pub(crate) struct Kept<V> {
    hasher: RandomState,
    shards: [Mutex<Shard<V>>; SHARDS],
    /// Bytes of half a shard.
    half: usize,
}

/// Two halves: what is asked for moves to the young one, and the old one goes when that is full.
struct Shard<V> {
    /// Beginnings and ends of writes so far.
    events: u64,
    /// Writes under way, by the hashes of their keys.
    writes: HashMap<u64, Writes>,
    /// Rises when all rows are replaced.
    epoch: u64,
    /// All rows are being replaced: nothing is found and nothing is kept.
    suspended: u32,
    young: Half<V>,
    old: Half<V>,
}

/// The writes under way of one place.
struct Writes {
    count: usize,
    /// The one that began last.
    last: u64,
}

struct Half<V> {
    values: HashMap<u64, (usize, V)>,
    bytes: usize,
}

/// A key without a value, at the moment it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Missing {
    hash: u64,
    events: u64,
}

/// A write under way. Until it ends no reader gives a value for the key. If it is dropped, the
/// write was rolled back, or what it wrote is not kept.
pub(crate) struct KeptWrite<V> {
    kept: Arc<Kept<V>>,
    hash: u64,
    epoch: u64,
    number: u64,
}

/// All rows are being replaced. When it is dropped, values of the new ones are kept.
pub(crate) struct Suspended<'a, V>(&'a Kept<V>);

impl<V> Kept<V> {
    /// Nothing yet, and later values of at most `bytes`.
    pub fn new(bytes: usize) -> Self {
        let shards = std::array::from_fn(|_| Mutex::default());
        Self { hasher: RandomState::new(), shards, half: bytes / SHARDS / 2 }
    }

    /// The value of that key. `is_it` compares the key with the value's.
    pub fn find(&self, key: &impl Hash, is_it: impl Fn(&V) -> bool) -> Result<V, Missing>
    where
        V: Clone,
    {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash);
        let missing = Missing { hash, events: shard.events };
        if let Some((_, value)) = shard.young.values.get(&hash) {
            return if is_it(value) { Ok(value.clone()) } else { Err(missing) };
        }
        let Some((bytes, value)) = shard.old.values.remove(&hash) else { return Err(missing) };
        shard.old.bytes -= bytes;
        let found = is_it(&value).then(|| value.clone());
        shard.add(hash, bytes, value, self.half);
        found.ok_or(missing)
    }

    /// Keeps a value of `bytes` that was read after its key was found missing, unless a write began
    /// or ended meanwhile.
    pub fn put(&self, missing: Missing, bytes: usize, value: V) {
        let Missing { hash, events } = missing;
        let mut shard = self.shard(hash);
        if shard.events == events && !shard.writes.contains_key(&hash) {
            shard.put(hash, bytes, value, self.half);
        }
    }

    /// Begins a write of the row of that key. To be called by the one writer, between the beginning
    /// and the commit of its transaction.
    pub fn write(self: &Arc<Self>, key: &impl Hash) -> KeptWrite<V> {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash);
        shard.events += 1;
        shard.remove(hash);
        let (number, epoch) = (shard.events, shard.epoch);
        let writes = shard.writes.entry(hash).or_insert(Writes { count: 0, last: 0 });
        (writes.count, writes.last) = (writes.count + 1, number);
        drop(shard);
        KeptWrite { kept: Arc::clone(self), hash, epoch, number }
    }

    /// Forgets everything, and keeps nothing until the value is dropped. To be called before all
    /// rows are replaced.
    pub fn suspend(&self) -> Suspended<'_, V> {
        for shard in &self.shards {
            let mut shard = lock(shard);
            shard.suspended += 1;
            shard.forget();
        }
        Suspended(self)
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard<V>> {
        lock(&self.shards[usize::try_from(hash % SHARDS as u64).unwrap_or(0)])
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        let locked = self.shards.iter().map(lock);
        locked.map(|shard| shard.young.bytes + shard.old.bytes).sum()
    }
}

fn lock<V>(shard: &Mutex<Shard<V>>) -> MutexGuard<'_, Shard<V>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<V> KeptWrite<V> {
    /// The write is committed: keeps the new value of `bytes`. Of several writes of one row under
    /// way, only the last one has the value that the row has now.
    pub fn committed(self, bytes: usize, value: V) {
        let mut shard = self.kept.shard(self.hash);
        let is_last = shard.writes.get(&self.hash).is_some_and(|writes| writes.last == self.number);
        if is_last && shard.epoch == self.epoch {
            shard.put(self.hash, bytes, value, self.kept.half);
        }
    }
}

impl<V> Drop for KeptWrite<V> {
    fn drop(&mut self) {
        let mut shard = self.kept.shard(self.hash);
        // A reader who looked before the commit must not give what it read.
        shard.events += 1;
        let Some(writes) = shard.writes.get_mut(&self.hash) else { return };
        writes.count -= 1;
        if writes.count == 0 {
            shard.writes.remove(&self.hash);
        }
    }
}

impl<V> Drop for Suspended<'_, V> {
    fn drop(&mut self) {
        for shard in &self.0.shards {
            let mut shard = lock(shard);
            shard.suspended -= 1;
            shard.forget();
        }
    }
}

impl<V> Shard<V> {
    /// Ends all values, those included that readers and writers are about to give.
    fn forget(&mut self) {
        self.events += 1;
        self.epoch += 1;
        (self.young, self.old) = Default::default();
    }

    fn put(&mut self, hash: u64, bytes: usize, value: V, most: usize) {
        if self.suspended == 0 && bytes <= most {
            self.remove(hash);
            self.add(hash, bytes, value, most);
        }
    }

    fn add(&mut self, hash: u64, bytes: usize, value: V, most: usize) {
        if self.young.bytes + bytes > most {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.bytes += bytes;
        self.young.values.insert(hash, (bytes, value));
    }

    fn remove(&mut self, hash: u64) {
        for half in [&mut self.young, &mut self.old] {
            if let Some((bytes, _)) = half.values.remove(&hash) {
                half.bytes -= bytes;
            }
        }
    }
}

impl<V> Default for Shard<V> {
    fn default() -> Self {
        let (writes, young, old) = (HashMap::new(), Half::default(), Half::default());
        Self { events: 0, writes, epoch: 0, suspended: 0, young, old }
    }
}

impl<V> Default for Half<V> {
    fn default() -> Self {
        Self { values: HashMap::new(), bytes: 0 }
    }
}

impl<V> std::fmt::Debug for Kept<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values are a key and a number.
    type Pair = (u32, u32);

    fn kept() -> Arc<Kept<Pair>> {
        Arc::new(Kept::new(1 << 20))
    }

    fn find(kept: &Kept<Pair>, key: u32) -> Result<u32, Missing> {
        kept.find(&key, |(known, _)| *known == key).map(|(_, number)| number)
    }

    fn missing(kept: &Kept<Pair>, key: u32) -> Missing {
        find(kept, key).unwrap_err()
    }

    #[test]
    fn a_value_that_was_read_is_found_until_its_row_is_written() {
        let kept = kept();
        kept.put(missing(&kept, 7), 100, (7, 1));
        kept.put(missing(&kept, 8), 100, (8, 1));
        assert_eq!((find(&kept, 7), find(&kept, 8)), (Ok(1), Ok(1)));
        let write = kept.write(&7);
        assert!(find(&kept, 7).is_err(), "its commit may be seen already");
        write.committed(100, (7, 2));
        assert_eq!((find(&kept, 7), find(&kept, 8)), (Ok(2), Ok(1)));
        drop(kept.write(&7));
        assert!(find(&kept, 7).is_err(), "rolled back, or gone");
    }

    #[test]
    fn a_reader_gives_nothing_if_a_write_came_between() {
        let kept = kept();
        let before = missing(&kept, 7);
        let write = kept.write(&7);
        let during = missing(&kept, 7);
        kept.put(before, 100, (7, 1));
        kept.put(during, 100, (7, 1));
        assert!(find(&kept, 7).is_err(), "the write is under way");
        drop(write);
        kept.put(before, 100, (7, 1));
        kept.put(during, 100, (7, 1));
        assert!(find(&kept, 7).is_err(), "both were read before its end");
        kept.put(missing(&kept, 7), 100, (7, 2));
        assert_eq!(find(&kept, 7), Ok(2));
    }

    #[test]
    fn of_two_writes_under_way_the_last_one_gives_its_value() {
        for first_ends_first in [true, false] {
            let kept = kept();
            let (first, second) = (kept.write(&7), kept.write(&7));
            if first_ends_first {
                first.committed(100, (7, 1));
                assert!(find(&kept, 7).is_err());
                second.committed(100, (7, 2));
            } else {
                second.committed(100, (7, 2));
                assert_eq!(find(&kept, 7), Ok(2));
                first.committed(100, (7, 1));
            }
            assert_eq!(find(&kept, 7), Ok(2));
            // All have ended.
            drop(kept.write(&7));
            kept.put(missing(&kept, 7), 100, (7, 3));
            assert_eq!(find(&kept, 7), Ok(3));
        }
    }

    #[test]
    fn nothing_of_before_a_replacement_of_all_rows_is_kept() {
        let kept = kept();
        kept.put(missing(&kept, 7), 100, (7, 1));
        let (read, write, other) = (missing(&kept, 8), kept.write(&9), kept.write(&10));
        let suspended = kept.suspend();
        assert!(find(&kept, 7).is_err());
        kept.put(missing(&kept, 7), 100, (7, 1));
        other.committed(100, (10, 1));
        assert!(find(&kept, 7).is_err() && find(&kept, 10).is_err());
        let during = missing(&kept, 7);
        drop(suspended);
        kept.put(read, 100, (8, 1));
        kept.put(during, 100, (7, 1));
        write.committed(100, (9, 1));
        assert_eq!(kept.bytes(), 0);
        kept.write(&9).committed(100, (9, 2));
        assert_eq!(find(&kept, 9), Ok(2));
    }

    #[test]
    fn a_key_that_has_the_hash_of_another_finds_nothing() {
        let kept = kept();
        kept.put(missing(&kept, 7), 100, (7, 1));
        assert!(kept.find(&7_u32, |_| false).is_err());
    }

    #[test]
    fn the_bytes_have_a_bound_and_what_is_asked_for_stays() {
        let most = 100 * 2 * SHARDS * 4;
        let kept = Arc::new(Kept::<Pair>::new(most));
        kept.write(&0_u32).committed(100, (0, 0));
        for key in 1..10_000 {
            kept.put(missing(&kept, key), 100, (key, key));
            assert_eq!((find(&kept, 0), find(&kept, key)), (Ok(0), Ok(key)), "after {key}");
        }
        assert!(kept.bytes() <= most, "{}", kept.bytes());
        let large = most / SHARDS;
        kept.write(&0_u32).committed(large, (0, 1));
        assert!(find(&kept, 0).is_err(), "too large for a shard");
    }
}
