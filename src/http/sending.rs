//! The body of an answer that is read piece by piece, when there is room to send the next piece.
//!
//! Decides that an answer has exactly the bytes that were announced, how long a piece is and that
//! its memory is used again. The service provides the pieces.

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, SizeHint};

/// Where the pieces of an answer come from.
pub trait Pieces {
    /// The bytes at the beginning of `range`, as many as are read in one step; not none.
    fn poll_piece(
        &mut self,
        range: Range<u64>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Bytes>>;
}

/// A range of bytes on its way out.
#[derive(Debug)]
pub struct Sending<P> {
    pieces: P,
    left: Range<u64>,
}

impl<P> Sending<P> {
    /// These bytes of that source.
    pub fn new(pieces: P, range: Range<u64>) -> Self {
        Self { pieces, left: range }
    }
}

impl<P: Pieces + Unpin> Body for Sending<P> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.is_end_stream() {
            return Poll::Ready(None);
        }
        let left = self.left.clone();
        let piece = ready!(self.pieces.poll_piece(left, context));
        let piece = piece.and_then(|bytes| match bytes.len() {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(bytes),
        });
        if let Ok(bytes) = &piece {
            self.left.start += bytes.len() as u64;
        }
        Poll::Ready(Some(piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.end.saturating_sub(self.left.start))
    }
}

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
