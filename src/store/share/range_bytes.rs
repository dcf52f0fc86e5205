//! The bytes of a range that is read as a whole.
//!
//! Decides that the memory of long ranges is used again: the system takes a fifth of the time of
//! such a read to provide fresh memory, page by page, and to take it back. How long a range may be
//! is decided in [`crate::engine::file`].

use std::sync::{Mutex, PoisonError};

/// Ranges up to this length are in memory of the allocator, which uses it again by itself.
const SHORT_MAX: usize = 256 << 10;
/// Buffers that are kept for the next ranges. Each has the memory of the longest range that it
/// held.
const SPARE_MAX: usize = 4;

static SPARE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// The bytes of a range.
#[derive(Debug, Default)]
pub struct RangeBytes(Vec<u8>);

impl RangeBytes {
    /// No bytes, and room for so many.
    pub(super) fn with_room(length: usize) -> Self {
        if length <= SHORT_MAX {
            return Self(Vec::with_capacity(length));
        }
        let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut bytes = spare.unwrap_or_default();
        bytes.clear();
        bytes.reserve_exact(length);
        Self(bytes)
    }

    pub(super) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl From<Vec<u8>> for RangeBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl AsRef<[u8]> for RangeBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for RangeBytes {
    fn drop(&mut self) {
        if self.0.capacity() <= SHORT_MAX {
            return;
        }
        // What is not kept is given back when the lock is not held any more.
        let _given_back = {
            let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < SPARE_MAX {
                spare.push(std::mem::take(&mut self.0));
            }
            std::mem::take(&mut self.0)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_is_used_again_has_none_of_the_bytes_before() {
        for length in [SHORT_MAX + 1, 4 << 20, SHORT_MAX + 1, 10] {
            let mut bytes = RangeBytes::with_room(length);
            assert!(bytes.as_ref().is_empty() && bytes.0.capacity() >= length);
            bytes.bytes_mut().resize(length, 7);
        }
    }

    #[test]
    fn few_buffers_are_kept() {
        let many: Vec<_> =
            (0..3 * SPARE_MAX).map(|_| RangeBytes::with_room(SHORT_MAX + 1)).collect();
        drop(many);
        assert!(SPARE.lock().unwrap().len() <= SPARE_MAX);
    }
}
