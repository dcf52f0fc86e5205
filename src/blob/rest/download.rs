//! Bytes of a blob on their way out, read piece by piece when there is room to send them.
//!
//! Decides how much is held in memory for one answer. What is in the memory of the system is read
//! at once; for what is not, a thread that may block is asked.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::blob::service::{BlobContent, ContentReader};
use crate::http::reply::ReplyBody;
use crate::http::sending::{PIECE_BYTES, Pieces, Room, Sending};
use crate::http::structured::Structured;

/// The bytes of a blob that an answer sends.
pub(super) struct BlobDownload {
    pub content: BlobContent,
    pub range: Range<u64>,
}

impl BlobDownload {
    /// The body of an answer. A short one is read at once if that needs no waiting.
    pub(super) fn body(mut self) -> ReplyBody {
        let length = self.range.end - self.range.start;
        if let BlobContent::Whole(bytes) = self.content {
            return ReplyBody::Bytes(part(&Bytes::from_owner(bytes), &self.range));
        }
        if length <= PIECE_BYTES as u64
            && let Some(bytes) = self.all_now()
        {
            return ReplyBody::Bytes(bytes);
        }
        ReplyBody::Stream(length, self.start().boxed())
    }

    /// The body of an answer, framed with checksums.
    pub(super) fn structured(self) -> ReplyBody {
        let length = self.range.end - self.range.start;
        let body = Structured::new(self.start(), length);
        ReplyBody::Stream(body.length(), body.boxed())
    }

    /// All of it, in memory.
    pub(super) async fn whole(self) -> io::Result<Bytes> {
        Ok(self.start().collect().await?.to_bytes())
    }

    fn all_now(&mut self) -> Option<Bytes> {
        let length = usize::try_from(self.range.end - self.range.start).ok()?;
        let mut bytes = vec![0; length];
        if let BlobContent::Stored(reader) = &mut self.content {
            let mut filled = 0;
            while filled < length {
                let offset = self.range.start + filled as u64;
                match reader.read_now(offset, &mut bytes[filled..]) {
                    Ok(Some(read)) if read > 0 => filled += read,
                    _ => return None,
                }
            }
        }
        Some(bytes.into())
    }

    fn start(self) -> Sending<PieceSource> {
        let source = match self.content {
            BlobContent::Zeros => PieceSource::Zeros,
            BlobContent::Whole(bytes) => PieceSource::Whole(Bytes::from_owner(bytes)),
            BlobContent::Stored(reader) => PieceSource::Reader(Box::new(reader)),
        };
        Sending::new(source, self.range)
    }
}

/// The bytes of a range, as far as there are any.
fn part(bytes: &Bytes, range: &Range<u64>) -> Bytes {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    bytes.slice(place(range.start)..place(range.end))
}

type PieceRead = JoinHandle<(Box<ContentReader>, io::Result<Bytes>)>;

enum PieceSource {
    Zeros,
    Whole(Bytes),
    Reader(Box<ContentReader>),
    Reading(PieceRead),
    /// Only while a piece is being taken.
    Taken,
}

impl Pieces for PieceSource {
    fn poll_piece(
        &mut self,
        range: Range<u64>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Bytes>> {
        let offset = range.start;
        let wanted = usize::try_from(range.end - offset).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        match std::mem::replace(self, Self::Taken) {
            Self::Zeros => {
                *self = Self::Zeros;
                Poll::Ready(Ok(vec![0; wanted].into()))
            }
            Self::Whole(bytes) => {
                let piece = part(&bytes, &(offset..offset + wanted as u64));
                *self = Self::Whole(bytes);
                Poll::Ready(Ok(piece))
            }
            Self::Reader(mut reader) => {
                let mut room = Room::empty();
                match reader.read_now(offset, room.first(wanted)) {
                    Ok(Some(read)) => {
                        *self = Self::Reader(reader);
                        return Poll::Ready(Ok(room.piece(read)));
                    }
                    Ok(None) => {}
                    Err(error) => return Poll::Ready(Err(io::Error::other(error))),
                }
                *self = Self::Reading(spawn_blocking(move || {
                    let read = reader.read_at(offset, room.first(wanted));
                    (reader, read.map(|read| room.piece(read)).map_err(io::Error::other))
                }));
                self.poll_piece(range, context)
            }
            Self::Reading(mut reading) => {
                let Poll::Ready(read) = Pin::new(&mut reading).poll(context) else {
                    *self = Self::Reading(reading);
                    return Poll::Pending;
                };
                let (reader, bytes) = read.map_err(io::Error::other)?;
                *self = Self::Reader(reader);
                Poll::Ready(bytes)
            }
            Self::Taken => Poll::Ready(Err(io::Error::other("the download ended badly"))),
        }
    }
}
