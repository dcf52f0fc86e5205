//! The end of a connection whose client is still sending a request that was answered already.
//!
//! Decides that bytes after the answer are read and thrown away, within [`StreamLimits`]. A socket
//! that is closed with bytes unread is reset, and a client that is still writing then sees a broken
//! pipe instead of the answer. The server of a listener decides which connections end like this.

use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::timeouts::StreamLimits;

/// Bytes read at a time. They are on the stack: a connection that lingers holds no memory.
const PIECE_BYTES: usize = 16 << 10;

/// The wait for the end of what a client sends.
pub struct Lingering {
    left: usize,
    pause: Duration,
    /// Runs while nothing comes.
    quiet: Option<Pin<Box<Sleep>>>,
    /// The end of the wait, whatever comes.
    end: Pin<Box<Sleep>>,
}

impl Lingering {
    pub fn new(limits: &StreamLimits) -> Self {
        let end = Box::pin(sleep(limits.body_wait));
        Self { left: limits.refused_bytes, pause: limits.refused_wait, quiet: None, end }
    }

    /// Throws away what comes, until the client ends, pauses for too long, or has sent enough.
    pub fn poll(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Poll<()> {
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut piece = [MaybeUninit::uninit(); PIECE_BYTES];
        loop {
            let mut buffer = ReadBuf::uninit(&mut piece);
            match pin!(&mut *stream).poll_read(context, &mut buffer) {
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) => match buffer.filled().len() {
                    0 => return Poll::Ready(()),
                    read if read > self.left => return Poll::Ready(()),
                    read => {
                        self.left -= read;
                        self.quiet = None;
                    }
                },
                Poll::Pending => {
                    let quiet = self.quiet.get_or_insert_with(|| Box::pin(sleep(self.pause)));
                    return quiet.as_mut().poll(context);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const LONG: Duration = Duration::from_hours(1);

    const ENDLESS: StreamLimits = StreamLimits {
        header_wait: LONG,
        write_wait: LONG,
        refused_bytes: usize::MAX,
        refused_wait: LONG,
        body_wait: LONG,
    };

    async fn linger(limits: StreamLimits, stream: &mut DuplexStream) {
        let mut lingering = Lingering::new(&limits);
        poll_fn(|context| lingering.poll(context, stream)).await;
    }

    fn block_on(work: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
    }

    #[test]
    fn a_client_that_pauses_is_given_up() {
        block_on(async {
            let (_client, mut server) = duplex(64);
            let refused_wait = Duration::from_millis(1);
            linger(StreamLimits { refused_wait, ..ENDLESS }, &mut server).await;
        });
    }

    #[test]
    fn a_client_that_goes_on_sending_is_given_up() {
        let one = Duration::from_millis(1);
        let bounds = [(LONG, 100_000, LONG), (LONG, usize::MAX, one)];
        for (refused_wait, refused_bytes, body_wait) in bounds {
            block_on(async {
                let (mut client, mut server) = duplex(64);
                let limits = StreamLimits { refused_bytes, refused_wait, body_wait, ..ENDLESS };
                let sending = async { while client.write_all(&[7; 64]).await.is_ok() {} };
                tokio::select! {
                    () = sending => unreachable!("the server's end is open"),
                    () = linger(limits, &mut server) => {}
                }
            });
        }
    }
}
