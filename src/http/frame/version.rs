//! Versions of the service: which a request may name, and which its answer names.
//!
//! Any date from the first version on is taken, also newer ones than this program knows: clients
//! are newer than servers. A date that lies more than five years ahead is a mistake.

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderValue};

use super::refusal::Refusal;
use super::service::Service;
use crate::http::request::{Query, Request};
use crate::rules::Timestamp;
use crate::rules::time::utc;

/// The header that names the version.
pub const VERSION: &str = "x-ms-version";

/// The version of an answer to a request without one: a preflight, or an unsigned request.
pub const DEFAULT: &str = "2026-10-06";

/// How many years ahead a version may lie.
const YEARS_AHEAD_MAX: i32 = 5;

/// The version that an answer names: that of the request, or the one its SAS was signed for.
pub fn of_answer(service: &Service, uri: &Uri, headers: &HeaderMap) -> HeaderValue {
    let known = |value: &HeaderValue| {
        value.to_str().is_ok_and(|text| is_version(service.first_version, text))
    };
    let sent = headers.get(VERSION).filter(|value| known(value)).cloned();
    let signed = || {
        let query = Query::read(uri.query()?);
        HeaderValue::from_str(query.get("sv")?).ok().filter(|value| known(value))
    };
    sent.or_else(signed).unwrap_or(HeaderValue::from_static(DEFAULT))
}

/// Refuses a version that is none, and a request signed by its headers that names none where the
/// service asks for one. With `any_version` every value is accepted, and none too.
pub fn check(service: &Service, request: &Request, any_version: bool) -> Result<(), Refusal> {
    match request.header(VERSION)? {
        _ if any_version => Ok(()),
        Some(version) if !is_version(service.first_version, version) => {
            Err(Refusal::header(VERSION, version, "it must be a date"))
        }
        Some(version) if is_far_ahead(version, request.now) => {
            Err(Refusal::header(VERSION, version, "it lies too many years ahead"))
        }
        None if service.needs_version && request.headers.contains_key("authorization") => {
            Err(Refusal::missing_header(VERSION))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether it is a date since the `first` version.
fn is_version(first: &str, text: &str) -> bool {
    text.len() == DEFAULT.len()
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
        && text >= first
}

/// The version is a date, as its form was checked before.
fn is_far_ahead(version: &str, now: Timestamp) -> bool {
    let today = utc(now.0.div_euclid(1_000_000_000));
    let mut parts = version.split('-').map(|part| part.parse().unwrap_or(0));
    let named: [i32; 3] = std::array::from_fn(|_| parts.next().unwrap_or(0));
    named > [today.year() + YEARS_AHEAD_MAX, u8::from(today.month()).into(), today.day().into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::time::parse_iso;

    #[test]
    fn a_version_is_any_date_since_the_first() {
        let is = |text| is_version("2014-02-14", text);
        assert!(is("2014-02-14") && is("2026-10-06") && is("2099-12-31"));
        assert!(!is("2013-08-15") && !is("2026-1-06") && !is("latest") && !is(""));
    }

    #[test]
    fn a_version_may_lie_five_years_ahead_and_not_a_day_more() {
        let now = parse_iso("2026-11-16T00:00:00Z").unwrap();
        assert!(!is_far_ahead("2026-10-06", now) && !is_far_ahead("2031-11-16", now));
        assert!(is_far_ahead("2031-11-17", now) && is_far_ahead("3025-01-01", now));
    }
}
