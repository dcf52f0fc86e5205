//! The body of a request: taken in whole, or thrown away.
//!
//! Decides how much of a refused request's body is read, how long the server waits for bytes, and
//! that all bodies in memory together stay within [`BODIES_MAX`]. Bodies that stream to the disk
//! are received by the service that stores them.

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body, Bytes, Incoming};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::refusal::Refusal;
use super::service::Answer;
use crate::http::limits::{BODIES_MAX, Limits, SMALL_BODY};
use crate::net::ConnectionState;

/// Room for bodies, in bytes.
static ROOM: Semaphore = Semaphore::const_new(BODIES_MAX);

/// A body that was received, with the room that it takes until the last use of its bytes.
struct Received {
    bytes: Vec<u8>,
    _room: SemaphorePermit<'static>,
}

impl AsRef<[u8]> for Received {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A body that was not read yet, on its connection.
pub struct Unread<'a> {
    /// The bytes to come.
    pub body: Incoming,
    /// The place of the connection among all.
    pub place: &'a ConnectionState,
    /// The client waits for a word before it sends the body.
    pub expects: bool,
    /// The bounds of the listener.
    pub limits: &'a Limits,
}

impl Unread<'_> {
    /// The body of a request that was authorised.
    pub fn admit(self) -> Incoming {
        self.place.prove();
        self.body
    }

    /// Receives the body of a request that was authorised, before the request's turn comes.
    pub async fn received(&mut self) -> Result<Bytes, Refusal> {
        self.place.prove();
        collect(&mut self.body, self.limits.body_bytes, self.limits).await
    }

    /// Throws the body of a refused request away, up to a bound. Past it, or where the client does
    /// not send for a while, the connection ends with the answer.
    pub async fn refuse(self, refusal: Refusal) -> Refusal {
        if refusal.close || self.discard().await { refusal } else { refusal.closing() }
    }

    /// The answer to a request that anybody may send, which is decided by its head: the body goes
    /// the way of a refused one.
    pub async fn answer(self, answer: Answer) -> Answer {
        match answer {
            Err(refusal) => Err(self.refuse(refusal).await),
            Ok(reply) if self.discard().await => Ok(reply),
            Ok(reply) => Ok(reply.header("connection", "close")),
        }
    }

    /// Reads the body without keeping it. True if all of it came, so that the connection can take
    /// the next request.
    async fn discard(self) -> bool {
        if self.body.is_end_stream() {
            return true;
        }
        if self.expects {
            return false;
        }
        self.place.refuse();
        discard(self.body, self.limits.body_bytes, self.limits).await
    }
}

/// Reads a body of at most `most` bytes without keeping it. True if all of it came, in time.
pub async fn discard(body: Incoming, most: usize, limits: &Limits) -> bool {
    let mut body = Limited::new(body, most);
    let drain = async {
        loop {
            match timeout(limits.refused_wait, body.frame()).await {
                Ok(None) => return true,
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(_))) | Err(_) => return false,
            }
        }
    };
    timeout(limits.body_wait, drain).await.unwrap_or(false)
}

/// The refusal of a body that is longer than `most` bytes.
pub fn too_large(most: u64) -> Refusal {
    Refusal::explained(StatusCode::PAYLOAD_TOO_LARGE, "RequestBodyTooLarge", "")
        .with("MaxLimit", most.to_string())
        .closing()
}

/// Takes a whole body of at most `most` bytes in.
pub async fn collect<B>(body: B, most: usize, limits: &Limits) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    collect_in(&ROOM, body, most, limits).await
}

async fn collect_in<B>(
    room: &'static Semaphore,
    body: B,
    most: usize,
    limits: &Limits,
) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let size = body.size_hint();
    let announced = usize::try_from(size.lower()).unwrap_or(usize::MAX);
    if announced > most {
        return Err(too_large(most as u64));
    }
    let longest = if size.upper() == Some(size.lower()) { announced } else { most };
    let mut room = Room { of: room, limits, taken: None };
    room.fits(announced).await?;
    let body = Limited::new(body, most);
    let came = timeout(limits.body_wait, joined(body, announced, longest, &mut room)).await;
    let Ok(joined) = came else {
        let (status, why) = (StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
        return Err(Refusal::explained(status, "OperationTimedOut", why).closing());
    };
    Ok(joined?.in_room(room.taken))
}

fn broken(error: &(dyn std::error::Error + Send + Sync + 'static), most: usize) -> Refusal {
    if error.is::<LengthLimitError>() {
        return too_large(most as u64);
    }
    let why = format_args!("the body broke off: {error}");
    Refusal::bad_because("InvalidInput", why).closing()
}

/// The room that a body takes.
struct Room<'a> {
    of: &'static Semaphore,
    limits: &'a Limits,
    taken: Option<SemaphorePermit<'static>>,
}

impl Room<'_> {
    /// Takes room for so many bytes in all. A body waits for others before it has any room: those
    /// that have some then never wait for each other.
    async fn fits(&mut self, bytes: usize) -> Result<(), Refusal> {
        let has = self.taken.as_ref().map_or(0, SemaphorePermit::num_permits);
        if bytes <= SMALL_BODY.max(has) {
            return Ok(());
        }
        let more = u32::try_from(bytes - has).unwrap_or(u32::MAX);
        let found = match &mut self.taken {
            Some(taken) => self.of.try_acquire_many(more).ok().map(|more| taken.merge(more)),
            none => {
                let entered = timeout(self.limits.thread_wait, self.of.acquire_many(more)).await;
                entered.ok().and_then(Result::ok).map(|room| *none = Some(room))
            }
        };
        found.ok_or_else(|| {
            let why = "the bodies of other requests fill the memory for bodies; nothing was done";
            Refusal::busy(why).closing()
        })
    }
}

/// The bytes of a body, in one piece as they came or in a buffer.
enum Joined {
    Piece(Bytes),
    Buffer(Vec<u8>),
}

impl Joined {
    fn in_room(self, room: Option<SemaphorePermit<'static>>) -> Bytes {
        match (self, room) {
            (Self::Piece(bytes), _) => bytes,
            (Self::Buffer(bytes), None) => bytes.into(),
            (Self::Buffer(bytes), Some(room)) => Bytes::from_owner(Received { bytes, _room: room }),
        }
    }
}

/// All bytes of a body, of which `announced` are expected and `longest` may come. Those that come
/// in one piece are not copied.
async fn joined<B>(
    mut body: Limited<B>,
    announced: usize,
    longest: usize,
    room: &mut Room<'_>,
) -> Result<Joined, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broken(&*error, longest))?;
        let Ok(bytes) = frame.into_data() else { continue };
        if all.is_empty() && bytes.len() >= announced && body.is_end_stream() {
            return Ok(Joined::Piece(bytes));
        }
        let length = all.len() + bytes.len();
        if length > all.capacity() {
            let capacity = announced.max(2 * length).min(longest);
            room.fits(capacity).await?;
            all.reserve_exact(capacity - all.len());
        }
        all.extend_from_slice(&bytes);
    }
    Ok(Joined::Buffer(all))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll};
    use std::time::Duration;

    use http_body_util::Full;
    use hyper::body::Frame;

    use super::*;

    const LONG: usize = 100 << 10;

    /// A body of unknown length that comes in two pieces, or stalls after the first.
    struct Pieces {
        left: u32,
        stalls: bool,
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.left {
                0 => Poll::Ready(None),
                1 if self.stalls => Poll::Pending,
                _ => {
                    self.left -= 1;
                    Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![7; LONG / 2])))))
                }
            }
        }
    }

    #[tokio::test]
    async fn a_body_of_unknown_length_takes_room_as_it_comes() {
        let limits = Limits { thread_wait: Duration::from_millis(1), ..Limits::default() };
        let room: &'static Semaphore = Box::leak(Box::new(Semaphore::new(4 * LONG)));
        let body = || Pieces { left: 2, stalls: false };
        let all: Vec<_> = {
            let mut all = Vec::new();
            // Each may be ten times as long.
            for _ in 0..4 {
                all.push(collect_in(room, body(), 10 * LONG, &limits).await.unwrap());
            }
            all
        };
        assert_eq!(room.available_permits(), 0);
        assert!(collect_in(room, body(), 10 * LONG, &limits).await.is_err());
        drop(all);
        assert_eq!(room.available_permits(), 4 * LONG);
    }

    #[tokio::test]
    async fn bodies_share_one_room_until_the_last_use_of_their_bytes() {
        let limits = Limits { thread_wait: Duration::from_millis(1), ..Limits::default() };
        let room: &'static Semaphore = Box::leak(Box::new(Semaphore::new(2 * LONG + LONG / 2)));
        let whole = || collect_in(room, Pieces { left: 2, stalls: false }, LONG, &limits);
        let first = whole().await.unwrap();
        assert_eq!(first.len(), LONG);
        let stalled = Pieces { left: 2, stalls: true };
        let mut stalled = Box::pin(collect_in(room, stalled, LONG, &limits));
        assert!(timeout(Duration::ZERO, pin!(&mut stalled)).await.is_err());
        assert_eq!(room.available_permits(), LONG / 2);

        let refusal = whole().await.unwrap_err();
        assert_eq!((refusal.status, refusal.close), (StatusCode::SERVICE_UNAVAILABLE, true));
        let small = Full::new(Bytes::from(vec![1; SMALL_BODY]));
        assert!(collect_in(room, small, LONG, &limits).await.is_ok(), "a short one needs no room");
        let longer = Full::new(Bytes::from(vec![1; SMALL_BODY + 1]));
        assert!(collect_in(room, longer, LONG, &limits).await.is_err());

        let part = first.slice(..1);
        drop(first);
        assert!(whole().await.is_err(), "a part of the bytes is still used");
        drop(part);
        assert!(whole().await.is_ok());
        drop(stalled);
        assert_eq!(room.available_permits(), 2 * LONG + LONG / 2);
    }
}
