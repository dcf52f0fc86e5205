//! A file of numbered slots, each filled with one number: what it may hold after a crash.

/// Slots in a file.
pub const SLOTS: usize = 16;

/// Bytes of a slot: several pages, so that half of one could be seen.
pub const SLOT_BYTES: usize = 20_000;

/// Bytes of the file.
pub const FILE_BYTES: usize = SLOTS * SLOT_BYTES;

/// What was written to the slots.
#[derive(Default)]
pub struct Slots {
    acknowledged: [u64; SLOTS],
    /// Being written when the server died.
    trying: Option<(usize, u64)>,
}

/// A slot full of one number.
pub fn filled(number: u64) -> Vec<u8> {
    number.to_le_bytes().iter().copied().cycle().take(SLOT_BYTES).collect()
}

impl Slots {
    /// Writes `number` to its slot by `write`, which gets offset and bytes and says whether it was
    /// acknowledged.
    pub fn write(&mut self, number: u64, write: impl FnOnce(usize, &[u8]) -> bool) -> bool {
        let slot = usize::try_from(number).unwrap() % SLOTS;
        self.trying = Some((slot, number));
        let done = write(slot * SLOT_BYTES, &filled(number));
        if done {
            self.acknowledged[slot] = number;
            self.trying = None;
        }
        done
    }

    /// The file after a crash: each slot holds what was acknowledged last, whole; only the one that
    /// was being written may hold that, or a part of it.
    pub fn check(&mut self, name: &str, bytes: &[u8]) {
        assert_eq!(bytes.len(), FILE_BYTES, "{name}");
        for (slot, bytes) in bytes.chunks_exact(SLOT_BYTES).enumerate() {
            let expected = filled(self.acknowledged[slot]);
            match self.trying {
                Some((tried, number)) if tried == slot => {
                    let tried = filled(number);
                    let both = expected.iter().zip(&tried);
                    let known = bytes.iter().zip(both).all(|(byte, (a, b))| byte == a || byte == b);
                    assert!(known, "{name}: slot {slot} holds what nobody wrote");
                }
                _ => assert!(bytes == expected, "{name}: slot {slot} lost {expected:?}"),
            }
        }
    }

    /// The number that was being written at the crash: to be written again, so that its slot holds
    /// one number alone.
    pub fn unsettled(&self) -> Option<u64> {
        self.trying.map(|(_, number)| number)
    }
}
