//! Values made of rows, kept in memory for readers who come while nothing is written.
//!
//! Decides how long a value is used: as long as the database has the version that its reader noted
//! before it read ([`super::version`]). Any write ends all of them, so no writer has to say what it
//! changes. Decides also how much is kept: values that were not asked for make room for others.
//! What a value is, and which reads ask for it, is decided by the services.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::version::Version;

/// Parts with a lock each, so that event loops seldom wait for each other.
const SHARDS: usize = 8;

/// Values by their keys. The caller keeps the key within the value, and compares it.
pub struct Cache<V> {
    hasher: RandomState,
    shards: [Mutex<Shard<V>>; SHARDS],
    /// Bytes of half a shard.
    half: usize,
}

/// Two halves: what is asked for moves to the young one, and the old one goes when that is full.
struct Shard<V> {
    version: Version,
    young: Half<V>,
    old: Half<V>,
}

struct Half<V> {
    values: HashMap<u64, (usize, V)>,
    bytes: usize,
}

impl<V: Clone> Cache<V> {
    /// An empty cache of at most `bytes`.
    pub fn new(bytes: usize) -> Self {
        let shards = std::array::from_fn(|_| Mutex::default());
        Self { hasher: RandomState::new(), shards, half: bytes / SHARDS / 2 }
    }

    /// The value of that key, if it is of the version. `is_it` compares the key with the value's.
    pub fn get(&self, version: Version, key: &impl Hash, is_it: impl Fn(&V) -> bool) -> Option<V> {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash);
        if shard.version != version {
            return None;
        }
        if let Some((_, value)) = shard.young.values.get(&hash) {
            return is_it(value).then(|| value.clone());
        }
        let (bytes, value) = shard.old.values.remove(&hash)?;
        shard.old.bytes -= bytes;
        let found = is_it(&value).then(|| value.clone());
        shard.add(hash, bytes, value, self.half);
        found
    }

    /// Keeps a value of `bytes` that was read when the database had the version, or a later one.
    pub fn put(&self, version: Version, key: &impl Hash, bytes: usize, value: V) {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash);
        if shard.version < version {
            *shard = Shard { version, ..Shard::default() };
        }
        if shard.version == version && bytes <= self.half {
            shard.remove(hash);
            shard.add(hash, bytes, value, self.half);
        }
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard<V>> {
        let index = usize::try_from(hash % SHARDS as u64).unwrap_or(0);
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        let locked = self.shards.iter().map(|shard| shard.lock().unwrap());
        locked.map(|shard| shard.young.bytes + shard.old.bytes).sum()
    }
}

impl<V> Shard<V> {
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
        Self { version: Version::default(), young: Half::default(), old: Half::default() }
    }
}

impl<V> Default for Half<V> {
    fn default() -> Self {
        Self { values: HashMap::new(), bytes: 0 }
    }
}

impl<V> std::fmt::Debug for Cache<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::version::Versions;
    use super::*;

    fn get(cache: &Cache<u32>, version: Version, key: u32) -> Option<u32> {
        cache.get(version, &key, |value| *value == key)
    }

    #[test]
    fn a_value_is_found_until_something_is_written() {
        let (versions, cache) = (Versions::default(), Cache::new(1 << 20));
        let first = versions.now().unwrap();
        cache.put(first, &7, 100, 7);
        assert_eq!(get(&cache, first, 7), Some(7));
        assert_eq!(get(&cache, first, 8), None);
        drop(versions.change());
        let second = versions.now().unwrap();
        assert_eq!(get(&cache, second, 7), None);
        // A slow reader of the version before changes nothing.
        cache.put(first, &7, 100, 7);
        assert_eq!((get(&cache, first, 7), get(&cache, second, 7)), (Some(7), None));
        cache.put(second, &7, 100, 7);
        cache.put(first, &7, 100, 8);
        assert_eq!((get(&cache, first, 7), get(&cache, second, 7)), (None, Some(7)));
    }

    #[test]
    fn a_key_that_has_the_hash_of_another_finds_nothing() {
        let (version, cache) = (Version::default(), Cache::new(1 << 20));
        cache.put(version, &7, 100, 7);
        assert_eq!(cache.get(version, &7, |_| false), None);
    }

    #[test]
    fn the_bytes_have_a_bound_and_what_is_asked_for_stays() {
        let (version, cache) = (Version::default(), Cache::new(100 * 2 * SHARDS * 4));
        cache.put(version, &0, 100, 0);
        for key in 1..10_000 {
            cache.put(version, &key, 100, key);
            assert_eq!(get(&cache, version, 0), Some(0), "after {key}");
            assert_eq!(get(&cache, version, key), Some(key));
        }
        assert!(cache.bytes() <= 100 * 2 * SHARDS * 4, "{}", cache.bytes());
        // The same key again takes no more room.
        let before = cache.bytes();
        cache.put(version, &0, 100, 0);
        assert!(cache.bytes() <= before);
    }

    #[test]
    fn a_value_that_is_too_large_is_not_kept() {
        let (version, cache) = (Version::default(), Cache::new(2 * SHARDS * 100));
        cache.put(version, &1, 101, 1);
        assert_eq!((get(&cache, version, 1), cache.bytes()), (None, 0));
        cache.put(version, &1, 100, 1);
        assert_eq!(get(&cache, version, 1), Some(1));
    }
}
