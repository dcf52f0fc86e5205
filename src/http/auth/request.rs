//! The parts of a request that authorisation reads, and the resource that the request addresses.
//!
//! Decides how a query is split and decoded for signing. The server reads the request from the
//! wire, and the router finds account, share and path in it.

use std::net::IpAddr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::rules::Timestamp;

use super::permission::ResourceLevel;
use super::shared_key::Scheme;
use super::signatures::Signatures;

/// A request, as it came over the wire.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'a> {
    pub method: &'a str,
    /// The path, still percent-encoded: it is signed so.
    pub raw_path: &'a str,
    /// The query, still percent-encoded.
    pub raw_query: &'a str,
    /// Names and values in the order they came; names in any case.
    pub headers: &'a [(&'a str, &'a str)],
    /// When it came, by the server's clock, which a test may have turned.
    pub now: Timestamp,
    /// When it came, by the clock that the client has too.
    pub outside: Timestamp,
    /// Whether it came over TLS.
    pub https: bool,
    pub client_ip: IpAddr,
}

impl<'a> RequestView<'a> {
    /// The header's first value, without the blanks around it.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.headers.iter().find(|(sent, _)| sent.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }
}

/// The account that signed a request by Shared Key, as its header `Authorization` has it, before
/// anything is verified.
///
/// The JS SDK leaves the account out of a rename's destination in path style; a router that does
/// not know the first segment as an account takes this one.
pub fn signing_account(authorization: &str) -> Option<&str> {
    let (scheme, rest) = authorization.trim().split_once(' ')?;
    Scheme::of_name(scheme)?;
    Some(rest.trim().split_once(':')?.0)
}

/// The resource that a request addresses, as the router found it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuthTarget<'a> {
    /// The service: what its signatures sign.
    pub signatures: &'static Signatures,
    pub account: &'a str,
    /// The share, container, queue or table, if any.
    pub container: Option<&'a str>,
    /// The path within the container, decoded but otherwise as the client spelled it; empty for
    /// the container itself.
    pub path: &'a str,
    /// The kind of resource.
    pub level: ResourceLevel,
}

/// Parameters of a query: names in lower case, values decoded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SignedQuery {
    pairs: Vec<(String, String)>,
}

impl SignedQuery {
    /// All parameters. An invalid escape is taken literally, as clients do.
    pub fn of(raw: &str) -> Self {
        Self::of_pieces(raw, |_| true)
    }

    /// Without the parameters that the JS SDK does not sign: those with an empty value, or with
    /// a second `=`.
    pub(super) fn as_js_signs(raw: &str) -> Self {
        Self::of_pieces(raw, |piece| {
            piece.split_once('=').is_some_and(|(name, value)| {
                !name.is_empty() && !value.is_empty() && !value.contains('=')
            })
        })
    }

    /// With a blank for each plus, as clients sign that encode a query like a form.
    pub(super) fn as_forms_sign(raw: &str) -> Self {
        Self::of(&raw.replace('+', "%20"))
    }

    fn of_pieces(raw: &str, keep: impl Fn(&str) -> bool) -> Self {
        let pieces = raw.split('&').filter(|piece| !piece.is_empty() && keep(piece));
        let pairs = pieces.map(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            // ASCII alone, as operations read names: another letter that folds to one of ASCII
            // would be signed under a name that no operation knows.
            (decoded(name).to_ascii_lowercase(), decoded(value))
        });
        Self { pairs: pairs.collect() }
    }

    /// From names and values that were never encoded.
    pub(super) fn of_pairs(pairs: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        Self { pairs: pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
    }

    /// The parameter's first value; an empty one counts as none.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.pairs.iter().find(|(sent, _)| sent == name)?;
        (!value.is_empty()).then_some(value)
    }

    pub(super) fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }
}

/// Percent-decoded once; a plus stays one.
pub(super) fn decoded(raw: &str) -> String {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = tail.first_chunk().filter(|_| first == b'%').and_then(|&pair| hex_byte(pair));
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_byte(digits: [u8; 2]) -> Option<u8> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(value(digits[0])? << 4 | value(digits[1])?).ok()
}

/// Percent-encoded for a query: all but letters, digits and `-._~`.
pub(super) fn encoded(text: &str) -> String {
    const ENCODED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, &ENCODED).to_string()
}
