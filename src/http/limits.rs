//! The bounds of the listener: how much a client may send, how long it may take, how many may
//! come at once.
//!
//! Decides only the numbers. What happens to a client beyond a bound is documented with the bound
//! and done in [`super::server`], [`crate::net`] and [`crate::http::frame::handle`].

use std::time::Duration;

use crate::net::listener::ListenerLimits;
use crate::net::timeouts::StreamLimits;
use crate::net::workers::WorkerLimits;

/// The longest body: 4 MiB of bytes, and room for the frame of a structured one.
pub const BODY_MAX: usize = (4 << 20) + (64 << 10);
/// Bytes of all bodies together that are kept in memory, of every listener of the process: 32 of
/// the longest. A body that finds no room waits for [`Limits::thread_wait`]; then the answer is
/// 503 `ServerBusy`, which clients try again.
pub const BODIES_MAX: usize = 128 << 20;
/// A shorter body needs no room of [`BODIES_MAX`]: the places for connections bound them all.
pub const SMALL_BODY: usize = 64 << 10;
/// The most connections at a time.
pub const CONNECTIONS_MAX: usize = 1_024;
/// The smallest room for headers that hyper accepts.
const HEADER_BYTES_MIN: usize = 8 << 10;

/// The bounds of a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections at a time. For a further one the connection ends that has been idle longest;
    /// where none is idle, the further one waits.
    pub connections: usize,
    /// Headers of a request; one with more is answered 431, and the connection ends.
    pub headers: usize,
    /// Bytes of all headers together, the line before them included; the same. A permission of
    /// 8 KiB and metadata of 8 KiB must fit. Less than 8 KiB is 8 KiB.
    pub header_bytes: usize,
    /// Bytes of a body; a longer one is answered 413 `RequestBodyTooLarge`, and the connection
    /// ends as [`crate::net`] says.
    pub body_bytes: usize,
    /// How long a connection may wait for its next request. Then it ends.
    pub idle_wait: Duration,
    /// How long the headers of a request may take from their first byte on. Then the connection
    /// ends.
    pub header_wait: Duration,
    /// How long a body may take. Then the answer is 408 `OperationTimedOut`, and the connection
    /// ends.
    pub body_wait: Duration,
    /// How long a client whose request was refused may pause before it goes on with the body. Then
    /// it is answered, and the connection ends; where it was answered already, the connection ends.
    pub refused_wait: Duration,
    /// Bytes of a refused request that are read and thrown away after its answer, which a client
    /// that is still sending would not get otherwise. Then the connection ends. A longer body than
    /// an append block may have comes to its end.
    pub refused_bytes: usize,
    /// How long a client may leave an answer unread. Then the connection ends.
    pub write_wait: Duration,
    /// How long a stop waits for requests under way. Then they are left to the end of the process.
    pub stop_wait: Duration,
    /// Threads that serve connections.
    pub workers: usize,
    /// Threads for what may take long; a request that finds none waits for one.
    pub blocking: usize,
    /// How long it waits. Then the answer is 503 `ServerBusy`, and nothing was done.
    pub thread_wait: Duration,
    /// Copies under way at a time, each of which keeps one of those threads; a further one is
    /// answered 503 `ServerBusy`.
    pub copies: usize,
}

impl Limits {
    /// Room for headers that the HTTP layer takes.
    pub(crate) fn header_room(&self) -> usize {
        self.header_bytes.max(HEADER_BYTES_MIN)
    }

    /// The bounds of accepting connections, and the threads that serve them.
    pub(crate) fn listener(&self) -> ListenerLimits {
        let Self { connections, workers, blocking, stop_wait, .. } = *self;
        let workers = WorkerLimits { name: "latchfs-rest", workers, blocking, stop_wait };
        ListenerLimits { connections, workers }
    }

    /// The bounds that the stream of a connection has by itself.
    pub(crate) fn stream(&self) -> StreamLimits {
        let Self { header_wait, write_wait, refused_bytes, refused_wait, body_wait, .. } = *self;
        StreamLimits { header_wait, write_wait, refused_bytes, refused_wait, body_wait }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS_MAX,
            headers: 128,
            header_bytes: 64 << 10,
            body_bytes: BODY_MAX,
            idle_wait: Duration::from_mins(2),
            header_wait: Duration::from_secs(30),
            body_wait: Duration::from_mins(1),
            refused_wait: Duration::from_secs(1),
            refused_bytes: 256 << 20,
            write_wait: Duration::from_secs(30),
            stop_wait: Duration::from_millis(1_250),
            workers: 2,
            blocking: 64,
            thread_wait: Duration::from_secs(30),
            copies: 16,
        }
    }
}
