//! The bytes of a long range that is read as a whole.
//!
//! Decides that the memory of such ranges is used again: the system takes a fifth of the time of
//! such a read to provide fresh memory, page by page, and to take it back. How long a range may be
//! is decided in [`crate::file::service`].

use std::sync::{Mutex, PoisonError};

/// Ranges up to this length are in memory of the allocator, which uses it again by itself.
pub(super) const SHORT_MAX: usize = 256 << 10;
/// Buffers that are kept for the next ranges. Each has the memory of the longest range that it
/// held.
const SPARE_MAX: usize = 4;

static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// The bytes of a range.
#[derive(Debug, Default)]
pub struct RangeBytes {
    /// Those of the range, and behind them what the memory was used for before.
    memory: Vec<u8>,
    length: usize,
}

impl RangeBytes {
    /// Has `fill` write the bytes of a range of at most `length`, and tell how many there are. It
    /// finds bytes of other ranges in the buffer.
    pub(super) fn filled<E>(
        length: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Self, E> {
        let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut bytes = Self { memory: spare.unwrap_or_default(), length: 0 };
        if bytes.memory.len() < length {
            bytes.memory.resize(length, 0);
        }
        bytes.length = fill(&mut bytes.memory[..length])?;
        Ok(bytes)
    }
}

impl From<Vec<u8>> for RangeBytes {
    fn from(memory: Vec<u8>) -> Self {
        let length = memory.len();
        Self { memory, length }
    }
}

impl AsRef<[u8]> for RangeBytes {
    fn as_ref(&self) -> &[u8] {
        &self.memory[..self.length]
    }
}

impl Drop for RangeBytes {
    fn drop(&mut self) {
        if self.memory.len() <= SHORT_MAX {
            return;
        }
        // What is not kept is given back when the lock is not held any more.
        let _given_back = {
            let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < SPARE_MAX {
                spare.push(std::mem::take(&mut self.memory));
            }
            std::mem::take(&mut self.memory)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(length: usize, with: u8, count: usize) -> RangeBytes {
        let fill = |buffer: &mut [u8]| -> Result<usize, ()> {
            assert_eq!(buffer.len(), length, "no more is asked for than the range has");
            buffer[..count].fill(with);
            Ok(count)
        };
        RangeBytes::filled(length, fill).unwrap()
    }

    #[test]
    fn a_buffer_that_is_used_again_shows_only_what_was_read() {
        for (with, length) in [(1, 4 << 20), (2, SHORT_MAX + 1), (3, 4 << 20), (4, 1 << 20)] {
            let count = length - 100;
            let bytes = filled(length, with, count);
            assert!(bytes.as_ref().len() == count && bytes.as_ref().iter().all(|b| *b == with));
        }
    }

    #[test]
    fn a_range_that_could_not_be_read_leaves_its_memory_to_others() {
        assert!(RangeBytes::filled(SHORT_MAX + 1, |_| Err("broken")).is_err());
    }

    #[test]
    fn few_buffers_are_kept() {
        let many: Vec<_> = (0..3 * SPARE_MAX).map(|_| filled(SHORT_MAX + 1, 0, 1)).collect();
        drop(many);
        assert!(SPARE.lock().unwrap().len() <= SPARE_MAX);
    }
}
