//! The body of an answer that is read piece by piece, when there is room to send the next piece.
//!
//! Decides that an answer has exactly the bytes that were announced. The service provides the
//! pieces.

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
