//! The body of a request: taken in whole, or thrown away.
//!
//! Decides how much of a refused request's body is read, and how long the server waits for bytes.
//! Bodies that stream to the disk are received by the service that stores them.

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body, Bytes, Incoming};
use tokio::time::timeout;

use super::refusal::Refusal;
use super::service::Answer;
use crate::http::limits::Limits;
use crate::net::ConnectionState;

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
        let mut body = Limited::new(self.body, self.limits.body_bytes);
        let drain = async {
            loop {
                match timeout(self.limits.refused_wait, body.frame()).await {
                    Ok(None) => return true,
                    Ok(Some(Ok(_))) => {}
                    Ok(Some(Err(_))) | Err(_) => return false,
                }
            }
        };
        timeout(self.limits.body_wait, drain).await.unwrap_or(false)
    }
}

/// The refusal of a body that is longer than `most` bytes.
pub fn too_large(most: u64) -> Refusal {
    Refusal::explained(StatusCode::PAYLOAD_TOO_LARGE, "RequestBodyTooLarge", "")
        .with("MaxLimit", most.to_string())
        .closing()
}

/// Takes a whole body of at most `most` bytes in.
pub async fn collect(body: Incoming, most: usize, limits: &Limits) -> Result<Bytes, Refusal> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > most {
        return Err(too_large(most as u64));
    }
    match timeout(limits.body_wait, joined(Limited::new(body, most), announced)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(most as u64)),
        Ok(Err(error)) => {
            let why = format_args!("the body broke off: {error}");
            Err(Refusal::bad_because("InvalidInput", why).closing())
        }
        Err(_) => {
            let (status, why) = (StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
            Err(Refusal::explained(status, "OperationTimedOut", why).closing())
        }
    }
}

/// All bytes of a body, of which `announced` are expected. Those that come in one piece are not
/// copied.
async fn joined<B: Body<Data = Bytes> + Unpin>(
    mut body: B,
    announced: usize,
) -> Result<Bytes, B::Error> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(bytes) = frame?.into_data() else { continue };
        if all.is_empty() && bytes.len() >= announced && body.is_end_stream() {
            return Ok(bytes);
        }
        if all.is_empty() {
            all.reserve_exact(announced);
        }
        all.extend_from_slice(&bytes);
    }
    Ok(all.into())
}
