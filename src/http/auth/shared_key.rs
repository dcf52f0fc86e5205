//! Shared Key and Shared Key Lite: the text that is signed, and whether a signature is of it.
//!
//! Decides the strings to sign, which deviations of real clients are accepted, and how far a
//! client's clock may be off. The router finds the account that a request addresses.
//!
//! The path is signed as sent, behind the account: in path style the
//! account thus comes twice, and the JS SDK's rename without an account needs nothing special.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use super::credential::{Credential, Signer};
use super::error::AuthError;
use super::request::{RequestView, SignedQuery};
use crate::rules::named::named;
use crate::rules::time;

/// How far a client's clock may be off.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_mins(15);

/// Headers of the service begin with it.
const SERVICE_PREFIX: &[u8] = b"x-ms-";

/// Room for most texts to sign.
const TEXT_BYTES: usize = 512;

const ENCODING: &str = "content-encoding";
const LANGUAGE: &str = "content-language";

named! {
    /// Which of the two texts is signed.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Scheme,
    /// The name in the header `Authorization`.
    name: &'static str {
        /// All standard headers and the whole query.
        SharedKey = "SharedKey",
        /// Few headers, and of the query `comp` alone.
        SharedKeyLite = "SharedKeyLite",
    }
}

impl Scheme {
    /// The scheme of this name in the header `Authorization`, in any case.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scheme| scheme.name().eq_ignore_ascii_case(name))
    }

    /// The lines between the verb and the `x-ms-` headers. The date is not among them when
    /// `x-ms-date` is sent.
    const fn headers(self) -> &'static [&'static str] {
        match self {
            Self::SharedKey => &[
                ENCODING,
                LANGUAGE,
                "content-length",
                "content-md5",
                "content-type",
                "date",
                "if-modified-since",
                "if-match",
                "if-none-match",
                "if-unmodified-since",
                "range",
            ],
            Self::SharedKeyLite => &["content-md5", "content-type", "date"],
        }
    }
}

/// The value of `Authorization` with which `account` signs the request.
pub fn sign(request: &RequestView<'_>, account: &Credential, scheme: Scheme) -> String {
    let signature = account.key().sign(&string_to_sign(request, account.name(), scheme));
    format!("{} {}:{signature}", scheme.name(), account.name())
}

/// The text that a client by the book signs.
pub fn string_to_sign(request: &RequestView<'_>, account: &str, scheme: Scheme) -> String {
    let (order, swapped) = (HeaderOrder::Bytes, false);
    Text { request, account, scheme, order, swapped }.with(&SignedQuery::of(request.raw_query))
}

/// Takes a text that may have been signed; true if it was, and no other is needed.
pub type IsSigned<'a> = &'a mut dyn FnMut(String) -> bool;

/// Gives the texts that known clients sign to `is_signed` until it takes one, the likeliest first:
/// the whole query, then without what the JS SDK leaves out, then with a plus as a blank; each in
/// both orders of headers. The JS SDK also signs the language before the encoding, which matters
/// where either is sent.
pub fn texts(
    request: &RequestView<'_>,
    account: &str,
    scheme: Scheme,
    is_signed: IsSigned<'_>,
) -> bool {
    let mut with = |query: &SignedQuery| {
        let mut orders = [HeaderOrder::Bytes, HeaderOrder::HyphenLight].into_iter();
        orders.any(|order| {
            let text = Text { request, account, scheme, order, swapped: false };
            is_signed(text.with(query))
                || (text.can_be_swapped() && is_signed(Text { swapped: true, ..text }.with(query)))
        })
    };
    let raw = request.raw_query;
    with(&SignedQuery::of(raw))
        || with(&SignedQuery::as_js_signs(raw))
        || (raw.contains('+') && with(&SignedQuery::as_forms_sign(raw)))
}

/// As [`texts`]. Some clients sign a request to the secondary location as if it went to the
/// primary; the Python client puts the account into such a path twice, and signs it once.
pub(super) fn texts_of_queues(
    request: &RequestView<'_>,
    account: &str,
    scheme: Scheme,
    is_signed: IsSigned<'_>,
) -> bool {
    if texts(request, account, scheme, is_signed) {
        return true;
    }
    let secondary = format!("/{account}-secondary");
    let Some(rest) = request.raw_path.strip_prefix(&secondary) else { return false };
    [&format!("/{account}{rest}"), rest]
        .into_iter()
        .any(|raw_path| texts(&RequestView { raw_path, ..*request }, account, scheme, is_signed))
}

/// Whether `signature` is one of `account`'s on one of `texts`, and the request not too old: the
/// client whose key made it, if it was none of the account's own.
pub(super) fn verify(
    request: &RequestView<'_>,
    account: &Credential,
    texts: impl FnOnce(IsSigned<'_>) -> bool,
    signature: &str,
) -> Result<Option<Arc<str>>, AuthError> {
    let (mut first, mut signer) = (None, None);
    texts(&mut |text| {
        signer = account.signer(&text, signature);
        first.get_or_insert(text);
        signer.is_some()
    });
    let Some(Signer { client }) = signer else {
        let string_to_sign = first.unwrap_or_default();
        return Err(AuthError::SignatureMismatch { string_to_sign });
    };
    check_date(request)?;
    Ok(client)
}

/// A request's date, from `x-ms-date` or else `Date`, must be near the server's.
fn check_date(request: &RequestView<'_>) -> Result<(), AuthError> {
    let sent = request.header("x-ms-date").or_else(|| request.header("date"));
    let sent = sent.ok_or(AuthError::DateMissing)?;
    let date = time::parse_rfc1123(sent).ok_or_else(|| AuthError::DateBad(sent.to_owned()))?;
    let now = request.outside;
    if now.since(date).max(date.since(now)) > CLOCK_SKEW_MAX {
        return Err(AuthError::DateSkewed { sent: sent.to_owned(), now });
    }
    Ok(())
}

/// The parts of a string to sign, without the query.
struct Text<'a> {
    request: &'a RequestView<'a>,
    account: &'a str,
    scheme: Scheme,
    order: HeaderOrder,
    /// The language comes before the encoding.
    swapped: bool,
}

impl Text<'_> {
    /// True if the order of encoding and language makes a difference.
    fn can_be_swapped(&self) -> bool {
        self.scheme == Scheme::SharedKey
            && self.request.header(ENCODING) != self.request.header(LANGUAGE)
    }

    fn with(&self, query: &SignedQuery) -> String {
        let mut text = String::with_capacity(TEXT_BYTES);
        text.push_str(&self.request.method.to_ascii_uppercase());
        text.push('\n');
        for name in self.scheme.headers() {
            let name = match *name {
                ENCODING if self.swapped => LANGUAGE,
                LANGUAGE if self.swapped => ENCODING,
                name => name,
            };
            text.push_str(self.standard_header(name));
            text.push('\n');
        }
        self.push_service_headers(&mut text);
        text.push('/');
        text.push_str(self.account);
        // A URL without a path is sent, and signed, as the root.
        text.push_str(if self.request.raw_path.is_empty() { "/" } else { self.request.raw_path });
        match self.scheme {
            Scheme::SharedKey => push_query(&mut text, query),
            Scheme::SharedKeyLite => {
                if let Some(comp) = query.get("comp") {
                    text.push_str("?comp=");
                    text.push_str(comp);
                }
            }
        }
        text
    }

    fn standard_header(&self, name: &str) -> &str {
        let replaced = name == "date" && self.request.header("x-ms-date").is_some();
        match self.request.header(name) {
            Some("0") if name == "content-length" => "",
            Some(value) if !replaced => value,
            _ => "",
        }
    }

    /// `name:value` for each `x-ms-` header, an empty value too; one sent twice is one with its
    /// values joined, as HTTP has it.
    fn push_service_headers(&self, text: &mut String) {
        let mut headers: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::new();
        for (name, value) in self.request.headers {
            let start = name.as_bytes().get(..SERVICE_PREFIX.len());
            if !start.is_some_and(|start| start.eq_ignore_ascii_case(SERVICE_PREFIX)) {
                continue;
            }
            // Most servers and clients have them in lower case already.
            let upper = name.bytes().any(|byte| byte.is_ascii_uppercase());
            let name = if upper { Cow::Owned(name.to_ascii_lowercase()) } else { (*name).into() };
            match headers.iter_mut().find(|(before, _)| *before == name) {
                Some((_, values)) => {
                    let values = values.to_mut();
                    values.push(',');
                    values.push_str(value.trim());
                }
                None => headers.push((name, value.trim().into())),
            }
        }
        headers.sort_by(|(one, _), (other, _)| self.order.compare(one, other));
        for (name, value) in headers {
            text.push_str(&name);
            text.push(':');
            text.push_str(&value);
            text.push('\n');
        }
    }
}

/// A line for each name, the values of one name sorted and joined.
fn push_query(text: &mut String, query: &SignedQuery) {
    let mut pairs: Vec<_> = query.pairs().iter().collect();
    pairs.sort();
    let mut before = None;
    for (name, value) in pairs {
        if before == Some(name) {
            text.push(',');
        } else {
            text.push('\n');
            text.push_str(name);
            text.push(':');
        }
        text.push_str(value);
        before = Some(name);
    }
}

/// A way to sort header names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HeaderOrder {
    Bytes,
    /// By letters and digits first, by the places of hyphens second.
    HyphenLight,
}

/// The characters of header names that have a weight of their own, lightest first.
const BY_WEIGHT: &[u8] = b"!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz";

impl HeaderOrder {
    /// Compares two names in lower case.
    pub(super) fn compare(self, one: &str, other: &str) -> Ordering {
        match self {
            Self::Bytes => one.cmp(other),
            Self::HyphenLight => {
                weights(one).cmp(weights(other)).then_with(|| marks(one).cmp(marks(other)))
            }
        }
    }
}

/// Hyphens and apostrophes weigh nothing.
fn weights(name: &str) -> impl Iterator<Item = usize> {
    name.bytes().filter_map(|byte| BY_WEIGHT.iter().position(|known| *known == byte))
}

/// Where the names weigh the same, a hyphen comes after everything else.
fn marks(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().map(|byte| match byte {
        b'\'' => 1,
        b'-' => 2,
        _ => 0,
    })
}
