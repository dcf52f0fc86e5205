//! Time limits of a connection: the connection ends if the headers of a request do not arrive in
//! time or a write makes no progress for too long.
//!
//! Idle connections are timed out by the HTTP layer, slow bodies where they are read, and clients
//! that send on after the answer in [`super::lingering`].

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::lingering::Lingering;

/// The bounds of one connection.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    /// How long the headers of a request may take.
    pub header_wait: Duration,
    /// How long a write may make no progress.
    pub write_wait: Duration,
    /// After an answer that ends the connection: how many bytes of its request are thrown away,
    pub refused_bytes: usize,
    /// the longest pause between them,
    pub refused_wait: Duration,
    /// and how long that takes in all.
    pub body_wait: Duration,
}

/// Whose turn it is: the client's, or that of the request it sent.
#[derive(Debug, Default)]
pub struct ConnectionTurn {
    /// Odd while a request is being carried out, even while one is awaited.
    count: AtomicU64,
    /// The last answer was given before its request was read, and the connection ends with it.
    unread: AtomicBool,
}

impl ConnectionTurn {
    /// A request was taken, or answered.
    pub fn pass(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// The connection ends with an answer to a request of which bytes may still come.
    pub fn end_unread(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    /// True while a request is awaited.
    pub fn is_idle(&self) -> bool {
        self.count().is_multiple_of(2)
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// A stream with an eye on stalled requests and writes.
pub struct TimedStream<S> {
    stream: S,
    turn: Arc<ConnectionTurn>,
    /// The turn as it was when bytes were last read.
    seen: u64,
    /// Bytes of a request have come that is not taken yet.
    begun: bool,
    /// Runs while the rest of them is awaited.
    late: Option<Pin<Box<Sleep>>>,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
    limits: StreamLimits,
    /// Runs after the end of what is written, where bytes may still come.
    lingering: Option<Lingering>,
}

impl<S> TimedStream<S> {
    /// Watches `turn`, which the code that serves requests advances.
    pub fn new(stream: S, turn: Arc<ConnectionTurn>, limits: StreamLimits) -> Self {
        let (seen, begun, late, stalled, lingering) = (0, false, None, None, None);
        Self { stream, turn, seen, begun, late, stalled, limits, lingering }
    }

    /// Whether bytes may still come: of a request that was answered before it was read, or of one
    /// whose headers the HTTP layer refused.
    fn is_unread(&self) -> bool {
        let in_headers = self.begun && self.seen == self.turn.count() && self.turn.is_idle();
        in_headers || self.turn.unread.load(Ordering::Relaxed)
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
        waited(&mut self.late, self.limits.header_wait, context)
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
        waited(&mut self.stalled, self.limits.write_wait, context)
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

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
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

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
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

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.lingering.is_none() {
            // Over TLS this writes too.
            let ended = Pin::new(&mut this.stream).poll_shutdown(context);
            ready!(this.watch(context, ended))?;
            if !this.is_unread() {
                return Poll::Ready(Ok(()));
            }
        }
        let lingering = this.lingering.get_or_insert_with(|| Lingering::new(&this.limits));
        lingering.poll(context, &mut this.stream).map(Ok)
    }
}
