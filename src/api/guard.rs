//! Decides who may use the admin address: web pages of other origins may not, and clients must send
//! the secret of an address that has one.
//!
//! A browser lets any page send simple requests to this machine. So the Host must be one of this
//! server (else a page of another site, whose name was made to resolve to this machine, could call
//! it), an Origin must be this address itself, and a request that changes something carries a
//! header that a page of another origin cannot set. An image or a frame of a page sends no Origin:
//! `Sec-Fetch-Site` tells where it is from. Only a link to a file of this address may be followed
//! from elsewhere.

use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use subtle::ConstantTimeEq;

use super::failure::ApiFailure;
use crate::sync::random::new_secret;

/// The header that names the client of a request that changes something.
pub const CLIENT_HEADER: &str = "x-latchfs-client";
/// The header with the version of the API that a client or a server speaks.
pub const VERSION_HEADER: &str = "x-latchfs-api";
/// The version spoken here. It changes with a change that an older command cannot read.
pub const VERSION: &str = "3";
/// Tells where the page is from that a request is sent for. No page can set it, and programs other
/// than browsers do not send it.
const FETCH_SITE: &str = "sec-fetch-site";
/// Tells `navigate` for a link that is followed, with the destination `document` if it fills the
/// window.
const FETCH_MODE: &str = "sec-fetch-mode";
const FETCH_DEST: &str = "sec-fetch-dest";
/// The longest name of a client.
pub const CLIENT_MAX: usize = 64;

/// The secret that clients must send. Shown only by [`Token::text`], never in a log.
pub struct Token(String);

impl Token {
    /// A token of 256 bits.
    pub fn fresh() -> Self {
        Self(new_secret())
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether a client knows it. Takes the same time for every guess.
    pub(super) fn is(&self, guess: &str) -> bool {
        self.0.as_bytes().ct_eq(guess.as_bytes()).into()
    }
}

pub struct Guard {
    /// Whether a request that names this Host is served.
    pub serves_host: Box<dyn Fn(&str) -> bool + Send + Sync>,
    /// The secret that clients must send, if one is needed.
    pub token: Option<Token>,
}

impl Guard {
    /// The Host of a request, if it names this server.
    pub fn host<'a>(&self, head: &'a Parts) -> Result<&'a str, ApiFailure> {
        let mut sent = head.headers.get_all(HOST).iter();
        let first = sent.next().map(|host| host.to_str().unwrap_or_default());
        let target = head.uri.authority().map(hyper::http::uri::Authority::as_str);
        let host = first.or(target).unwrap_or_default();
        let one = sent.next().is_none() && target.is_none_or(|target| target == host);
        if !one || !(self.serves_host)(host) {
            return Err(forbidden(
                "the Host of the request is not this server: use localhost, an IP address, or a \
                 name that --host gives the server"
                    .to_owned(),
            ));
        }
        Ok(host)
    }

    /// Lets a request pass that comes from no web page, or from the page of this server.
    pub fn check_origin(head: &Parts, host: &str) -> Result<(), ApiFailure> {
        let Some(origin) = head.headers.get(ORIGIN) else { return Ok(()) };
        let own = format!("http://{host}");
        if origin.as_bytes().eq_ignore_ascii_case(own.as_bytes()) {
            return Ok(());
        }
        Err(forbidden(format!("the Origin of the request is not {own}")))
    }

    /// Refuses a request that a browser sends for a page of another site or port, unless a link is
    /// followed to something that is not a call of the API.
    pub fn check_site(head: &Parts) -> Result<(), ApiFailure> {
        let says = |name, word: &str| {
            let value = head.headers.get(name).map(HeaderValue::as_bytes);
            value.is_some_and(|value| value.eq_ignore_ascii_case(word.as_bytes()))
        };
        let other = says(FETCH_SITE, "cross-site") || says(FETCH_SITE, "same-site");
        let link = says(FETCH_MODE, "navigate") && says(FETCH_DEST, "document");
        if other && (is_api(head) || !link) {
            let message = "a web page of another site or port sent the request";
            return Err(forbidden(message.to_owned()));
        }
        Ok(())
    }

    /// Lets a request pass that knows the token, where one is needed. `query` is the token of a
    /// request that may carry it there.
    pub fn check_token(&self, headers: &HeaderMap, query: Option<&str>) -> Result<(), ApiFailure> {
        let Some(token) = &self.token else { return Ok(()) };
        let sent = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = sent.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        let message = match bearer.or(query).filter(|guess| !guess.is_empty()) {
            Some(guess) if token.is(guess) => return Ok(()),
            Some(_) => {
                "this is not the token of this server: the ready file and `latchfs status --json` \
                 have it as admin_token; each start makes a new one"
            }
            None => {
                "this server needs a token: send `Authorization: Bearer TOKEN`; the ready file and \
                 `latchfs status --json` have it as admin_token. A browser opens the page with \
                 /?token=TOKEN"
            }
        };
        Err(ApiFailure::new(StatusCode::UNAUTHORIZED, "unauthorized", message.to_owned()))
    }

    /// The name of the client. A request that changes something must have one.
    pub fn client(head: &Parts) -> Result<Option<Arc<str>>, ApiFailure> {
        match Self::named(head)? {
            None if head.method != Method::GET => Err(forbidden(format!(
                "a request that changes something needs the header {CLIENT_HEADER}: the name of \
                 your program"
            ))),
            name => Ok(name),
        }
    }

    /// Refuses a command of another version, if it says its version.
    pub fn check_version(head: &Parts) -> Result<(), ApiFailure> {
        match head.headers.get(VERSION_HEADER) {
            Some(version) if version != VERSION => {
                let version = version.to_str().unwrap_or("?");
                Err(ApiFailure::bad(format!(
                    "version {version} of the API is not spoken here, only {VERSION}: use the same \
                     latchfs for the server and the command"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The name of the client, if it sent one.
    pub fn named(head: &Parts) -> Result<Option<Arc<str>>, ApiFailure> {
        let sent = head.headers.get(CLIENT_HEADER);
        match sent.map(|value| value.to_str().unwrap_or_default().trim()) {
            None => Ok(None),
            Some(name) if name.is_empty() || name.len() > CLIENT_MAX => {
                let why = format!("{CLIENT_HEADER} has 1 to {CLIENT_MAX} characters of ASCII");
                Err(ApiFailure::new(StatusCode::BAD_REQUEST, "bad_request", why))
            }
            Some(name) => Ok(Some(name.into())),
        }
    }
}

/// Whether a request is a call of the API.
pub fn is_api(head: &Parts) -> bool {
    head.uri.path().starts_with("/api/")
}

fn forbidden(message: String) -> ApiFailure {
    ApiFailure::new(StatusCode::FORBIDDEN, "forbidden", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_fresh_and_known_only_whole() {
        let (one, other) = (Token::fresh(), Token::fresh());
        assert_eq!(one.text().len(), 64);
        assert_ne!(one.text(), other.text());
        assert!(one.is(one.text()));
        assert!(!one.is(other.text()) && !one.is("") && !one.is(&one.text()[1..]));
    }

    #[test]
    fn the_packages_speak_this_version_of_the_api() {
        for file in ["clients/python/src/latchfs/_api.py", "clients/node/lib/api.js"] {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.contains(&format!("VERSION = \"{VERSION}\"")), "{file}");
        }
    }
}
