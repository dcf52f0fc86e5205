//! A request as operations see it: address, query, headers, body.
//!
//! Decides how values are parsed and how a bad one is refused. Query names are compared without
//! regard to case; an empty value counts as absent, since some clients send one.

use std::net::SocketAddr;
use std::ops::Range;
use std::str::FromStr;

use hyper::body::Bytes;
use hyper::header::HeaderMap;
use hyper::{Method, Uri};
use percent_encoding::percent_decode;

use super::header_case::META;
use crate::http::auth::RequestView;
use crate::http::frame::address::Address;
use crate::http::frame::refusal::Refusal;
use crate::rules::time::iso;
use crate::rules::{LeaseId, Metadata, Timestamp};

/// A request, its body received.
#[derive(Debug)]
pub struct Request {
    pub method: Method,
    /// Its target as it was sent.
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub peer: SocketAddr,
    /// Whether it came over TLS.
    pub https: bool,
    /// The resource that the request names.
    pub address: Address,
    /// The ID that its answer has.
    pub id: String,
    /// When it came, by the server's clock, which a test may have turned.
    pub now: Timestamp,
    /// When it came, by the clock that the client has too.
    pub outside: Timestamp,
    pub query: Query,
    /// Its metadata headers as they were spelled.
    pub spelled: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what follows the question mark.
    pub fn read(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name).to_ascii_lowercase(), decoded(value))
        });
        Self(pairs.collect())
    }

    /// The value of a parameter, unless it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(known, _)| known == name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether a parameter is there, with a value or without.
    pub fn names(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// The words of a parameter that is a list, in lower case. One that is given several times is
    /// one list.
    pub fn words(&self, name: &str) -> Vec<String> {
        let values = self.0.iter().filter(|(known, _)| known == name).map(|(_, value)| value);
        let words = values.flat_map(|value| value.split(','));
        let words = words.map(|word| word.trim().to_ascii_lowercase());
        words.filter(|word| !word.is_empty()).collect()
    }
}

/// The lines that a message ends with: the ID of the request and the time.
pub fn stamp(id: &str, now: Timestamp) -> String {
    format!("RequestId:{id}\nTime:{}", iso(now))
}

/// As forms are encoded: a plus is a blank.
fn decoded(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_decode(text.as_bytes()).decode_utf8_lossy().into_owned()
}

impl Request {
    /// The lines that a message to the client ends with.
    pub fn stamp(&self) -> String {
        stamp(&self.id, self.now)
    }

    /// The value of a header, if it is there and not empty.
    pub fn header(&self, name: &str) -> Result<Option<&str>, Refusal> {
        let Some(value) = self.headers.get(name) else { return Ok(None) };
        let text = std::str::from_utf8(value.as_bytes())
            .map_err(|_| Refusal::header(name, "", "it is no UTF-8"))?;
        Ok(Some(text.trim()).filter(|text| !text.is_empty()))
    }

    /// The value of a header that must be there.
    pub fn required(&self, name: &str) -> Result<&str, Refusal> {
        self.header(name)?.ok_or_else(|| Refusal::missing_header(name))
    }

    /// The value of a header, read as something.
    pub fn parsed<T: FromStr>(&self, name: &str, what: &str) -> Result<Option<T>, Refusal> {
        let Some(text) = self.header(name)? else { return Ok(None) };
        let value = text.parse().map_err(|_| Refusal::header(name, text, what))?;
        Ok(Some(value))
    }

    /// A header that is `true` or `false`; absent is false.
    pub fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.header(name)? {
            None => Ok(false),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(Refusal::header(name, text, "it must be true or false")),
        }
    }

    pub fn lease_id(&self, name: &str) -> Result<Option<LeaseId>, Refusal> {
        self.parsed(name, "a lease ID must be a GUID")
    }

    /// All `x-ms-meta-*` headers. A stray `x-ms-meta` is none of them.
    pub fn metadata(&self) -> Result<Metadata, Refusal> {
        let mut metadata = Metadata::default();
        for name in self.headers.keys() {
            if !name.as_str().starts_with(META) {
                continue;
            }
            let spelled =
                self.spelled.iter().find(|given| name.as_str().eq_ignore_ascii_case(given));
            let key = &spelled.map_or(name.as_str(), String::as_str)[META.len()..];
            let values: Result<Vec<_>, _> = self
                .headers
                .get_all(name)
                .iter()
                .map(|value| std::str::from_utf8(value.as_bytes()).map(str::trim))
                .collect();
            let values = values.map_err(|_| {
                Refusal::bad("InvalidMetadata", format!("The metadata {key} is no UTF-8."))
            })?;
            metadata.insert(key, values.join(","));
        }
        Ok(metadata)
    }

    /// The range of bytes asked for; `x-ms-range` goes before `Range`.
    pub fn range(&self) -> Result<Option<Range<u64>>, Refusal> {
        for name in ["x-ms-range", "range"] {
            if let Some(text) = self.header(name)? {
                return byte_range(text)
                    .map(Some)
                    .ok_or_else(|| Refusal::header(name, text, "it must be bytes=FIRST-LAST"));
            }
        }
        Ok(None)
    }

    /// Names and values of all headers that are text.
    pub fn header_pairs(&self) -> Vec<(&str, &str)> {
        let pairs = self.headers.iter();
        pairs
            .filter_map(|(name, value)| {
                Some((name.as_str(), std::str::from_utf8(value.as_bytes()).ok()?))
            })
            .collect()
    }

    /// The request as authorisation sees it.
    pub fn view<'a>(&'a self, headers: &'a [(&'a str, &'a str)]) -> RequestView<'a> {
        RequestView {
            method: self.method.as_str(),
            raw_path: self.uri.path(),
            raw_query: self.uri.query().unwrap_or_default(),
            headers,
            now: self.now,
            outside: self.outside,
            https: self.https,
            client_ip: self.peer.ip(),
        }
    }

    /// How many entries a page is to have.
    pub fn page_size(&self, most: usize) -> Result<usize, Refusal> {
        const NAME: &str = "maxresults";
        let Some(text) = self.query.get(NAME) else { return Ok(most) };
        let number: i64 =
            text.parse().map_err(|_| Refusal::query(NAME, text, "it must be a number"))?;
        match usize::try_from(number) {
            Ok(number @ 1..) => Ok(number.min(most)),
            _ => Err(Refusal {
                code: crate::http::frame::refusal::Code::Is("OutOfRangeQueryParameterValue"),
                ..Refusal::query(NAME, text, "it must be at least 1")
            }),
        }
    }
}

/// Reads `bytes=FIRST-LAST`, or `bytes=FIRST-` for all that follows.
pub fn byte_range(text: &str) -> Option<Range<u64>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().ok())?
    };
    let first = number(first)?;
    if last.is_empty() {
        return Some(first..u64::MAX);
    }
    let last = number(last)?;
    (first <= last).then(|| first..last.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded_once_and_names_have_any_case() {
        let query = Query::read("restype=Share&PREFIX=a%2520+b&include=&x");
        assert_eq!(query.get("prefix"), Some("a%20 b"));
        assert_eq!(query.get("restype"), Some("Share"));
        assert_eq!(query.get("include"), None);
        assert_eq!(query.get("x"), None);
    }

    #[test]
    fn a_range_has_two_ends_or_goes_on() {
        assert_eq!(byte_range("bytes=0-9"), Some(0..10));
        assert_eq!(byte_range("bytes=5-"), Some(5..u64::MAX));
        for bad in ["", "bytes=", "bytes=-5", "bytes=9-0", "bytes=+1-2", "0-9", "bytes=a-b"] {
            assert_eq!(byte_range(bad), None, "{bad}");
        }
    }
}
