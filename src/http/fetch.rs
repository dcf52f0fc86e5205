//! Sources of copies on other servers and on other listeners of this one: the one place where
//! latchfs dials out.
//!
//! Decides whether that is allowed at all, which it always is for this server, and the limits: http
//! and https only, no redirects, a time limit for the first header, for each pause between bytes
//! and for each stretch of them, and a length that is announced. The error for a source that fails
//! is decided here too. Requests go to the URL that the caller gave, by no proxy: a server that
//! sends the client on could name one that only this machine reaches.

use std::error::Error;
use std::fmt::Display;
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

use hyper::body::Bytes;
use hyper::{StatusCode, Uri};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Response};
use tokio::time::timeout;

use crate::http::frame::refusal::Refusal;
use crate::http::frame::source::Siblings;
use crate::http::frame::version::{DEFAULT, VERSION};
use crate::http::xml::Element;
use crate::rules::check_metadata;

/// How long a source may take to answer, and to go on with its bytes.
pub const SOURCE_WAIT: Duration = Duration::from_secs(20);

/// The longest error of a source that is read.
const ERROR_BYTES_MAX: usize = 16 << 10;

/// When the bytes of a source are read: that bounds how long a stretch of them may take in all, in
/// times of the wait for a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stretch {
    /// The client waits for its answer. With the wait for the first header 50 seconds, less than
    /// the minute after which SDKs give a request up.
    BeforeAnswer,
    /// The copy is pending. Ten minutes: a source that sends a byte now and then would keep a place
    /// for copies for ever.
    AfterAnswer,
}

impl Stretch {
    fn bound(self, wait: Duration) -> Duration {
        match self {
            Self::BeforeAnswer => wait * 3 / 2,
            Self::AfterAnswer => wait * 30,
        }
    }
}

/// Which sources a copy may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum CopySources {
    /// On this server
    #[default]
    Local,
    /// At any http or https URL
    Any,
}

pub struct Fetcher {
    sources: CopySources,
    /// The listeners of this server, which are asked in any case.
    siblings: Siblings,
    wait: Duration,
    /// Made when the first source is asked: it reads the certificates of the system.
    client: OnceLock<Result<Client, String>>,
    /// Asks listeners of this server. Their certificate is ours, whatever name it has.
    own_client: OnceLock<Result<Client, String>>,
}

/// A source that has answered; its bytes come one after another.
pub struct Fetched {
    answer: Response,
    size: u64,
    wait: Duration,
    /// Come, and not given out yet.
    left_over: Bytes,
}

impl Fetcher {
    pub fn new(sources: CopySources, siblings: Siblings, wait: Duration) -> Self {
        let (client, own_client) = (OnceLock::new(), OnceLock::new());
        Self { sources, siblings, wait, client, own_client }
    }

    /// Asks for all of a source, or for a range of it. The credentials are sent as headers.
    pub async fn open(
        &self,
        url: &Uri,
        range: Option<&Range<u64>>,
        credentials: &[(&str, &str)],
    ) -> Result<Fetched, Refusal> {
        let own = url.authority().is_some_and(|place| self.siblings.has(place.as_str()));
        if self.sources == CopySources::Local && !own {
            let message = "The source of the copy is not on this server, and no other is asked \
                           unless latchfs runs with --copy-sources any.";
            return Err(Refusal::new(StatusCode::FORBIDDEN, "CannotVerifyCopySource", message));
        }
        if !cfg!(feature = "tls") && url.scheme_str() == Some("https") {
            return Err(unverified("this latchfs was built without TLS and cannot ask it"));
        }
        let client = if own {
            self.own_client.get_or_init(|| own_client().map_err(|error| cause(&error)))
        } else {
            self.client.get_or_init(|| client().map_err(|error| cause(&error)))
        };
        let mut request = client.as_ref().map_err(unverified)?.get(url.to_string());
        if let Some(range) = range {
            request = request.header("range", format!("bytes={}-{}", range.start, range.end - 1));
        }
        for (name, value) in credentials {
            request = request.header(*name, *value);
        }
        if !credentials.is_empty() {
            // Without a version a token is not accepted.
            request = request.header(VERSION, DEFAULT);
        }
        let answer = timeout(self.wait, request.send()).await;
        let answer = answer.map_err(|_| too_late("did not answer", self.wait))?;
        let answer = answer.map_err(|error| unverified(cause(&error)))?;
        if !answer.status().is_success() {
            return Err(refused(answer, self.wait).await);
        }
        let size = answer.content_length();
        let size = size.ok_or_else(|| unverified("it does not say how long it is"))?;
        Ok(Fetched { answer, size, wait: self.wait, left_over: Bytes::new() })
    }

    /// Asks for a range of a source. It may have more bytes than the range, and fewer at its end.
    pub async fn open_range(
        &self,
        url: &Uri,
        range: &Range<u64>,
        credentials: &[(&str, &str)],
    ) -> Result<Fetched, Refusal> {
        let fetched = self.open(url, Some(range), credentials).await?;
        // A server that knows no ranges sends everything.
        let whole = fetched.answer.status() == StatusCode::OK && range.start == 0;
        if !whole && !starts_at(fetched.answer.headers(), range.start) {
            return Err(unverified("it does not give the range that was asked for"));
        }
        Ok(fetched)
    }
}

impl Fetched {
    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A header of its answer.
    pub fn header(&self, name: &str) -> Option<String> {
        self.answer.headers().get(name).and_then(text_of)
    }

    pub fn metadata(&self) -> Result<Vec<(String, String)>, Refusal> {
        let texts = |(name, value): (&'_ HeaderName, &'_ HeaderValue)| {
            Some((name.as_str().strip_prefix("x-ms-meta-")?.to_owned(), text_of(value)?))
        };
        let metadata: Vec<_> = self.answer.headers().iter().filter_map(texts).collect();
        check_metadata(metadata.iter().map(|(name, value)| (&**name, &**value)))?;
        Ok(metadata)
    }

    /// The next bytes, exactly that many.
    pub async fn read(&mut self, length: u64, when: Stretch) -> Result<Vec<u8>, Refusal> {
        let bound = when.bound(self.wait);
        let late = || too_late(&format!("did not send {length} bytes"), bound);
        timeout(bound, self.collect(length)).await.unwrap_or_else(|_| Err(late()))
    }

    async fn collect(&mut self, length: u64) -> Result<Vec<u8>, Refusal> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        loop {
            let wanted = (length - bytes.len()).min(self.left_over.len());
            bytes.extend_from_slice(&self.left_over.split_to(wanted));
            if bytes.len() == length {
                return Ok(bytes);
            }
            let next = timeout(self.wait, self.answer.chunk()).await;
            let next =
                next.map_err(|_| too_late("stopped sending and did not go on", self.wait))?;
            let next = next.map_err(|error| unverified(cause(&error)))?;
            self.left_over = next.ok_or_else(|| unverified("it ended early"))?;
        }
    }
}

/// Chooses the cryptography of clients, which reqwest does not.
pub(super) fn choose_crypto() {
    #[cfg(feature = "tls")]
    {
        use tokio_rustls::rustls::crypto::ring;
        // An error says that the program we are part of has chosen one already, which will do.
        let _ = ring::default_provider().install_default();
    }
}

fn client() -> reqwest::Result<Client> {
    choose_crypto();
    build(builder)
}

fn own_client() -> reqwest::Result<Client> {
    choose_crypto();
    let client = builder();
    #[cfg(feature = "tls")]
    let client = client.tls_danger_accept_invalid_certs(true);
    client.build()
}

fn builder() -> ClientBuilder {
    Client::builder()
        // A connection that the source has ended meanwhile would fail the next copy.
        .pool_max_idle_per_host(0)
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .user_agent(concat!("latchfs/", env!("CARGO_PKG_VERSION")))
}

/// Builds a client that trusts what the system trusts. Where the system has no certificates, as in
/// an image that has nothing but this program, the client trusts nobody: http works all the same.
pub(super) fn build(make: impl Fn() -> ClientBuilder) -> reqwest::Result<Client> {
    #[cfg(feature = "tls")]
    let trusting_nobody = || make().tls_certs_only([]);
    #[cfg(not(feature = "tls"))]
    let trusting_nobody = &make;
    make().build().or_else(|_| trusting_nobody().build())
}

fn text_of(value: &HeaderValue) -> Option<String> {
    value.to_str().ok().map(|text| text.trim().to_owned())
}

/// The range begins where it was asked to.
fn starts_at(headers: &HeaderMap, start: u64) -> bool {
    let range = headers.get("content-range").and_then(text_of);
    range.is_some_and(|range| range.starts_with(&format!("bytes {start}-")))
}

/// The innermost cause of an error. Never the URL: its query may hold a signature.
pub(super) fn cause(error: &reqwest::Error) -> String {
    let (mut below, mut text) = (error.source(), None);
    while let Some(error) = below {
        text = Some(error.to_string());
        below = error.source();
    }
    text.unwrap_or_else(|| "it cannot be asked".to_owned())
}

/// The refusal for a source that refused: its own status, code and message, if the caller can do
/// something about it. A 5xx of the source is not passed on, because clients would repeat it for
/// minutes.
async fn refused(answer: Response, wait: Duration) -> Refusal {
    let status = answer.status();
    let code = answer.headers().get("x-ms-error-code").and_then(text_of);
    let why = if status.is_redirection() { ", and redirects are not followed" } else { "" };
    let mut refusal = unverified(format!("it answered {status}{why}"));
    if status.is_client_error() {
        refusal.status = status;
    }
    let message = timeout(wait, message_of(answer)).await.unwrap_or_default();
    refusal.of_source(status, code.as_deref(), message.as_deref())
}

/// The message of an error of a storage service, without the lines that identify the request. None
/// if the answer is longer than such an error, or something else.
async fn message_of(mut answer: Response) -> Option<String> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.ok()? {
        body.extend_from_slice(&piece);
        if body.len() > ERROR_BYTES_MAX {
            return None;
        }
    }
    let error = Element::read(&body, "Error").ok()?;
    error.child("Message")?.text.lines().next().map(str::to_owned)
}

fn unverified(why: impl Display) -> Refusal {
    let message = format!("The source of the copy cannot be read: {why}.");
    Refusal::bad("CannotVerifyCopySource", message)
}

/// The documented status of this one is 500: to try again may help.
fn too_late(what: &str, bound: Duration) -> Refusal {
    let message = format!("The source of the copy {what} within {} s.", bound.as_secs_f64());
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "CannotVerifyCopySource", message)
}
