//! The bytes of a file on their way out, read piece by piece while they are sent.
//!
//! Decides how much is held in memory for one answer. A file that became shorter on the way ends
//! the connection: the client was promised more.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::refusal::Refusal;
use crate::core::SharePath;
use crate::engine::FileReader;
use crate::engine::account::SnapshotView;

/// Bytes read in one step.
const PIECE_BYTES: usize = 256 * 1024;
/// Pieces that wait to be sent.
const PIECES_MAX: usize = 2;

/// Where bytes come from.
#[derive(Debug)]
pub enum Source {
    /// A file of the share.
    Live(Box<FileReader>),
    /// A file of a snapshot.
    Snapshot(Arc<SnapshotView>, SharePath),
}

/// A range of a file, to be sent.
#[derive(Debug)]
pub struct Download {
    pub source: Source,
    pub range: Range<u64>,
}

impl Download {
    /// Reads a piece from `offset` on, at most `most` bytes; empty at the end of the file.
    pub fn piece(&self, offset: u64, most: usize) -> Result<Vec<u8>, Refusal> {
        let left = usize::try_from(self.range.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = left.min(most);
        match &self.source {
            Source::Live(reader) => {
                let mut bytes = vec![0; wanted];
                let got = reader.read_at(offset, &mut bytes)?;
                bytes.truncate(got);
                Ok(bytes)
            }
            Source::Snapshot(view, path) => Ok(view.read(path, offset, wanted)?),
        }
    }

    /// All of it, for a range that fits in memory.
    pub fn read_all(&self) -> Result<Vec<u8>, Refusal> {
        let mut bytes = Vec::new();
        while self.range.start + (bytes.len() as u64) < self.range.end {
            let piece = self.piece(self.range.start + bytes.len() as u64, PIECE_BYTES)?;
            if piece.is_empty() {
                break;
            }
            bytes.extend(piece);
        }
        Ok(bytes)
    }

    /// Starts sending.
    pub fn start(self) -> Sending {
        let (pieces, arriving) = mpsc::channel(PIECES_MAX);
        let left = self.range.end - self.range.start;
        tokio::spawn(self.pump(pieces));
        Sending { arriving, left }
    }

    async fn pump(self, pieces: mpsc::Sender<io::Result<Bytes>>) {
        let mut offset = self.range.start;
        let end = self.range.end;
        let download = Arc::new(self);
        while offset < end {
            let reading = Arc::clone(&download);
            let piece = match spawn_blocking(move || reading.piece(offset, PIECE_BYTES)).await {
                Ok(Ok(bytes)) if bytes.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(Ok(bytes)) => {
                    offset += bytes.len() as u64;
                    Ok(Bytes::from(bytes))
                }
                Ok(Err(refusal)) => Err(io::Error::other(refusal.message)),
                Err(error) => Err(io::Error::other(error)),
            };
            let failed = piece.is_err();
            if pieces.send(piece).await.is_err() || failed {
                return;
            }
        }
    }
}

/// A download under way, as a body.
#[derive(Debug)]
pub struct Sending {
    arriving: mpsc::Receiver<io::Result<Bytes>>,
    left: u64,
}

impl Body for Sending {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.arriving.poll_recv(context).map(|piece| {
            piece.map(|piece| {
                let bytes = piece?;
                self.left = self.left.saturating_sub(bytes.len() as u64);
                Ok(Frame::data(bytes))
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
