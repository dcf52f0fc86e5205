//! Time limits of a connection: the connection ends if the headers of a request do not arrive in
//! time or a write makes no progress for too long.
//!
//! Idle connections are timed out by the HTTP layer, slow bodies where they are read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Whose turn it is: odd while a request is being carried out, even while one is awaited.
#[derive(Debug, Default)]
pub struct Turn(AtomicU64);

impl Turn {
    /// A request was taken, or answered.
    pub fn pass(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// True while a request is awaited.
    pub fn is_idle(&self) -> bool {
        self.count().is_multiple_of(2)
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A stream with an eye on stalled requests and writes.
pub struct Watched<S> {
    stream: S,
    turn: Arc<Turn>,
    /// The turn as it was when bytes were last read.
    seen: u64,
    /// Bytes of a request have come that is not taken yet.
    begun: bool,
    header_wait: Duration,
    /// Runs while the rest of them is awaited.
    late: Option<Pin<Box<Sleep>>>,
    write_wait: Duration,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Watched<S> {
    /// A stream whose headers may take `header_wait`, and whose writes may stand still for
    /// `write_wait`. The task that takes requests passes `turn` on.
    pub fn new(stream: S, turn: Arc<Turn>, header_wait: Duration, write_wait: Duration) -> Self {
        let (seen, begun, late, stalled) = (0, false, None, None);
        Self { stream, turn, seen, begun, header_wait, late, write_wait, stalled }
    }

    /// Notes what was read of a request that is not taken yet, and how long that takes.
    fn watch_headers(&mut self, context: &mut Context<'_>, came: Option<usize>) -> Poll<()> {
        let turn = self.turn.count();
        if self.seen != turn {
            (self.seen, self.begun, self.late) = (turn, false, None);
        }
        if turn % 2 == 1 {
            return Poll::Pending;
        }
        self.begun |= came.is_some_and(|count| count > 0);
        if came.is_some() || !self.begun {
            return Poll::Pending;
        }
        waited(&mut self.late, self.header_wait, context)
    }

    /// Starts the watch over a write that waits, ends it with one that does not.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        waited(&mut self.stalled, self.write_wait, context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Lets `watch` run, from now on if it does not yet.
fn waited(
    watch: &mut Option<Pin<Box<Sleep>>>,
    patience: Duration,
    context: &mut Context<'_>,
) -> Poll<()> {
    watch.get_or_insert_with(|| Box::pin(sleep(patience))).as_mut().poll(context)
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let came = read.is_ready().then(|| buffer.filled().len() - before);
        match self.watch_headers(context, came) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => read,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Over TLS this writes too.
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, ended)
    }
}
