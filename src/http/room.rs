//! Room for one piece of an answer that is read while it is sent.
//!
//! Decides how long a piece is and that its memory is used again. What is read into it is decided
//! by the service.

use std::cell::RefCell;

use hyper::body::Bytes;

/// Bytes read in one step. Of a longer piece less is still in the processor's cache when it is
/// sent: pieces of 128 and 256 KiB took more processor time.
pub const PIECE_BYTES: usize = 64 * 1024;
/// Rooms that a thread keeps for its next pieces: no answer has more than two at a time.
const SPARE_MAX: usize = 2;

thread_local! {
    static SPARE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// Room for a piece. It goes back to a thread when nobody needs the piece any more: fresh memory
/// would cost more than the reading.
pub struct Room {
    bytes: Box<[u8]>,
    filled: usize,
}

impl Room {
    /// Room of [`PIECE_BYTES`], with nothing in it.
    pub fn empty() -> Self {
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
        Self { bytes: spare.unwrap_or_else(|| vec![0; PIECE_BYTES].into()), filled: 0 }
    }

    /// Where the first `wanted` bytes of the piece go, as many as there is room for. They have the
    /// bytes of an earlier piece.
    pub fn first(&mut self, wanted: usize) -> &mut [u8] {
        let wanted = wanted.min(self.bytes.len());
        &mut self.bytes[..wanted]
    }

    /// The piece: the first `filled` bytes.
    pub fn piece(mut self, filled: usize) -> Bytes {
        self.filled = filled;
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Room {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // A thread that is ending keeps nothing.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_MAX {
                spare.push(std::mem::take(&mut self.bytes));
            }
        });
    }
}
